"""The defenders of the results page: how well they defend, where that holds, and why scores were hard to reproduce.

python -m benchmarks champion table       # expert, learned and original by the official protocol, both editions
python -m benchmarks champion cyborg      # the same games on csle-cyborg (current edition) and on the engine
python -m benchmarks champion original    # trains the preset `original`, for the table
python -m benchmarks champion editions    # each defender by the rules of the edition it was not made for
python -m benchmarks champion wrapper     # observations as the winning entry's own wrapper makes them
python -m benchmarks champion clock       # what an expert that knew the length of the episode would save
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import main
from benchmarks.results import source_digest
from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.defenders.names import DATA, Asked, challenge
from workflow_rl.defenders.protocol import evaluate_table, reference_policy
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.engine.state import NOT_EXPLOITABLE, SESSION
from workflow_rl.engine.tables import EXPLOIT, SCAN
from workflow_rl.envs.blue import Policy, view_of
from workflow_rl.envs.cyborg_sim import NATIVE, Backend
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.game import Games
from workflow_rl.envs.memory import FIRST_DECOY, MEMORY_DTYPE, N_HOSTS, RESTORE, USER0
from workflow_rl.envs.views import begin_some, remember_all
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.training.evaluation import policy_of
from workflow_rl.training.trainer import train_workflow

EDITIONS = ("current", "leaderboard")
REDS = ("bline", "meander", "sleep")
GAMES, CYBORG_GAMES, SEED = 10_000, 400, 20_261_116  # no choice is based on this seed
ORIGINAL = Path("runs") / f"original-{source_digest()}"  # trained once


def _quiet(_: float) -> None:
    """Ignores progress."""


def champion(edition: str) -> Policy:
    """The champion that ships with the package."""
    return policy_of(DATA / f"champion-{edition}.safetensors", "", load_network())


def _games(edition: str) -> Games:
    return Games(load_network(), ",".join(REDS), edition, 100)


def short(table: dict[str, Any]) -> dict[str, Any]:
    """Cells and totals only."""
    return {name: table[name] for name in ("cells", "total", "total_standard_error")}


def official(policy: str, edition: str, backend: Backend = NATIVE, games: int = GAMES) -> dict[str, Any]:
    """The official table of a defender by name."""
    return challenge(Asked(policy, "", games, load_network(), SEED, edition), backend, _quiet)


def table() -> dict[str, Any]:
    """Champion, expert and the policy of the preset `original`."""
    found = {}
    for edition in EDITIONS:
        found[edition] = {name: short(official(name, edition)) for name in ("champion", "expert")}
        found[edition]["original"] = short(official(str(_original(edition)), edition))
    return {"games": GAMES, "seed": SEED, "editions": found}


def original() -> dict[str, Any]:
    """The preset `original` as it is: one general policy, 100,000 episodes, here against both attackers in turn."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        runs = list(pool.map(_original, EDITIONS))
    return {run.name: json.loads((run / "result.json").read_text("utf-8")) | {"run": ""} for run in runs}


def _original(edition: str) -> Path:
    """The run of the preset `original`; it is trained if it is not there."""
    place = ORIGINAL / edition
    if not (place / "result.json").exists():
        shutil.rmtree(place, ignore_errors=True)
        config = make_config("original", red_agent="bline,meander", edition=edition)
        with closing(Run.create(place, config, copy_of(load_network()))) as run:
            train_workflow(config, run)
    return place


def cyborg() -> dict[str, Any]:
    """The official table on genuine CybORG."""
    backend = Backend("cyborg", jobs=2)
    found = {}
    for name in ("champion", "expert"):
        table = official(name, "current", backend, CYBORG_GAMES)
        apart = [value for row in table["difference"].values() for value in row.values()]
        largest = max(math.inf if value is None else abs(value) for value in apart)
        found[name] = short(table) | {"native": table["native"], "difference": table["difference"]}
        found[name] |= {"largest_difference": largest, "cyborg": table["cyborg"]}
    return {"games": CYBORG_GAMES, "seed": SEED, "policies": found}


def editions() -> dict[str, Any]:
    """Defenders made for one edition, under the rules of both."""
    found: dict[str, Any] = {}
    for rules in EDITIONS:
        for made_for in EDITIONS:
            blues = {"champion": champion(made_for), "expert": reference_policy("expert", load_network(), made_for)}
            for name, blue in blues.items():
                table = evaluate_table(blue, _games(rules), GAMES, SEED)
                found.setdefault(name, {}).setdefault(rules, {})[f"made for {made_for}"] = short(table)
    return {"games": GAMES, "seed": SEED, "policies": found}


def play(
    blue: Policy, red: str, edition: str, n_games: int, seen: Callable[..., np.ndarray], act: Callable[..., np.ndarray]
) -> np.ndarray:
    """Returns (n_games, 3) where ``seen`` changes the observations and ``act`` the actions."""
    envs = CageVectorEnv(n_games, red_agent=red, edition=edition, max_steps=None)
    envs.reset(seed=(np.arange(n_games) + SEED).tolist())
    memories, generator = np.zeros(n_games, MEMORY_DTYPE), np.random.default_rng(SEED)
    begin_some(memories, np.zeros(len(memories), np.int64), np.ones(n_games, bool))
    packed, total, returns = envs.packed_observations[:, 0], np.zeros(n_games), []
    for step in range(1, max(CHALLENGE_LENGTHS) + 1):
        actions = act(blue(memories if view_of(blue).remembers else packed[:, None], generator), step)
        total += envs.step(actions)[1]
        packed = seen(envs.packed_observations[:, 0], envs.snapshot(), memories, actions)
        remember_all(memories, actions, packed)
        if step in CHALLENGE_LENGTHS:
            returns.append(total.copy())
    return np.stack(returns, axis=1)


def as_the_winners_wrapper(
    packed: np.ndarray, states: np.ndarray, memories: np.ndarray, actions: np.ndarray
) -> np.ndarray:
    """A decoy that blue places in the same step hides nothing: what the challenge's wrapper shows as None is a Scan."""
    hosts, decoys = (actions - FIRST_DECOY) % N_HOSTS, (actions - FIRST_DECOY) // N_HOSTS
    placing = (actions >= FIRST_DECOY) & (actions < RESTORE)
    new = placing & (memories["decoys"][np.arange(len(actions)), hosts] >> decoys & 1 == 0)
    placed = new & (states["decoys"][np.arange(len(actions)), hosts] >> np.where(placing, decoys, 0) & 1 == 1)
    scanned = (states["red_action"] == SCAN) & (states["scan_empty"] == 0)
    unseen = (states["red_action"] == EXPLOIT) & np.isin(states["exploit_result"], (SESSION, NOT_EXPLOITABLE))
    hidden = placed & (scanned | unseen) & (states["red_target"] == hosts) & (packed >> (4 * hosts) & 3 == 0)
    return np.where(hidden, packed | 1 << (4 * hosts), packed)


def wrapper() -> dict[str, Any]:
    """The same games and defenders under both wrappers; differences have the error of paired games."""
    found: dict[str, Any] = {}
    for edition in EDITIONS:
        blues = {
            "champion": champion(edition),
            "expert": reference_policy("expert", load_network(), edition),
            "original": policy_of(_original(edition), "", load_network()),
        }
        for name, blue in blues.items():
            tables, apart = [], []
            for red in ("bline", "meander"):
                both = [
                    play(blue, red, edition, GAMES, seen, lambda actions, _: actions)
                    for seen in (lambda packed, *_: packed, as_the_winners_wrapper)
                ]
                tables.append(both)
                apart.append((both[1] - both[0]).sum(axis=1))
            totals = [sum(float(pair[i].mean(axis=0).sum()) for pair in tables) for i in (0, 1)]
            error = float(np.sqrt(sum(one.var(ddof=1) / len(one) for one in apart)))
            found.setdefault(edition, {})[name] = {
                "challenge_wrapper": totals[0],
                "winners_wrapper": totals[1],
                "difference": totals[1] - totals[0],
                "standard_error": error,
            }
    return {"games": GAMES, "seed": SEED, "editions": found}


def clock() -> dict[str, Any]:
    """An expert that stops to restore user hosts some steps, and anything in the very last step, before the end.

    Each length is played on its own, with the number of steps that is best for it: what the length is worth to know.
    """
    found: dict[str, Any] = {}
    for edition in EDITIONS:
        expert, saved = reference_policy("expert", load_network(), edition), {}
        for red in ("bline", "meander"):
            plain = play(expert, red, edition, GAMES, lambda packed, *_: packed, lambda actions, _: actions)
            for column, length in enumerate(CHALLENGE_LENGTHS):
                best = float(plain[:, column].mean())
                for quiet in (2, 5, 10, 15, 20):

                    def act(actions: np.ndarray, step: int, length: int = length, quiet: int = quiet) -> np.ndarray:
                        user = actions >= RESTORE + USER0
                        stop = (user & (step > length - quiet)) | ((actions >= RESTORE) & (step == length))
                        return np.where(stop, 0, actions)

                    returns = play(expert, red, edition, GAMES, lambda packed, *_: packed, act)
                    best = max(best, float(returns[:, column].mean()))
                saved[f"{red} {length}"] = best - float(plain[:, column].mean())
        found[edition] = {"by_cell": saved, "total": sum(saved.values())}
    return {"games": GAMES, "seed": SEED, "editions": found}


if __name__ == "__main__":
    main("champion")
