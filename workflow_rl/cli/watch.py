"""What ``watch`` shows: an episode of a run, a policy file, a rule-based defender, or a recorded game."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workflow_rl.config import parse_takeover
from workflow_rl.defenders.protocol import REFERENCE_POLICIES
from workflow_rl.engine.network import RED_AGENTS
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError, check_choice
from workflow_rl.fidelity.traces import load_trace
from workflow_rl.report.story import N_EPISODES, SEED, Episodes, Story, story_of_trace

CHOICES = ("median", "best", "worst", "violation")
LAST_EPISODE = 99_999  # all episodes up to the one that is asked for are played side by side


def story_named(
    source: str,
    red_agent: str | None,
    episode: str,
    edition: str | None,
    workflow: str,
    seed: int | None,
    takeover: str | None = None,
) -> Story:
    """The episode that was asked for.

    Args:
        source: a run, a policy file, a reference defender or a trace file (.npz).
        red_agent: the opponent; default: the one that the policy was trained against, else ``bline``.
        episode: one of CHOICES or a number.
        edition: the rules; default: the policy's, else ``current``.
        workflow: by which fixes are judged; default: the policy's own.
        seed: of the games; default: those of which a report shows the median, the best and the worst.
        takeover: steps that red plays before; default: the policy's own, else 0.
    """
    if edition is not None:
        check_choice("edition", edition, load_network().editions)
    if source.endswith(".npz"):
        return _recorded(source, red_agent, episode, edition, workflow, takeover)
    from workflow_rl.defenders.names import BY_NAME, CHAMPION, blue_named, policy_path

    about, path, after = ("bline", edition or "current", workflow), Path(source), "0"
    if source not in REFERENCE_POLICIES and (source == CHAMPION or Path(source).exists()):
        from workflow_rl.training.policy_file import load_policy

        path = policy_path(source, about[1])
        path = path if source == CHAMPION else _policy_of(path)
        policy = load_policy(path)
        if policy.universal and not workflow:
            raise UserError("the policy follows any workflow: say which one with --workflow.")
        known = policy.red_agent if policy.red_agent in RED_AGENTS else "bline"
        about, after = (known, policy.edition, workflow or policy.workflow), policy.takeover
    red = check_choice("red agent", red_agent if red_agent is not None else about[0], RED_AGENTS)
    number = _number(episode)
    if number is None:
        check_choice("episode", episode, CHOICES)
    n_episodes = N_EPISODES if number is None else max(N_EPISODES, number + 1)
    rules = edition or about[1]
    blue = blue_named(path if path.exists() and source not in BY_NAME else source, about[2], rules)
    if episode == "violation" and not about[2]:
        raise UserError(f"{source} follows no workflow; say by which one it is to be judged with --workflow.")
    after = after if takeover is None else takeover
    parse_takeover(after)
    episodes = Episodes(blue, red, rules, about[2], n_episodes, seed=SEED if seed is None else seed, takeover=after)
    if number is not None:
        return episodes.tell(number, f"{source}: episode {number}")
    if episode == "violation":
        first = episodes.first_violation()
        if first is None:
            raise UserError(f"{source} has no violation of the workflow {about[2]} in {n_episodes} episodes.")
        return episodes.tell(first, f"{source}: first violation")
    names = {story.why: story for story in episodes.choose()}
    story = names[episode]
    return replace(story, why=f"{source}: {episode} of {n_episodes} episodes")


def _recorded(
    source: str, red_agent: str | None, episode: str, edition: str | None, workflow: str, takeover: str | None
) -> Story:
    """A game of a trace file."""
    if red_agent is not None:
        raise UserError("a recorded game has its own red agent; leave --red-agent out.")
    if takeover is not None:
        raise UserError("a recorded game has its own takeover; leave --takeover out.")
    trace = load_trace(source)
    number = _number(episode) if episode != "median" else 0
    if number is None:
        raise UserError(f"episode must be a number from 0 to {trace.n_episodes - 1}, not {episode!r}.")
    return story_of_trace(trace, number, edition or "", workflow)


def _policy_of(path: Path) -> Path:
    """The policy of a run; of a search that is not finished that of the best training so far."""
    if not path.is_dir() or (path / "policy.safetensors").exists():
        return path
    from workflow_rl.report.build import best_policy
    from workflow_rl.report.run_data import report_data

    return best_policy(path, report_data(path)) or path


def _number(episode: str) -> int | None:
    if not episode.isdecimal():
        return None
    if len(episode) > len(str(LAST_EPISODE)):
        raise UserError(f"episode must be at most {LAST_EPISODE}, not {episode}.")
    return int(episode)
