"""Your own defender: in the challenge's table, in the terminal, as a page; models of other libraries in our format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import workflow_rl
from tests.conftest import require
from tests.helpers import assert_refused, run, run_json
from workflow_rl import CageVectorEnv, UserError, challenge, from_cleanrl, from_sb3, load_policy
from workflow_rl.defenders.protocol import evaluate_table, reference_policy
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.game import Games

ORDER = "enterprise,op_server,user,defender,op_host"


def restore_first(observation: np.ndarray) -> int:
    """The reference defender reactive-restore, written by a user."""
    suspected = observation.reshape(13, 4)[:, 2:].any(axis=1)
    return 132 + int(suspected.argmax()) if suspected.any() else 0


def restore_first_of_many(observations: np.ndarray) -> list[int]:
    """The same for a batch."""
    return [restore_first(one) for one in observations]


def tower(*layers: nn.Module) -> nn.Sequential:
    """A net."""
    return nn.Sequential(*layers)


def agent(n_out: int = 145, hidden: int = 64, second: int = 64, act: Callable[[], nn.Module] = nn.Tanh) -> Any:
    """Actor and critic as CleanRL has them."""
    nets = [
        tower(nn.Linear(52, hidden), act(), nn.Linear(hidden, second), act(), nn.Linear(second, n)) for n in (n_out, 1)
    ]
    return SimpleNamespace(actor=nets[0], critic=nets[1])


def sb3_model(kind: str = "PPO", **settings: Any) -> Any:
    """An untrained model of stable-baselines3."""
    require("stable_baselines3")
    import stable_baselines3

    from workflow_rl.envs.sb3_env import CageSB3VecEnv

    envs = CageSB3VecEnv(CageVectorEnv(2))
    return getattr(stable_baselines3, kind)("MlpPolicy", envs, seed=3, device="cpu", **settings)


def observations() -> torch.Tensor:
    """Random ones."""
    return torch.randint(0, 2, (200, 52), generator=torch.Generator().manual_seed(1)).float()


def test_a_function_gets_the_observations_of_the_environment_and_the_table_of_the_same_games() -> None:
    games = Games(load_network(), "bline,meander,sleep", "current", 100)
    expected = evaluate_table(reference_policy("reactive-restore", load_network()), games, 10, 4)
    found = challenge(restore_first, episodes=10, seed=4)
    assert found.total == expected["total"]
    assert found.total_standard_error == expected["total_standard_error"]
    assert found.cells["meander"][50].mean == expected["cells"]["meander"]["50"]["mean"]
    assert challenge(restore_first_of_many, episodes=10, seed=4, batch=True).cells == found.cells
    assert challenge(restore_first, episodes=10, seed=4, edition="leaderboard").edition == "leaderboard"


def test_the_table_can_be_read_and_names_what_others_reach() -> None:
    lines = str(challenge(restore_first, episodes=4)).splitlines()
    assert lines[0].startswith("restore_first: mean return ± standard error, current edition, native engine, 4 games")
    assert [line.split()[0] for line in lines[1:5]] == ["steps", "30", "50", "100"]
    assert lines[1].split()[1:] == ["bline", "meander", "sleep"]
    assert lines[5].startswith("Total -")
    assert any(line.strip().startswith("expert: bline") for line in lines)
    assert max(map(len, lines)) <= 120
    assert challenge(restore_first, episodes=4).to_json()["episodes"] == 4


class Remembering:
    """A defender with a state: it counts its steps."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def reset(self) -> None:
        """A new game."""
        self.steps.append(0)

    def __call__(self, observation: np.ndarray) -> int:
        """Every game begins with an empty observation."""
        assert observation.shape == (52,)
        assert observation.dtype == np.float32
        assert self.steps[-1] or not observation.any()
        self.steps[-1] += 1
        return 1


def test_a_defender_with_a_state_plays_one_game_after_the_other_and_is_reset_before_each() -> None:
    blue = Remembering()
    challenge(blue, episodes=3)
    assert blue.steps == [100] * 9


def test_a_batch_with_a_state_is_reset_before_its_games() -> None:
    calls: list[int] = []

    class Many:
        def reset(self) -> None:
            calls.append(0)

        def __call__(self, observations: np.ndarray) -> np.ndarray:
            calls[-1] += 1
            return np.ones(len(observations), int)

    challenge(Many(), episodes=3, batch=True)
    assert calls == [100] * 3


@pytest.mark.parametrize(
    ("answer", "batch", "sentence"),
    [
        (145, False, "one whole number from 0 to 144, not 145"),
        (-1, False, "not -1"),
        (float("nan"), False, "not nan"),
        (True, False, "not True"),
        (None, False, "not None"),
        ("Sleep", False, "not 'Sleep'"),
        ((np.array(3), None), False, r"not \(array\(3\), None\); take the first of the pair, or convert a model of"),
        (np.zeros(52, int), False, r"an array of shape \(52,\); of a function of many"),
        ([[1], [2, 3]], False, r"not \[\[1\], \[2, 3\]\]"),
        (3, True, r"2 whole numbers, shape \(2,\), from 0 to 144, not 3"),
        (np.zeros((2, 1), int), True, r"2 whole numbers.*array"),
        (np.array([0, 200]), True, "not array"),
        (np.array([0.0, 1.0]), True, "not array"),
    ],
)  # fmt: skip
def test_a_wrong_action_is_one_sentence(answer: Any, batch: bool, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        challenge(lambda _: answer, episodes=2, batch=batch)


def test_a_tensor_or_an_array_of_one_action_is_an_action() -> None:
    sleeping = challenge(lambda _: 0, episodes=2)
    assert challenge(lambda _: torch.tensor([0]), episodes=2).cells == sleeping.cells
    assert challenge(lambda _: np.int64(0), episodes=2).cells == sleeping.cells


@pytest.mark.parametrize(
    ("policy", "options", "sentence"),
    [
        (3, {}, "a function from an observation to an action, not int"),
        (restore_first, {"edition": "new"}, "unknown edition 'new'"),
        (restore_first, {"episodes": 1}, "number of episodes must be from 2"),
        (restore_first, {"backend": "other"}, "unknown backend 'other'"),
        (restore_first, {"seed": -1}, "seed"),
    ],
)  # fmt: skip
def test_what_cannot_be_put_into_the_table_is_one_sentence(policy: Any, options: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        challenge(policy, **options)


@pytest.mark.parametrize(
    ("kind", "net"),
    [
        ("PPO", {}),
        ("A2C", {"net_arch": [32, 32]}),
        ("PPO", {"net_arch": {"pi": [32, 16], "vf": [64, 8]}, "ortho_init": False}),
    ],
)  # fmt: skip
def test_a_model_of_stable_baselines3_has_the_same_logits_and_values_in_our_format(
    kind: str, net: Any, tmp_path: Path
) -> None:
    model = sb3_model(kind, policy_kwargs=net)
    from_sb3(model, red_agent="meander").save(tmp_path / "sb3.safetensors")
    policy, inputs = load_policy(tmp_path / "sb3.safetensors"), observations()
    with torch.no_grad():
        logits, values = policy.net(inputs)
        expected = model.policy.get_distribution(inputs).distribution.logits
        assert torch.allclose(torch.log_softmax(logits, 1), expected, atol=1e-5)
        assert torch.allclose(values, model.policy.predict_values(inputs)[:, 0], atol=1e-5)
    assert (policy.red_agent, policy.edition, policy.workflow, policy.greedy) == ("meander", "current", "", False)


def test_a_net_in_the_manner_of_cleanrl_has_the_same_logits_and_values_in_our_format() -> None:
    foreign, inputs = agent(hidden=48, second=80), observations()
    with torch.no_grad():
        logits, values = from_cleanrl(foreign).net(inputs)
        assert torch.allclose(logits, foreign.actor(inputs), atol=1e-5)
        assert torch.allclose(values, foreign.critic(inputs)[:, 0], atol=1e-5)
    assert float(logits.std()) > 0


def test_every_command_takes_a_converted_policy_and_the_table_is_that_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    policy = from_cleanrl(agent(), greedy=True)
    policy.save(path)
    printed = run_json("evaluate", path, "--protocol", "challenge", "--episodes", "5")
    assert challenge(policy, episodes=5).total == printed["total"]
    assert run_json("watch", path, "--episode", "3")["red_agent"] == "bline"
    assert run("export", path, tmp_path / "agent").returncode == 0
    assert run_json("report", path)["report"] == str(tmp_path / "mine.html")
    assert "<title>mine.safetensors against bline,meander,sleep" in (tmp_path / "mine.html").read_text("utf-8")
    assert_refused(run("report", path, "--figures", tmp_path / "figures"), "a policy file has none")


def broken_agent() -> Any:
    """An agent whose first weight is no number."""
    broken = agent()
    with torch.no_grad():
        broken.actor[0].weight[0, 0] = float("nan")
    return broken


@pytest.mark.parametrize(
    ("foreign", "sentence"),
    [
        (lambda: agent(act=nn.ReLU), "consists of Linear, ReLU.*two hidden tanh layers can be converted"),
        (lambda: agent(n_out=20), "the actor has 52 inputs and 20 outputs; .*needs 52 inputs and 145 outputs"),
        (lambda: SimpleNamespace(actor=tower(nn.Linear(52, 145)), critic=agent().critic), "consists of Linear;"),
        (lambda: SimpleNamespace(actor=agent().actor), "critic must be an nn.Sequential, not NoneType"),
        (broken_agent, "weights that are not numbers"),
    ],
)  # fmt: skip
def test_a_net_that_does_not_fit_is_refused_with_a_sentence(foreign: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        from_cleanrl(foreign())


def test_models_of_stable_baselines3_that_do_not_fit_are_refused_with_a_sentence() -> None:
    with pytest.raises(UserError, match="DQN has no MlpPolicy with an actor and a critic"):
        from_sb3(sb3_model("DQN", buffer_size=10))
    with pytest.raises(UserError, match="consists of Linear, ReLU"):
        from_sb3(sb3_model(policy_kwargs={"activation_fn": nn.ReLU}))
    from stable_baselines3.common.vec_env import VecNormalize

    model = sb3_model()
    model.set_env(VecNormalize(model.get_env(), norm_reward=False))
    with pytest.raises(UserError, match="norm_obs=False"):
        from_sb3(model)
    with pytest.raises(UserError, match="unknown red agent 'bluff'"):
        from_sb3(sb3_model(), red_agent="bluff")


def test_watching_a_function_shows_the_episode_that_the_command_shows(capsys: pytest.CaptureFixture[str]) -> None:
    workflow_rl.watch(restore_first, episode="worst", red_agent="meander", workflow=ORDER)
    own = capsys.readouterr().out.splitlines()
    options = ("--episode", "worst", "--red-agent", "meander", "--workflow", ORDER)
    shown = run("watch", "reactive-restore", *options).stdout.splitlines()
    assert own[0] == shown[0].replace("reactive-restore", "restore_first")
    assert own[1:] == shown[1:]
    assert len(own) > 100
    with pytest.raises(UserError, match="unknown red agent 'bluff'"):
        workflow_rl.watch(restore_first, red_agent="bluff")
    with pytest.raises(UserError, match="speed must be from"):
        workflow_rl.watch(restore_first, speed=0)


def test_the_report_of_a_function_tells_its_episodes_and_overwrites_only_reports(tmp_path: Path) -> None:
    import workflow_rl.report.build as build  # the folder has the name of the function: both can be used

    target = tmp_path / "page.html"
    assert workflow_rl.report(restore_first, target, workflow=ORDER, episodes=5) == target
    text = target.read_text("utf-8")
    assert "<title>restore_first against bline,meander,sleep, current edition</title>" in text
    for part in ("The defender under attack", "Restore Enterprise", "in 5 fresh games per red agent"):
        assert part in text
    assert "All trainings" not in text
    assert build.report_defender(restore_first_of_many, target, batch=True, episodes=5) == target
    target.write_text("mine", "utf-8")
    with pytest.raises(UserError, match="is no report"):
        workflow_rl.report(restore_first, target)
    assert target.read_text("utf-8") == "mine"
