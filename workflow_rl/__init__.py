"""Workflow search for autonomous cyber defence."""

__version__ = "0.1.0"
