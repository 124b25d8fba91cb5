"""Studies: comparisons at equal budget with intervals."""
