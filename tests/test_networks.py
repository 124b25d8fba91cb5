from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest

from workflow_rl.engine.network import Edition, Meander, Network, Program, ProgramLine, Red, Service
from workflow_rl.engine.network_file import as_network, bundled, examine, load_network
from workflow_rl.engine.networks.generate import generate
from workflow_rl.engine.networks.picture import arrows, columns, picture
from workflow_rl.engine.networks.svg import network_svg
from workflow_rl.engine.networks.text import network_text
from workflow_rl.engine.networks.ways import aimed_at, exploits_on, meaning, prey_of, routes, takeable, taken_by
from workflow_rl.engine.tables import compile_tables
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.errors import UserError

SIZES = [(5 + 59 * i // 39, 3 + 7 * i % 10, i) for i in range(40)]
SIZES = [(hosts, min(types, hosts - 1), seed) for hosts, types, seed in SIZES]
CYBORG_VALUES = (0.0, 0.1, 1.0, 10.0)


def read(text: str) -> Network:
    examined = examine("mine.toml", text.encode())
    assert examined.network is not None, examined.mistakes
    return examined.network


# ------------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_network_is_the_same_after_writing_and_reading(name: str) -> None:
    network = as_network(name)
    assert read(network_text(network)) == network
    assert read(network_text(network)).digest == network.digest
    assert read(network_text(network, "A comment\n\nof three lines")) == network


@pytest.mark.parametrize(("hosts", "unit_types", "seed"), SIZES)
def test_a_generated_network_is_valid_and_the_same_after_writing_and_reading(
    hosts: int, unit_types: int, seed: int
) -> None:
    network = generate(hosts, unit_types, seed)
    examined = examine("mine.toml", network_text(network).encode())
    assert examined.mistakes == examined.warnings == ()
    assert examined.network == network
    assert examined.network.digest == network.digest
    assert (len(network.hosts), len(network.unit_types)) == (hosts, unit_types)
    compile_tables(network)


def test_what_the_challenge_does_not_use_survives_writing_and_reading_too(network: Network) -> None:
    hunter = Program(
        (
            ProgramLine("DiscoverNetworkServices", "any", 1, 0, redraw=True),
            ProgramLine("ExploitRemoteService", "op_host", 2, 0, unless_scanned=0),
            ProgramLine("PrivilegeEscalate", "op_host", 0, 0),
        )
    )
    strange = Service('a "quoted" \\ name\x7f\n\t', "é\u2028", (22,), "ssh")
    gated = ("Enterprise0", "Enterprise1")
    mine = replace(
        network,
        red=Red("User0", {"hunter.v2": hunter, **network.red.programs}, Meander((("User1",), "User"))),
        hosts=(replace(network.hosts[0], services=(strange,), process_ids=()), *network.hosts[1:]),
        subnets=tuple(replace(s, reached_through=gated) if s.reached_through else s for s in network.subnets),
        editions={"2.1": Edition(True, ()), **network.editions},
    )
    assert read(network_text(mine)) == mine
    assert read(network_text(mine)).digest == mine.digest


def test_text_keeps_the_form_of_the_challenge(network: Network) -> None:
    text = network_text(network)
    assert max(map(len, text.splitlines())) <= 120
    assert text.index("[chance]") < text.index("[[subnets]]") < text.index("[[hosts]]") < text.index("[blue]")
    assert text.index("[[exploits]]") < text.index("[red.bline]") < text.index("[red.meander]") < text.index("[green]")
    assert '  { process = "sshd", account = "root", ports = [22], type = "ssh" },' in text


# -------------------------------------------------------------------------------------------------------- generator


@pytest.mark.parametrize(("hosts", "unit_types", "seed"), SIZES)
def test_genuine_agents_of_cyborg_would_play_a_generated_network_as_ours_do(
    hosts: int, unit_types: int, seed: int
) -> None:
    """The facts about names and reveals on which CybORG's B_line and Meander rely."""
    network = generate(hosts, unit_types, seed)
    by_name = {host.name: host for host in network.hosts}
    service, program = network.operational_service, network.red.programs["bline"]
    servers = network.subnets[network.subnet_names.index("Servers")]
    office = network.hosts_of(network.subnet_of(network.red.foothold))
    assert program.users == tuple(host for host in office if host != network.red.foothold)
    for user in program.users:
        [revealed] = by_name[user].reveals
        assert revealed in servers.hosts
        assert revealed not in (servers.hosts[2], service.host)
    assert by_name[servers.hosts[2]].reveals == (service.host,)
    targets = [line.target for line in program.program]
    assert targets == ["Office", *["$user"] * 3, *["$enterprise"] * 3, "Servers", *[servers.hosts[2]] * 3,
                       *[service.host] * 4]  # fmt: skip
    assert {subnet.reached_through for subnet in network.subnets} <= {"", "Servers"}
    assert hosts == 5 or network.subnets[network.subnet_names.index("Plant")].reached_through == "Servers"
    assert service.name == "OTService"
    assert all(host.value in CYBORG_VALUES for host in network.hosts)
    assert by_name[network.red.foothold].value == 0.0


def test_every_size_from_5_to_64_hosts_and_3_to_12_unit_types_can_be_generated() -> None:
    for hosts in range(5, 65):
        for unit_types in range(3, min(12, hosts - 1) + 1):
            network = generate(hosts, unit_types, 0)
            assert len(network.hosts) == hosts
            assert {host.unit_type for host in network.hosts} == set(network.unit_types)
            assert len(network.unit_types) == unit_types


def test_generated_networks_are_the_same_on_every_machine_and_differ_by_seed() -> None:
    assert generate(30, 8, 1) == generate(30, 8, 1)
    digests = {generate(30, 8, seed).digest for seed in range(20)}
    assert len(digests) == 20
    assert generate(30, 8, 1).digest == "c117ed8eb5848a99"
    assert generate(5, 3, 0).digest == "a0062d3b6be62a0b"


def test_generated_networks_vary() -> None:
    networks = [generate(30, 8, seed) for seed in range(20)]
    assert len({network.unit_types for network in networks}) > 10
    assert len({len(network.subnets) for network in networks}) > 1
    assert {host.value for network in networks for host in network.hosts} == set(CYBORG_VALUES)
    assert {host.guessable for network in networks for host in network.hosts} == {"", "pi", "vagrant"}
    thirds = {network.subnets[1].hosts[2].rstrip("0123456789") for network in networks}
    assert len(thirds) > 3


@pytest.mark.parametrize(
    ("hosts", "unit_types", "seed", "complaint"),
    [
        (4, 3, 0, "the number of hosts must be a whole number from 5 to 64, not 4"),
        (65, 3, 0, "the number of hosts must be a whole number from 5 to 64, not 65"),
        (30, 2, 0, "the number of unit types must be a whole number from 3 to 12, not 2"),
        (30, 13, 0, "the number of unit types must be a whole number from 3 to 12, not 13"),
        (6, 6, 0, "the number of unit types must be a whole number from 3 to 5, not 6"),
        (30, 8, -1, "the seed must be a whole number from 0"),
        (True, 8, 0, "not True"),
        (30, 8.0, 0, "not 8.0"),
    ],
)
def test_impossible_sizes_are_refused(hosts: int, unit_types: int, seed: int, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        generate(hosts, unit_types, seed)


# --------------------------------------------------------------------------------------------------- bundled networks


def test_the_fine_challenge_differs_in_its_unit_types_alone(network: Network) -> None:
    fine = as_network("cage2-fine")
    assert fine.unit_types == (
        "defender", "enterprise0", "enterprise1", "enterprise2", "op_server", "op_host", "user12", "user34",
    )  # fmt: skip
    types = {host.name: host.unit_type for host in fine.hosts}
    assert [types[f"User{i}"] for i in range(5)] == ["user12", "user12", "user12", "user34", "user34"]
    coarse = [replace(host, unit_type=types[host.name]) for host in network.hosts]
    assert replace(network, name=fine.name, unit_types=fine.unit_types, hosts=tuple(coarse)) == fine


def test_the_plant_has_thirty_hosts_in_eight_unit_types_that_red_takes_on_its_way() -> None:
    plant = as_network("plant")
    assert (len(plant.hosts), len(plant.unit_types)) == (30, 8)
    assert set(plant.unit_types) - set(prey_of(plant, "bline").unit_types) == {"controller"}
    assert prey_of(plant, "meander").unit_types == plant.unit_types
    values = {host.unit_type: host.value for host in plant.hosts if host.name != plant.red.foothold}
    assert [values[name] for name in ("workstation", "web", "mail", "database")] == [0.1, 0.1, 1.0, 10.0]
    assert all(host.value in CYBORG_VALUES for host in plant.hosts)


# ------------------------------------------------------------------------------------------------- what red can take


def test_red_takes_in_the_challenge_what_the_rules_say(network: Network) -> None:
    assert set(network.host_names) - set(takeable(network)) == {"Defender"}
    everything = set(network.host_names) - {"Defender", "User0"}
    assert set(taken_by(network, "meander")) == everything
    assert set(taken_by(network, "bline")) == everything - {"Op_Host0", "Op_Host1", "Op_Host2"}
    assert taken_by(network, "sleep") == aimed_at(network, "sleep") == ()
    assert set(aimed_at(network, "bline")) == set(taken_by(network, "bline"))
    assert routes(network) == network.subnet_names
    assert [prey_of(network, name).orders for name in ("bline", "meander", "sleep")] == [6, 24, 1]


def test_sql_injection_needs_a_web_port_that_is_open_or_that_a_decoy_can_open(network: Network) -> None:
    user4 = network.hosts[network.host_names.index("User4")]
    only_sql = replace(user4, services=(Service("mysql", "root", (3390,), "sql"),))
    assert exploits_on(network, only_sql) == ["SQLInjection"]
    assert exploits_on(replace(network, decoys=network.decoys[1:2]), only_sql) == []
    assert exploits_on(replace(network, decoys=()), user4)[:2] == ["HarakaRCE", "SQLInjection"]


def test_a_chain_of_gates_is_followed_and_a_circle_is_not(network: Network) -> None:
    user, enterprise, operational = (network.subnet_names.index(n) for n in ("User", "Enterprise", "Operational"))
    subnets = list(network.subnets)
    subnets[enterprise] = replace(subnets[enterprise], reached_through=("User3",))
    assert routes(replace(network, subnets=tuple(subnets))) == network.subnet_names
    subnets[enterprise] = replace(subnets[enterprise], reached_through="Operational")
    assert routes(replace(network, subnets=tuple(subnets))) == ("User",)
    subnets[user], subnets[operational] = replace(subnets[user], reached_through=("User0",)), subnets[operational]
    assert routes(replace(network, subnets=tuple(subnets))) == ("User",)


def test_a_line_to_which_a_program_never_comes_aims_at_nothing(network: Network) -> None:
    lines = list(network.red.programs["bline"].program)
    lines[10] = replace(lines[10], success=9)  # never on to the operational server
    program = replace(network.red.programs["bline"], program=tuple(lines))
    mine = replace(network, red=replace(network.red, programs={"bline": program}))
    assert "Op_Server0" not in aimed_at(mine, "bline")
    assert prey_of(mine, "bline").unit_types == ("enterprise", "user")


@pytest.mark.parametrize("made", [(14, 6, 1), (12, 5, 2), (13, 7, 3)])
@pytest.mark.parametrize("red_agent", ["bline", "meander"])
def test_red_takes_in_play_only_what_it_can_take_and_stops_the_service(
    made: tuple[int, int, int], red_agent: str
) -> None:
    network = generate(*made)
    env = CageVectorEnv(100, network=network, red_agent=red_agent, max_steps=None)
    env.reset(seed=5)
    chance, held = np.random.default_rng(5), np.zeros(len(network.hosts), bool)
    acts = np.arange(100) >= 50  # half of them sleep
    for _ in range(300):
        infos = env.step(np.where(acts, chance.integers(network.n_actions, size=100), 0))[4]
        held |= (infos["red_level"] > 0).any(axis=0)
    taken = {name for name, is_held in zip(network.host_names, held, strict=True) if is_held}
    assert taken - {network.red.foothold} <= set(taken_by(network, red_agent))
    assert env.game.states["service_down"][~acts].all()
    assert not env.game.states["irregular"].any()


def test_the_meaning_of_a_network_is_told_in_words(network: Network) -> None:
    words = meaning(network)
    assert "5 unit types can be repaired in 120 orders" in words
    assert "bline       enterprise, op_server, user: at most 6 of the orders differ" in words
    assert "sleep       nothing: all orders are the same" in words
    assert "Red starts on User0 and wants to stop OTService on Op_Server0." in words


# ---------------------------------------------------------------------------------------------------------- pictures


PICTURE = """\
┌─ User ───────────────────┐      ┌─ Enterprise ────────────┐      ┌─ Operational ─────────────────────┐
│ user  User0 (red starts) │      │ defender    Defender    │      │ op_server  Op_Server0 (OTService) │
│       User1 User2 User3  │───┐  │ enterprise  Enterprise0 │   ┌─▶│ op_host    Op_Host0 Op_Host1      │
│       User4              │   └─▶│             Enterprise1 │───┘  │            Op_Host2               │
└──────────────────────────┘      │             Enterprise2 │      └───────────────────────────────────┘
                                  └─────────────────────────┘

Enterprise ──▶ Operational: open only while red holds a host of Enterprise
User ──▶ Enterprise: red learns addresses there from User1, User2, User3, User4"""


def test_the_picture_of_the_challenge(network: Network) -> None:
    assert picture(network, 110) == PICTURE


@pytest.mark.parametrize("width", [40, 80, 110, 200])
@pytest.mark.parametrize(("hosts", "unit_types", "seed"), [(5, 3, 0), (13, 5, 1), (30, 8, 1), (64, 12, 2)])
def test_every_host_and_subnet_is_in_the_picture_and_boxes_are_closed(
    hosts: int, unit_types: int, seed: int, width: int
) -> None:
    network = generate(hosts, unit_types, seed)
    drawing = picture(network, width)
    words = drawing.split()
    assert all(words.count(name) == 1 for name in network.host_names if len(network.hosts) == 64 and name[-1] == "9")
    assert all(name in words for name in (*network.host_names, *network.unit_types, *network.subnet_names))
    assert drawing.count("(red starts)") == drawing.count("(OTService)") == 1
    assert drawing.count("┌─ ") == len(network.subnets)
    boxes = drawing.partition("\n\nServers")[0].partition("\n\nOffice")[0]
    assert width < 110 or max(map(len, boxes.splitlines())) <= width


def test_arrows_lead_from_the_foothold_through_the_gates(network: Network) -> None:
    assert [[subnet.name for subnet in column] for column in columns(network)] == [
        ["User"], ["Enterprise"], ["Operational"],
    ]  # fmt: skip
    assert [(arrow.start, arrow.end, arrow.gate) for arrow in arrows(network)] == [
        ("Enterprise", "Operational", True), ("User", "Enterprise", False),
    ]  # fmt: skip


@pytest.mark.parametrize("name", [*bundled(), "small", "large"])
def test_the_drawing_is_well_formed_without_script_and_every_host_is_inside(name: str) -> None:
    made = {"small": (5, 3, 0), "large": (64, 12, 2)}
    network = generate(*made[name]) if name in made else as_network(name)
    root = ElementTree.fromstring(network_svg(network))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(host in texts for host in (*network.host_names, *network.subnet_names))
    assert {"red starts", "OTService"} <= set(texts)
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x < x + w <= width
        assert 0 <= y < y + h <= height
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags == {"svg", "title", "g", "rect", "text", "path", "polygon"}


def test_hosts_do_not_overlap_in_the_drawing() -> None:
    root = ElementTree.fromstring(network_svg(generate(64, 12, 2)))
    groups = [g.find("{http://www.w3.org/2000/svg}rect") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    boxes = [[float(r.attrib[k]) for k in ("x", "y", "width", "height")] for r in groups if r is not None]
    assert len(boxes) == 64
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[:i]:
            assert x >= x2 + w2 or x2 >= x + w or y >= y2 + h2 or y2 >= y + h


def test_names_are_escaped_in_the_drawing_and_long_ones_cut(network: Network) -> None:
    evil, long = '<script>alert("1")</script>&\x00', "x" * 64
    hosts = [replace(h, name=evil) if h.name == "Op_Host0" else replace(h, name=long) if h.name == "User1" else h
             for h in network.hosts]  # fmt: skip
    renamed = {"Op_Host0": evil, "User1": long}
    subnets = [replace(s, hosts=tuple(renamed.get(h, h) for h in s.hosts)) for s in network.subnets]
    mine = replace(network, name=evil, hosts=tuple(hosts), subnets=tuple(subnets))
    drawing = network_svg(mine)
    assert "<script" not in drawing
    root = ElementTree.fromstring(drawing)
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "x" * 21 + "…" in texts
    assert any(text.startswith("<script>alert") for text in texts)


def test_a_subnet_that_nobody_leads_to_is_drawn_too(network: Network) -> None:
    hosts = tuple(replace(host, reveals=()) for host in network.hosts)
    lonely = replace(network, hosts=hosts, subnets=tuple(replace(s, reached_through="") for s in network.subnets))
    assert arrows(lonely) == []
    assert picture(lonely).count("┌─ ") == 3
    assert network_svg(lonely).count('rx="8"') == 3


def test_the_challenge_is_the_default_network_and_bundled_names_are_known() -> None:
    assert bundled() == ("cage2", "cage2-fine", "plant")
    assert load_network().name == "cage2"
    for name in bundled():
        assert as_network(name).name == name
