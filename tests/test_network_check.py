from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import (
    CAGE2,
    Mistake,
    as_network,
    bundled,
    examine,
    examine_file,
    load_network,
    network_path,
)
from workflow_rl.engine.networks.generate import generate
from workflow_rl.engine.networks.lines import line_of, lines_of
from workflow_rl.engine.networks.text import network_text
from workflow_rl.errors import NetworkError, UserError

TEXT = CAGE2.read_text("utf-8")

TOML = """\
# a comment with [brackets] and = signs
name = "mine" # another
"quoted key" = 'its = ' # "
[red]
foothold = "a # b"
[red.bline] # a table in a table
program = [
  { action = "Sleep", target = "" }, # [ ] { }

  { action = "x", target = "]", success = [
    1 ] },
]
[[hosts]]
name = "A"
ports = [22, 80]
nested = [[1,
  2], [
  3]]
[[hosts]]
name = '''
B'''
a.b.c = 1
[[hosts.services]]
process = "one"
[[hosts.services]]
process = "two"
time = 1979-05-27 07:32:00
[editions."with.dot"]
flag = true
"""


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("name", 2),
        ("quoted key", 3),
        ("red", 4),
        ("red.foothold", 5),
        ("red.bline", 6),
        ("red.bline.program", 7),
        ("red.bline.program[0]", 8),
        ("red.bline.program[0].target", 8),
        ("red.bline.program[1].target", 10),
        ("red.bline.program[1].success[0]", 11),
        ("hosts", 13),
        ("hosts[0]", 13),
        ("hosts[0].ports[1]", 15),
        ("hosts[0].nested[0][0]", 16),
        ("hosts[0].nested[0][1]", 17),
        ("hosts[0].nested[1]", 17),
        ("hosts[0].nested[1][0]", 18),
        ("hosts[1]", 19),
        ("hosts[1].name", 20),
        ("hosts[1].a.b.c", 22),
        ("hosts[1].services[0].process", 24),
        ("hosts[1].services[1]", 25),
        ("hosts[1].services[1].time", 27),
        ("editions.with.dot.flag", 29),
        ("hosts[1].services[1].missing", 25),
        ("red.bline.program[1].failure", 10),
        ("hosts[0].ports[7]", 15),
        ("nothing.like.it[3]", 1),
    ],
)
def test_the_line_of_every_field_is_found(field: str, line: int) -> None:
    tomllib.loads(TOML)
    assert line_of(lines_of(TOML), field) == line
    assert line_of(lines_of(TOML.replace("\n", "\r\n")), field) == line


@pytest.mark.parametrize(
    "text",
    [
        'a = """x"""""\nb = 1',
        'a = """\n\\"""\n"""\nb = 1',
        "a = ''''x'''\nb = 1",
        'a = "\\\\"\nb = 1',
        'a = "\\""\nb = 1',
        "a = []\nb = 1",
        "a = {}\nb = 1",
        "a = [ # comment ]\n 1, # ,\n ]\nb = 1",
        "a = [[], [{}], [{x = [1]}]]\nb = 1",
        "a = -inf\nb = 1",
        "a = 1979-05-27 07:32:00.5-07:00\nb = 1",
        "\n\n'a' . b = 1\n b = 1",
        '"\\u0061" = 1\nb = 1',
        '["a"."x y"]\n"b" = 1',
    ],
)
def test_the_scanner_is_not_misled_by_any_form_of_toml(text: str) -> None:
    lines = lines_of(text)
    for field in ("".join(path) for path, _ in leaves(tomllib.loads(text))):
        assert field in lines
    assert max(lines.values()) == text.count("\n") + 1


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field and element of a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    else:
        yield path, value


def test_every_field_of_every_network_is_on_the_line_that_the_scanner_says() -> None:
    texts = [network_path(name).read_text("utf-8") for name in bundled()]
    texts += [network_text(generate(64, 12, 1)), network_text(generate(5, 3, 1))]
    for text in texts:
        lines, shown = lines_of(text), text.splitlines()
        found = list(leaves(tomllib.loads(text)))
        assert len(found) > 150
        for field, value in found:
            line = shown[lines[field] - 1]
            word = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
            assert word in line, field


def damaged(old: str, new: str) -> str:
    """cage2.toml with one change."""
    assert old in TEXT
    return TEXT.replace(old, new, 1)


def mistakes_of(text: str) -> list[Mistake]:
    return list(examine("mine.toml", text.encode()).mistakes)


EXTRA_HOST = '\n[[hosts]]\nname = "Extra{}"\nunit_type = "user"\nos = "linux"\nvalue = 0.1\nservices = []\n'
SLEEPER = '\n[red.sleeper{}]\nprogram = [{{ action = "Sleep", target = "", success = 0, failure = 0 }}]\n'
SLEEP_LINE = '  { action = "Sleep", target = "", success = 0, failure = 0 },\n'
UNKNOWN = "which is not known"

MISTAKES = [
    # types, unknown and missing fields
    ('host = "Op_Server0" # Impact', 'host = "User0" # Impact', "operational_service.host", "is red's foothold"),
    ("version = 1", 'version = "one"', "version", "must be of type int, not 'one'"),
    ("value = 0.1", "value = true", "hosts[0].value", "must be of type float, not True"),
    ("ports = [22]", 'ports = ["ssh"]', "hosts[0].services[0].ports[0]", "must be of type int"),
    ("ports = [22]", "ports = 22", "hosts[0].services[0].ports", "must be of type list, not 22"),
    ("[chance]\n", "chance = 3\n[chances]\n", "chance", "must be of type table, not 3"),
    ("restore = 1.0", "restore = 1.0\nrestored = 1.0", "reward.restored", "known here: restore, service_down"),
    ("guess_refused = 10\n", "", "records.guess_refused", "is missing"),
    ('reached_through = "Enterprise"', "reached_through = 3", "subnets[1].reached_through", "of type str, not 3"),
    ("scan_forgets = true", "scan_forgets = 1", "editions.current.scan_forgets", "must be of type bool, not 1"),
    # numbers
    ("version = 1", "version = 99", "version", "this program reads version 1"),
    ("detected = 0.95", "detected = nan", "chance.detected", "from 0 to 1, not nan"),
    ("value = 0.1", "value = 0.15", "hosts[0].value", "a whole number of tenths"),
    ("service_down = 10.0", "service_down = -1.0", "reward.service_down", "a whole number of tenths"),
    ("guess_accepted = 11", "guess_accepted = 101", "records.guess_accepted", "must be from 1 to 100, not 101"),
    ("ports = [22]", "ports = [22, 70000]", "hosts[0].services[0].ports", "port 70000; allowed: 1 to 49151"),
    ("opens = 21\n", "opens = 0\n", "decoys[1].opens", "names port 0"),
    ("and_one_of = [80, 443]", "and_one_of = [80, -1]", "exploits[2].and_one_of", "names port -1"),
    ("weight = 7.0", "weight = inf", "exploits[0].weight", "a finite number above 0"),
    ("weight = 5.0", "weight = 6.5", "exploits.weight", "must fall from one exploit to the next"),
    ("process_ids = [1091]", "process_ids = [99999]", "hosts[1].process_ids", "from 1 to 32767, not 99999"),
    ("process_ids = [3368, 832,", "process_ids = [3368] #", "hosts[2].process_ids", "each of the 5 services"),
    # names
    ('name = "cage2"', 'name = "<script>"', "name", "is '<script>'; a name has 1 to 64 letters"),
    ('name = "Defender"', 'name = "../x"', "hosts[0].name", "is '../x'; a name has"),
    ("[editions.leaderboard]", '[editions."<b>"]', "editions.<b>", "a name has 1 to 64"),
    ('"defender", "enterprise"', '"user", "enterprise"', "unit_types", "has 'user' more than once"),
    ('name = "Enterprise1"', 'name = "Enterprise0"', "hosts[2].name", "has 'Enterprise0' more than once"),
    ('name = "User"', 'name = "Enterprise"', "subnets[2].name", "has 'Enterprise' more than once"),
    ('hosts = ["User0",', 'hosts = ["User0", "Defender",', "subnets[2].hosts", "has 'Defender' more than once"),
    ('name = "Femitter"', 'name = "Apache"', "decoys[1].name", "has 'Apache' more than once"),
    ('name = "HarakaRCE"', 'name = "HTTPRFI"', "exploits[4].name", "has 'HTTPRFI' more than once"),
    ("weight = 6.0", "weight = 7.0", "exploits[1].weight", "has '7.0' more than once"),
    ('"Analyse", "Remove",', '"Analyse", "Analyse",', "blue.host_actions", "has 'Analyse' more than once"),
    ('["Operational", "Enterprise"]', '["User", "User"]', "red.meander.retakes", "has 'User' more than once"),
    ("[red.bline]", "[red.sleep]", "red", "has 'sleep' more than once"),
    # references
    ('unit_type = "defender"', 'unit_type = "defendr"', "hosts[0].unit_type", UNKNOWN),
    ('os = "linux"', 'os = "beos"', "hosts[0].os", "known: linux, windows"),
    ('type = "ssh", ports', 'type = "shs", ports', "hosts[0].services[0].type", UNKNOWN),
    ('reveals = ["Op_Server0"]', 'reveals = ["Op_Server9"]', "hosts[3].reveals", UNKNOWN),
    ('reached_through = "Enterprise"', 'reached_through = "Moon"', "subnets[1].reached_through", UNKNOWN),
    ('reached_through = "Enterprise"', 'reached_through = ["Moon"]', "subnets[1].reached_through", UNKNOWN),
    ('hosts = ["Op_Server0",', 'hosts = ["Nobody", "Op_Server0",', "subnets[1].hosts", UNKNOWN),
    ('host = "Op_Server0"', 'host = "Op"', "operational_service.host", UNKNOWN),
    ('"DecoyApache"', '"DecoyNginx"', "blue.host_actions", UNKNOWN),
    ('actions = ["Sleep",', 'actions = ["Nap",', "blue.actions", "known: Sleep, Monitor"),
    ('imitates = "ftp"', 'imitates = "gopher"', "decoys[1].imitates", UNKNOWN),
    ('\nby = "guess"', '\nby = "magic"', "exploits[7].by", "known: exploit, guess"),
    ('foothold = "User0"', 'foothold = "User9"', "red.foothold", UNKNOWN),
    ('["Operational", "Enterprise"]', '["Operational", ["X"]]', "red.meander.retakes[1]", UNKNOWN),
    ('scans = ["User0",', 'scans = ["User9",', "green.scans", UNKNOWN),
    ('restore = ["HarakaRCE"]', 'restore = ["Worm"]', "editions.leaderboard.broken_by_restore", UNKNOWN),
    ('privileged = ["root",', 'privileged = ["rot",', "accounts.privileged", "under which no service runs"),
    # structure
    ('"op_host", "user"]', '"op_host", "user", "printer"]', "unit_types", "has 'printer', which no host belongs to"),
    ('scans = ["User0",', "scans = [] #", "green.scans", "must name at least one host"),
    ('name = "Enterprise"\n', 'name = "Moon"\nhosts = []\n[[subnets]]\nname = "Enterprise"\n', "subnets[0].hosts",
     "must name at least one host"),
    ("services = [{ process", "services = [] # [{ process", "hosts[1].services", "without a listening port"),
    ('"Enterprise"\nhosts = ["Enterprise0", "Enterprise1", "Enterprise2", "Defender"]',
     '"Enterprise"\nhosts = ["Enterprise0", "Enterprise1", "Enterprise2"]', "subnets.hosts", "puts host 'Defender'"),
    ('reached_through = "Enterprise"', 'reached_through = "Operational"', "subnets[1].reached_through",
     "cuts off 'Operational': red can take no host of Operational"),
    ('reached_through = "Enterprise"', 'reached_through = ["Defender"]', "subnets[1].reached_through",
     "red can take no host of Defender"),
    # programs
    ("success = 1, failure = 0", "success = 99, failure = 0", "red.bline.program[0].success", "lines 0 to 14"),
    ("failure = 9, unless_scanned = 1", "failure = 9, unless_scanned = -2", "red.bline.program[12].unless_scanned",
     "is -2; the program has lines"),
    ('action = "Impact"', 'action = "Explode"', "red.bline.program[14].action", UNKNOWN),
    ('"DiscoverRemoteSystems", target = "User"', '"DiscoverRemoteSystems", target = "Usr"',
     "red.bline.program[0].target", "known: Enterprise, Operational, User"),
    ('target = "Enterprise2", success = 9', 'target = "Enterprise9", success = 9', "red.bline.program[8].target",
     UNKNOWN),
    ('"Impact", target = "Op_Server0"', '"Impact", target = "User0"', "red.bline.program[14].target",
     "known: Op_Server0"),
    ('"$user", success = 3', '"$user", success = 5', "red.bline.program[2].success", "red must escalate on the same"),
    ('target = "Op_Server0", success = 12', 'target = "Op_Server0", redraw = true, success = 12',
     "red.bline.program[11].redraw", "draws nothing"),
    ('users = ["User1",', 'users = ["User0",', "red.bline.users", "which must reveal exactly one host"),
    ('users = ["User1",', 'users = ["User7",', "red.bline.users", UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "field", "problem"), MISTAKES, ids=[f"{m[2]} {m[3]}" for m in MISTAKES])
def test_every_kind_of_mistake_is_found_with_its_line(old: str, new: str, field: str, problem: str) -> None:
    text = damaged(old, new)
    found = [mistake for mistake in mistakes_of(text) if mistake.field == field and problem in mistake.problem]
    assert found, [str(mistake) for mistake in mistakes_of(text)]
    first = TEXT.count("\n", 0, TEXT.index(old)) + 1
    elsewhere = {"exploits[4].name", "subnets.hosts", "records.guess_refused"}  # tested below
    assert first <= found[0].line <= first + new.count("\n") or field in elsewhere
    assert found[0].file == "mine.toml"
    assert found[0].allowed


def test_a_field_that_is_missing_has_the_line_of_its_table() -> None:
    [mistake] = mistakes_of(damaged("guess_refused = 10\n", ""))
    assert (
        mistake.line
        == TEXT.splitlines().index("[records] # connection records that an attempt leaves on its target") + 1
    )
    host = mistakes_of(damaged('name = "Enterprise2"\nunit_type = "enterprise"\n', 'name = "Enterprise2"\n'))
    assert [(m.field, m.problem) for m in host] == [("hosts[3].unit_type", "is missing")]
    assert TEXT.splitlines()[host[0].line - 1] == "[[hosts]]"


def test_a_host_in_no_subnet_has_the_line_of_its_name() -> None:
    [mistake] = mistakes_of(damaged('"Enterprise2", "Defender"]', '"Enterprise2"]'))
    assert TEXT.splitlines()[mistake.line - 1] == 'name = "Defender"'


def added(count: int, template: str, before: str) -> str:
    return TEXT.replace(before, "".join(template.format(i) for i in range(count)) + before, 1)


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        (added(52, EXTRA_HOST, "\n[operational_service]"), "hosts", "gives 65 entries; allowed: 1 to 64"),
        (added(14, '\n[[subnets]]\nname = "S{}"\nhosts = []\n', "\n[accounts]"), "subnets", "gives 17 entries"),
        (TEXT.replace('"op_host", "user"]', '"op_host", "user", ' + ", ".join(f'"t{i}"' for i in range(8)) + "]"),
         "unit_types", "gives 13 entries; allowed: 1 to 12"),
        (TEXT.replace("ports = [53, 53]", f"ports = {list(range(1000, 1025))}"), "ports", "allowed: 1 to 24"),
        (TEXT.replace("ports = [53, 53]", f"ports = {[53] * 101}"), "hosts[0].services", "listen on 103 ports"),
        (added(1, '\n[[decoys]]\nname = "D{}"\nopens = 1\nneeds_free = 1\nimitates = "web"\n', "\n[[exploits]]"),
         "decoys", "gives 9 entries; allowed: 1 to 8"),
        (added(1, '\n[[exploits]]\nname = "E{}"\nweight = 0.01\nport = 1\ntype = "web"\n', "\n[red]"), "exploits",
         "gives 9 entries; allowed: 1 to 8"),
        (added(1, "", "[red]").replace("and_one_of = [80, 443]", f"and_one_of = {list(range(1000, 1010))}"),
         "exploits", "need 18 different ports; allowed: up to 12"),
        (added(32, SLEEPER, "\n[green]"), "red", "has 33 programs; allowed: up to 32"),
        (TEXT.replace('["Operational", "Enterprise"]', str([[f"User{i % 5}"] * (i + 1) for i in range(9)])),
         "red.meander.retakes", "has 9 entries; allowed: up to 8"),
        (TEXT.replace("\nprogram = [\n", "\nprogram = [\n" + 20 * SLEEP_LINE),
         "red.bline.program", "has 35 lines; allowed: 1 to 32"),
        (TEXT.replace('target = "Enterprise2"', 'target = "any"')
         .replace('target = "Op_Server0", success = 12', 'target = "user", success = 12')
         .replace('"Impact", target = "Op_Server0"', '"PrivilegeEscalate", target = "op_host"')
         .replace('"PrivilegeEscalate", target = "Op_Server0"', '"PrivilegeEscalate", target = "defender"'),
         "red.bline.program", "draws 5 different targets"),
        (TEXT[: TEXT.index("[editions.current]")] + "[editions]\n", "editions", "must have at least one edition"),
        (TEXT.replace('users = ["User1", "User2", "User3", "User4"]', "users = []"), "red.bline.users",
         "because the program aims at $user"),
        (TEXT.replace('target = "$user"', 'target = "$enterprise"'),
         "red.bline.program", "uses $enterprise before $user"),
    ],
)  # fmt: skip
def test_too_many_or_too_few_of_anything_is_found(text: str, field: str, problem: str) -> None:
    found = [m for m in mistakes_of(text) if m.field == field and problem in m.problem]
    assert found, [str(mistake) for mistake in mistakes_of(text)]


def test_the_sixty_fifth_host_is_the_line_of_too_many_hosts() -> None:
    text = added(52, EXTRA_HOST, "\n[operational_service]")
    mistake = next(m for m in mistakes_of(text) if m.field == "hosts")
    assert text.splitlines()[mistake.line] == 'name = "Extra51"'


def test_all_mistakes_of_a_file_are_found_at_once() -> None:
    text = TEXT
    for old, new in (
        ("version = 1", 'version = "1"'),
        ("detected = 0.95", "detectable = 0.95"),
        ("value = 0.1", "value = 0.15"),
        ('os = "windows"', 'os = "beos"'),
        ("guess_refused = 10", "guess_refused = [10]"),
        ('foothold = "User0"', 'foothold = "User9"'),
        ("success = 14, failure = 13", "success = 15, failure = 13"),
    ):
        text = text.replace(old, new, 1)
    assert sorted(mistake.field for mistake in mistakes_of(text)) == [
        "chance.detectable", "chance.detected", "hosts[0].value", "hosts[2].os", "records.guess_refused",
        "red.bline.program[14].success", "red.foothold", "version",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ('name = "User1"\n', "name = 1\n", ["hosts[9].name"]),
        ("[[hosts]]\n", '[[hosts]]\nsurprise = "x"\n', ["hosts[0].surprise"]),
        ('action = "ExploitRemoteService", target = "$user"', 'action = 1, target = "$user"',
         ["red.bline.program[2].action"]),
        ("weight = 5.0", 'weight = "5"', ["exploits[2].weight"]),
        ("services = [{ process", "services = 1 # [{ process", ["hosts[1].services"]),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_draws_no_complaints_about_its_replacement(
    old: str, new: str, fields: list[str]
) -> None:
    assert [mistake.field for mistake in mistakes_of(damaged(old, new))] == fields


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe\x00", "mine.toml: not a text file in UTF-8 (byte 0)."),
        (b"a = 1\nb = \n", "mine.toml, line 2: not valid TOML: Invalid value."),
        (b'a = 1\nb = "', "mine.toml, line 2: not valid TOML: "),
        (b"a = " + b"[" * 100_000, "mine.toml: not valid TOML: nested too deeply."),
        (b"a = " + b"9" * 10_000, "not valid TOML: "),
        (b"", "mine.toml, line 1: field name is missing."),
    ],
)
def test_a_file_that_is_no_network_at_all_is_refused_in_one_sentence(content: bytes, sentence: str) -> None:
    examined = examine("mine.toml", content)
    assert examined.network is None
    assert sentence in str(examined.mistakes[0])
    assert "\n" not in str(examined.mistakes[0])


def test_messages_stay_short_and_on_one_line_whatever_the_file_holds() -> None:
    long = "x" * 10_000
    for old, new in (
        ('name = "cage2"', f'name = "{long}"'),
        ('name = "cage2"', f'name = "cage2"\n"a\\n{long}" = 1'),
        ("[red.bline]", f'[red."a\\n{long}"]'),
        ('foothold = "User0"', f'foothold = "{long}"'),
        ("value = 0.1", f"value = {'9' * 400}"),
        ('privileged = ["root",', f'privileged = ["{long}\\u001b[31m",'),
    ):
        for mistake in mistakes_of(damaged(old, new)):
            assert len(str(mistake)) < 700
            assert str(mistake).isprintable()


def test_a_network_file_is_read_up_to_a_million_bytes(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(TEXT + "#" * 1_000_000, "utf-8")
    with pytest.raises(NetworkError, match="too large for a network file; allowed: up to 1,000,000 bytes"):
        examine_file(path)
    with pytest.raises(NetworkError, match="too large"):
        examine_file(Path("/dev/zero"))


def test_loading_a_file_with_several_mistakes_names_the_first_and_counts_the_others(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace("value = 0.1", "value = 0.15"), "utf-8")
    with pytest.raises(NetworkError) as error:
        load_network(path)
    line = TEXT[: TEXT.index("value = 0.1")].count("\n") + 1
    assert str(error.value).startswith(f"{path}, line {line}: field hosts[0].value must be a whole number of tenths")
    assert str(error.value).endswith("; 7 more: see workflow-rl network check.")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/etc/passwd", "x" * 10_000, "a\nb", "a\x00b", "<script>", "cage2.toml"]
)
def test_a_name_that_is_no_network_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(UserError) as error:
        as_network(name)
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()


def warnings_of(network: Network) -> list[str]:
    examined = examine("mine.toml", network_text(network).encode())
    assert not examined.mistakes
    return [str(warning) for warning in examined.warnings]


def test_hosts_that_red_never_takes_are_warnings(network: Network) -> None:
    [defender] = warnings_of(network)
    assert "(Defender) is never taken: no exploit works on its services" in defender
    assert TEXT.splitlines()[examine_file(CAGE2).warnings[0].line - 1] == "[[hosts]]"
    hidden = replace(
        network,
        hosts=tuple(replace(host, reveals=()) if host.name == "Enterprise2" else host for host in network.hosts),
    )
    found = warnings_of(hidden)
    assert any("(Op_Host1) is never taken: red never learns its address" in words for words in found)
    assert any("operational_service.host is 'Op_Server0', which red never takes" in words for words in found)


def test_a_unit_type_of_the_foothold_alone_is_a_warning(network: Network) -> None:
    hosts = [replace(h, unit_type="entry") if h.name == "User0" else h for h in network.hosts]
    alone = replace(network, hosts=tuple(hosts), unit_types=(*network.unit_types, "entry"))
    assert any("'entry', whose only host is red's foothold" in words for words in warnings_of(alone))
    same = replace(network, unit_types=(*network.unit_types[:-1], "User1"))
    same = replace(same, hosts=tuple(replace(h, unit_type="User1") if h.unit_type == "user" else h for h in same.hosts))
    assert any("'User1', which is also a target of another kind" in words for words in warnings_of(same))


def test_no_damage_to_a_file_ends_in_anything_but_mistakes() -> None:
    chance = Random(7)
    lines = TEXT.splitlines()
    values = [
        "1",
        '"x"',
        "[]",
        "{}",
        "true",
        "-1.5",
        "nan",
        "[[1]]",
        '["User1", 3]',
        "99999999999999999999",
        "1979-05-27",
    ]
    refused = 0
    for _ in range(150):
        mine = list(lines)
        for _ in range(chance.randrange(1, 4)):
            i = chance.randrange(len(mine))
            key, sign, _ = mine[i].partition(" = ")
            mine[i] = f"{key} = {chance.choice(values)}" if sign and chance.random() < 0.7 else ""
        examined = examine("mine.toml", "\n".join(mine).encode())
        refused += bool(examined.mistakes)
        assert (examined.network is None) == bool(examined.mistakes)
        assert all(mistake.line <= len(lines) for mistake in examined.mistakes)
    assert refused > 75


def test_a_pipe_is_no_network_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(NetworkError, match="a pipe, not a file"):
        load_network(tmp_path / "pipe.toml")
