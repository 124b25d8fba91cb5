"""Measurements behind the figures in README and docs; each stores its result under results/."""
