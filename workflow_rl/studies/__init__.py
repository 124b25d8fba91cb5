"""Studies: questions about the game that are answered by measuring, each with its own files."""
