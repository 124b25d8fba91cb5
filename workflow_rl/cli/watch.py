"""What ``watch`` shows: an episode of a run, a policy file, a rule-based defender, or a recorded game."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from workflow_rl.config import parse_takeover
from workflow_rl.defenders.protocol import REFERENCE_POLICIES
from workflow_rl.engine.network import RED_AGENTS, Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError, check_choice
from workflow_rl.fidelity.traces import load_trace
from workflow_rl.report.story import N_EPISODES, SEED, Episodes, Story, story_of_trace

CHOICES = ("median", "best", "worst", "violation")
LAST_EPISODE = 99_999  # all episodes up to the chosen one are played side by side


@dataclass(frozen=True)
class Player:
    """A defender to watch, with what it was trained for."""

    source: str | Path
    red_agent: str = "bline"
    edition: str = "current"
    workflow: str = ""
    takeover: str = "0"


def story_named(
    source: str,
    red_agent: str | None,
    episode: str,
    edition: str | None,
    workflow: str,
    seed: int | None,
    takeover: str | None = None,
) -> Story:
    """The episode to watch.

    Args:
        source: a run, a policy file, a reference defender or a trace file (.npz).
        red_agent: the opponent; default: the one that the policy was trained against, else ``bline``.
        episode: one of CHOICES or a number.
        edition: the rules; default: the policy's, else ``current``.
        workflow: the order by which fixes are judged; default: the policy's own.
        seed: of the games; default: those of which a report shows the median, the best and the worst.
        takeover: steps that red plays before blue; default: the policy's own, else 0.
    """
    network = load_network()
    if edition is not None:
        check_choice("edition", edition, network.editions)
    if source.endswith(".npz"):
        if red_agent is not None:
            raise UserError("a recorded game has its own red agent; leave --red-agent out.")
        if takeover is not None:
            raise UserError("a recorded game has its own takeover; leave --takeover out.")
        return _recorded(source, episode, network, edition or "", workflow)
    from workflow_rl.defenders.names import blue_named

    player = _player(source, edition or "current", workflow)
    rules, order, after = edition or player.edition, player.workflow, player.takeover if takeover is None else takeover
    red = check_choice("red agent", player.red_agent if red_agent is None else red_agent, RED_AGENTS)
    number = _number(episode)
    if number is None:
        check_choice("episode", episode, CHOICES)
    n_episodes = N_EPISODES if number is None else max(N_EPISODES, number + 1)
    blue = blue_named(player.source, order, rules)
    if episode == "violation" and not order:
        raise UserError(f"{source} follows no workflow; say by which one it is to be judged with --workflow.")
    parse_takeover(after)
    episodes = Episodes(blue, red, rules, order, n_episodes, SEED if seed is None else seed, after)
    return _chosen(episodes, source, episode if number is None else number)


def _player(source: str, edition: str, workflow: str) -> Player:
    """The defender of that name, or of a run or a policy file."""
    from workflow_rl.defenders.names import CHAMPION, policy_path

    if source in REFERENCE_POLICIES or not (source == CHAMPION or Path(source).exists()):
        return Player(source, edition=edition, workflow=workflow)
    from workflow_rl.training.policy_file import load_policy

    path = policy_path(source, edition)
    path = path if source == CHAMPION else _policy_of(path)
    policy = load_policy(path)
    if policy.universal and not workflow:
        raise UserError("the policy follows any workflow: say which one with --workflow.")
    red = policy.red_agent if policy.red_agent in RED_AGENTS else "bline"
    return Player(path, red, policy.edition, workflow or policy.workflow, policy.takeover)


def _chosen(episodes: Episodes, source: str, episode: str | int) -> Story:
    """One of the episodes, by its number or one of CHOICES."""
    if isinstance(episode, int):
        return episodes.tell(episode, f"{source}: episode {episode}")
    n_episodes = len(episodes.returns)
    if episode == "violation":
        first = episodes.first_violation()
        if first is None:
            raise UserError(f"{source} has no violation of the workflow {episodes.workflow} in {n_episodes} episodes.")
        return episodes.tell(first, f"{source}: first violation")
    (story,) = [story for story in episodes.choose() if story.why == episode]
    return replace(story, why=f"{source}: {episode} of {n_episodes} episodes")


def _recorded(source: str, episode: str, network: Network, edition: str, workflow: str) -> Story:
    """A game of a trace file."""
    trace = load_trace(source)
    number = _number(episode) if episode != "median" else 0
    if number is None:
        raise UserError(f"episode must be a number from 0 to {trace.n_episodes - 1}, not {episode!r}.")
    return story_of_trace(trace, number, network, edition, workflow)


def _policy_of(path: Path) -> Path:
    """The policy of a run; of a search that is not finished that of the best training so far."""
    if not path.is_dir() or (path / "policy.safetensors").exists():
        return path
    from workflow_rl.report.build import best_policy
    from workflow_rl.report.run_data import report_data

    return best_policy(path, report_data(path, load_network())) or path


def _number(episode: str) -> int | None:
    if not episode.isdecimal():
        return None
    if len(episode) > len(str(LAST_EPISODE)):
        raise UserError(f"episode must be at most {LAST_EPISODE}, not {episode}.")
    return int(episode)
