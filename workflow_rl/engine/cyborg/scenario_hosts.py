"""Reads the hosts of a CybORG scenario, with the images that they name."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

from workflow_rl.engine.cyborg.rules import LEVELS, PRIVILEGED, SERVICE, TYPES, process_type
from workflow_rl.engine.cyborg.scenario_yaml import Part, read_yaml, shown
from workflow_rl.engine.network import Host, Service
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.check import NAME

_OF_IMAGE = ("Processes", "System info", "User Info", "Services")
_OF_HOST = ("AWS_Info", "image", "info", "ConfidentialityValue", "AvailabilityValue", *_OF_IMAGE)
_OF_PROCESS = (
    "Connections", "PID", "PPID", "Path", "Process Name", "Process Type", "Process Version", "Properties", "Username",
)  # fmt: skip
_OF_SYSTEM = ("Architecture", "OSDistribution", "OSType", "OSVersion")
_OF_CONNECTION = ("local_address", "local_port", "Transport Protocol", "transport_protocol", "Application Protocol")
_OF_USER = ("Username", "UID", "Groups", "Password", "Bruteforceable")
_LISTENS_ANYWHERE = ("broadcast", "local")
_DEFAULT = "Low"
_OLD_HARAKA = "haraka 2.7.0"


@dataclass(frozen=True)
class Computer:
    """A host of a scenario; its unit type is still open."""

    host: Host
    part: Part
    availability: float
    service_pid: int  # 0: without the operational service
    knows_itself: bool


def read_hosts(part: Part) -> list[Computer]:
    """The hosts of a scenario in its order."""
    images = _Images(part)
    return [_computer(name, host, images, part) for name, host in part.table().items()]


class _Images:
    """The image files beside a scenario, read when a host needs them."""

    def __init__(self, hosts: Part) -> None:
        self.folder = hosts.file.parent / "images"
        self.files: dict[str, Part] | None = None
        self.read: dict[Path, Part] = {}

    def parts(self, named: Part) -> dict[str, Part]:
        """The entries of the image that a host names."""
        if self.files is None:
            if not (self.folder / "images.yaml").is_file():
                named.refuse(f"names the image {shown(named.value)}, but there is no {self.folder / 'images.yaml'}")
            self.files = read_yaml(self.folder / "images.yaml").table()
        name = named.text()
        if name not in self.files:
            named.refuse(f"names the image {name!r}, which is not in {self.folder / 'images.yaml'}")
        stem = self.files[name].table(("path",), ("path",))["path"]
        if not NAME.fullmatch(stem.text()):
            stem.refuse(f"must be the name of a file in {self.folder} without its ending, not {stem.value!r}")
        path = self.folder / f"{stem.value}.yaml"
        if path not in self.read:
            self.read[path] = read_yaml(path)
        image = self.read[path].table(("Test_Host",), ("Test_Host",))["Test_Host"]
        return image.table(_OF_IMAGE, _OF_IMAGE[:3])


def _computer(name: str, part: Part, images: _Images, hosts: Part) -> Computer:
    entries = part.table(_OF_HOST)
    if "image" in entries:
        image = images.parts(entries["image"])
        for key in image:
            if key in entries:
                entries[key].refuse(f"is also in the image {entries['image'].value}, which would replace it")
        entries |= image
    for key in _OF_IMAGE[:3]:
        if key not in entries:
            part.refuse(f"has neither an image nor {key!r} of its own")
    system = _system(entries["System info"])
    services, idle, service_pid = _processes(entries, system)
    knows_itself, reveals = _info(name, entries.get("info"), hosts, bool(service_pid))
    words = {key: entries[key].text(LEVELS) if key in entries else _DEFAULT for key in _OF_HOST[3:5]}
    host = Host(
        name=name,
        unit_type="",
        os=system,
        value=LEVELS[words["ConfidentialityValue"]],
        services=tuple(service for service, _ in services),
        guessable=_guessable(entries["User Info"]),
        reveals=reveals,
        process_ids=_numbers(entries["Processes"], [pid for _, pid in services] + idle),
    )
    return Computer(host, part, LEVELS[words["AvailabilityValue"]], service_pid, knows_itself)


def _system(part: Part) -> str:
    entries = part.table((*_OF_SYSTEM, "Patches"), _OF_SYSTEM)
    if "Patches" in entries and entries["Patches"].entries():
        entries["Patches"].refuse("names patches, which cannot be represented")
    word = entries["OSType"].text()
    if word.lower() not in PRIVILEGED:
        entries["OSType"].refuse(f"is {word!r}; allowed: {', '.join(PRIVILEGED)}")
    return word.lower()


def _numbers(part: Part, pids: list[int]) -> tuple[int, ...]:
    if 0 in pids and any(pids):
        part.refuse("gives some processes a PID and others none")
    return () if 0 in pids else tuple(pids)


def _processes(entries: dict[str, Part], system: str) -> tuple[list[tuple[Service, int]], list[int], int]:
    """Listening services with their process ids, ids of the others, and that of the operational service."""
    expected = _service_pid(entries.get("Services"))
    services, idle, found = [], [], 0
    for part in entries["Processes"].entries():
        process = part.table(_OF_PROCESS, ("Process Name",))
        name = process["Process Name"].text()
        pid = process["PID"].number(1, 2**15 - 1) if "PID" in process else 0
        if "PPID" in process:
            process["PPID"].number(0, 2**15 - 1)
        if "Path" in process:
            process["Path"].text()
        connections = process["Connections"].entries() if "Connections" in process else []
        if expected and (pid == expected or name == SERVICE):
            if pid != expected or name != SERVICE or connections or found:
                part.refuse(f"must be the only process {SERVICE} with the PID {expected} of the service, without ports")
            found = pid
        elif connections:
            ports = tuple(_port(connection) for connection in connections)
            services.append((_service(part, process, ports, system), pid))
        else:
            idle.append(pid)
    if expected and not found:
        entries["Services"].refuse(f"has the PID {expected}, which no process has")
    return services, idle, found


def _service_pid(part: Part | None) -> int:
    if part is None or not part.value:
        return 0
    services = part.table()
    for name, service in services.items():
        if name != SERVICE:
            service.refuse(f"is a service that CybORG's red cannot stop; it knows {SERVICE} alone")
    entries = services[SERVICE].table(("active", "PID"), ("active", "PID"))
    if entries["active"].value is not True:
        entries["active"].refuse(f"must be true, not {shown(entries['active'].value)}")
    return entries["PID"].number(1, 2**15 - 1)


def _port(part: Part) -> int:
    entries = part.table(_OF_CONNECTION, _OF_CONNECTION[:2])
    address = entries["local_address"].text()
    try:
        if address not in _LISTENS_ANYWHERE:
            IPv4Address(address)
    except AddressValueError:
        entries["local_address"].refuse(f"must be an address, not {address!r}")
    return entries["local_port"].number(1, 49151)


def _service(part: Part, process: dict[str, Part], ports: tuple[int, ...], system: str) -> Service:
    if "Username" not in process:
        part.refuse("listens but has no 'Username'")
    name, account = process["Process Name"].text(), process["Username"].text()
    kind = process_type(name) or ""
    if "Process Type" in process and process["Process Type"].value is not None:
        given = process_type(process["Process Type"].text())
        if given is None:
            process["Process Type"].refuse(f"is {process['Process Type'].value!r}; known: {', '.join(TYPES)}")
        kind = given
    weak = bool(kind) and any(exploit.type == kind and exploit.port in ports for exploit in as_network(CAGE2).exploits)
    reason = _not_exploitable(kind, process, system, account)
    if weak and reason:
        part.refuse(f"is of type {kind} but {reason}, which cannot be represented")
    return Service(name, account, ports, "" if reason else kind)


def _not_exploitable(kind: str, process: dict[str, Part], system: str, account: str) -> str:
    """Why CybORG's exploits for this type do not work as they do elsewhere."""
    if kind == "web" and "rfi" not in _properties(process.get("Properties")):
        return "without the property rfi"
    if kind == "smtp":
        version = process["Process Version"].text() if "Process Version" in process else "none"
        if version.lower() != _OLD_HARAKA:
            return f"of the version {version}, not {_OLD_HARAKA}"
    if kind == "smb" and system != "windows":
        return f"on {system}, not on windows"
    if kind and account in PRIVILEGED.values() and account != PRIVILEGED[system]:
        return f"runs as {account} on {system}"
    return ""


def _properties(part: Part | None) -> list[str] | str:
    if part is None or part.value is None:
        return []
    return part.text() if isinstance(part.value, str) else part.texts()


def _guessable(part: Part) -> str:
    """The first account whose password can be guessed; CybORG's red tries no other."""
    found = ""
    for user in part.entries():
        entries = user.table(_OF_USER, ("Username",))
        name = entries["Username"].text()
        for group in entries["Groups"].entries() if "Groups" in entries else []:
            group.table(("GID", "Group Name"))
        guessed = entries.get("Bruteforceable", Part(False, part.file))
        if type(guessed.value) is not bool:
            guessed.refuse(f"must be true or false, not {shown(guessed.value)}")
        if guessed.value and not found and name in PRIVILEGED.values():
            user.refuse(f"lets red guess the password of {name}, which cannot be represented")
        found = found or (name if guessed.value else "")
    return found


def _info(name: str, part: Part | None, hosts: Part, runs_service: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether red learns the host's own subnet when it escalates there, and the other hosts that it learns."""
    reveals, knows_itself, tells_service = [], False, False
    for other, known in (part.table() if part is not None and part.value is not None else {}).items():
        if other not in hosts.value:
            known.refuse(f"names {other!r}, which is no host")
        if other != name:
            known.table(("Interfaces",), ("Interfaces",))["Interfaces"].text(("IP Address",))
            reveals.append(other)
            continue
        entries = known.table(("Interfaces", "Services"), ("Interfaces",))
        entries["Interfaces"].text(("All",))
        knows_itself = True
        if "Services" in entries:
            tells_service = bool({SERVICE, "All"} & set(entries["Services"].texts()))
    if runs_service and not tells_service:
        (part or hosts).refuse(f"must tell red the service: {name}: Services: [{SERVICE}]")
    return knows_itself, tuple(reveals)
