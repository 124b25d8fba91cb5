"""The comparison of learners: equal settings for both, looks that change nothing, and what is derived from curves."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.studies.curves import Curve, curve_ours, curve_sb3
from benchmarks.studies.learners import SPACE, _at_seconds, _until, drawn, settings_for
from tests.conftest import require
from workflow_rl.presets import make_config


def without_seconds(curve: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in look.items() if name != "seconds"} for look in curve["looks"]]


def test_more_trials_begin_with_the_same_settings_and_all_are_of_the_space() -> None:
    tried = drawn(12)
    assert drawn(3) == tried[:3]
    for values in tried:
        low, high = SPACE["lr"]
        assert low <= values["lr"] <= high
        assert all(values[name] in choices for name, choices in SPACE.items() if name != "lr")


def test_both_learners_get_the_same_settings_in_their_own_words() -> None:
    for values in drawn(12):
        ours, theirs = (settings_for(learner, values, 200_000) for learner in ("ours", "sb3"))
        config = make_config("general", red_agent="meander", **ours)
        assert config.batch == theirs["n_envs"] * theirs["n_steps"]
        assert (config.minibatch or config.batch) == theirs["batch_size"]
        assert config.max_updates * config.batch == 200_000
        assert (config.lr, config.epochs, config.gamma) == (
            theirs["learning_rate"],
            theirs["n_epochs"],
            values["gamma"],
        )
        assert (config.entropy, config.clip, config.anneal) == tuple(
            theirs[name] for name in ("ent_coef", "clip_range", "anneal")
        )
        assert (config.time_limit, config.normalise_advantages) == ("bootstrap", True)


@pytest.mark.parametrize("learner", ["ours", "sb3"])
def test_a_look_does_not_change_the_training(learner: str) -> None:
    """The same policy at the end, whether it was looked at before or not."""
    if learner == "sb3":
        require("stable_baselines3")
    values = drawn(1)[0] | {"n_envs": 5, "steps": 100}
    task, settings = (curve_ours if learner == "ours" else curve_sb3), settings_for(learner, values, 2000)
    often, once = (
        without_seconds(task("bline", 3, settings, checkpoints, 10, 1)) for checkpoints in ([500, 1200, 2000], [2000])
    )
    assert [look["transitions"] for look in often] == [500, 1000, 2000]
    assert often[-1:] == once


def test_a_checkpoint_has_the_last_policy_within_it() -> None:
    curve = Curve("bline", 300, [500, 550, 1000], 1, 1)
    assert curve.updates == 3
    assert curve.due(300) == [500, 550]
    assert curve.due(600) == []
    assert curve.due(900) == [1000]


def look(within: int, seconds: float, mean_return: float) -> dict[str, Any]:
    return {"within": within, "transitions": within, "seconds": seconds, "mean_return": mean_return}


def test_a_return_counts_as_reached_only_if_every_seed_reaches_it() -> None:
    good, bad = [look(10, 1.0, -40.0), look(20, 2.0, -25.0)], [look(10, 3.0, -50.0), look(20, 6.0, -45.0)]
    found = _until([good, good], -30)
    assert (found["seeds"], found["transitions"]["iqm"], found["seconds"]["iqm"]) == (2, 20, 2.0)
    assert _until([good, bad], -30) == {"seeds": 1, "of": 2, "transitions": None, "seconds": None}


def test_equal_seconds_are_those_of_the_slowest_seed_of_the_reference() -> None:
    fast = [[look(10, 0.1, -40.0), look(20, 0.2, -25.0)], [look(10, 0.1, -42.0), look(20, 0.3, -27.0)]]
    slow = [[look(10, 3.0, -60.0), look(20, 6.0, -30.0)], [look(10, 2.0, -60.0), look(20, 5.0, -32.0)]]
    curves = {"ours": fast, "ours-tuned": fast, "sb3": slow, "sb3-tuned": slow}
    found = _at_seconds(curves, "sb3-tuned", 20)
    assert found["seconds"] == 6.0
    assert found["returns"]["sb3-tuned"]["values"] == [-30.0, -32.0]
    assert found["differences"]["ours - sb3-tuned"]["difference"] == pytest.approx(5.0)
    early = _at_seconds(curves, "ours", 20)
    assert early["returns"]["sb3-tuned"] is None
    assert early["differences"]["ours - sb3-tuned"] is None
