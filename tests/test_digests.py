"""Short trainings of every preset and a short search, compared with what an earlier version of this code made of them.

``python -m tests.test_digests`` writes tests/data/digests.json again: only after a change that is meant to alter
results. On a processor that rounds as the one that wrote the file, weights must be equal bit for bit; on any other,
figures must be close.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from tests.conftest import DATA
from tests.helpers import run, run_json

FILE = DATA / "digests.json"
ORDER = ("--workflow", "enterprise,user,op_server,op_host,defender")
SHORT = "--max-episodes 3 --min-episodes 1 --warm-updates 2 --n-eval-episodes 20 --n-envs 30 --seed 5 --no-tensorboard"
TRAININGS: dict[str, tuple[str, ...]] = {
    "general": ("--preset", "general"),
    "workflow against B_line": ORDER,
    "workflow against Meander": (*ORDER, "--red-agent", "meander"),
    "incident": (*ORDER, "--takeover", "30"),
    "incidents of many lengths": ("--takeover", "0,0-20"),
    "search": ("--preset", "search", *ORDER),
    "universal": ("--preset", "universal", "--n-envs", "120", "--epochs", "2"),
    "sequential": ("--preset", "sequential", "--n-envs", "1", *ORDER),
    "mini-batch": ("--preset", "mini-batch", "--n-envs", "1", "--max-episodes", "10", *ORDER),
    "standard": ("--preset", "standard", "--n-envs", "8", *ORDER),
    "parallel-25": ("--preset", "parallel-25", "--n-envs", "25", *ORDER),
    "parallel-200": ("--preset", "parallel-200", *ORDER),
    "aggressive": ("--preset", "aggressive", *ORDER),
    "original": ("--preset", "original", "--update-steps", "100"),
    "imitation": (
        "--preset", "champion", "--improve-rounds", "0", "--imitate-updates", "2", "--n-envs", "90", "--takeover", "0",
        "--plan-games", "20",
    ),
    "imitation, plain": (
        "--preset", "champion", "--improve-rounds", "0", "--imitate-updates", "2", "--n-envs", "27", "--path", "plain",
        "--plan-games", "0",
    ),
    "plain": (*ORDER, "--path", "plain", "--guard", "--alignment", "potential"),
    "replay": (*ORDER, "--replay-batches", "2", "--time-limit", "cut"),
}  # fmt: skip
SEARCH = (
    "--n-workflows 4 --replicates 2 --n-initial 2 --n-envs 20 --max-episodes 4 --min-episodes 2 --warm-updates 2 "
    "--epochs 4 --n-eval-episodes 20 --finalists 2 --finish-episodes 3 --compliance-threshold 0 --jobs 2 --seed 3 "
    "--no-report"
)


def rounding() -> str:
    """How this machine rounds: a digest of arithmetic as trainings do it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(77, 64), torch.nn.Tanh(), torch.nn.Linear(64, 145))
        inputs = torch.randn(333, 77)
    torch.set_num_threads(1)
    torch.autograd.backward(torch.log_softmax(net(inputs), -1).square().mean())
    parts = [weight.grad.numpy().tobytes() for weight in net.parameters() if weight.grad is not None]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def train(name: str, folder: Path) -> dict[str, Any]:
    """Digest of the weights, and figures, of one of the trainings."""
    result = run_json("train", *SHORT.split(), *TRAININGS[name], "--run-dir", folder)
    tensors = load_file(folder / "policy.safetensors")
    digest = hashlib.sha256()
    for key in sorted(tensors):
        digest.update(key.encode() + tensors[key].tobytes())
    return {
        "weights": digest.hexdigest(),
        "norms": [float(np.linalg.norm(tensors[key])) for key in sorted(tensors)],
        "mean_return": result["mean_return"],
        "updates": result["updates"],
    }


def search(folder: Path) -> list[list[Any]]:
    """Orders of the ranking with their means."""
    result = run_json("search", *SEARCH.split(), "--run-dir", folder)
    return [[row["workflow"], row["mean_return"]] for row in result["ranking"]]


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", TRAININGS)
def test_a_short_training_gives_the_weights_that_it_gave_before(name: str, tmp_path: Path) -> None:
    before, now = stored(), train(name, tmp_path / "run")
    then = before["trainings"][name]
    assert now["updates"] == then["updates"]
    assert np.allclose(now["norms"], then["norms"], rtol=0.02, atol=0.02)
    if before["rounding"] == rounding():  # the norms are rounded by another library, which may differ where these agree
        assert (now["weights"], now["mean_return"]) == (then["weights"], then["mean_return"])


def test_a_short_search_gives_the_ranking_that_it_gave_before(tmp_path: Path) -> None:
    before, now = stored(), search(tmp_path / "run")
    assert len(now) == len(before["ranking"])
    if before["rounding"] == rounding():
        assert now == before["ranking"]


def test_runs_and_policies_of_an_earlier_version_still_open(tmp_path: Path) -> None:
    with tarfile.open(DATA / "old_runs.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    listed = run_json("runs", "--folder", tmp_path)["runs"]
    assert {Path(row["run"]).name: row["state"] for row in listed} == {"training": "finished", "search": "finished"}
    for folder in ("training", "search"):
        assert run("report", tmp_path / folder).returncode == 0
        assert (tmp_path / folder / "report.html").exists()
        policy = tmp_path / folder / "policy.safetensors"
        evaluated = run_json("evaluate", policy, "--episodes", "5", "--red-agent", "bline")
        assert evaluated["workflow"]
    (tmp_path / "search" / "result.json").unlink()
    again = run_json("search", "--resume", tmp_path / "search")
    assert again["best"] == "op_server,op_host,enterprise,user,defender"
    (tmp_path / "training" / "result.json").unlink()  # as if it had been killed before its evaluation
    assert run("train", "--resume", tmp_path / "training").returncode == 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as room:
        trainings = {name: train(name, Path(room) / str(number)) for number, name in enumerate(TRAININGS)}
        found = {"rounding": rounding(), "trainings": trainings, "ranking": search(Path(room) / "search")}
    FILE.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
