"""The quirks of the rules one by one, and whole worked episodes; recorded games are in test_replay.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.playthrough import HEADER, play_text
from workflow_rl.engine.bits import count, has, lowest, nth
from workflow_rl.engine.observe import ACTIVITY_EXPLOIT, ACTIVITY_NONE, ACTIVITY_SCAN, judge

PLAYTHROUGHS = sorted((Path(__file__).parent / "playthroughs").glob("*.txt"))


@pytest.mark.parametrize("path", PLAYTHROUGHS, ids=lambda path: path.stem)
def test_a_worked_episode_is_played_as_it_was_written_down(path: Path) -> None:
    assert play_text(path.read_text("utf-8")) == path.read_text("utf-8")


def play(*steps: tuple[str, str], red: str = "bline", edition: str = "current", green: str = "sleep") -> list[Any]:
    """Plays (blue, chance) pairs; returns a (red, success, bits by host, reward) row for each."""
    lines = [f"{i} | {blue} | ? | ? | {chance or '-'} | ? | ?" for i, (blue, chance) in enumerate(steps)]
    text = "\n".join([f"red {red}", f"green {green}", f"edition {edition}", HEADER, *lines])
    rows = []
    for line in play_text(text).splitlines()[4:]:
        _, _, action, success, _, bits, reward = (cell.strip() for cell in line.split("|"))
        rows.append((action, success, dict(w.split("=") for w in bits.split() if "=" in w), float(reward)))
    return rows


SLEEP = ("Sleep", "")
TO_USER1 = [SLEEP, ("Sleep", "pick User1"), ("Sleep", "FTPDirectoryTraversal, detected"), SLEEP]
TO_USER3 = [SLEEP, ("Sleep", "pick User3"), ("Sleep", "HarakaRCE, detected"), SLEEP]
TO_ENTERPRISE1 = [*TO_USER1, SLEEP]  # scanned, the next action is the exploit
TO_ENTERPRISE0 = [*TO_USER3, SLEEP]


def test_a_restore_of_the_server_in_the_first_step_makes_impact_void_for_ever() -> None:
    shell = ("Sleep", "HTTPSRFI, detected")
    through_enterprise = [*TO_ENTERPRISE1[1:], shell, SLEEP, SLEEP, SLEEP, shell, SLEEP, SLEEP]
    to_server = [*through_enterprise, ("Sleep", "SSHBruteForce"), SLEEP, SLEEP, SLEEP]
    assert play(SLEEP, *to_server)[-1][3] == -13.1
    assert play(("Restore Op_Server0", ""), *to_server)[-1][3] == -3.1


def test_vsftpd_blocks_apache_and_can_be_stacked() -> None:
    rows = play(*TO_USER3, ("DecoyVsftpd Enterprise0", ""), ("DecoyApache Enterprise0", "HTTPRFI"))
    assert rows[-2][2].get("Enterprise0") is None  # port 22 and one new decoy port: the scan is hidden
    assert rows[-1][2]["Enterprise0"] == "1000"  # Apache did not fit, so it does not turn the hit into Exploit
    stacked = play(*TO_USER3, ("DecoyVsftpd Enterprise0", ""), ("DecoyVsftpd Enterprise0", "HTTPRFI"))
    assert stacked[-1][2]["Enterprise0"] == "1101"  # the second copy was placed


def test_remove_never_works_on_an_ssh_session() -> None:
    rows = play(*TO_ENTERPRISE0, ("Sleep", "SSHBruteForce"), ("Remove Enterprise0", ""))
    assert rows[-1][1] == "yes"
    assert rows[-1][2]["Enterprise0"] == "0010"
    assert rows[-1][3] == -1.1


def test_analyse_finds_nothing_after_ssh_until_red_has_escalated() -> None:
    rows = play(*TO_ENTERPRISE0, ("Sleep", "SSHBruteForce"), ("Analyse Enterprise0", ""), ("Analyse Enterprise0", ""))
    assert [row[2]["Enterprise0"] for row in rows[-2:]] == ["0001", "0011"]


def test_an_undetected_session_looks_like_a_scan_and_survives_remove() -> None:
    rows = play(*TO_ENTERPRISE1, ("Sleep", "HTTPSRFI, undetected"), ("Remove Enterprise1", ""))
    assert rows[-2][2]["Enterprise1"] == "1000"
    assert rows[-1][1] == "yes"


def test_remove_looks_the_same_whether_or_not_it_kills() -> None:
    rows = play(*TO_USER1[:3], ("Remove User1", ""))
    assert rows[-1][1] == "yes"  # ftp was privileged at once
    assert rows[-1][2]["User1"] == "0010"


def test_eternalblue_fails_silently_on_enterprise_hosts() -> None:
    rows = play(*TO_ENTERPRISE1, ("Sleep", "EternalBlue"))
    assert rows[-1][:3] == ("ExploitRemoteService Enterprise1", "no", {"User1": "0001"})


def test_a_decoy_placed_after_the_scan_attracts_nothing() -> None:
    with pytest.raises(ValueError, match="do not allow this chance outcome"):
        play(*TO_ENTERPRISE1, ("DecoyFemitter Enterprise1", "FTPDirectoryTraversal"))


def test_a_vanished_decoy_is_still_attacked_silently() -> None:
    rows = play(
        *TO_USER3, ("DecoyTomcat Enterprise0", ""), ("Restore Enterprise0", "HTTPSRFI"),
    )  # fmt: skip
    assert rows[-1][1] == "no"
    assert "Enterprise0" not in rows[-1][2]


def test_restore_and_exploit_in_one_step_leave_the_new_session() -> None:
    rows = play(*TO_ENTERPRISE1, ("Restore Enterprise1", "HTTPSRFI, detected"), SLEEP)
    assert rows[-2][2]["Enterprise1"] == "1101"
    assert rows[-1][1] == "yes"


def test_monitor_is_the_same_as_sleep() -> None:
    monitored = [("Monitor" if blue == "Sleep" else blue, chance) for blue, chance in TO_ENTERPRISE1]
    assert play(*monitored) == play(*TO_ENTERPRISE1)


def test_meander_never_scans_twice_so_an_empty_scan_makes_a_host_immune() -> None:
    scans = [("Sleep", f"pick User{i}") for i in range(5)]
    to_enterprise1 = [
        SLEEP, *scans, ("Sleep", "pick User0"), ("Sleep", "pick User1, FTPDirectoryTraversal, detected"),
        ("Sleep", "pick User1"), ("Sleep", "pick Enterprise1"), ("Sleep", "pick Enterprise1, HTTPSRFI, detected"),
        ("Sleep", "pick Enterprise1"), SLEEP,
        *(("Sleep", f"pick {host}") for host in ("Enterprise0", "Enterprise2", "Defender")),
        ("Sleep", "pick Enterprise2, HTTPSRFI, detected"), ("Sleep", "pick Enterprise2"),
    ]  # fmt: skip
    cleared = [
        *to_enterprise1[:-1],
        ("Restore Enterprise1", "pick Enterprise2"),
        ("Restore Enterprise2", "pick Op_Server0"),
    ]
    rows = play(*cleared, red="meander")
    assert rows[-1][:2] == ("DiscoverNetworkServices Op_Server0", "yes (empty)")
    again = play(*cleared, ("Sleep", "pick Op_Server0"), red="meander")
    assert again[-1][:2] == ("ExploitRemoteService Op_Server0", "no")


def test_restoring_user0_never_takes_reds_first_session() -> None:
    rows = play(("Restore User0", ""), *TO_USER1[1:])
    assert rows[0][3] == -1.0
    assert rows[-1][1] == "yes"


@pytest.mark.parametrize(
    ("number", "ports", "shell", "placed", "activity"),
    [
        (5, 3, 0, False, ACTIVITY_SCAN),
        (2, 2, 1, False, ACTIVITY_EXPLOIT),
        (2, 2, 1, True, ACTIVITY_EXPLOIT),
        (4, 4, 1, False, ACTIVITY_SCAN),
        (11, 1, 0, False, ACTIVITY_EXPLOIT),
        (2, 1, 0, False, ACTIVITY_SCAN),
        (2, 1, 0, True, ACTIVITY_EXPLOIT),
        (1, 1, 0, True, ACTIVITY_NONE),
        (2, 2, 0, True, ACTIVITY_NONE),
        (12, 2, 0, False, ACTIVITY_SCAN),
    ],
)
def test_activity_is_judged_by_number_of_records_and_ports(
    number: int, ports: int, shell: int, placed: bool, activity: int
) -> None:
    assert judge(number, ports, shell, placed) == activity


def test_sets_as_bits() -> None:
    generator = np.random.default_rng(0)
    for mask in generator.integers(1, 1 << 15, 50).tolist():
        members = [i for i in range(16) if mask >> i & 1]
        assert count(mask) == len(members)
        assert lowest(mask) == members[0]
        assert [nth(mask, i) for i in range(len(members))] == members
        assert all(has(mask, i) == (i in members) for i in range(16))
