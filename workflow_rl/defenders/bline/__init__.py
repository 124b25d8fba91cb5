"""Exact planning against B_line: all games as one graph, what an order costs in it, and what can be known of it."""
