"""Reads the agents of a CybORG scenario: what they may do, where they start, what they know."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_rl.engine.cyborg.rules import GREEN_SCANS, PRIVILEGED
from workflow_rl.engine.cyborg.scenario_hosts import Computer
from workflow_rl.engine.cyborg.scenario_yaml import Part, shown
from workflow_rl.engine.network import RED_ACTIONS, Blue
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.check import HOST_VERBS, PLAIN_VERBS

_OF_AGENT = (
    "AllowedSubnets", "INT", "actions", "adversary", "agent_type", "reward_calculator_type", "starting_sessions",
    "wrappers",
)  # fmt: skip
_OF_SESSION = ("hostname", "name", "parent", "type", "username", "artifacts", "num_children_sessions")
_GREEN_ACTIONS = ("Sleep", "GreenPortScan", "GreenPingSweep", "GreenConnection")
_RED_REWARDS = ("HybridImpactPwn", "Pwn", "Disrupt", "None")
_KNOWLEDGE = ("Interfaces", "System info", "User info")


@dataclass(frozen=True)
class Agents:
    """What the agents of a scenario say about a network."""

    blue: Blue
    foothold: str
    scans: tuple[str, ...]


def read_agents(part: Part, computers: list[Computer], subnets: list[str], notes: list[str]) -> Agents:
    """The agents of a scenario, which act in the order of the file."""
    agents = part.table(("Blue", "Green", "Red"), ("Blue", "Red"))
    if list(agents) not in (["Blue", "Green", "Red"], ["Blue", "Red"]):
        part.refuse(f"act in the order {', '.join(agents)}; what can be represented is Blue, Green, Red")
    hosts = {computer.host.name: computer for computer in computers}
    for agent in agents.values():
        _check_common(agent, subnets)
    foothold = _red(agents["Red"], hosts)
    blue = _blue(agents["Blue"], list(hosts))
    return Agents(blue, foothold, _green(agents.get("Green"), list(hosts), notes))


def _check_common(agent: Part, subnets: list[str]) -> None:
    entries = agent.table(_OF_AGENT, ("AllowedSubnets", "INT", "actions", "starting_sessions"))
    allowed = entries["AllowedSubnets"].texts(subnets)
    for subnet in subnets:
        if subnet not in allowed:
            entries["AllowedSubnets"].refuse(f"lacks {subnet!r}; every agent must know all subnets")
    wrappers = entries["wrappers"].texts() if "wrappers" in entries else []
    if set(wrappers) - {"None"}:
        entries["wrappers"].refuse(f"has {', '.join(wrappers)}; wrappers cannot be represented")
    if "agent_type" in entries:
        entries["agent_type"].text()


def _knowledge(agent: Part, hosts: list[str]) -> dict[str, set[str]]:
    """Hosts that an agent knows from the beginning, and what."""
    known = {}
    for host, part in agent.table()["INT"].table(("Hosts",), ("Hosts",))["Hosts"].table().items():
        if host not in hosts:
            part.refuse(f"names {host!r}, which is no host")
        entries = part.table(_KNOWLEDGE)
        for entry in entries.values():
            entry.text(("All",))
        known[host] = set(entries)
    return known


def _sessions(agent: Part, hosts: list[str], kinds: tuple[str, ...]) -> list[dict[str, Part]]:
    sessions = []
    for part in agent.table()["starting_sessions"].entries():
        entries = part.table(_OF_SESSION, ("hostname", "type", "username"))
        entries["hostname"].text(hosts)
        entries["type"].text(kinds)
        entries["username"].text()
        sessions.append(entries)
    return sessions


def _reward(agent: Part, allowed: tuple[str, ...]) -> None:
    part = agent.table().get("reward_calculator_type", Part(None, agent.file, agent.place))
    if part.value is not None or "None" not in allowed:
        part.text(allowed)


def _red(agent: Part, hosts: dict[str, Computer]) -> str:
    entries, stock = agent.table(), as_network(CAGE2)
    known = (*RED_ACTIONS, *(exploit.name for exploit in stock.exploits))
    actions = entries["actions"].texts(known)
    for action in RED_ACTIONS:
        if action not in actions:
            entries["actions"].refuse(f"lacks {action!r}, so red would play differently")
    _reward(agent, _RED_REWARDS)
    sessions = _sessions(agent, list(hosts), ("RedAbstractSession",))
    if len(sessions) != 1 or "parent" in sessions[0]:
        entries["starting_sessions"].refuse(f"must be one session without parent, not {len(sessions)}")
    foothold, user = sessions[0]["hostname"].value, sessions[0]["username"]
    host = hosts[foothold].host
    user.text(PRIVILEGED.values())
    if host.value and user.value != PRIVILEGED[host.os]:
        user.refuse(f"is {user.value} on {host.os}, so {foothold} would cost nothing; give {PRIVILEGED[host.os]}")
    known_hosts = _knowledge(agent, list(hosts))
    if list(known_hosts) != [foothold] or not {"Interfaces", "System info"} <= known_hosts[foothold]:
        entries["INT"].refuse(f"must give red the Interfaces and System info of {foothold}, its first host, alone")
    return str(foothold)


def _blue(agent: Part, hosts: list[str]) -> Blue:
    entries, stock = agent.table(), as_network(CAGE2)
    decoys = [verb for verb in stock.blue.host_actions if verb not in HOST_VERBS]
    actions = entries["actions"].texts((*PLAIN_VERBS, *HOST_VERBS, *decoys))
    plain = [verb for verb in actions if verb in PLAIN_VERBS]
    if actions[: len(plain)] != plain or "Sleep" not in plain or len(actions) == len(plain):
        entries["actions"].refuse("must begin with Sleep and Monitor, so that these have the first numbers")
    _reward(agent, ("HybridAvailabilityConfidentiality",))
    if "adversary" not in entries or entries["adversary"].text() != "Red":
        agent.refuse("must have Red as its adversary")
    knowledge = _knowledge(agent, hosts)
    for host in hosts:
        if not {"Interfaces", "System info"} <= knowledge.get(host, set()):
            entries["INT"].refuse(f"must give blue the Interfaces and System info of every host, also of {host}")
    sessions = _sessions(agent, hosts, ("VelociraptorServer", "VelociraptorClient"))
    servers = [session for session in sessions if session["type"].value == "VelociraptorServer"]
    if len(servers) != 1 or "name" not in servers[0] or "parent" in servers[0]:
        entries["starting_sessions"].refuse("must have one VelociraptorServer, with a name and without parent")
    artifacts = servers[0]["artifacts"].texts() if "artifacts" in servers[0] else []
    if "NetworkConnections" not in artifacts or set(artifacts) - {"NetworkConnections", "ProcessCreation"}:
        entries["starting_sessions"].refuse("must let the VelociraptorServer collect NetworkConnections")
    watched = set()
    for session in sessions:
        if session is not servers[0]:
            if "parent" not in session or session["parent"].value != servers[0]["name"].text():
                session["hostname"].refuse(f"belongs to a client whose parent is not {servers[0]['name'].value}")
            watched.add(session["hostname"].value)
    for host in hosts:
        if host not in watched:
            entries["starting_sessions"].refuse(f"have no VelociraptorClient on {host}, so blue could not act there")
    return Blue(tuple(plain), tuple(actions[len(plain) :]))


def _green(agent: Part | None, hosts: list[str], notes: list[str]) -> tuple[str, ...]:
    """The hosts that an acting green scans: fixed names in CybORG."""
    scans = tuple(host for host in GREEN_SCANS if host in hosts)
    missing = [host for host in GREEN_SCANS if host not in hosts]
    if agent is None:
        notes.append("There is no agent Green; genuine CybORG plays this scenario without a green one.")
    else:
        entries = agent.table()
        actions = entries["actions"].texts(_GREEN_ACTIONS)
        _reward(agent, ("None",))
        kind = entries.get("agent_type", Part(None, agent.file, f"{agent.place}.agent_type"))
        if kind.value != "SleepAgent":
            kind.refuse(f"must be SleepAgent, because green sleeps unless it is told to act, not {shown(kind.value)}")
        sessions, known = _sessions(agent, hosts, ("green_session",)), _knowledge(agent, hosts)
        able = {"Sleep", "GreenPortScan"} <= set(actions) and sessions
        for host in scans if able else ():
            if "System info" not in known.get(host, set()):
                entries["INT"].refuse(f"must give green the System info of {host}, which it scans")
        if not able:
            notes.append("Green has no session or may not scan; in genuine CybORG an acting green would do nothing.")
    if missing:
        notes.append(
            f"An acting green of genuine CybORG also tries to scan {', '.join(missing)}, which are no hosts here, and "
            "does nothing then; ours scans only hosts that exist."
        )
    return scans or tuple(hosts)
