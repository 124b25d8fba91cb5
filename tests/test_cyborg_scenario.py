"""Our scenario, exported to CybORG's schema, gives the same games as CybORG's own files."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import yaml

from tests.conftest import ORACLE
from workflow_rl.engine.cyborg.exporter import cyborg_scenario
from workflow_rl.engine.network import Network
from workflow_rl.studies.bench import cyborg_speed

pytestmark = pytest.mark.needs("csle_cyborg")

PLAY = """
import json, random, sys, yaml
from csle_cyborg.agents.simple_agents.b_line import B_lineAgent
from csle_cyborg.agents.simple_agents.meander import RedMeanderAgent
from csle_cyborg.agents.simple_agents.sleep_agent import SleepAgent
from csle_cyborg.agents.wrappers.challenge_wrapper import ChallengeWrapper
from csle_cyborg.main import Main
scenario = json.load(open(sys.argv[1])) if sys.argv[1].endswith("json") else yaml.safe_load(open(sys.argv[1]))
games = []
for red in (B_lineAgent, RedMeanderAgent, SleepAgent):
    env = ChallengeWrapper(env=Main(scenario, "sim", agents={"Red": red}), agent_name="Blue")
    for seed in [*range(int(sys.argv[2]) - 1), 203103]:
        random.seed(seed)
        blue = random.Random(seed)
        env.reset()
        for _ in range(100):
            observation, reward, *_ = env.step(blue.randrange(145))
            games.append([int(bit) for bit in observation] + [float(reward)])
print(json.dumps(games))
"""


def games(path: Any, n_seeds: int) -> np.ndarray:
    done = subprocess.run([sys.executable, "-c", PLAY, str(path), str(n_seeds)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.long
@pytest.mark.needs("recordings")
def test_the_exported_scenario_gives_the_same_games_as_cyborgs_own(tmp_path: Any, network: Network) -> None:
    original = ORACLE / "scenario2.merged.yaml"
    ours = tmp_path / "ours.json"
    ours.write_text(json.dumps(cyborg_scenario(network)), "utf-8")
    left, right = games(original, 10), games(ours, 10)
    assert left.shape == (3 * 10 * 100, 53)
    assert np.array_equal(left, right)
    assert np.abs(left[:, -1]).max() > 10


@pytest.mark.needs("recordings")
def test_processes_have_the_numbers_and_sessions_the_order_that_chance_depends_on(network: Network) -> None:
    """A number that is taken is drawn again, which moves all later chance on; game 203103 against Meander is one."""
    original = ORACLE / "scenario2.merged.yaml"
    theirs, ours = yaml.safe_load(original.read_text("utf-8")), cyborg_scenario(network)
    for name, host in theirs["Hosts"].items():
        numbers = [sorted(process["PID"] for process in one["Processes"]) for one in (host, ours["Hosts"][name])]
        assert numbers[0] == numbers[1], name
    for agent in ("Blue", "Green", "Red"):
        sessions = [[one["hostname"] for one in side["Agents"][agent]["starting_sessions"]] for side in (theirs, ours)]
        assert sessions[0] == sessions[1], agent


def test_genuine_cyborg_can_be_measured_with_the_exported_scenario(network: Network) -> None:
    state = random.getstate()
    assert cyborg_speed("bline", 0.2, network) > 0
    assert random.getstate() == state
