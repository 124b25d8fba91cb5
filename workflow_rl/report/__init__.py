"""A run as one page, an episode as a story."""
