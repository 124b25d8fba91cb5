"""Reads a network file (cage2.toml) into a :class:`Network`, or explains what is wrong with it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from workflow_rl.engine.network import DECOY_PREFIX, EXPLOIT_WAYS, RED_ACTIONS, Network
from workflow_rl.errors import NetworkError, UserError

CAGE2 = Path(__file__).parent / "cage2.toml"

# Sets are bits of signed numbers: 16 bits for hosts, 8 for subnets; an observation is 4 bits per host of a 64-bit word.
CAPACITY = {"hosts": 15, "subnets": 7, "ports": 12, "decoys": 8, "exploits": 8, "program": 16, "n_actions": 255}
VERSION = 1  # of the file's format
PLAIN_VERBS = ("Sleep", "Monitor")
HOST_VERBS = ("Analyse", "Remove", "Restore")

T = TypeVar("T")


def load_network(path: Path = CAGE2) -> Network:
    """Reads and validates a network file.

    Raises:
        NetworkError: the file is missing, is not TOML (with the line), or a field is wrong (with its name).
    """
    try:
        return _load(Path(path), Path(path).read_bytes())
    except OSError as error:
        raise NetworkError(f"{path}: cannot read the network file ({error.strerror}).") from None


def as_network(network: Network | Path | str) -> Network:
    """The network itself, or the one in the file of that path."""
    if not isinstance(network, (Network, Path, str)):
        raise UserError(f"a network must be a Network or the path of its file, not {network!r}.")
    return network if isinstance(network, Network) else load_network(Path(network))


@cache
def _load(path: Path, content: bytes) -> Network:
    try:
        document = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise NetworkError(f"{path}: not a text file in UTF-8 (byte {error.start}).") from None
    except tomllib.TOMLDecodeError as error:
        raise NetworkError(f"{path}: not valid TOML: {error}.") from None
    try:
        network: Network = _build(Network, document, "")
        for where, complaint in _contradictions(network):
            raise _FieldError(where, complaint)
    except _FieldError as error:
        raise NetworkError(f"{path}: field {error}.") from None
    return network


class _FieldError(Exception):
    def __init__(self, where: str, complaint: str) -> None:
        super().__init__(f"{where or 'root'} {complaint}")


def _build(kind: Any, value: Any, where: str) -> Any:
    """Turns a TOML value into ``kind``: a scalar, a tuple, a dictionary or a dataclass of such."""
    if is_dataclass(kind):
        return _build_dataclass(kind, _expect(value, dict, where), where)
    if get_origin(kind) is tuple:
        items = _expect(value, list, where)
        return tuple(_build(get_args(kind)[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if get_origin(kind) is dict:
        table = _expect(value, dict, where)
        return {key: _build(get_args(kind)[1], item, f"{where}.{key}") for key, item in table.items()}
    if kind is float and type(value) is int:
        return float(value)
    return _expect(value, kind, where)


def _build_dataclass(kind: Any, table: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    prefix = f"{where}." if where else ""
    for key in table:
        if key not in hints:
            raise _FieldError(prefix + key, f"is not known; known here: {', '.join(hints)}")
    values = {}
    for item in fields(kind):
        if item.name in table:
            values[item.name] = _build(hints[item.name], table[item.name], prefix + item.name)
        elif item.default is MISSING:
            raise _FieldError(prefix + item.name, "is missing")
    return kind(**values)


def _expect(value: Any, kind: type[T], where: str) -> T:
    if type(value) is not kind:
        raise _FieldError(where, f"must be of type {kind.__name__}, not {value!r}")
    return value


def _contradictions(network: Network) -> Iterator[tuple[str, str]]:
    """Yields (field, complaint) wherever parts of the network contradict each other or exceed the engine's limits."""
    if network.version != VERSION:
        yield "version", f"is {network.version}; this program reads version {VERSION}"
    yield from _wrong_numbers(network)
    yield from _capacities(network)
    yield from _repeated_names(network)
    yield from _unknown_names(network)
    yield from _wrong_structure(network)


def _capacities(network: Network) -> Iterator[tuple[str, str]]:
    sizes = {
        "hosts": len(network.hosts),
        "subnets": len(network.subnets),
        "ports": len(network.ports),
        "decoys": len(network.decoys),
        "exploits": len(network.exploits),
        "program": len(network.red.bline.program),
        "n_actions": network.n_actions,
    }
    for what, size in sizes.items():
        if not 1 <= size <= CAPACITY[what]:
            yield what, f"gives {size} entries; allowed: 1 to {CAPACITY[what]}"


def _unknown_names(network: Network) -> Iterator[tuple[str, str]]:
    hosts, subnets = network.host_names, network.subnet_names
    exploits = [exploit.name for exploit in network.exploits]
    verbs = HOST_VERBS + tuple(DECOY_PREFIX + decoy.name for decoy in network.decoys)
    program = network.red.bline.program
    references: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("operational_service.host", [network.operational_service.host], hosts),
        ("red.foothold", [network.red.foothold], hosts),
        ("red.bline.users", network.red.bline.users, hosts),
        ("red.meander.retakes", network.red.meander.retakes, subnets),
        ("green.scans", network.green.scans, hosts),
        ("blue.actions", network.blue.actions, PLAIN_VERBS),
        ("blue.host_actions", network.blue.host_actions, verbs),
        ("red.bline.program.action", [line.action for line in program], RED_ACTIONS),
    ]
    for i, subnet in enumerate(network.subnets):
        references.append((f"subnets[{i}].hosts", subnet.hosts, hosts))
        references.append((f"subnets[{i}].reached_through", [subnet.reached_through], ("", *subnets)))
    for i, host in enumerate(network.hosts):
        references.append((f"hosts[{i}].unit_type", [host.unit_type], network.unit_types))
        references.append((f"hosts[{i}].os", [host.os], ("linux", "windows")))
        references.append((f"hosts[{i}].reveals", host.reveals, hosts))
        types = [service.type for service in host.services]
        references.append((f"hosts[{i}].services.type", types, ["", *(e.type for e in network.exploits)]))
    for i, decoy in enumerate(network.decoys):
        references.append((f"decoys[{i}].os", [decoy.os], ("", "linux", "windows")))
        references.append((f"decoys[{i}].imitates", [decoy.imitates], [e.type for e in network.exploits]))
    for i, exploit in enumerate(network.exploits):
        references.append((f"exploits[{i}].by", [exploit.by], EXPLOIT_WAYS))
    for name, edition in network.editions.items():
        references.append((f"editions.{name}.broken_by_restore", edition.broken_by_restore, exploits))
    for i, line in enumerate(program):
        targets = subnets if line.action == "DiscoverRemoteSystems" else ("$user", "$enterprise", *hosts)
        references.append((f"red.bline.program[{i}].target", [line.target], targets))
    for where, used, known in references:
        for name in used:
            if name not in known:
                yield where, f"names {name!r}, which is not known; known: {', '.join(n for n in known if n)}"


def _wrong_numbers(network: Network) -> Iterator[tuple[str, str]]:
    for item in fields(network.chance):
        value = getattr(network.chance, item.name)
        if not 0.0 <= value <= 1.0:
            yield f"chance.{item.name}", f"must be a probability from 0 to 1, not {value}"
    amounts = [(f"hosts[{i}].value", host.value) for i, host in enumerate(network.hosts)]
    amounts += [(f"reward.{item.name}", getattr(network.reward, item.name)) for item in fields(network.reward)]
    for where, value in amounts:
        if not 0.0 <= value <= 1000.0 or abs(value * 10 - round(value * 10)) > 1e-9:
            yield where, f"must be a whole number of tenths from 0 to 1000, not {value}"
    for item in fields(network.records):
        value = getattr(network.records, item.name)
        if not 1 <= value <= 100:
            yield f"records.{item.name}", f"must be from 1 to 100, not {value}"
    used = [(f"hosts[{i}].services", p) for i, h in enumerate(network.hosts) for s in h.services for p in s.ports]
    used += [(f"decoys[{i}]", p) for i, d in enumerate(network.decoys) for p in (d.opens, d.needs_free)]
    used += [(f"exploits[{i}]", p) for i, e in enumerate(network.exploits) for p in (e.port, *e.and_one_of)]
    for where, port in used:
        if not 1 <= port < 49152:
            yield where, f"names port {port}; allowed: 1 to 49151"
    lines = len(network.red.bline.program)
    for i, line in enumerate(network.red.bline.program):
        for what, number, least in (
            ("success", line.success, 0),
            ("failure", line.failure, 0),
            ("unless_scanned", line.unless_scanned, -1),
        ):
            if not least <= number < lines:
                yield f"red.bline.program[{i}].{what}", f"is {number}; the program has lines 0 to {lines - 1}"


def _repeated_names(network: Network) -> Iterator[tuple[str, str]]:
    unique = {
        "unit_types": network.unit_types,
        "hosts.name": network.host_names,
        "subnets.name": network.subnet_names,
        "decoys.name": [decoy.name for decoy in network.decoys],
        "exploits.name": [exploit.name for exploit in network.exploits],
        "exploits.weight": [str(exploit.weight) for exploit in network.exploits],
        "blue.host_actions": network.blue.host_actions,
        "subnets.hosts": [host for subnet in network.subnets for host in subnet.hosts],
        "red.meander.retakes": network.red.meander.retakes,
    }
    for where, names in unique.items():
        for name in names:
            if list(names).count(name) > 1:
                yield where, f"has {name!r} more than once"


def _wrong_structure(network: Network) -> Iterator[tuple[str, str]]:
    for where, some in (("red.bline.users", network.red.bline.users), ("green.scans", network.green.scans)):
        if not some:
            yield where, "must name at least one host"
    targets = [line.target for line in network.red.bline.program]
    if "$enterprise" in targets and "$user" not in targets[: targets.index("$enterprise")]:
        yield "red.bline.program", "uses $enterprise before $user"
    accounts = {service.account for host in network.hosts for service in host.services}
    for account in network.accounts.privileged:
        if account not in accounts:
            yield "accounts.privileged", f"names {account!r}, under which no service runs"
    in_subnets = {host for subnet in network.subnets for host in subnet.hosts}
    for name in network.host_names:
        if name not in in_subnets:
            yield "subnets.hosts", f"puts host {name!r} into no subnet"
    for i, host in enumerate(network.hosts):
        if not any(service.ports for service in host.services):
            yield f"hosts[{i}].services", f"leaves {host.name!r} without a listening port"
        if host.process_ids and len(host.process_ids) < len(host.services):
            yield f"hosts[{i}].process_ids", f"must have a number for each of the {len(host.services)} services"
        if not all(1 <= number < 2**15 for number in host.process_ids):
            yield f"hosts[{i}].process_ids", "must be from 1 to 32767"
    weights = [exploit.weight for exploit in network.exploits]
    if weights != sorted(weights, reverse=True):
        yield "exploits.weight", "must fall from one exploit to the next"
    for user in network.red.bline.users:
        if len(network.hosts[network.host_names.index(user)].reveals) != 1:
            yield "red.bline.users", f"has {user!r}, which must reveal exactly one host"
    if not network.editions:
        yield "editions", "must have at least one edition"
