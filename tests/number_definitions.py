"""Numbers of the documents that are no measurements, each as a phrase with its reason.

A phrase is taken from the text, so that it excuses its number only where that is what is meant. Where the program has
the number, the phrase is made of it: when it changes, the document must follow.
"""

from __future__ import annotations

import ast
from math import factorial
from typing import Any

import numpy as np

from tests.conftest import DATA, ROOT
from tests.mutants import SOURCE_MUTANTS, TABLE_MUTANTS
from workflow_rl.config import CHALLENGE_LENGTHS, VERSION, SearchConfig, TrainConfig
from workflow_rl.engine.network import LARGE as LARGE_ROOM
from workflow_rl.engine.network import MIDDLE as MIDDLE_ROOM
from workflow_rl.engine.network import SMALL as SMALL_ROOM
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.check import CAPACITY, LINES
from workflow_rl.engine.state import state_dtype
from workflow_rl.envs.memory import LONGEST_IDLE, N_BITS, N_HOSTS, OBSERVATION_BITS, SMALL_BITS
from workflow_rl.fidelity.traces import TRACE_PORTS, TRACE_SCANNED_BIT
from workflow_rl.presets import MANY_HOSTS, ON_CYBORG, PRESETS, make_config


def constant(file: str, name: str) -> Any:
    """A constant of a source file, without its imports, which take seconds."""
    for node in ast.parse((ROOT / file).read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name) and target.id == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{file} has no constant {name}")


NETWORK = load_network()
N_ORDERS = factorial(len(NETWORK.unit_types))
N_DECOY_ACTIONS = len(NETWORK.decoys) * N_HOSTS
SHORT, MIDDLE, LONG = CHALLENGE_LENGTHS
THRESHOLD = f"{100 * TrainConfig.compliance_threshold:.0f} %"
N_EVALUATED = f"{TrainConfig.n_eval_episodes:,}"
MOST_UPDATES = TrainConfig.max_episodes  # an update is an episode of each environment
MOST_FITTED = constant("workflow_rl/search/gp.py", "MOST_FITTED")
ROUNDS_FROM = 2 * constant(
    "workflow_rl/search/workflow_search.py", "ROUNDS"
)  # with fewer in flight a round is one suggestion
N_WATCHED = constant("workflow_rl/report/story.py", "N_EPISODES")
GAMES_OF_STUDY = 2000  # tests/test_numbers.py would not excuse another: baselines.py, `games`
N_SAMPLES = sum(len(np.load(path)["n_steps"]) for path in DATA.glob("sample-*.npz"))
THROWN_AWAY = "a setting of an experiment that was not kept"
THE_GAME, THE_ORDERS, THE_PROTOCOL = "a rule of the game", "all orders of the unit types", "lengths of the challenge"
A_SETTING, STORAGE = "a default setting", "a width in memory"


def preset_row(name: str) -> str:
    """How a row of the table of presets must begin."""
    config = make_config(name)
    batch = f"{config.batch:,}"
    if config.n_envs == 1:
        batch = f"{config.update_steps // config.max_steps} episode" + "s" * (config.update_steps > config.max_steps)
    batch += " transitions" * (name == "workflow")
    batch += f", minibatches of {config.minibatch}" * (config.minibatch > 0)
    return f"| `{name}` | {config.n_envs:,} | {batch} | {config.epochs} |"


EVERYWHERE = {
    "CybORG 2.1": "its version",
    f"{OBSERVATION_BITS} bits": THE_GAME,
    f"{N_ORDERS} workflows": THE_ORDERS,
    f"{N_ORDERS} orders": THE_ORDERS,
    f"all {N_ORDERS}": THE_ORDERS,
    f"{SHORT}, {MIDDLE} and {LONG} steps": THE_PROTOCOL,
    f"{SHORT}, {MIDDLE}, {LONG} steps": THE_PROTOCOL,
    f"{LONG} steps": THE_PROTOCOL,
    f"{state_dtype().itemsize}-byte": "the state of an environment",
    "64-bit": STORAGE,
    f"{N_EVALUATED} fresh": "games of an evaluation",
    f"{TrainConfig.n_envs} environments": A_SETTING,
}

DEFINITIONS = {
    "README.md": {
        "-54.57": "the official score of the winning entry, published by the challenge",
        "3.11 or newer": "the oldest Python",
        f"at least {THRESHOLD}": "the threshold of compliance",
        f"there are {N_ORDERS}": THE_ORDERS,
        f"{N_ORDERS // 2} of the {N_ORDERS} orders": "half of the orders have a given pair in one sequence",
        "after 30 steps": "the incident of the table",
        "over 100 steps": THE_PROTOCOL,
    },
    "docs/figures.md": {
        "-54.57": "the official score of the winning entry, published by the challenge",
        "largest of 27": "three policies, three opponents, three lengths",
    },
    "CHANGELOG.md": {
        f"[{VERSION}] - 2026-11-19": "our version and the day of its release",
        f"{CAPACITY['hosts']} hosts, {CAPACITY['subnets']} subnets, {CAPACITY['unit_types']} unit types": "limits",
        f"strength of {TrainConfig.alignment_lambda:.0f}": A_SETTING,
        f"over {MANY_HOSTS} hosts": A_SETTING,
        f"{ROUNDS_FROM} evaluations in flight": "from here on a round has two suggestions",
        f"more than {MOST_FITTED} evaluations an evenly spread subset of {MOST_FITTED}": A_SETTING,
    },
    "docs/champion.md": {
        f"{N_BITS} zeros and ones": "size of the memory",
        f"{N_DECOY_ACTIONS} decoy actions by {N_HOSTS}": THE_GAME,
        "cost 0.1 a step": THE_GAME,
        f"for {LONGEST_IDLE} steps": "a limit of a rule of the expert",
        "plays 10,000 games": "n_games of paired_games.py",
        f"{constant('workflow_rl/defenders/paired_games.py', 'KEPT')} of the true states": A_SETTING,
        f"up to {SHORT}, twice up to {MIDDLE}, once up to {LONG}": THE_PROTOCOL,
        f"two layers of {make_config('champion').hidden}": A_SETTING,
        "incident after 30 steps": A_SETTING,
        "B_line, takeover 30": A_SETTING,
        "Meander, takeover 40": A_SETTING,
        "at least 95 %": "when an order is followed",
        f"{make_config('champion').imitate_updates} batches": A_SETTING,
        f"games of {LONG} steps": THE_PROTOCOL,
    },
    "docs/cluster.md": {
        f"every {constant('workflow_rl/search/ray_executor.py', 'CHECKPOINT_SECONDS'):.0f} s": A_SETTING,
        f"{constant('workflow_rl/search/ray_executor.py', 'MOST_MESSAGES')} from all": A_SETTING,
        f"at most {MOST_FITTED} observations": A_SETTING,
        f"{8 * 10_000**2 / 1e9} GB for 10,000": "8 n^2 bytes",
    },
    "docs/cyborg.md": {
        f"in turn: {3 * 3 * 2} have": "three red agents, three blues, two greens",
        f"has {make_config('parallel-25').n_envs})": "the preset",
        f"have {ON_CYBORG['n_eval_episodes']} games": A_SETTING,
        "all 27 differences": "three policies, three opponents, three lengths",
        "25 environments": "setting of the measurement, the preset parallel-25",
        "25 processes": "setting of the measurement, the preset parallel-25",
    },
    "docs/decisions/0001-chance-is-an-argument.md": {"32-bit": STORAGE},
    "docs/decisions/0002-one-record-per-environment.md": {"16-bit": STORAGE},
    "docs/decisions/0006-search.md": {f"searches of {SearchConfig.n_workflows} evaluations": A_SETTING},
    "docs/decisions/0008-report.md": {f"worst of {N_WATCHED}": A_SETTING},
    "docs/decisions/0010-cluster.md": {
        f"From {ROUNDS_FROM} evaluations": "from here on a round has two suggestions",
        f"{constant('workflow_rl/search/strategies.py', 'POOL'):,} best orders": A_SETTING,
    },
    "docs/decisions/0012-time-limit.md": {f"`gae_lambda` {make_config().gae_lambda}": A_SETTING},
    "docs/decisions/0013-repairs.md": {
        f"strength is {TrainConfig.alignment_lambda:.0f}": A_SETTING,
        "With 40, the policy": THROWN_AWAY,
    },
    "docs/decisions/0015-incidents.md": {"have 6 and 24 different": "orders of three and of four unit types"},
    "docs/glossary.md": {
        "version number 2.1": "version of CybORG",
        f"{100 * TrainConfig.compliance_threshold:.0f} % by default": A_SETTING,
    },
    "docs/incidents.md": {
        "after 40 steps": "a setting",
        "each step costs 10 points": THE_GAME,
        "a user host 0.1": THE_GAME,
    },
    "docs/decisions/0014-finalists.md": {
        f"of {TrainConfig.warm_updates} updates": A_SETTING,
        f"at most {MOST_UPDATES} episodes": A_SETTING,
        f"`gamma` {make_config('search').gamma}": A_SETTING,
        f"clip ({make_config('search').clip})": A_SETTING,
        f"{make_config('search').epochs} epochs": A_SETTING,
    },
    "docs/engine.md": {
        f"{state_dtype().itemsize} bytes": "the state of an environment",
        f"fewer than {SMALL_ROOM.hosts} hosts": "the small record",
        f"with {MIDDLE_ROOM.hosts} or {LARGE_ROOM.hosts} bits": "the other records",
    },
    "docs/decisions/0017-your-own-network.md": {
        f"{MIDDLE_ROOM.hosts} and {LARGE_ROOM.hosts} hosts": "the records",
        f"{factorial(CAPACITY['unit_types']) // 10**6} million orders": "12!",
    },
    "docs/own-network.md": {"work for 30": "an example"},
    "docs/fidelity.md": {
        f"{MIDDLE_ROOM.hosts}-bit": STORAGE,
        f"{CAPACITY['hosts']} hosts": "a limit of the program",
        f"sample of {N_SAMPLES} episodes": "the files in tests/data",
        f"{len(TABLE_MUTANTS)} table entries and {len(SOURCE_MUTANTS)} branches": "tests/mutants.py",
        f"play {constant('tests/test_lockstep.py', 'PER_RED')} games": "tests/test_lockstep.py",
        "version number 2.1": "of CybORG",
        "1 in 30,000": "CybORG draws process ids from 1 to 32767",
        f"Hosts 0..{N_HOSTS - 1}": "the trace format",
        f"{OBSERVATION_BITS} observation bits": "the trace format",
        f"0..{NETWORK.n_actions - 1}": "the trace format",
        f"(E, T, {N_HOSTS})": "the trace format",
        f"bits {', '.join(map(str, TRACE_PORTS))}; bit {TRACE_SCANNED_BIT}:": "the trace format",
    },
    "docs/presets.md": {preset_row(name): "the preset" for name in PRESETS}
    | {f"more than {MANY_HOSTS} hosts": A_SETTING}
    | {f"{make_config('original').n_envs * make_config('original').max_episodes:,} episodes": "the preset"},
    "docs/report.md": {
        f"{100 * constant('workflow_rl/search/ranking.py', 'CONFIDENCE'):.0f} % intervals": A_SETTING,
        f"best of {N_WATCHED}": A_SETTING,
        f"{constant('workflow_rl/report/build.py', 'EPISODES')} fresh games": A_SETTING,
    },
    "docs/network.md": {
        f"{CAPACITY['hosts']} hosts": "a limit of the program",
        f"{CAPACITY['ports']} different ports": "a limit of the program",
        f"{CAPACITY['subnets']} subnets": "a limit of the program",
        f"{CAPACITY['unit_types']} unit types": "a limit of the program",
        f"{CAPACITY['red']} programs of red": "a limit of the program",
        f"{LINES} lines each": "a limit of the program",
    },
    "docs/search.md": {
        f"the {factorial(4)} places": "neighbours as a block among three others: 4!",
        f"at most {MOST_UPDATES} episodes": A_SETTING,
        "(95 % for all": "confidence of the comparison",
        f"the {constant('benchmarks/page/answers.py', 'SURE')} standard errors": "ten pairs together",
        "at least 99 %": "the share that was asked for",
        f"after {constant('workflow_rl/studies/bench_search.py', 'LARGE_EVALUATIONS')}": "length of the searches",
        "with 8, 10 and 12 items": "SIZES of benchmarks/problems.py",
    },
    "docs/training.md": {
        f"{N_BITS} bits": "size of the memory",
        f"only {SMALL_BITS - OBSERVATION_BITS} bits": "size of the small memory",
        "1,000 fresh games": "games of the benchmark",
        f"{GAMES_OF_STUDY:,} fresh games": "games of the study",
        "1e-10 in double and 1e-4 in single": "tolerances of tests/test_ppo.py",
    },
}
