"""Our scenario in CybORG's own schema: the dictionary that ``csle_cyborg.main.Main`` takes."""

from __future__ import annotations

from typing import Any

from workflow_rl.engine.network import RED_ACTIONS, Host, Network, Service, Subnet

# How CybORG's images describe what our services are.
_PROCESS_TYPES = {"rdp": "rdp", "smb": "smb", "ftp": "femitter", "web": "webserver", "smtp": "smtp"}
_PROCESS_VERSIONS = {"smtp": "haraka 2.7.0"}
_PROCESS_PROPERTIES = {"web": ["rfi"]}
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
_FIRST_PID = 1100  # where a scenario names no numbers
_CONFIDENTIALITY = {0.0: "None", 0.1: "Low", 1.0: "Medium"}

Yaml = dict[str, Any]
"""A part of a scenario in CybORG's schema."""


def cyborg_scenario(network: Network) -> Yaml:
    """Returns the scenario dictionary for CybORG 2.1; equal seeds and actions give equal games."""
    return {
        "Agents": {"Blue": _blue(network), "Green": _green(network), "Red": _red(network)},
        "Subnets": {subnet.name: _subnet(network, subnet.name) for subnet in network.subnets},
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
    """Subnets with red's first; sessions start in this order, and each draws the number of its process."""
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


def _subnet(network: Network, name: str) -> Yaml:
    subnet = next(subnet for subnet in network.subnets if subnet.name == name)
    rules: Yaml = {}
    if subnet.reached_through:
        rules[network.subnet_of(network.red.foothold)] = {"in": "None", "out": "all"}
    rules["all"] = {"in": "all", "out": "all"}
    return {"Hosts": list(subnet.hosts), "NACLs": rules, "Size": len(subnet.hosts)}


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
    process: Yaml = {
        "Connections": [{"local_address": "0.0.0.0", "local_port": port} for port in service.ports],
        "PID": pid,
        "PPID": 1,
        "Process Name": service.process,
        "Username": service.account,
    }
    if service.type in _PROCESS_TYPES:
        process["Process Type"] = _PROCESS_TYPES[service.type]
    if service.type in _PROCESS_VERSIONS:
        process["Process Version"] = _PROCESS_VERSIONS[service.type]
    if service.type in _PROCESS_PROPERTIES:
        process["Properties"] = list(_PROCESS_PROPERTIES[service.type])
    return process


def _users(host: Host) -> list[Yaml]:
    names = ["root", "www-data", "ubuntu"] if host.os == "linux" else ["Administrator", "SYSTEM"]
    users: list[Yaml] = [{"Username": name} for name in [*names, "GreenAgent"]]
    if host.guessable:
        users.append({"Username": host.guessable, "Bruteforceable": True, "Password": host.guessable})
    return users
