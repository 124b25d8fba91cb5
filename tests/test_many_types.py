"""Networks of up to 64 hosts and 12 unit types: trained by both paths alike, remembered, and searched."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import grown
from workflow_rl import CageVectorEnv, UserError
from workflow_rl.config import TrainConfig
from workflow_rl.engine.bait import NO_ACTION, bait_of, full_action, useful_decoys
from workflow_rl.engine.network import Network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.envs import inference, memory
from workflow_rl.envs.game import Games
from workflow_rl.envs.views import View, ViewedEnvs, all_actions, pack_words, unpack_words
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.search.finalists import choose_finalists
from workflow_rl.search.gp import OrderGP
from workflow_rl.search.orders import changes
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.search.strategies import make_search
from workflow_rl.training.collectors import Collector, Conduct, PlainCollector, Stream, workflow_codes, workflows_of
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.events import UpdateEvent
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.trainer import train_workflow
from workflow_rl.training.workflow import Rota, all_workflows, codes_of, draw_orders, universal_workflows

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


def test_the_useful_decoys_of_cage2_are_those_of_its_memory(network: Network) -> None:
    bait = bait_of(network)
    for host, row in enumerate(memory.USEFUL.tolist()):
        wanted = [memory.FIRST_DECOY + memory.N_HOSTS * decoy + host for decoy in row if decoy != memory.NOBODY]
        assert [action for action in bait.useful[host].tolist() if action != NO_ACTION] == wanted
    assert len(bait.full) == memory.N_HOST_DECOY
    records = np.zeros(1, memory.MEMORY_DTYPE)
    memory.forget(records[0])
    for action in np.random.default_rng(0).integers(memory.N_HOST_DECOY, size=400).tolist():
        full = int(full_action(bait, records[0]["decoys"], action))
        assert full == memory.full_action(records[0], action)
        inference.remember(records[0], full, 0)


def test_a_decoy_helps_only_where_it_fits_and_no_genuine_service_answers() -> None:
    network = grown(20, 8)
    for host in network.hosts:
        genuine = {(service.type, port) for service in host.services for port in service.ports}
        chosen = useful_decoys(network, host)
        assert not {(decoy.imitates, decoy.opens) for decoy in chosen} & genuine
        weights = [
            max(e.weight for e in network.exploits if (e.type, e.port) == (decoy.imitates, decoy.opens))
            for decoy in chosen
        ]
        assert weights == sorted(set(weights), reverse=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("actions", ["full", "host-decoy"])
def test_what_blue_notes_in_any_network_is_true(size: tuple[int, int], actions: str) -> None:
    network = grown(*size)
    view = View("short-memory", actions, network)
    envs = ViewedEnvs(CageVectorEnv(20, network=network, red_agent="meander", max_steps=40), view)
    envs.reset(seed=0)
    rng, n_hosts = np.random.default_rng(0), len(network.hosts)
    for _ in range(90):
        seen = envs.step(rng.integers(view.n_actions, size=20))[0]
        states = envs.snapshot()
        assert np.array_equal(envs.memories["decoys"], states["decoys"][:, :n_hosts])
        assert np.array_equal(envs.memories["restored"], states["restored"])
        assert np.array_equal(seen[:, view.observed :], states["restored"][:, None] >> np.arange(n_hosts) & 1)
        keys = view.keys(envs.packed_observations)
        assert np.array_equal(seen, unpack_words(keys, view))
        assert np.array_equal(pack_words(seen, view), keys)
    assert states["restored"].any()


def test_the_host_decoy_actions_of_any_network_say_what_they_do() -> None:
    network = grown(20, 8)
    view = View("plain", "host-decoy", network)
    names = [network.action_name(int(action)) for action in all_actions(view)]
    assert len(names) == 1 + 4 * 20 == view.n_actions
    assert (names[0], names[1], names[21], names[-1]) == (
        "Sleep", "Analyse Defender", "Remove Defender", f"Restore {network.host_names[-1]}",
    )  # fmt: skip
    assert all(name.startswith("Decoy") for name in names[41:61])


@pytest.mark.parametrize("path", ["auto", "plain"])
@pytest.mark.parametrize("kind", ["workflow", "universal"])
def test_a_network_of_many_types_is_trained_and_goes_on_as_if_never_interrupted(
    kind: str, path: str, tmp_path: Path
) -> None:
    network = grown(20, 8)
    order = ",".join(network.unit_types) if kind == "workflow" else ""
    config = make_config(
        kind, **({"workflow": order} if order else {}), n_envs=12, max_episodes=6, min_episodes=6, warm_updates=1,
        n_eval_episodes=2, path=path, takeover="0-20", view="short-memory", actions="host-decoy", epochs=1,
        checkpoint_updates=2, guard=True, update_steps=70,
    )  # fmt: skip

    def kill(event: UpdateEvent) -> None:
        if event.phase == "main" and event.update == 5:
            raise KeyboardInterrupt

    with closing(Run.create(tmp_path / "whole", config, copy_of(network))) as run:
        whole = train_workflow(config, run, network=network)
    with closing(Run.create(tmp_path / "killed", config, copy_of(network))) as run:
        with pytest.raises(KeyboardInterrupt):
            train_workflow(config, run, kill, network=network)
        resumed = train_workflow(config, run, network=network)
    assert resumed.mean_return == whole.mean_return
    assert resumed.compliance == whole.compliance
    policy = load_policy(tmp_path / "whole", network)
    assert (policy.net.n_code, policy.net.n_bits, policy.universal) == (64, 100, kind == "universal")


def test_a_universal_training_of_many_types_draws_orders_for_each_episode() -> None:
    rota = Rota(draw_orders(8, 5, np.random.default_rng(0)), 300, True)
    rota.start(4, (1,))
    seen = set()
    for number in range(6):
        before = rota.orders[rota.now].copy()
        codes = rota.begin_batch(np.zeros((1, 0)))
        assert np.array_equal(rota.orders[rota.now], before)  # an episode keeps its order
        assert np.array_equal(codes.reshape(-1, 8, 8).argmax(2), rota.orders)
        ended = np.arange(300) % 3 != number % 3
        rota.end_episodes(ended)
        assert np.array_equal(rota.orders[rota.now[~ended]], before[~ended])
        seen |= {tuple(order) for order in rota.orders[rota.now].tolist()}
    assert len(seen) > 400
    other = Rota(rota.orders, 300, True)
    other.start(4, (1,))
    other.restore(rota.arrays())
    for one in (rota, other):
        one.begin_batch(np.zeros((1, 0)))
    assert np.array_equal(rota.orders, other.orders)
    assert np.array_equal(rota.numbers, other.numbers)


def test_workflows_of_many_types_are_sampled_and_never_listed() -> None:
    network = grown(20, 12)
    chosen = universal_workflows(network)
    assert len(set(chosen)) == 120
    assert chosen == universal_workflows(network)
    assert universal_workflows(grown(14)) == all_workflows(grown(14))
    with pytest.raises(UserError, match="12 unit types have 479,001,600 workflows, too many to treat each: name one"):
        all_workflows(network)
    orders = np.stack([workflow.indices() for workflow in chosen[:3]])
    assert np.array_equal(codes_of(orders), workflow_codes(chosen[:3]))


def worth(order: tuple[str, ...]) -> float:
    return 3.0 * (order.index("a") < order.index("b")) + 2.0 * (order.index("d") < order.index("c"))


def observed(n_items: int, number: int, failed: int) -> tuple[tuple[str, ...], list[tuple[str, ...]], list[float]]:
    """Items, random orders and their values; some trainings of good orders did not converge."""
    rng, items = np.random.default_rng(1), tuple("abcdefghijkl"[:n_items])
    orders = [tuple(items[i] for i in rng.permutation(n_items)) for _ in range(number)]
    values = [worth(order) + 0.2 * rng.normal() for order in orders]
    for i in [i for i, order in enumerate(orders) if worth(order) == 5.0][:failed]:
        values[i] -= 15.0
    return items, orders, values


@pytest.mark.parametrize("n_items", [8, 12])
def test_orders_of_many_types_are_suggested_ranked_and_finished_without_listing_them(
    n_items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    predict = OrderGP.predict

    def counted(gp: OrderGP, some: Any) -> Any:
        looked.append(len(some))
        return predict(gp, some)

    monkeypatch.setattr(OrderGP, "predict", counted)
    items, orders, values = observed(n_items, 60, 0)
    search = make_search("gp-ucb", items, n_initial=2)
    first = search.suggest(2)
    assert first[0].order != first[1].order
    for order, value in zip(orders, values, strict=True):
        search.observe(order, value, 0.1)
    suggestions = search.suggest(3)
    assert all(worth(suggestion.order) == 5.0 for suggestion in suggestions)
    assert sum(looked) < 400_000
    looked.clear()
    rows = [
        Evaluated(order, (value, value), (0.1, 0.1), Obedience(1.0, 0.0, 1.0, 3.0, 0.0))
        for order, value in zip(orders, values, strict=True)
    ]
    posterior = Posterior(items, rows)
    chosen = choose_finalists(posterior, 0.95, 3)
    assert worth(chosen[0].order) == 5.0
    assert frozenset("ab") in {frozenset(finalist.pair) for finalist in chosen[1:]}
    assert all(worth(finalist.order) < 5.0 for finalist in chosen[1:])
    assert posterior.ranking(0.95)[0].mean > 4.0
    assert sum(looked) < 20_000


def test_a_climb_swaps_and_moves() -> None:
    steps = changes(12)
    assert len(steps) == len(set(steps)) == 66 + 12 * 11 - 11 - 11  # neighbours: swaps are moves
    assert (*range(1, 12), 0) in steps
