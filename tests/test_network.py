from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.engine.tables import (
    NO_SERVICE,
    REFUSES,
    YIELDS_LOGIN,
    YIELDS_PRIVILEGED,
    YIELDS_USER,
    compile_tables,
    fixed_hosts,
)
from workflow_rl.envs.checks import parse_red_agents
from workflow_rl.envs.game import Games
from workflow_rl.errors import NetworkError, UserError, check_choice
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.training.collectors import Stream
from workflow_rl.training.evaluation import FreshGames, evaluate_workflow_policy
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.train_task import check_task
from workflow_rl.training.trainer import train_workflow

DECOY_MASKS = {
    "Defender": 197, "Enterprise0": 197, "Enterprise1": 2, "Enterprise2": 2, "Op_Host0": 197, "Op_Host1": 197,
    "Op_Host2": 197, "Op_Server0": 197, "User0": 105, "User1": 105, "User2": 83, "User3": 144, "User4": 128,
}  # fmt: skip

LETTERS = {"P": YIELDS_PRIVILEGED, "U": YIELDS_USER, "S": YIELDS_LOGIN, "F": REFUSES, ".": NO_SERVICE}
# FTP Haraka SQL HTTPS HTTP EternalBlue BlueKeep SSH
OUTCOMES = {
    "Defender": ".......F", "Enterprise0": ".......S", "Enterprise1": "...UU.PS", "Enterprise2": "...UU.PS",
    "Op_Host0": ".......S", "Op_Host1": ".......S", "Op_Host2": ".......S", "Op_Server0": ".......S",
    "User0": "P......S", "User1": "P......S", "User2": ".....PU.", "User3": ".P.UU...", "User4": ".PPUU..S",
}  # fmt: skip


def test_the_actions_are_numbered_as_in_the_challenge(network: Network) -> None:
    verbs = [
        "Analyse", "Remove", "DecoyApache", "DecoyFemitter", "DecoyHarakaSMPT", "DecoySmss", "DecoySSHD",
        "DecoySvchost", "DecoyTomcat", "DecoyVsftpd", "Restore",
    ]  # fmt: skip
    assert network.n_actions == 145
    assert [network.action_name(0), network.action_name(1)] == ["Sleep", "Monitor"]
    for number, verb in enumerate(verbs):
        for host, name in enumerate(network.host_names):
            assert network.action_parts(2 + 13 * number + host) == (verb, name)
            assert network.action_index(verb, name) == 2 + 13 * number + host


def test_fix_actions_are_remove_15_to_27_and_restore_132_to_144(network: Network) -> None:
    fixed = fixed_hosts(network)
    assert np.flatnonzero(fixed >= 0).tolist() == [*range(15, 28), *range(132, 145)]
    assert fixed[15:28].tolist() == fixed[132:].tolist() == list(range(13))


def test_each_unit_type_has_the_hosts_of_the_product_definition(network: Network) -> None:
    by_type: dict[str, list[str]] = {name: [] for name in network.unit_types}
    for host in network.hosts:
        by_type[host.unit_type].append(host.name)
    assert by_type == {
        "defender": ["Defender"],
        "enterprise": ["Enterprise0", "Enterprise1", "Enterprise2"],
        "op_server": ["Op_Server0"],
        "op_host": ["Op_Host0", "Op_Host1", "Op_Host2"],
        "user": ["User0", "User1", "User2", "User3", "User4"],
    }


@pytest.mark.parametrize("host", DECOY_MASKS)
def test_decoys_fit_a_clean_host_as_in_the_rules(network: Network, host: str) -> None:
    tables, index = compile_tables(network)[0], network.host_names.index(host)
    fits = 0
    for bit, decoy in enumerate(network.decoys):
        needed = 1 << network.ports.index(decoy.needs_free)
        if tables["decoys_for_os"][index] >> bit & 1 and not tables["genuine_ports"][index] & needed:
            fits |= 1 << bit
    assert fits == DECOY_MASKS[host]


@pytest.mark.parametrize("host", OUTCOMES)
def test_exploits_on_genuine_services_end_as_in_the_rules(network: Network, host: str) -> None:
    outcomes = compile_tables(network)[0]["outcome"][network.host_names.index(host)]
    assert outcomes.tolist() == [LETTERS[letter] for letter in OUTCOMES[host]]


def test_sql_injection_needs_its_own_port_and_a_web_port(network: Network) -> None:
    tables, sql = compile_tables(network)[0], [e.name for e in network.exploits].index("SQLInjection")

    def is_option(*ports: int) -> bool:
        return bool(tables["options"][sum(1 << network.ports.index(port) for port in ports)] >> sql & 1)

    assert is_option(3390, 80)
    assert is_option(3390, 443)
    assert not is_option(3390)
    assert not is_option(80, 443)


def test_the_editions_differ_in_two_tables_only(network: Network) -> None:
    current, leaderboard = compile_tables(network, "current")[0], compile_tables(network, "leaderboard")[0]
    names = current.dtype.names or ()
    differing = [name for name in names if not np.array_equal(current[name], leaderboard[name])]
    assert differing == ["broken_by_restore", "scan_forgets"]


DAMAGES = [
    ('name = "cage2"', 'name = "cage2', "line 4"),
    ("version = 1", 'version = "one"', "field version must be of type int, not 'one'"),
    ("detected = 0.95", "detected = 1.5", "field chance.detected must be a probability from 0 to 1, not 1.5"),
    ("detected = 0.95", "", "field chance.detected is missing"),
    ("detected = 0.95", "detectable = 0.95", "field chance.detectable is not known"),
    ("value = 0.1", "value = 0.15", "field hosts[0].value must be a whole number of tenths"),
    ('unit_type = "defender"', 'unit_type = "defendr"', "field hosts[0].unit_type names 'defendr', which is not known"),
    ('os = "linux"', 'os = "beos"', "field hosts[0].os names 'beos'"),
    ('reveals = ["Op_Server0"]', 'reveals = ["Op_Server9"]', "field hosts[3].reveals names 'Op_Server9'"),
    ("ports = [22]", "ports = [70000]", "field hosts[0].services[0].ports names port 70000"),
    ("ports = [22]", 'ports = ["ssh"]', "field hosts[0].services[0].ports[0] must be of type int, not 'ssh'"),
    ("ports = [22]", "ports = [22.5]", "field hosts[0].services[0].ports[0] must be of type int, not 22.5"),
    ('"Analyse", "Remove",', '"Analyse", "Delete",', "field blue.host_actions names 'Delete'"),
    ('name = "Enterprise1"', 'name = "Enterprise0"', "field hosts[2].name has 'Enterprise0' more than once"),
    ("version = 1", "version = 99", "field version is 99; this program reads version 1"),
    ('"Analyse", "Remove",', '"Analyse", "Analyse",', "field blue.host_actions has 'Analyse' more than once"),
    ("success = 1, failure = 0", "success = 99, failure = 0", "field red.bline.program[0].success is 99"),
    ('foothold = "User0"', 'foothold = "User9"', "field red.foothold names 'User9'"),
    ('"Enterprise2", "Defender"]', '"Enterprise2"]', "field subnets.hosts puts host 'Defender' into no subnet"),
    ("weight = 7.0", "weight = 0.5", "field exploits.weight must fall from one exploit to the next"),
    ('broken_by_restore = ["HarakaRCE"]', 'broken_by_restore = ["Worm"]', "editions.leaderboard.broken_by_restore"),
    ("scan_forgets = true", "scan_forgets = 1", "field editions.current.scan_forgets must be of type bool, not 1"),
    ("guess_refused = 10", "guess_refused = 0", "field records.guess_refused must be from 1 to 100, not 0"),
    ('users = ["User1", "User2", "User3", "User4"]', "users = []", "field red.bline.users must name at least one host"),
    ('type = "ssh", ports', 'type = "shs", ports', "field hosts[0].services[0].type names 'shs', which is not known"),
    (
        'privileged = ["root",',
        'privileged = ["rot",',
        "field accounts.privileged names 'rot', under which no service runs",
    ),
    (
        'retakes = ["Operational", "Enterprise"]',
        'retakes = ["User", "User"]',
        "red.meander.retakes has 'User' more than once",
    ),
    (
        '"DiscoverNetworkServices", target = "$user"',
        '"DiscoverNetworkServices", target = "$enterprise"',
        "uses $enterprise before $user",
    ),
    ('users = ["User1",', 'users = ["User0",', "field red.bline.users has 'User0', which must reveal exactly one host"),
]


@pytest.mark.parametrize(("old", "new", "complaint"), DAMAGES)
def test_a_damaged_scenario_file_is_refused_with_the_place(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = CAGE2.read_text("utf-8")
    assert old in text
    path = tmp_path / "damaged.toml"
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(NetworkError) as error:
        load_network(path)
    assert complaint in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_edited_scenario_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(CAGE2.read_text("utf-8"), "utf-8")
    assert load_network(path).reward.restore == 1.0
    path.write_text(CAGE2.read_text("utf-8").replace("restore = 1.0", "restore = 2.0"), "utf-8")
    assert load_network(path).reward.restore == 2.0


def test_too_many_hosts_are_refused(tmp_path: Path) -> None:
    text = CAGE2.read_text("utf-8")
    extra = "".join(
        f'[[hosts]]\nname = "Extra{i}"\nunit_type = "user"\nos = "linux"\nvalue = 0.1\nservices = []\n'
        for i in range(52)
    )
    path = tmp_path / "large.toml"
    path.write_text(text.replace("[operational_service]", extra + "[operational_service]"), "utf-8")
    with pytest.raises(NetworkError, match="field hosts gives 65 entries; allowed: 1 to 64"):
        load_network(path)


def test_a_missing_or_binary_scenario_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="cannot read the network file"):
        load_network(tmp_path / "nothing.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NetworkError, match="not a text file in UTF-8"):
        load_network(binary)


def test_unknown_names_are_refused_with_the_allowed_ones(network: Network) -> None:
    with pytest.raises(UserError, match="unknown red agent 'blin'; allowed: bline, meander, sleep"):
        parse_red_agents("bline,blin", network)
    with pytest.raises(UserError, match="no red agent given"):
        parse_red_agents([], network)
    with pytest.raises(UserError, match="unknown edition 3; allowed: current"):
        check_choice("edition", 3, ["current"])


def larger(network: Network) -> Network:
    """The challenge with a fourteenth host and unit types of other names."""
    names = {"user": "desk", "enterprise": "office"}
    hosts = [*network.hosts, replace(network.hosts[-1], name="User5")]
    subnets = [replace(s, hosts=(*s.hosts, "User5")) if "User4" in s.hosts else s for s in network.subnets]
    return replace(
        network,
        unit_types=tuple(names.get(name, name) for name in network.unit_types),
        hosts=tuple(replace(host, unit_type=names.get(host.unit_type, host.unit_type)) for host in hosts),
        subnets=tuple(subnets),
    )


@pytest.mark.parametrize("path", ["auto", "plain"])
def test_a_policy_is_trained_saved_and_evaluated_on_another_network(
    network: Network, path: str, tmp_path: Path
) -> None:
    mine, order = larger(network), "desk,office,op_server,op_host,defender"
    config = make_config(
        workflow=order, n_envs=10, max_episodes=4, min_episodes=1, warm_updates=2, n_eval_episodes=10, guard=True,
        path=path,
    )  # fmt: skip
    check_task(config, mine)
    with closing(Run.create(tmp_path / "run", config, copy_of(mine))) as run:
        result = train_workflow(config, run, network=mine)
    assert result.workflow == order
    policy = load_policy(tmp_path / "run", mine)
    assert (policy.net.n_bits, policy.net.n_code, policy.net.n_actions) == (56, 25, 156)
    fresh = FreshGames(Games(mine, "bline", "current", 100), 20, Stream(3))
    assert evaluate_workflow_policy(tmp_path / "run", fresh).mean_return < 0
    with pytest.raises(UserError, match=r"the policy was trained on network 'cage2' .*, not on network 'cage2'"):
        load_policy(tmp_path / "run", network)
    with pytest.raises(UserError, match="unknown unit type 'desk'"):
        check_task(config, network)
