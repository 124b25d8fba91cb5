"""How programs (such as B_line), Meander and green choose; red writes ``red_action`` and ``red_target``."""

from __future__ import annotations

from workflow_rl.engine.bits import has, lowest, wide
from workflow_rl.engine.chance import GREEN_SLEEPS, Chance, pick_green, pick_member
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import FIRST_PROGRAM, MEANDER, SLEEPER
from workflow_rl.engine.observe import Records, no_records, revealed_host, scan_records
from workflow_rl.engine.state import FAILED, NOBODY, SUCCEEDED, State
from workflow_rl.engine.tables import (
    DRAWN,
    ESCALATE,
    EXPLOIT,
    IMPACT,
    NO_TARGET,
    RED_SLEEP,
    REVEALED_BY,
    SCAN,
    SWEEP,
    Tables,
)


@compiled
def choose_red(s: State, t: Tables, chance: Chance) -> None:
    """Sets red's action and target of this step."""
    s.candidates = 0
    if s.red == FIRST_PROGRAM or s.red > SLEEPER:
        follow_program(s, t, chance)
    elif s.red == MEANDER:
        choose_meander(s, t, chance)
    else:
        s.red_action, s.red_target = RED_SLEEP, NOBODY


@compiled
def follow_program(s: State, t: Tables, chance: Chance) -> None:
    """Advances the line counter by the last result and executes that line of the program."""
    line = t.line_success[s.line] if s.red_success == SUCCEEDED else t.line_failure[s.line]
    if t.line_unless_scanned[line] >= 0 and s.scan_empty and s.lines_done & t.line_bit[line] == 0:
        line = t.line_unless_scanned[line]
    s.line = line
    s.lines_done |= t.line_bit[line]
    s.red_action = t.line_action[line]
    s.red_target = t.line_target[line]
    if s.red_target < 0:
        s.red_target = drawn_target(s, t, wide(line), wide(s.red_target), chance)
        if s.red_target == NOBODY:
            s.red_action = RED_SLEEP


@compiled
def drawn_target(s: State, t: Tables, line: int, target: int, chance: Chance) -> int:
    """The host that the program has drawn, draws now, or that a drawn one reveals; NOBODY if red knows none."""
    if target == NO_TARGET:
        return NOBODY
    if target <= REVEALED_BY:
        return revealed_host(t, s.picked[REVEALED_BY - target])
    draw = DRAWN - target
    if s.picked[draw] == NOBODY or t.line_redraws[line]:
        s.candidates = t.line_from[line] & (s.addresses if t.line_known[line] else -1)
        if s.candidates == 0:
            return NOBODY
        s.picked[draw] = pick_member(s, s.candidates, chance.pick)
    return wide(s.picked[draw])


@compiled
def choose_meander(s: State, t: Tables, chance: Chance) -> None:
    """Updates the memory with the last result, then applies the first rule that fits."""
    digest_meander(s, t)
    if has(s.escalated, t.service_host):
        s.red_action, s.red_target = IMPACT, t.service_host
        return
    unswept = s.subnets & ~s.swept
    if unswept:
        s.red_action, s.red_target = SWEEP, lowest(unswept)
        s.swept |= 1 << s.red_target
        return
    unscanned = s.addresses & ~s.scanned
    if unscanned:
        s.red_action, s.candidates = SCAN, unscanned
        s.red_target = pick_member(s, unscanned, chance.pick)
        s.scanned |= 1 << s.red_target
        return
    escalatable = s.names & ~s.escalated & (~s.mapped | s.exploited)
    if escalatable:
        s.red_action, s.candidates = ESCALATE, escalatable
        s.red_target = pick_member(s, escalatable, chance.pick)
        s.escalated |= 1 << s.red_target
        return
    open_targets = s.addresses & ~s.exploited
    if open_targets:
        s.red_action, s.candidates = EXPLOIT, open_targets
        s.red_target = pick_member(s, open_targets, chance.pick)
        s.exploited |= 1 << s.red_target
        return
    s.red_action, s.red_target, s.irregular = RED_SLEEP, NOBODY, 1  # CybORG raises an exception here; never reached


@compiled
def digest_meander(s: State, t: Tables) -> None:
    """Updates Meander's memory with the result of its last action."""
    if s.red_target == NOBODY:
        return
    target = 1 << s.red_target
    if s.red_action == EXPLOIT and s.red_success == SUCCEEDED:
        s.mapped |= target
    elif s.red_action == EXPLOIT and s.red_success == FAILED:
        s.exploited &= ~target
        for i in range(t.retakes.shape[0]):
            lost = s.escalated & t.retakes[i]
            if lost:
                s.escalated &= ~lost
                s.exploited &= ~lost
                break
    elif (s.red_action == ESCALATE or s.red_action == IMPACT) and s.red_success == FAILED:
        s.escalated &= ~target
        if s.mapped & target:
            s.exploited &= ~target


@compiled
def green_acts(s: State, t: Tables, chance: Chance) -> Records:
    """An active green agent sometimes scans a host, which only leaves records."""
    if not s.green_acts:
        return no_records()
    host = pick_green(s, t, chance.green)
    return no_records() if host == GREEN_SLEEPS else scan_records(s, t, host)
