"""The compiled rules of CAGE Challenge 2: state, chance, reset, step. Knows nothing of workflows or learning."""

from workflow_rl.engine.chance import Chance, Draw, force, sample, seed_one
from workflow_rl.engine.state import STATE_DTYPE, State, allocate, reset_one
from workflow_rl.engine.step import step_one
from workflow_rl.engine.tables import TABLES_DTYPE, Tables, compile_tables

__all__ = [
    "STATE_DTYPE",
    "TABLES_DTYPE",
    "Chance",
    "Draw",
    "State",
    "Tables",
    "allocate",
    "compile_tables",
    "force",
    "reset_one",
    "sample",
    "seed_one",
    "step_one",
]
