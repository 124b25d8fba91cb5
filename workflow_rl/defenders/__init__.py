"""Policies by name, the expert and the champion, the official protocol, export."""
