"""Networks in the schema of CybORG 2.1: reading, writing, and what genuine CybORG can play."""
