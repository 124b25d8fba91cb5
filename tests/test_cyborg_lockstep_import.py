"""Variants of CybORG's own scenario file: CybORG plays the file itself, the engine what was imported from it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ORACLE
from workflow_rl.defenders.protocol import reference_policy
from workflow_rl.engine.cyborg.exporter import addresses
from workflow_rl.engine.cyborg.importer import import_scenario
from workflow_rl.engine.cyborg.rules import cyborg_names
from workflow_rl.envs import cyborg_sim
from workflow_rl.fidelity.lockstep import LiveGames, live_lockstep

Scenario = dict[str, Any]
ORIGINAL = ORACLE / "scenario2.merged.yaml"
VARIANTS: dict[str, tuple[Sequence[str], dict[str, str]]] = {  # hosts without which, and copies of which under a name
    "11 hosts": (("User4", "Op_Host2"), {}),
    "12 hosts": (("Enterprise0", "User3", "User4"), {"Op_Host3": "Op_Host0", "Enterprise3": "Enterprise1"}),
    "14 hosts": ((), {"User5": "User2"}),
    "15 hosts": (("User1",), {"Enterprise3": "Enterprise2", "Op_Host3": "Op_Host1", "User5": "User4"}),
}


def without(scenario: Scenario, host: str) -> None:
    """Takes a host out of a scenario."""
    del scenario["Hosts"][host]
    for subnet in scenario["Subnets"].values():
        subnet["Hosts"] = [name for name in subnet["Hosts"] if name != host]
    for agent in scenario["Agents"].values():
        agent["INT"]["Hosts"].pop(host, None)
        agent["starting_sessions"] = [one for one in agent["starting_sessions"] if one["hostname"] != host]
    for other in scenario["Hosts"].values():
        other.get("info", {}).pop(host, None)


def copied(scenario: Scenario, name: str, model: str) -> None:
    """Adds a host like ``model`` beside it."""
    scenario["Hosts"][name] = deepcopy(scenario["Hosts"][model])
    info = scenario["Hosts"][name].get("info", {})
    if model in info:
        info[name] = info.pop(model)
    for subnet in scenario["Subnets"].values():
        subnet["Hosts"] += [name] * (model in subnet["Hosts"])
    for agent in scenario["Agents"].values():
        known, sessions = agent["INT"]["Hosts"], agent["starting_sessions"]
        if model in known:
            known[name] = deepcopy(known[model])
        for session in [one for one in sessions if one["hostname"] == model]:
            at = sessions.index(session)
            sessions.insert(at, deepcopy(session) | {"hostname": name, "name": f"{session['name']}-{name}"})


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_engine_plays_an_imported_variant_as_cyborg_plays_the_file(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ORIGINAL.exists():
        pytest.skip(f"{ORIGINAL} is not on this machine")
    pytest.importorskip("csle_cyborg")
    scenario = yaml.safe_load(ORIGINAL.read_text("utf-8"))
    gone, new = VARIANTS[variant]
    for name, model in new.items():
        copied(scenario, name, model)
    for name in gone:
        without(scenario, name)
    for subnet in scenario["Subnets"].values():
        subnet["Size"] = len(subnet["Hosts"])
        assert addresses(subnet["Size"]) >= subnet["Size"]
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(scenario, sort_keys=False), "utf-8")
    network, _ = import_scenario(path)
    assert f"{len(network.hosts)} hosts" == variant
    assert all(name == shown for name, shown in cyborg_names(network).items())
    monkeypatch.setattr(cyborg_sim, "cyborg_scenario", lambda _: deepcopy(scenario))
    reds = [red for red in network.red_agents if red != "sleep"]
    blues = {name: reference_policy(name, network) for name in ("random", "reactive-remove")}
    found = live_lockstep(LiveGames(4 * len(reds), reds, ("sleep", "active"), 60), blues, network)
    assert found.steps == 4 * len(reds) * 60
    assert found.mismatched_steps == 0, found.first_mismatch
