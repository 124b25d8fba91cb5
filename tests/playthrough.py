"""Whole episodes as text: plays the blue actions and chance outcomes of a file and writes down what happens.

A file has ``red``, ``green`` and ``edition`` lines, then a table whose columns ``blue`` and ``chance`` are the input
and whose other columns are what the rules make of it. ``python tests/playthrough.py FILE ...`` writes the files anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from workflow_rl.engine import Draw, force
from workflow_rl.engine.chance import ABSENT, GREEN_SLEEPS
from workflow_rl.engine.network import RED_ACTIONS, RED_AGENTS, Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.state import allocate
from workflow_rl.engine.step import reset_envs, step_envs_with
from workflow_rl.engine.tables import compile_tables
from workflow_rl.envs.takeover import takeover_rows

HEADER = "t | blue | red | success | chance | bits | reward"


def play_text(text: str) -> str:
    """Plays the episode described by ``text`` and returns the text with its other columns filled in."""
    network = load_network()
    lines = text.splitlines()
    start = lines.index(HEADER)
    settings = dict(line.split(maxsplit=1) for line in lines[:start] if line and not line.startswith("#"))
    tables = compile_tables(network, settings["edition"])
    states, rewards = allocate(1), np.zeros(1)
    states["red"] = RED_AGENTS.index(settings["red"])
    states["green_acts"] = settings.get("green", "sleep") == "active"
    reset_envs(states, tables, takeover_rows(0, 1), np.ones(1, bool), np.zeros(1, np.uint64), True)
    out = lines[: start + 1]
    for line in lines[start + 1 :]:
        number, blue, _, _, chance, _, _ = (cell.strip() for cell in line.split("|"))
        verb, _, host = blue.partition(" ")
        actions = np.array([network.action_index(verb, host)])
        step_envs_with(states, tables, actions, _draws(network, chance), rewards)
        if states["irregular"][0]:
            raise ValueError(f"line {number}: the rules do not allow this chance outcome: {chance}")
        out.append(" | ".join([number, blue, *_red(network, states[0]), chance, _bits(network, states[0])]))
        out[-1] += f" | {rewards[0]:.1f}"
    return "\n".join(out) + "\n"


def _draws(network: Network, chance: str) -> np.ndarray:
    draws = np.full((1, 4), force(ABSENT), np.int64)
    draws[0, Draw.GREEN] = force(GREEN_SLEEPS)
    exploits = [exploit.name for exploit in network.exploits]
    for word in chance.replace("-", "").split(","):
        name, _, value = word.strip().partition(" ")
        if name == "pick":
            draws[0, Draw.PICK] = force(network.host_names.index(value))
        elif name == "green":
            draws[0, Draw.GREEN] = force(network.host_names.index(value))
        elif name in exploits:
            draws[0, Draw.EXPLOIT] = force(exploits.index(name))
        elif name in ("detected", "undetected"):
            draws[0, Draw.DETECTED] = force(int(name == "detected"))
        elif name:
            raise ValueError(f"unknown chance outcome {word!r}")
    return draws


def _red(network: Network, state: np.void) -> tuple[str, str]:
    action = RED_ACTIONS[state["red_action"]]
    places = network.subnet_names if action == "DiscoverRemoteSystems" else network.host_names
    target = "" if state["red_target"] < 0 else " " + places[state["red_target"]]
    empty = " (empty)" if action == "DiscoverNetworkServices" and state["scan_empty"] else ""
    return action + target, ("no", "yes", "-")[state["red_success"]] + empty


def _bits(network: Network, state: np.void) -> str:
    words = []
    for host, name in enumerate(network.host_names):
        bits = "".join(str(int(state["observation"][0]) >> (4 * host + k) & 1) for k in range(4))
        if bits != "0000":
            words.append(f"{name}={bits}")
    return " ".join(words) or "-"


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(play_text(path.read_text("utf-8")), "utf-8")
