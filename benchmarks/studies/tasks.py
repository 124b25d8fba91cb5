"""The tasks of cells by name.

A task with an argument ``place`` receives the path of the policy that it may keep with its cell.
"""

from benchmarks.limit.bline_limit import bline_limit
from benchmarks.limit.meander_estimate import meander_estimate
from benchmarks.studies.curves import curve_ours, curve_sb3
from benchmarks.studies.games import play, play_greedy
from benchmarks.studies.searches import search
from benchmarks.studies.trainings import gradient_noise, train, train_untold, watch_training

__all__ = [
    "bline_limit",
    "curve_ours",
    "curve_sb3",
    "gradient_noise",
    "meander_estimate",
    "play",
    "play_greedy",
    "search",
    "train",
    "train_untold",
    "watch_training",
]
