"""Genuine CybORG as environments: its own games, and processes that never stay behind."""

from __future__ import annotations

import errno
import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.conftest import ROOT
from tests.helpers import assert_refused, run, same
from workflow_rl import CyborgEnv, CyborgVectorEnv, UserError
from workflow_rl.envs.cyborg_sim import CyborgGame, load_cyborg
from workflow_rl.errors import MissingExtraError, SimulatorError

pytestmark = pytest.mark.needs("csle_cyborg")


def children(pid: int) -> set[int]:
    """Numbers of the processes that a process has started."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = path.parent.name, path.read_text("utf-8").rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(rest[1]) == pid and rest[0] != "Z":
            found.add(int(number))
    return found


def gone(pids: set[int], seconds: float = 10) -> bool:
    """Have all these processes ended, at the latest after so many seconds?"""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() and "Z" not in state_of(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def test_a_seed_is_the_game_that_cyborg_plays_after_seeding_pythons_generator() -> None:
    env = CyborgEnv("meander")
    raw = CyborgGame(load_cyborg(), "meander", "sleep", env.network).wrapper
    actions = np.random.default_rng(0).integers(145, size=40).tolist()
    env.reset(seed=12345)
    ours = [env.step(action)[:2] for action in actions]
    callers = random.getstate()
    random.seed(12345)
    raw.reset()
    theirs = [raw.step(action)[:2] for action in actions]
    random.setstate(callers)
    assert same(ours, theirs)


def test_games_in_one_process_neither_disturb_each_other_nor_the_callers_chance() -> None:
    random.seed(1)
    expected = [random.random() for _ in range(3)]
    random.seed(1)
    left, right, alone = CyborgEnv("meander"), CyborgEnv("meander"), CyborgEnv("meander")
    drawn = [random.random()]
    left.reset(seed=3)
    right.reset(seed=4)
    drawn.append(random.random())
    mixed = []
    for _ in range(15):
        mixed.append(left.step(0)[0])
        right.step(5)
    drawn.append(random.random())
    alone.reset(seed=3)
    assert same(mixed, [alone.step(0)[0] for _ in range(15)])
    assert drawn == expected


def test_twenty_five_processes_start_play_and_end() -> None:
    with closing(CyborgVectorEnv(25, red_agent="bline,meander")) as envs:
        started = {process.pid for process in envs.envs.processes}
        assert len(started & children(os.getpid())) == 25
        observations, _ = envs.reset(seed=0)
        assert observations.shape == (25, 52)
        observations, rewards, *_ = envs.step([0] * 25)
        assert (observations.shape, rewards.shape) == ((25, 52), (25,))
        assert envs.envs.shared_memory
    assert gone(started)
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        envs.step([0] * 25)


def test_ctrl_c_in_the_middle_of_a_step_leaves_no_half_played_game(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = CyborgVectorEnv(1)
    envs.reset(seed=0)
    step = CyborgGame.step

    def interrupt(game: CyborgGame, action: int) -> Any:
        step(game, action)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CyborgGame, "step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            envs.step([0])
    with pytest.raises(gymnasium.error.ResetNeeded, match="the game broke off"):
        envs.step([0])


def test_another_opponent_takes_over_at_the_next_reset_and_not_before() -> None:
    env = CyborgEnv("bline")
    env.reset(seed=0)
    env.step(0)
    env.red_agent = "sleep"
    assert env.progress[0] == "bline"
    env.step(0)
    env.reset(seed=0)
    assert env.progress[0] == "sleep"
    assert not any(env.step(0)[0].any() for _ in range(10))


def test_closed_environments_hold_no_files() -> None:
    before = len(os.listdir("/proc/self/fd"))
    kept = []
    for _ in range(3):
        envs = CyborgVectorEnv(2)
        envs.reset(seed=0)
        envs.close()
        kept.append(envs)
    assert len(os.listdir("/proc/self/fd")) <= before + 3  # shared memory, which numpy arrays may still look at


def test_one_environment_lives_in_this_process() -> None:
    before = children(os.getpid())
    envs = CyborgVectorEnv(1)
    envs.reset(seed=0)
    assert envs.step([0])[0].shape == (1, 52)
    assert children(os.getpid()) == before


def test_environments_that_are_forgotten_end_their_processes() -> None:
    envs = CyborgVectorEnv(2)
    pids = {process.pid for process in envs.envs.processes}
    assert not gone(pids, 0.1)
    del envs
    gc.collect()
    assert gone(pids)


@pytest.mark.parametrize("moment", ["reset", "step", "state_arrays"])
def test_a_killed_process_is_reported_with_its_cause_and_the_others_end(moment: str) -> None:
    envs = CyborgVectorEnv(3)
    envs.reset(seed=0)
    pids = [process.pid for process in envs.envs.processes]
    os.kill(pids[1], signal.SIGKILL)
    envs.envs.processes[1].join()
    complaint = rf"the process of CybORG environment 1 \(id {pids[1]}\) was killed by SIGKILL"
    calls: dict[str, Callable[[], Any]] = {
        "reset": envs.reset,
        "step": lambda: envs.step([0] * 3),
        "state_arrays": envs.state_arrays,
    }
    with pytest.raises(SimulatorError, match=complaint):
        calls[moment]()
    assert gone(set(pids))


@pytest.mark.filterwarnings("error")  # no traceback by Gymnasium either
def test_a_failure_inside_cyborg_says_what_failed_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    step = CyborgGame.step

    def fail(game: CyborgGame, action: int) -> Any:
        if action == 1:
            raise KeyError("Op_Host7")
        return step(game, action)

    monkeypatch.setattr(CyborgGame, "step", fail)
    complaint = r"genuine CybORG failed with KeyError \('Op_Host7'\) in step 2 of episode 0 of seed 9 against bline"
    env = CyborgEnv()
    env.reset(seed=9)
    env.step(0)
    with pytest.raises(SimulatorError, match=complaint):
        env.step(1)
    with pytest.raises(gymnasium.error.ResetNeeded, match="the game broke off"):
        env.step(0)
    env.reset()
    assert env.step(0)[1] == 0
    envs = CyborgVectorEnv(2)  # forked, so they fail in the same way
    envs.reset(seed=[9, 9])
    envs.step([0, 0])
    pids = {process.pid for process in envs.envs.processes}
    with pytest.raises(SimulatorError, match=complaint):
        envs.step([0, 1])
    assert gone(pids)


@pytest.mark.parametrize(
    ("number", "complaint"),
    [
        (errno.ENOSPC, "cannot start 3 processes of CybORG: shared memory (/dev/shm) is full."),
        (errno.EAGAIN, "cannot start 3 processes of CybORG: the system allows no more processes."),
        (errno.EMFILE, "cannot start 3 processes of CybORG: Too many open files."),
    ],
)
def test_a_system_that_has_no_room_is_named_and_started_processes_end(
    monkeypatch: pytest.MonkeyPatch, number: int, complaint: str
) -> None:
    import multiprocessing.context

    start = multiprocessing.context.ForkProcess.start
    started: list[Any] = []

    def refuse(process: Any) -> None:
        if len(started) == 2:
            raise OSError(number, os.strerror(number))
        start(process)
        started.append(process.pid)

    monkeypatch.setattr(multiprocessing.context.ForkProcess, "start", refuse)
    with pytest.raises(SimulatorError) as caught:
        CyborgVectorEnv(3)
    assert str(caught.value) == complaint
    assert len(started) == 2
    assert gone(set(started))


FULL = """
mount -t tmpfs -o size=4k none /dev/shm || exit 77
dd if=/dev/zero of=/dev/shm/full bs=4k count=1 2>/dev/null
exec "$0" -m workflow_rl.cli evaluate sleep --backend cyborg --episodes 4 --jobs 3
"""


@pytest.mark.long
def test_a_full_shared_memory_is_one_sentence() -> None:
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", FULL, sys.executable], capture_output=True, text=True, cwd=ROOT, timeout=100
    )
    if done.returncode in (1, 77) and "Error" not in done.stderr:
        pytest.skip("no right to mount a file system of our own here")
    assert_refused(done, "cannot start 3 processes of CybORG: shared memory (/dev/shm) is full.")


def owner(code: str) -> subprocess.Popen[str]:
    """A process that makes two environments, says which processes play them, and does something."""
    prelude = (
        "import os, signal, sys, time; from workflow_rl import CyborgVectorEnv; envs = CyborgVectorEnv(2);"
        "envs.reset(seed=0); print([p.pid for p in envs.envs.processes], flush=True)\n"
    )
    command = [sys.executable, "-c", prelude + code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


ENDS = {
    "kill": "time.sleep(60)",
    "end without closing": "pass",
    "exception": "raise ValueError('mine')",
    "quick exit": "os._exit(3)",
}


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
def test_processes_end_with_their_owner_whatever_ends_it(end: str) -> None:
    process = owner(ENDS[end])
    assert process.stdout is not None
    pids = set(json.loads(process.stdout.readline()))
    assert len(pids) == 2
    if end == "kill":
        assert not gone(pids, 0.3)
        process.kill()
    _, errors = process.communicate(timeout=30)  # the pipes close only when all who hold them have ended
    assert gone(pids)
    if end == "exception":
        assert errors.count("Traceback") == 1
        assert errors.strip().endswith("ValueError: mine")
    else:
        assert errors == ""


@pytest.mark.long
def test_ctrl_c_ends_an_evaluation_on_cyborg_with_one_word() -> None:
    command = [sys.executable, "-m", "workflow_rl.cli", "evaluate", "random", "--backend", "cyborg", "--jobs", "3"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    end = time.monotonic() + 60
    while len(pids := children(process.pid)) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(pids) == 3
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert output == ""
    assert errors.strip().splitlines()[-1] == "Interrupted."
    assert "Traceback" not in errors
    assert gone(pids)


# ------------------------------------------------------------------------------------ which CybORG, and none at all


def test_an_edition_that_the_package_does_not_play_is_refused() -> None:
    complaint = r"csle-cyborg 0.0.3 plays the current edition, not leaderboard; .*\(--cyborg-path"
    with pytest.raises(UserError, match=complaint):
        CyborgVectorEnv(1, edition="leaderboard")


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "sleep", "--backend", "cyborg"),
        ("replay", "--live", "3"),
        ("bench", "cyborg"),
        ("train", "--backend", "cyborg"),
        ("search", "--backend", "cyborg"),
    ],
)
def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "csle_cyborg").mkdir()
    (tmp_path / "csle_cyborg" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'csle_cyborg'\", name='csle_cyborg')", "utf-8"
    )
    done = run(*arguments, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert_refused(
        done,
        "Error: genuine CybORG is not installed; install it with: pip install 'workflow-rl[cyborg]', in a checkout pip",
    )
    assert not list(tmp_path.glob("runs*"))


def test_a_package_that_misses_something_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load_cyborg.cache_clear()
    monkeypatch.setitem(sys.modules, "csle_cyborg.main", None)
    with pytest.raises(MissingExtraError, match=r"is not installed completely \(.*csle_cyborg.main"):
        load_cyborg()
    load_cyborg.cache_clear()


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A stand-in for a checkout of CybORG: its layout, names and older interface, played by csle-cyborg.

    The real thing cannot be had in the tests. What it shares with this one: where things are, that the scenario is
    a file, that it imports gym, which nobody installs, and that its wrapper returns observations alone from reset and
    four values from step.
    """
    from workflow_rl.engine.cyborg.exporter import cyborg_scenario
    from workflow_rl.engine.network_file import load_network

    root = tmp_path / "cage-challenge-2" / "CybORG" / "CybORG"
    files = {
        "__init__.py": (
            "import json\nfrom csle_cyborg.main import Main\n"
            "class CybORG(Main):\n"
            "    def __init__(self, scenario_file, environment, agents):\n"
            "        super().__init__(json.load(open(scenario_file)), environment, agents=agents)\n"
        ),
        "Agents/__init__.py": (
            "from csle_cyborg.agents.simple_agents.b_line import B_lineAgent\n"
            "from csle_cyborg.agents.simple_agents.green_agent import GreenAgent\n"
            "from csle_cyborg.agents.simple_agents.meander import RedMeanderAgent\n"
            "from csle_cyborg.agents.simple_agents.sleep_agent import SleepAgent\n"
        ),
        "Agents/Wrappers/__init__.py": (
            "import gym\nfrom gym import Env, spaces\nfrom gym.spaces import Box\n"
            "from csle_cyborg.agents.wrappers import challenge_wrapper\n"
            "class ChallengeWrapper(challenge_wrapper.ChallengeWrapper):\n"
            "    def reset(self):\n        return super().reset()[0]\n"
            "    def step(self, action=None):\n        return super().step(action)[:4]\n"
            "    def __init__(self, env, agent_name):\n"
            "        super().__init__(agent_name, env)\n"
            "        del self.possible_actions, self.env.possible_actions  # an addition of the fork\n"
        ),
        "Simulator/__init__.py": "",
        "Simulator/Session.py": "from csle_cyborg.simulator.session import RedAbstractSession\n",
        "Shared/__init__.py": "",
        "Shared/Enums.py": "from csle_cyborg.shared.enums import ProcessVersion\n",
        "Shared/Scenarios/Scenario2.yaml": json.dumps(cyborg_scenario(load_network())),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    yield tmp_path / "cage-challenge-2"
    for name in [name for name in sys.modules if name.split(".")[0] == "CybORG"]:
        del sys.modules[name]
    load_cyborg.cache_clear()


def test_a_checkout_of_cyborg_can_be_used_instead(checkout: Path) -> None:
    path = list(sys.path)
    ours, theirs = CyborgEnv("meander"), CyborgEnv("meander", cyborg_path=str(checkout))
    assert same(ours.reset(seed=4), theirs.reset(seed=4))
    for action in np.random.default_rng(2).integers(145, size=25).tolist():
        assert same(ours.step(action), theirs.step(action))
    assert load_cyborg(str(checkout)).name == f"CybORG in {checkout}/CybORG/CybORG"
    assert sys.path == path
    assert sys.modules.get("gym") is not gymnasium  # nobody else takes one for the other
    with pytest.raises(UserError, match="plays its own Scenario2"):
        CyborgEnv(cyborg_path=str(checkout), network=changed_scenario(checkout))


def changed_scenario(folder: Path) -> Path:
    text = (ROOT / "workflow_rl" / "engine" / "networks" / "cage2.toml").read_text("utf-8")
    changed = folder / "mine.toml"
    changed.write_text(text.replace("detected = 0.95", "detected = 0.9"), "utf-8")
    return changed


def test_a_checkout_is_known_by_the_rules_of_its_edition(checkout: Path) -> None:
    root = checkout / "CybORG" / "CybORG"
    (root / "Simulator" / "Session.py").write_text("class RedAbstractSession:\n    pass\n", "utf-8")
    with pytest.raises(UserError, match="between the current and the leaderboard edition"):
        load_cyborg(str(checkout))
    for name in [name for name in sys.modules if name.split(".")[0] == "CybORG"]:
        del sys.modules[name]
    versions = "class ProcessVersion:\n    @staticmethod\n    def parse_string(text):\n        return None\n"
    (root / "Shared" / "Enums.py").write_text(versions, "utf-8")
    assert load_cyborg(str(checkout)).edition == "leaderboard"
    with pytest.raises(UserError, match="plays the leaderboard edition, not current"):
        CyborgEnv(cyborg_path=str(checkout))


def test_a_folder_without_a_usable_cyborg_is_refused(tmp_path: Path, checkout: Path) -> None:
    with pytest.raises(UserError, match="no checkout of CybORG"):
        load_cyborg(str(tmp_path / "nowhere"))
    broken = checkout / "CybORG" / "CybORG" / "Agents" / "__init__.py"
    for code, complaint in (
        ("import not_there", "needs the Python package 'not_there', which is not installed here; install it first"),
        ("def", r"cannot be imported here \(SyntaxError"),
    ):
        broken.write_text(code, "utf-8")
        with pytest.raises(UserError, match=complaint):
            load_cyborg(str(checkout))
    (checkout / "CybORG" / "CybORG" / "Shared" / "Scenarios" / "Scenario2.yaml").unlink()
    with pytest.raises(UserError, match="has no Scenario2"):
        load_cyborg(str(checkout))
