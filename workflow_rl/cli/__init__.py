"""The command line: one file per command, and the only place that prints."""

from workflow_rl.cli.commands import app, main

__all__ = ["app", "main"]
