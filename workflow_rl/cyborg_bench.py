"""Measures genuine CybORG, in a process of its own: ``python -m workflow_rl.cyborg_bench RED SECONDS`` prints JSON."""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from workflow_rl.cyborg_scenario import cyborg_scenario
from workflow_rl.scenario_file import load_scenario

EPISODE = 100


def make_cyborg(red_agent: str) -> Any:
    """Genuine CybORG with our scenario, behind its own ChallengeWrapper."""
    from csle_cyborg.agents.simple_agents.b_line import B_lineAgent
    from csle_cyborg.agents.simple_agents.meander import RedMeanderAgent
    from csle_cyborg.agents.simple_agents.sleep_agent import SleepAgent
    from csle_cyborg.agents.wrappers.challenge_wrapper import ChallengeWrapper
    from csle_cyborg.main import Main

    red = {"bline": B_lineAgent, "meander": RedMeanderAgent, "sleep": SleepAgent}[red_agent]
    cyborg = Main(cyborg_scenario(load_scenario()), "sim", agents={"Red": red})
    return ChallengeWrapper(env=cyborg, agent_name="Blue")


def measure(red_agent: str, seconds: float) -> dict[str, float]:
    """Plays whole episodes with uniform actions for at least ``seconds``; resets are not timed."""
    env = make_cyborg(red_agent)
    random.seed(0)
    actions = random.Random(1)
    env.reset()
    env.step(0)
    steps, elapsed = 0, 0.0
    while elapsed < seconds:
        env.reset()
        start = time.perf_counter()
        for _ in range(EPISODE):
            env.step(actions.randrange(load_scenario().n_actions))
        elapsed += time.perf_counter() - start
        steps += EPISODE
    return {"steps_per_s": steps / elapsed}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], float(sys.argv[2]))))
