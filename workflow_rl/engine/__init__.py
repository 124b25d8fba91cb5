"""The compiled rules of CAGE Challenge 2: state, chance, reset, step. Knows nothing of workflows or learning."""

from workflow_rl.engine.chance import Chance, Draw, force, sample, seed_one
from workflow_rl.engine.state import State, allocate, reset_one, state_dtype
from workflow_rl.engine.step import step_one
from workflow_rl.engine.tables import Tables, compile_tables, tables_dtype

__all__ = [
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
    "state_dtype",
    "step_one",
    "tables_dtype",
]
