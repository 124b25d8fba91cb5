"""Measurements behind ``workflow-rl bench``: speed of environments and training, regret of the search."""
