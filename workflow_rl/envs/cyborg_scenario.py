"""A network in CybORG's own schema: the scenario dictionary that ``csle_cyborg.main.Main`` takes."""

from __future__ import annotations

from copy import deepcopy
from math import log2
from typing import Any

from workflow_rl.engine.network import RED_ACTIONS, Host, Network, Service, Subnet

# How CybORG describes the processes of our types of service.
_PROCESSES: dict[str, dict[str, Any]] = {
    "Process Type": {"rdp": "rdp", "smb": "smb", "ftp": "femitter", "web": "webserver", "smtp": "smtp"},
    "Process Version": {"smtp": "haraka 2.7.0"},
    "Properties": {"web": ["rfi"]},
}
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
_CONFIDENTIALITY = {0.0: "None", 0.1: "Low", 1.0: "Medium"}

Yaml = dict[str, Any]
"""A part of a scenario in CybORG's schema."""


def cyborg_scenario(network: Network) -> Yaml:
    """The scenario of CybORG 2.1; equal seeds and actions give equal games."""
    return {
        "Agents": {"Blue": _blue(network), "Green": _green(network), "Red": _red(network)},
        "Subnets": {subnet.name: _subnet(network, subnet) for subnet in network.subnets},
        "Hosts": {host.name: _host(network, host) for host in network.hosts},
    }


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


def _everything(network: Network) -> Yaml:
    return {name: {"Interfaces": "All", "System info": "All", "User info": "All"} for name in network.host_names}


def _blue(network: Network) -> Yaml:
    server = next(host.name for host in network.hosts if host.unit_type == "defender")
    systems = {host.name: host.os for host in network.hosts}
    clients = [
        {
            "hostname": name,
            "name": f"Velo{name}",
            "parent": "VeloServer",
            "type": "VelociraptorClient",
            "username": "SYSTEM" if systems[name] == "windows" else "ubuntu",
        }
        for subnet in _from_the_foothold(network)
        for name in subnet.hosts
    ]
    head = {
        "artifacts": ["NetworkConnections", "ProcessCreation"],
        "hostname": server,
        "name": "VeloServer",
        "num_children_sessions": 2,
        "type": "VelociraptorServer",
        "username": "ubuntu",
    }
    actions = [*network.blue.actions, *network.blue.host_actions]
    agent = _agent(network, _everything(network), actions, [*clients, head], "HybridAvailabilityConfidentiality")
    return agent | {"adversary": "Red"}


def _green(network: Network) -> Yaml:
    unit_types = ("user", "op_host")
    sessions = [
        {"hostname": host.name, "name": "GreenSession", "type": "green_session", "username": "GreenAgent"}
        for unit_type in unit_types
        for host in network.hosts
        if host.unit_type == unit_type
    ]
    actions = ["Sleep", "GreenPingSweep", "GreenPortScan", "GreenConnection"]
    return _agent(network, _everything(network), actions, sessions, "None")


def _red(network: Network) -> Yaml:
    foothold = network.red.foothold
    session = {"hostname": foothold, "name": "RedPhish", "type": "RedAbstractSession", "username": "SYSTEM"}
    actions = [*RED_ACTIONS[:4], *(exploit.name for exploit in network.exploits), *RED_ACTIONS[4:]]
    knows = {foothold: {"Interfaces": "All", "System info": "All"}}
    return _agent(network, knows, actions, [session], "HybridImpactPwn")


def _subnet(network: Network, subnet: Subnet) -> Yaml:
    rules: Yaml = {}
    if subnet.reached_through:
        rules[network.subnet_of(network.red.foothold)] = {"in": "None", "out": "all"}
    rules["all"] = {"in": "all", "out": "all"}
    return {"Hosts": list(subnet.hosts), "NACLs": rules, "Size": _size(len(subnet.hosts))}


def _size(n_hosts: int) -> int:
    """The size to give for a subnet, so that the range that CybORG makes of it has addresses for all hosts."""
    bits = max(int(log2(n_hosts + 5)), 4)
    return n_hosts if n_hosts <= 2**bits - 2 else 2 ** (bits + 1) - 5


def _host(network: Network, host: Host) -> Yaml:
    operational = network.operational_service
    knows: Yaml = {name: {"Interfaces": "IP Address"} for name in host.reveals}
    knows[host.name] = {"Interfaces": "All"}
    numbers = host.process_ids or range(_FIRST_PID, _FIRST_PID + len(host.services))
    processes = [_process(service, number) for service, number in zip(host.services, numbers, strict=False)]
    idle = numbers[len(host.services) :]
    processes += [{"PID": number, "PPID": 1, "Process Name": "idle", "Username": "root"} for number in idle]
    described: Yaml = {
        "AWS_Info": [],
        "Processes": processes,
        "System info": dict(_SYSTEMS[host.os]),
        "User Info": _users(host),
        "ConfidentialityValue": _CONFIDENTIALITY[host.value],
        "AvailabilityValue": "None",
    }
    if host.name == operational.host:
        knows[host.name]["Services"] = [operational.name]
        processes.append(
            {"PID": _SERVICE_PID, "PPID": 1, "Path": "/root", "Process Name": operational.name, "Username": "root"}
        )
        described["Services"] = {operational.name: {"active": True, "PID": _SERVICE_PID}}
        described["AvailabilityValue"] = "High"
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
    return process | deepcopy(own)


def _users(host: Host) -> list[Yaml]:
    names = ["root", "www-data", "ubuntu"] if host.os == "linux" else ["Administrator", "SYSTEM"]
    users: list[Yaml] = [{"Username": name} for name in [*names, "GreenAgent"]]
    if host.guessable:
        users.append({"Username": host.guessable, "Bruteforceable": True, "Password": host.guessable})
    return users
