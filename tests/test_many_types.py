"""Networks of up to 64 hosts and 12 unit types: trained by both paths alike, remembered, and searched."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import grown
from workflow_rl import CageVectorEnv, UserError
from workflow_rl.config import TrainConfig
from workflow_rl.engine.bait import NO_ACTION, bait_of, useful_decoys
from workflow_rl.engine.network import Network
from workflow_rl.envs import memory
from workflow_rl.envs.game import Games
from workflow_rl.envs.views import View, ViewedEnvs, all_actions, pack_words, unpack_words
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.training.collectors import Collector, Conduct, PlainCollector, Stream, workflow_codes, workflows_of
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.trainer import train_workflow
from workflow_rl.training.workflow import Rota, Workflow, all_workflows, codes_of, draw_orders, universal_workflows

SIZES = [(14, 5), (20, 8), (40, 8), (64, 12)]


def collectors(config: TrainConfig, network: Network) -> tuple[Collector, PlainCollector]:
    """Both ways of collecting the same batches."""
    conduct, stream = Conduct.of(config, network), Stream(3, (1,))
    fast = Collector(Games.of(config, network), config.n_envs, config.update_steps, conduct, stream)
    envs = CageVectorEnv(
        config.n_envs, red_agent=config.red_agent, max_steps=config.max_steps, takeover=config.takeover, network=network
    )
    return fast, PlainCollector(envs, config.update_steps, config.max_steps, conduct).started(stream)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("view", "actions", "kind"),
    [
        ("plain", "full", "general"),
        ("plain", "full", "universal"),
        ("plain", "host-decoy", "workflow"),
        ("short-memory", "full", "workflow"),
        ("short-memory", "host-decoy", "universal"),
    ],
)
def test_both_ways_of_collecting_give_the_same_batch_in_any_network(
    size: tuple[int, int], view: str, actions: str, kind: str
) -> None:
    network = grown(*size)
    workflow = ",".join(reversed(network.unit_types)) if kind == "workflow" else ""
    config = make_config(
        "general", workflow=workflow, universal=kind == "universal", n_envs=6, update_steps=50, max_steps=20, seed=3,
        red_agent="meander", alignment_lambda=20.0, view=view, actions=actions, guard=kind != "general",
        takeover="0" if view == "plain" else "2-18",
    )  # fmt: skip
    left, right = (
        ParallelOrderConditionedPPO(config, workflow_codes(workflows_of(config, network)), network=network)
        for _ in range(2)
    )
    fast, plain = collectors(config, network)
    for _ in range(3):
        mine, theirs = fast.collect(left), plain.collect(right)
        assert np.array_equal(left.codes, right.codes)
        assert np.array_equal(mine.batch.actions, theirs.batch.actions)
        assert np.array_equal(mine.keys[mine.batch.rows], theirs.keys[theirs.batch.rows])
        assert np.array_equal(mine.batch.rewards, theirs.batch.rewards)
        assert np.array_equal(mine.batch.alignment, theirs.batch.alignment)
        assert np.array_equal(mine.batch.ended, theirs.batch.ended)
        assert np.array_equal(mine.final_keys, theirs.final_keys)
        assert np.array_equal(fast.last_keys(), plain.last_keys())
        assert np.array_equal(fast.violations, plain.violations)
        for name in ("repairs", "violations", "idle"):
            one, other = (np.sort(batch.finished_episodes(), order=["env", name])[name] for batch in (mine, theirs))
            assert np.array_equal(np.sort(one), np.sort(other))
    running = mine.inputs.cumulative[: mine.n_rows]
    probabilities = np.diff(running, prepend=0.0, axis=1) / running[:, -1:]
    assert np.abs(probabilities - left.probabilities(mine.keys)).max() < 1e-6
