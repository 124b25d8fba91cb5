"""Studies: comparisons at equal budget, with intervals, that anyone can run again; see docs/results.md."""
