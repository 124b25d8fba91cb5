"""Scenarios in CybORG's schema are read as the networks that they are, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.conftest import ORACLE, SHARED
from tests.cyborg_variants import CAGE2, VARIANTS, renamed
from workflow_rl.engine.cyborg.exporter import cyborg_scenario, scenario_text
from workflow_rl.engine.cyborg.importer import import_scenario
from workflow_rl.engine.cyborg.problems import cyborg_problems
from workflow_rl.engine.cyborg.rules import cyborg_names
from workflow_rl.engine.cyborg.scenario_yaml import LARGEST_FILE
from workflow_rl.engine.network import Host, Meander, Network, Service
from workflow_rl.engine.networks.check import contradictions
from workflow_rl.envs.cyborg_env import CyborgEnv
from workflow_rl.envs.cyborg_sim import check_playable
from workflow_rl.errors import NetworkError, UserError

Scenario = dict[str, Any]
ORIGINALS = (SHARED / "cyborg-scenario" / "Scenario2.yaml", ORACLE / "scenario2.merged.yaml")


def written(folder: Path, scenario: Scenario | str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(scenario if isinstance(scenario, str) else yaml.safe_dump(scenario, sort_keys=False), "utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(NetworkError) as caught:
        import_scenario(path)
    message = str(caught.value)
    assert message.startswith(str(path.parent))
    assert len(message) < 600
    assert "\n" not in message
    return message


def place(scenario: Scenario, *keys: str | int) -> Any:
    found: Any = scenario
    for key in keys:
        found = found[key]
    return found


@pytest.mark.parametrize("path", ORIGINALS, ids=lambda path: path.stem)
def test_cyborgs_own_files_are_cage_challenge_2(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    network, notes = import_scenario(path, {})
    assert network == CAGE2
    assert network.digest == CAGE2.digest
    assert notes == []


@pytest.mark.parametrize("name", ["cage2", *VARIANTS])
def test_what_is_exported_is_read_back(name: str, tmp_path: Path) -> None:
    network = VARIANTS.get(name, CAGE2)
    names = cyborg_names(network)
    expected = renamed(network, names)
    types = {names[host.name]: host.unit_type for host in network.hosts}
    found, notes = import_scenario(written(tmp_path, scenario_text(network), f"{name}.yaml"), types)
    assert replace(found, green=expected.green) == replace(expected, name=name)  # whom green scans is not in the file
    assert [note for note in notes if "green" not in note.lower() and "bline" not in note] == []
    assert any("bline" in note for note in notes) == ("bline" not in network.red.programs)
    assert list(contradictions(found)) == []


@pytest.mark.needs("csle_cyborg")
@pytest.mark.parametrize("name", VARIANTS)
def test_genuine_cyborg_plays_every_exported_variant(name: str) -> None:
    network = VARIANTS[name]
    for red_agent in network.red_agents:
        env = CyborgEnv(red_agent, network=network, green_agent="active", max_steps=None)
        env.reset(seed=3)
        for action in np.random.default_rng(5).integers(network.n_actions, size=20).tolist():
            observation, _, _, _, infos = env.step(action)
        assert observation.shape == (4 * len(network.hosts),)
        assert infos["red_level"][network.host_names.index(network.red.foothold)] == 2
        again = CyborgEnv(red_agent, network=network, green_agent="active", max_steps=None)
        again.progress = env.progress
        assert np.array_equal(again.observation, env.observation)


@pytest.mark.needs("csle_cyborg")
def test_observations_and_actions_have_our_order_under_other_names() -> None:
    network = VARIANTS["renamed"]
    env = CyborgEnv("meander", network=network, max_steps=None)
    env.reset(seed=0)
    for _ in range(40):
        observation, _, _, _, infos = env.step(0)
    held = [name for name, level in zip(network.host_names, infos["red_level"], strict=True) if level]
    target = next(name for name in held if name != network.red.foothold)
    before = observation.reshape(-1, 4)
    observation, reward, _, _, infos = env.step(network.action_index("Restore", target))
    i = network.host_names.index(target)
    assert reward <= -1
    assert infos["compromised_before"][i]
    assert infos["repaired_unit_type"] == network.unit_type_index(target)
    assert before[i].any() or not observation.reshape(-1, 4)[i, 2:].any()


def test_names_that_fit_stay_and_others_say_what_cyborg_must_know() -> None:
    assert all(ours == theirs for ours, theirs in cyborg_names(CAGE2).items())
    names = cyborg_names(VARIANTS["renamed"])
    assert names["Laptop"] == "User0"
    assert names["Boss"] == "Op_Server0"
    assert names["User0"] == "user0"
    assert names["Entry"] == "entry"
    assert names["Openvpn"] == "Openvpn"
    assert names["GateB"] == "Enterprise_gateb"
    assert names["Sensor"] == "Sensor"
    two = cyborg_names(VARIANTS["gateways"])
    assert {ours for ours, theirs in two.items() if ours != theirs} == {"Enterprise0", "Op_Host1", "Op_Host2"}
    hostile = renamed(CAGE2, dict(zip(CAGE2.host_names, ["success", "10.0.0.1", *CAGE2.host_names[2:]], strict=True)))
    assert cyborg_names(hostile)["success"] == "host_success"
    assert len(set(cyborg_names(hostile).values())) == len(hostile.hosts)


def with_host(name: str, **changes: Any) -> Network:
    hosts = tuple(replace(host, **changes) if host.name == name else host for host in CAGE2.hosts)
    return replace(CAGE2, hosts=hosts)


def with_service(name: str, service: Service) -> Network:
    host: Host = CAGE2.hosts[CAGE2.host_names.index(name)]
    return with_host(name, services=(*host.services, service), process_ids=())


def two_kinds_of_gateways() -> Network:
    through: dict[str, str | tuple[str, ...]] = {"Operational": "Enterprise", "User": ("Op_Host0",)}
    subnets = tuple(replace(subnet, reached_through=through.get(subnet.name, "")) for subnet in CAGE2.subnets)
    return replace(CAGE2, subnets=subnets)


UNPLAYABLE: dict[str, tuple[Callable[[], Network], str]] = {
    "chance": (lambda: replace(CAGE2, chance=replace(CAGE2.chance, detected=0.9)), "chance.detected is 0.9"),
    "records": (lambda: replace(CAGE2, records=replace(CAGE2.records, exploit=3)), "records.exploit is 3"),
    "restore": (lambda: replace(CAGE2, reward=replace(CAGE2.reward, restore=2.0)), "reward.restore is 2.0"),
    "down": (lambda: replace(CAGE2, reward=replace(CAGE2.reward, service_down=5.0)), "reward.service_down is 5.0"),
    "value": (lambda: with_host("User3", value=0.5), "User3 has the value 0.5; CybORG has 0.0, 0.1, 1.0, 10.0"),
    "exploits": (lambda: replace(CAGE2, exploits=CAGE2.exploits[1:]), "the exploits differ"),
    "decoy": (lambda: replace(CAGE2, decoys=(replace(CAGE2.decoys[0], opens=81),)), "decoy Apache differs"),
    "edition": (lambda: replace(CAGE2, editions={"mine": CAGE2.editions["current"]}), "edition mine differs"),
    "gateways": (two_kinds_of_gateways, "one kind of gateway"),
    "guessable": (lambda: with_host("User3", guessable="SYSTEM"), "guessable account 'SYSTEM'"),
    "smb": (lambda: with_service("User3", Service("smbd", "x", (139,), "smb")), "on windows alone"),
    "account": (lambda: with_service("User3", Service("sshd", "SYSTEM", (2222,), "ssh")), "counts for nothing"),
    "named service": (lambda: with_service("Op_Server0", Service("OTService", "x", (99,))), "never sees the service"),
    "foothold": (
        lambda: replace(CAGE2, operational_service=replace(CAGE2.operational_service, host="User0")),
        "on red's foothold",
    ),
    "meander": (lambda: replace(CAGE2, red=replace(CAGE2.red, meander=Meander(("User",)))), "red agent meander: its"),
    "bline": (
        lambda: replace(CAGE2, subnets=tuple(replace(one, hosts=one.hosts[::-1]) for one in CAGE2.subnets)),
        "Enterprise1, the third host of subnet Enterprise",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNPLAYABLE)
def test_what_cyborg_cannot_play_is_named(name: str) -> None:
    make, reason = UNPLAYABLE[name]
    problems = cyborg_problems(make(), CAGE2)
    assert any(reason in problem for problem in problems), problems
    if problems[0].startswith("red agent"):
        assert cyborg_problems(make(), CAGE2, ["sleep"]) == []
        assert cyborg_scenario(make())["Hosts"]
    else:
        with pytest.raises(UserError, match="genuine CybORG cannot play the network cage2"):
            check_playable(make(), ["sleep"])


def test_meander_that_runs_out_of_hosts_is_a_problem() -> None:
    hosts = [replace(host, reveals=()) for host in CAGE2.hosts if host.name != "Defender"]
    subnets = [replace(one, hosts=tuple(h for h in one.hosts if h != "Defender")) for one in CAGE2.subnets]
    lost = replace(CAGE2, hosts=tuple(hosts), subnets=tuple(subnets), red=replace(CAGE2.red, programs={}))
    assert cyborg_problems(lost, CAGE2) == [
        "red agent meander: it can take all hosts that it finds but never Op_Server0, and then CybORG fails"
    ]
    assert cyborg_problems(CAGE2, CAGE2) == []


def change(*keys: str | int, to: Any = None, drop: bool = False) -> Callable[[Scenario], None]:
    def apply(scenario: Scenario) -> None:
        inner = place(scenario, *keys[:-1])
        if drop:
            del inner[keys[-1]]
        else:
            inner[keys[-1]] = to

    return apply


def append(*keys: str | int, item: Any) -> Callable[[Scenario], None]:
    return lambda scenario: place(scenario, *keys).append(item)


def red_first(scenario: Scenario) -> None:
    scenario["Agents"] = dict(reversed(scenario["Agents"].items()))


SHELL = {"hostname": "User1", "name": "x", "type": "RedAbstractSession", "username": "SYSTEM"}
REFUSED: dict[str, tuple[Callable[[Scenario], None], str]] = {
    "key": (change("Extra", to=1), "'Extra', which cannot be represented"),
    "host key": (change("Hosts", "User1", "Firewall", to="on"), "Hosts.User1 has 'Firewall'"),
    "no image": (change("Hosts", "User1", "Processes", drop=True), "Hosts.User1 has neither an image nor 'Processes'"),
    "image": (change("Hosts", "User1", "image", to="Gateway"), "there is no"),
    "value": (change("Hosts", "User1", "ConfidentialityValue", to="Huge"), "allowed: None, Low, Medium, High"),
    "null value": (change("Hosts", "User1", "ConfidentialityValue"), "ConfidentialityValue must be text"),
    "type": (change("Hosts", "User1", "Processes", 0, "Process Type", to="gopher"), "is 'gopher'; known: ssh"),
    "rfi": (change("Hosts", "User3", "Processes", 0, "Properties", drop=True), "without the property rfi"),
    "version": (change("Hosts", "User3", "Processes", 3, "Process Version", to="haraka 2.8.9"), "of the version"),
    "port": (change("Hosts", "User3", "Processes", 3, "Connections", 0, "local_port", to=70000), "from 1 to 49151"),
    "address": (change("Hosts", "User3", "Processes", 3, "Connections", 0, "local_address", to="x"), "an address"),
    "pid": (change("Hosts", "User3", "Processes", 3, "PID", drop=True), "some processes a PID and others none"),
    "path": (change("Hosts", "User3", "Processes", 3, "Path", to=[]), "Path must be text"),
    "parent": (change("Hosts", "User3", "Processes", 3, "PPID", to="init"), "PPID must be a whole number"),
    "groups": (change("Hosts", "User3", "User Info", 0, "Groups", to=True), "Groups must be a list"),
    "patches": (change("Hosts", "User1", "System info", "Patches", to=["MS17_010"]), "names patches"),
    "system": (change("Hosts", "User1", "System info", "OSType", to="BEOS"), "allowed: linux, windows"),
    "guess root": (change("Hosts", "User3", "User Info", 0, "Bruteforceable", to=True), "the password of root"),
    "info": (change("Hosts", "User1", "info", "Enterprise1", "Interfaces", to="All"), "allowed: IP Address"),
    "unknown info": (change("Hosts", "User1", "info", "Nobody", to={}), "names 'Nobody', which is no host"),
    "no info": (change("Hosts", "Enterprise0", "info", drop=True), "Hosts.Enterprise0 lacks info"),
    "untold": (change("Hosts", "Op_Server0", "info", "Op_Server0", "Services", drop=True), "must tell red the service"),
    "no service": (change("Hosts", "Op_Server0", "Services", drop=True), "must be on one host, not on no host"),
    "other service": (change("Hosts", "User1", "Services", to={"Web": {"active": True, "PID": 4}}), "OTService alone"),
    "stopped": (change("Hosts", "Op_Server0", "Services", "OTService", "active", to=False), "must be true"),
    "service pid": (change("Hosts", "Op_Server0", "Services", "OTService", "PID", to=5), "must be the only process"),
    "nacl": (change("Subnets", "Operational", "NACLs", "User", "in", to=[{"PortRange": [1, 9]}]), "must be text"),
    "all closed": (change("Subnets", "Operational", "NACLs", "all", "in", to="None"), "NACLs.all.in is 'None'"),
    "no nacl": (change("Subnets", "Operational", "NACLs", to={}), "must say what comes in from User"),
    "size": (change("Subnets", "User", "Size", to=0), "Subnets.User.Size must be a whole number"),
    "subnet host": (append("Subnets", "User", "Hosts", item="Nobody"), "Subnets.User.Hosts[5] is 'Nobody'"),
    "two subnets": (append("Subnets", "User", "Hosts", item="Op_Host0"), "which is in subnet Operational already"),
    "no subnet": (change("Subnets", "User", "Hosts", to=["User0"]), "puts host 'User1' into no subnet"),
    "blue verb": (append("Agents", "Blue", "actions", item="Misinform"), "Agents.Blue.actions[13] is 'Misinform'"),
    "blue order": (change("Agents", "Blue", "actions", 0, to="Analyse"), "more than once"),
    "red verb": (change("Agents", "Red", "actions", to=["Sleep"]), "lacks 'DiscoverRemoteSystems'"),
    "two sessions": (append("Agents", "Red", "starting_sessions", item=SHELL), "must be one session without parent"),
    "session": (append("Agents", "Blue", "starting_sessions", item=SHELL), "allowed: VelociraptorServer"),
    "unwatched": (change("Agents", "Blue", "starting_sessions", 0, drop=True), "no VelociraptorClient on User0"),
    "red knows": (change("Agents", "Red", "INT", "Hosts", "User1", to={"Interfaces": "All"}), "its first host, alone"),
    "blue knows": (change("Agents", "Blue", "INT", "Hosts", "User1", drop=True), "also of User1"),
    "subnets": (change("Agents", "Red", "AllowedSubnets", to=["User"]), "lacks 'Enterprise'"),
    "wrappers": (change("Agents", "Blue", "wrappers", to=["X"]), "wrappers cannot be represented"),
    "reward": (change("Agents", "Blue", "reward_calculator_type", to="Baseline"), "_type is 'Baseline'"),
    "green": (change("Agents", "Green", "agent_type", to="GreenAgent"), "must be SleepAgent"),
    "order": (red_first, "act in the order Red, Green, Blue"),
    "agent": (change("Agents", "Grey", to={}), "Agents has 'Grey'"),
    "hosts": (change("Hosts", to=[]), "Hosts must be a mapping"),
    "number": (change("Hosts", 7, to={}), "Hosts has the name 7"),
    "hostile": (change("Hosts", "a\u202eb", to={}), "has the name 'a\\u202eb'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_represented_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    apply, complaint = REFUSED[name]
    scenario = cyborg_scenario(CAGE2)
    apply(scenario)
    assert complaint in refusal(written(tmp_path, scenario))


BROKEN = {
    "empty": ("", "must be a mapping, not None"),
    "tab": ("Agents:\n\tBlue: 1\n", "not valid YAML in line 2, column 1"),
    "cut": ("Agents: {Blue: [1, 2", "not valid YAML in line 1"),
    "twice": ("Agents: {}\nAgents: {}\n", "line 2 has 'Agents' a second time"),
    "python": ("Agents: !!python/object/apply:os.system [ls]\n", "not valid YAML in line 1"),
    "deep": ("Agents: " + "[" * 20000, "nested too deeply"),
    "itself": ("Agents: &a [*a]\n", "line 1 contains itself"),
    "many": ("Agents: {}\n---\nHosts: {}\n", "not valid YAML in line 2"),
    "control": ("Agents: \x01\n", "not valid YAML"),
    "date": ("Agents: 2001-13-45\n", "has a value that cannot be read"),
    "large": ("#" * (LARGEST_FILE + 1), "larger than 500000 bytes"),
    "bomb": (
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
        "has more than 100000 values",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_or_hostile_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    text, complaint = BROKEN[name]
    assert complaint in refusal(written(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "nothing.yaml")
    (tmp_path / "raw.yaml").write_bytes(b"Agents: \xff\xfe")
    assert "UTF-8" in refusal(tmp_path / "raw.yaml")
    (tmp_path / "folder.yaml").mkdir()
    assert "no such file" in refusal(tmp_path / "folder.yaml")


def with_images(folder: Path) -> Scenario:
    """CAGE Challenge 2 with an image file for each host, as CybORG's repository has them."""
    scenario, index = cyborg_scenario(CAGE2), {}
    (folder / "images").mkdir()
    for name, host in scenario["Hosts"].items():
        keys = [key for key in ("Processes", "System info", "User Info", "Services") if key in host]
        written(folder, {"Test_Host": {key: host.pop(key) for key in keys}}, f"images/{name}_image.yaml")
        host["image"], index[f"of_{name}"] = f"of_{name}", {"path": f"{name}_image"}
    written(folder, index, "images/images.yaml")
    return scenario


def test_images_are_read_from_the_folder_beside(tmp_path: Path) -> None:
    scenario = with_images(tmp_path)
    network, notes = import_scenario(written(tmp_path, scenario))
    assert (network, notes) == (CAGE2, [])
    scenario["Hosts"]["User1"]["image"] = "of_User3"
    other, _ = import_scenario(written(tmp_path, scenario))
    assert other.hosts[9].services == CAGE2.hosts[11].services
    assert other.name == "mine"


@pytest.mark.parametrize(
    ("apply", "complaint"),
    [
        (change("Hosts", "User1", "image", to="nothing"), "names the image 'nothing', which is not in"),
        (change("Hosts", "User1", "Processes", to=[]), "Hosts.User1.Processes is also in the image of_User1"),
        (change("Hosts", "User1", "image", to="out"), "must be the name of a file in"),
        (change("Hosts", "User1", "image", to="gone"), "no such file"),
        (change("Hosts", "User1", "image", to="inline"), "inline has 'Processes', which cannot be represented"),
    ],
)
def test_a_wrong_image_is_refused(apply: Callable[[Scenario], None], complaint: str, tmp_path: Path) -> None:
    scenario = with_images(tmp_path)
    index = tmp_path / "images" / "images.yaml"
    index.write_text(
        index.read_text("utf-8") + "out: {path: ../../secret}\ngone: {path: gone}\ninline: {Processes: []}\n", "utf-8"
    )
    apply(scenario)
    assert complaint in refusal(written(tmp_path, scenario))


def test_missing_optional_fields_have_cyborgs_defaults(tmp_path: Path) -> None:
    scenario = cyborg_scenario(CAGE2)
    del scenario["Hosts"]["Defender"]["info"]
    for host in scenario["Hosts"].values():
        del host["AWS_Info"]
        if host["ConfidentialityValue"] == "Low":
            del host["ConfidentialityValue"]
    for agent in scenario["Agents"].values():
        del agent["wrappers"]
    for session in scenario["Agents"]["Blue"]["starting_sessions"][:-1]:
        del session["name"]
    assert import_scenario(written(tmp_path, scenario)) == (CAGE2, [])
    del scenario["Agents"]["Green"]
    network, notes = import_scenario(written(tmp_path, scenario))
    assert network == CAGE2
    assert "no agent Green" in notes[0]
    for process in (process for host in scenario["Hosts"].values() for process in host["Processes"]):
        if process["Process Name"] != "OTService":
            del process["PID"]
    network, _ = import_scenario(written(tmp_path, scenario))
    assert {host.process_ids for host in network.hosts} == {()}


def test_what_genuine_cyborg_does_otherwise_is_noted(tmp_path: Path) -> None:
    names = dict(zip(CAGE2.host_names, CAGE2.host_names, strict=True)) | {"Op_Server0": "Turbine7", "User0": "Entrance"}
    text = scenario_text(CAGE2)
    for ours, theirs in names.items():
        text = text.replace(ours, theirs)
    network, notes = import_scenario(written(tmp_path, text))
    assert network.operational_service.host == "Turbine7"
    assert network.red.foothold == "Entrance"
    assert network.red.programs == {}
    assert network.unit_types == ("defender", "enterprise", "turbine", "op_host", "entrance", "user")
    for part in ("stop it on Op_Server0 alone", "its foothold Entrance", "no red agent bline", "to scan User0"):
        assert any(part in note for note in notes), (part, notes)
    assert [problem for problem in cyborg_problems(network, CAGE2) if "bline" not in problem] == []


def test_unit_types_can_be_given(tmp_path: Path) -> None:
    path = written(tmp_path, scenario_text(CAGE2))
    network, _ = import_scenario(path, {"User1": "laptop", "User2": "laptop"})
    assert network.unit_types == ("defender", "enterprise", "op_server", "op_host", "user", "laptop")
    with pytest.raises(UserError, match="given for 'User9', which is no host"):
        import_scenario(path, {"User9": "laptop"})
    with pytest.raises(NetworkError, match=r"unit_types\[5\] is 'a b'"):
        import_scenario(path, {"User1": "a b"})
    many = renamed(CAGE2, {name: name if name in ("User0", "Op_Server0") or "Ent" in name else f"{name}{'x' * i}"
                           for i, name in enumerate(CAGE2.host_names)})  # fmt: skip
    found, notes = import_scenario(written(tmp_path, scenario_text(many)))
    assert len(found.unit_types) <= 12
    assert list(contradictions(found)) == []
    assert notes
