"""A network in CybORG's own schema: the scenario dictionary that ``csle_cyborg.main.Main`` takes."""

from __future__ import annotations

from copy import deepcopy
from math import log2
from typing import Any

from workflow_rl.engine.cyborg.rules import (
    CLOSED,
    LEVELS,
    OPEN,
    PRIVILEGED,
    SERVICE,
    cyborg_names,
    process_type,
    takeable,
)
from workflow_rl.engine.network import RED_ACTIONS, Host, Network, Service, Subnet

# How CybORG describes the processes of our types of service.
_PROCESSES: dict[str, dict[str, Any]] = {
    "Process Type": {"rdp": "rdp", "smb": "smb", "ftp": "femitter", "web": "webserver", "smtp": "smtp"},
    "Process Version": {"smtp": "haraka 2.7.0"},
    "Properties": {"web": ["rfi"]},
}
_BY_NAME = {"ssh": "ssh", "sql": "mysql", "": "svchost"}  # types that CybORG reads off most processes' names
_SYSTEMS = {
    "linux": {"Architecture": "x64", "OSDistribution": "UBUNTU", "OSType": "LINUX", "OSVersion": "U18_04_3"},
    "windows": {
        "Architecture": "x64",
        "OSDistribution": "WINDOWS_SVR_2008",
        "OSType": "WINDOWS",
        "OSVersion": "W6_1_7601",
    },
}
_SERVICE_PID = 1043
_FIRST_PID = 1100  # for hosts without process ids in the network file
_WORDS = {value: word for word, value in LEVELS.items()}

Yaml = dict[str, Any]
"""A part of a scenario in CybORG's schema."""
Names = dict[str, str]
"""Our names of hosts, and CybORG's."""


def cyborg_scenario(network: Network) -> Yaml:
    """The scenario of CybORG 2.1, with hosts by their :func:`cyborg_names`; equal seeds and actions give equal games.

    The head of blue's sessions is on the first host that red can never take (in CAGE Challenge 2: Defender), or else on
    the first host: it makes no difference. Green's sessions are in the foothold's subnet and in those that are closed.

    Raises:
        UserError: genuine CybORG cannot play the network.
    """
    names = cyborg_names(network)
    return {
        "Agents": {"Blue": _blue(network, names), "Green": _green(network, names), "Red": _red(network, names)},
        "Subnets": {subnet.name: _subnet(network, subnet, names) for subnet in network.subnets},
        "Hosts": {names[host.name]: _host(network, host, names) for host in network.hosts},
    }


def scenario_text(network: Network) -> str:
    """The same as the text of a YAML file, with the images merged into the hosts."""
    import yaml

    return str(yaml.safe_dump(cyborg_scenario(network), sort_keys=False, width=120))


def _agent(network: Network, knows: Yaml, actions: list[str], sessions: list[Any], reward: str) -> Yaml:
    return {
        "AllowedSubnets": [subnet.name for subnet in _from_the_foothold(network)],
        "INT": {"Hosts": knows},
        "actions": actions,
        "agent_type": "SleepAgent",
        "reward_calculator_type": reward,
        "starting_sessions": sessions,
        "wrappers": [],
    }


def _from_the_foothold(network: Network) -> list[Subnet]:
    """Subnets, that of red's foothold first: sessions start in this order, and each draws its process id."""
    first = network.subnet_of(network.red.foothold)
    return sorted(network.subnets, key=lambda subnet: subnet.name != first)


def _everything(names: Names) -> Yaml:
    return {name: {"Interfaces": "All", "System info": "All", "User info": "All"} for name in names.values()}


def _blue(network: Network, names: Names) -> Yaml:
    taken = {network.red.foothold, *takeable(network)}
    server = next((name for name in network.host_names if name not in taken), network.host_names[0])
    systems = {host.name: host.os for host in network.hosts}
    clients = [
        {
            "hostname": names[name],
            "name": f"Velo{names[name]}",
            "parent": "VeloServer",
            "type": "VelociraptorClient",
            "username": "SYSTEM" if systems[name] == "windows" else "ubuntu",
        }
        for subnet in _from_the_foothold(network)
        for name in subnet.hosts
    ]
    head = {
        "artifacts": ["NetworkConnections", "ProcessCreation"],
        "hostname": names[server],
        "name": "VeloServer",
        "num_children_sessions": 2,
        "type": "VelociraptorServer",
        "username": "ubuntu",
    }
    actions = [*network.blue.actions, *network.blue.host_actions]
    agent = _agent(network, _everything(names), actions, [*clients, head], "HybridAvailabilityConfidentiality")
    return agent | {"adversary": "Red"}


def _green(network: Network, names: Names) -> Yaml:
    home = set(network.hosts_of(network.subnet_of(network.red.foothold)))
    closed = {host for subnet in network.subnets if subnet.reached_through for host in subnet.hosts}
    sessions = [
        {"hostname": names[host], "name": "GreenSession", "type": "green_session", "username": "GreenAgent"}
        for group in (home, closed - home - {network.operational_service.host})
        for host in network.host_names
        if host in group
    ]
    actions = ["Sleep", "GreenPingSweep", "GreenPortScan", "GreenConnection"]
    return _agent(network, _everything(names), actions, sessions, "None")


def _red(network: Network, names: Names) -> Yaml:
    host = network.hosts[network.host_names.index(network.red.foothold)]
    session = {
        "hostname": names[host.name],
        "name": "RedPhish",
        "type": "RedAbstractSession",
        "username": PRIVILEGED[host.os],
    }
    actions = [*RED_ACTIONS[:4], *(exploit.name for exploit in network.exploits), *RED_ACTIONS[4:]]
    knows = {names[host.name]: {"Interfaces": "All", "System info": "All"}}
    return _agent(network, knows, actions, [session], "HybridImpactPwn")


def _subnet(network: Network, subnet: Subnet, names: Names) -> Yaml:
    rules: Yaml = {}
    if subnet.reached_through:
        rules[network.subnet_of(network.red.foothold)] = {"in": CLOSED, "out": OPEN}
    rules["all"] = {"in": OPEN, "out": OPEN}
    size = len(subnet.hosts)
    while addresses(size) < len(subnet.hosts):
        size += 1
    return {"Hosts": [names[host] for host in subnet.hosts], "NACLs": rules, "Size": size}


def addresses(size: int) -> int:
    """How many addresses CybORG has for the hosts of a subnet of that ``Size``."""
    return int(2 ** max(int(log2(size + 5)), 4)) - 2


def _host(network: Network, host: Host, names: Names) -> Yaml:
    knows: Yaml = {names[name]: {"Interfaces": "IP Address"} for name in host.reveals}
    knows[names[host.name]] = {"Interfaces": "All"}
    numbers = list(host.process_ids or range(_FIRST_PID, _FIRST_PID + len(host.services)))
    processes = [_process(service, number) for service, number in zip(host.services, numbers, strict=False)]
    idle = numbers[len(host.services) :]
    processes += [{"PID": number, "PPID": 1, "Process Name": "idle", "Username": "root"} for number in idle]
    described: Yaml = {
        "AWS_Info": [],
        "Processes": processes,
        "System info": dict(_SYSTEMS[host.os]),
        "User Info": _users(host),
        "ConfidentialityValue": _WORDS[host.value],
        "AvailabilityValue": "None",
    }
    if host.name == network.operational_service.host:
        pid = next(number for number in range(_SERVICE_PID, _SERVICE_PID + 2**15) if number not in numbers)
        knows[names[host.name]]["Services"] = [SERVICE]
        processes.append({"PID": pid, "PPID": 1, "Path": "/root", "Process Name": SERVICE, "Username": "root"})
        described["Services"] = {SERVICE: {"active": True, "PID": pid}}
        described["AvailabilityValue"] = _WORDS[network.reward.service_down]
    return described | {"info": knows}


def _process(service: Service, pid: int) -> Yaml:
    process = {
        "Connections": [{"local_address": "0.0.0.0", "local_port": port} for port in service.ports],
        "PID": pid,
        "PPID": 1,
        "Process Name": service.process,
        "Username": service.account,
    }
    own = {key: by_type[service.type] for key, by_type in _PROCESSES.items() if service.type in by_type}
    if service.type in _BY_NAME and (process_type(service.process) or "") != service.type:
        own["Process Type"] = _BY_NAME[service.type]
    return process | deepcopy(own)


def _users(host: Host) -> list[Yaml]:
    names = ["root", "www-data", "ubuntu"] if host.os == "linux" else ["Administrator", "SYSTEM"]
    users: list[Yaml] = [{"Username": name} for name in [*names, "GreenAgent"]]
    if host.guessable:
        users.append({"Username": host.guessable, "Bruteforceable": True, "Password": host.guessable})
    return users
