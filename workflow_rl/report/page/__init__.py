"""The page itself: templates, style, script, and what they need besides the run."""
