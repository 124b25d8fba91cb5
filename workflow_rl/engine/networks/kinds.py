"""Kinds of computers from which networks are generated: systems and services as in CAGE Challenge 2.

Every service is one that CybORG's exploits know, or one that none of them can exploit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from workflow_rl.engine.network import Host, Service

SSHD = Service("sshd", "root", (22,), "ssh")
SSHD_EXE = Service("sshd.exe", "sshd_server", (22,), "ssh")
FTP = Service("femitter.exe", "SYSTEM", (21,), "ftp")
SMB = Service("smss.exe", "SYSTEM", (445, 139), "smb")
SMB_PATCHED = Service("smss.exe", "SYSTEM", (445, 139))
RPC = Service("svchost.exe", "SYSTEM", (135,))
RDP = Service("svchost.exe", "SYSTEM", (3389,), "rdp")
RDP_USER = Service("svchost.exe", "NetworkService", (3389,), "rdp")
TOMCAT = Service("tomcat8.exe", "NetworkService", (80, 443), "web")
HTTP = Service("apache2", "www-data", (80,), "web")
HTTPS = Service("apache2", "www-data", (443,), "web")
MAIL = Service("smtp", "root", (25,), "smtp")
SQL = Service("mysql", "root", (3390,), "sql")
SQL_MOVED = Service("mysql", "root", (3389,), "sql")  # where SQLInjection does not look

PROCESS_IDS = {
    "sshd": 1091, "sshd.exe": 3368, "femitter.exe": 3344, "smss.exe": 4, "tomcat8.exe": 3404, "apache2": 1100,
    "smtp": 1102, "mysql": 1101,
}  # fmt: skip
SVCHOST_IDS = {135: 832, 3389: 4400}


@dataclass(frozen=True)
class Kind:
    """Hosts of one unit type: services that all have, services that some have, and the values to choose from."""

    unit_type: str
    os: str
    services: tuple[Service, ...]
    some: tuple[Service, ...] = ()
    values: tuple[float, ...] = (0.1,)
    guessable: float = 1.0  # the share of hosts with a password that can be guessed


WORKSTATIONS = (
    Kind("office", "windows", (SSHD_EXE, FTP)),
    Kind("laptop", "windows", (SMB, RPC, RDP_USER), (SSHD_EXE,)),
    Kind("developer", "linux", (SSHD, HTTP, HTTPS, MAIL), (SQL,), guessable=0.7),
    Kind("terminal", "linux", (HTTP, SQL_MOVED, HTTPS, MAIL)),
)
SERVERS = (
    Kind("web", "windows", (SSHD_EXE, RPC, RDP, SMB_PATCHED, TOMCAT), values=(0.1, 1.0)),
    Kind("mail", "linux", (SSHD, MAIL), (HTTPS,), (1.0,), 0.5),
    Kind("database", "linux", (SSHD, SQL, HTTPS), (), (1.0, 1.0, 10.0), 0.3),
    Kind("file", "windows", (SMB, RPC), (SSHD_EXE, RDP), (0.1, 1.0)),
    Kind("build", "linux", (SSHD,), (HTTP,), (0.1, 1.0)),
    Kind("directory", "windows", (RPC, RDP), (SSHD_EXE,), (1.0,)),
)
PLANT = (
    Kind("controller", "linux", (SSHD,), values=(1.0,)),  # runs the operational service
    Kind("operator", "windows", (SSHD_EXE, RPC), (RDP,), (0.1,)),
    Kind("historian", "linux", (SSHD,), (HTTP,), (0.1, 1.0)),
    Kind("sensor", "linux", (SSHD,), (), (0.1,)),
)


def host_of(kind: Kind, name: str, value: float, chance: Random) -> Host:
    """A host of a kind that red can take: over ssh if nothing else works."""
    services = (*kind.services, *(service for service in kind.some if chance.random() < 0.5))
    weak = any(service.type not in ("", "ssh") and service != SQL_MOVED for service in services)
    guessable = chance.random() < kind.guessable or not weak
    account = {"linux": "pi", "windows": "vagrant"}[kind.os] if guessable else ""
    return numbered(Host(name, kind.unit_type, kind.os, value, services, account))


def numbered(host: Host) -> Host:
    """The host with the process ids that these services have in CAGE Challenge 2."""
    numbers = [PROCESS_IDS.get(s.process) or SVCHOST_IDS[s.ports[0]] for s in host.services]
    return replace(host, process_ids=tuple(numbers))
