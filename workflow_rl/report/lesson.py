"""What went wrong in an episode, in a sentence: every cost has a cause."""

from __future__ import annotations

from collections import Counter

from workflow_rl.engine.network import Network
from workflow_rl.report.story import LEVELS, VERDICTS, Story
from workflow_rl.training.compliance import VIOLATION

NAMED = 4  # causes in a sentence, the most expensive ones
HELD = LEVELS.index("privileged")


def costs(story: Story, network: Network) -> dict[str, float]:
    """What each cause cost in an episode, the most expensive first; together they are its return, without the sign."""
    held, played = Counter[str](), [frame for frame in story.frames if frame.step]
    for frame in played:
        for host, level in zip(network.hosts, frame.level, strict=True):
            held[host.unit_type] += round(10 * host.value) if level == HELD else 0
    service, price = network.operational_service.name, network.reward
    restores, down = (sum(frame.blue.startswith("Restore ") for frame in played), sum(f.service_down for f in played))
    found = {f"red held {name} hosts": tenths / 10 for name, tenths in held.items()}
    found |= {f"{service} was down for {_count(down, 'step')}": down * price.service_down}
    found |= {f"blue restored {_count(restores, 'time')}": restores * price.restore}
    return {what: cost for what, cost in sorted(found.items(), key=lambda item: -item[1]) if cost}


def lesson(story: Story, network: Network) -> str:
    """The first violation of the workflow, if there is one, and what cost most."""
    found = costs(story, network)
    named = [f"{what} ({cost:.1f})" for what, cost in list(found.items())[:NAMED]]
    rest = sum(list(found.values())[NAMED:])
    named += [f"the rest cost {rest:.1f}"] if rest else []
    lost = f"It cost {-story.total:.1f}: {', '.join(named)}." if named else "It cost nothing."
    return f"{_violation(story)}{lost}"


def _violation(story: Story) -> str:
    broken = [(frame.step, frame.fix) for frame in story.frames if frame.fix]
    broken = [(step, fix) for step, fix in broken if fix.verdict == VERDICTS[VIOLATION]]
    if not broken:
        return ""
    step, fix = broken[0]
    others = f" ({_count(len(broken), 'violation')} in all)" if len(broken) > 1 else ""
    return f"In step {step} {fix.unit_type} was repaired although {fix.due} was due{others}. "


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
