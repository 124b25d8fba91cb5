"""Evaluates on fresh episodes how well a policy defends and follows its workflows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS, TrainConfig
from workflow_rl.engine.bait import full_actions
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import as_network
from workflow_rl.envs.blue import Cell, Defender, Policy, Progress, cell_of, check_episodes, table_of
from workflow_rl.envs.checks import check_seed, parse_red_agents
from workflow_rl.envs.cyborg_sim import NATIVE, Backend
from workflow_rl.envs.env import make_envs
from workflow_rl.envs.game import Games
from workflow_rl.envs.takeover import takeovers_of
from workflow_rl.envs.views import View, unlike_cage2
from workflow_rl.errors import UserError
from workflow_rl.runs import Json
from workflow_rl.training.collectors import Collector, Conduct, PlainCollector, Stream, workflow_codes
from workflow_rl.training.compliance import EPISODE_DTYPE, Obedience
from workflow_rl.training.limits import limit_of
from workflow_rl.training.policy_file import PolicyFile, check_edition, load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.workflow import Workflow, universal_workflows

Play = Callable[[ParallelOrderConditionedPPO, tuple[Workflow, ...], Progress], tuple[np.ndarray, np.ndarray]]
"""Plays a policy with one workflow or none; returns episodes (n_episodes,) and rewards (n_episodes, max_steps)."""


@dataclass(frozen=True)
class FreshGames:
    """The games of an evaluation."""

    games: Games
    n_episodes: int  # for each workflow
    stream: Stream
    greedy: bool = False  # play the most probable action

    @contextmanager
    def players(self, backend: Backend) -> Iterator[Play]:
        """Yields a function that plays all games on the backend."""
        if backend.name == "native":
            yield self._play_native
            return
        n_envs = min(backend.jobs, self.n_episodes)
        envs = make_envs(
            backend, n_envs, network=self.games.network, red_agent=self._reds(np.arange(n_envs)),
            edition=self.games.edition, max_steps=None, takeover=takeovers_of(self.games.takeover, np.arange(n_envs)),
            green_agent=self.games.green_agent,
        )  # fmt: skip
        with closing(envs):
            yield lambda ppo, workflows, progress: self._play_cyborg(envs, ppo, workflows, progress)

    def _reds(self, episodes: np.ndarray) -> list[str]:
        """Red agents of the given episodes."""
        names = parse_red_agents(self.games.red_agent, self.games.network)
        return [names[episode % len(names)] for episode in episodes.tolist()]

    def _play_native(
        self, ppo: ParallelOrderConditionedPPO, workflows: tuple[Workflow, ...], progress: Progress
    ) -> tuple[np.ndarray, np.ndarray]:
        conduct = Conduct(workflows, greedy=self.greedy, view=ppo.view)
        buffer = Collector(self.games, self.n_episodes, self.games.max_steps, conduct, self.stream).collect(ppo)
        progress(self.n_episodes)
        return buffer.finished_episodes(), buffer.batch.rewards

    def _play_cyborg(
        self, envs: object, ppo: ParallelOrderConditionedPPO, workflows: tuple[Workflow, ...], progress: Progress
    ) -> tuple[np.ndarray, np.ndarray]:
        """Plays one game per environment at a time; every game has its own seeds, so grouping does not matter."""
        n_steps, conduct = self.games.max_steps, Conduct(workflows, greedy=self.greedy, view=ppo.view)
        collector = PlainCollector(envs, n_steps, n_steps, conduct, row_by_row=True)
        seeds, generators = self.stream.environments(self.n_episodes), self.stream.policy(self.n_episodes)
        episodes = np.zeros(self.n_episodes, EPISODE_DTYPE)
        rewards = np.zeros((self.n_episodes, n_steps), np.float32)
        n_envs = len(collector.episodes)
        for first in range(0, self.n_episodes, n_envs):
            rows = np.arange(first, first + n_envs) % self.n_episodes  # the last group is padded with the first games
            collector.start(seeds[rows], generators[rows], self._reds(rows), takeovers_of(self.games.takeover, rows))
            played = collector.collect(ppo).batch.rewards
            kept = min(n_envs, self.n_episodes - first)
            episodes[rows[:kept]], rewards[rows[:kept]] = collector.episodes[:kept], played[:kept]
            progress(kept)
        return episodes, rewards


@dataclass(frozen=True)
class WorkflowCell:
    """Figures of a policy on fresh episodes of one workflow."""

    mean_return: float
    standard_error: float
    obedience: Obedience
    returns: dict[str, Cell]


@dataclass(frozen=True)
class Evaluation:
    """Figures of a policy over all its workflows; a general policy has the single key None."""

    obedience: Obedience  # pooled over the episodes of all workflows
    by_workflow: dict[Workflow | None, WorkflowCell]
    episode_returns: np.ndarray  # (n_episodes,): mean over workflows, which share random numbers
    episode_sums: dict[str, np.ndarray]  # the same for each shorter episode length

    @property
    def mean_return(self) -> float:
        """Mean return."""
        return float(np.mean([cell.mean_return for cell in self.by_workflow.values()]))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean return."""
        return cell_of(self.episode_returns).standard_error

    @property
    def worst(self) -> Obedience:
        """Obedience for the workflow that is followed worst."""
        each = [cell.obedience for cell in self.by_workflow.values()]
        return min(each, key=lambda one: (one.shown, one.compliance or 0.0, one.kept or 0.0))

    def follows(self, threshold: float) -> bool:
        """Is every workflow followed?"""
        return all(cell.obedience.follows(threshold) for cell in self.by_workflow.values())


def evaluate_policy(
    ppo: ParallelOrderConditionedPPO, workflows: tuple[Workflow, ...], fresh: FreshGames, lengths: Sequence[int] = (),
    backend: Backend = NATIVE, progress: Progress = lambda _: None,
) -> Evaluation:  # fmt: skip
    """Plays fresh games for each workflow, or for a general policy if there are none.

    Args:
        ppo: the policy.
        workflows: the workflows to evaluate, all with common random numbers.
        fresh: the games to play.
        lengths: shorter episode lengths for which returns are reported too.
        backend: the simulator.
        progress: called with the number of newly finished episodes.
    """
    cells: dict[Workflow | None, WorkflowCell] = {}
    played: list[np.ndarray] = []
    mean_sums = np.zeros((fresh.n_episodes, fresh.games.max_steps))
    share = max(1, len(workflows))
    with fresh.players(backend) as play:
        for workflow in workflows or (None,):
            chosen = (workflow,) if workflow else ()
            episodes, rewards = play(_with_code(ppo, chosen), chosen, lambda done: progress(done / share))
            sums = np.cumsum(rewards, axis=1, dtype=np.float64)
            mean_sums += sums / share
            played.append(episodes)
            cells[workflow] = _cell(episodes, sums, lengths)
    obedience = Obedience.of(np.concatenate(played))
    by_length = {str(length): mean_sums[:, length - 1] for length in lengths}
    return Evaluation(obedience, cells, mean_sums[:, -1], by_length)


def _cell(episodes: np.ndarray, sums: np.ndarray, lengths: Sequence[int]) -> WorkflowCell:
    """Figures of finished episodes, given their cumulative rewards ``sums`` (n_episodes, max_steps)."""
    return WorkflowCell(
        mean_return=float(episodes["total"].mean()),
        standard_error=float(episodes["total"].std(ddof=1) / np.sqrt(len(episodes))),
        obedience=Obedience.of(episodes),
        returns={str(length): cell_of(sums[:, length - 1]) for length in lengths},
    )


def _with_code(ppo: ParallelOrderConditionedPPO, workflow: tuple[Workflow, ...]) -> ParallelOrderConditionedPPO:
    """The same policy, conditioned on one workflow or none."""
    one = copy.copy(ppo)
    one.codes = workflow_codes(workflow)
    return one


def evaluate_workflow_policy(path: Path, fresh: FreshGames, backend: Backend = NATIVE) -> WorkflowCell:
    """Figures of a trained policy on fresh games of its own workflow."""
    policy = load_policy(path, fresh.games.network)
    workflows = workflows_of_policy(policy, "")
    found = evaluate_policy(learner_of(policy, workflows), workflows, fresh, backend=backend)
    return next(iter(found.by_workflow.values()))


def evaluate_policy_file(
    path: Path, workflow: str, fresh: FreshGames, backend: Backend = NATIVE, progress: Progress = lambda _: None
) -> Json:
    """Evaluates the trained policy of a file or run; see :func:`evaluate_trained`."""
    return evaluate_trained(load_policy(path, fresh.games.network), workflow, fresh, backend, progress)


def evaluate_trained(
    policy: PolicyFile, workflow: str, fresh: FreshGames, backend: Backend = NATIVE,
    progress: Progress = lambda _: None,
) -> Json:  # fmt: skip
    """Evaluates a trained policy against each red agent, in the form of :func:`table_of`.

    For a conditioned policy, ``obedience`` has the fields of :class:`Obedience` for each red agent.
    """
    check_episodes(fresh.n_episodes)
    check_seed(fresh.stream.seed)
    games = fresh.games
    check_edition(policy, games.edition)
    greedy = fresh.greedy or policy.greedy
    workflows = workflows_of_policy(policy, workflow)
    if backend.name == "cyborg" and len(workflows) > 1:
        raise UserError("the policy follows any workflow: say which one with --workflow; all take hours on CybORG.")
    ppo = learner_of(policy, workflows)
    returns: dict[str, np.ndarray] = {}
    obedience: Json = {}
    for red in dict.fromkeys(parse_red_agents(games.red_agent, games.network)):
        one = replace(fresh, games=replace(games, red_agent=red), greedy=greedy)
        found = evaluate_policy(ppo, workflows, one, CHALLENGE_LENGTHS, backend, progress)
        returns[red] = np.stack([found.episode_sums[str(length)] for length in CHALLENGE_LENGTHS], axis=1)
        obedience[red] = asdict(found.obedience)
    about = {"workflow": policy.workflow or workflow or ("universal" if policy.universal else ""), "greedy": greedy}
    table: Json = about | table_of(returns) | ({"obedience": obedience} if workflows else {})
    if len(workflows) == 1:
        table["limits"] = {
            red: {
                n: limit_of(str(workflows[0]), red, games.edition, games.takeover, int(n), games.network) for n in cells
            }
            for red, cells in table["cells"].items()
        }
    return table


def challenge_games(
    network: Network, red_agents: str, edition: str, n_episodes: int, seed: int, greedy: bool = False,
    takeover: str = "0", green_agent: str = "sleep",
) -> FreshGames:  # fmt: skip
    """Games of the challenge's longest length."""
    games = Games(network, red_agents, edition, max(CHALLENGE_LENGTHS), takeover, green_agent)
    return FreshGames(games, n_episodes, Stream(seed, (21,)), greedy)


def policy_of(path: Path, workflow: str, network: Network, edition: str = "") -> Policy:
    """The trained policy of a file or run as a function of packed observations, or of memories if it needs them.

    Args:
        path: the policy file or run directory.
        workflow: the workflow that a universal policy is conditioned on.
        network: the network that the policy defends.
        edition: the required edition; empty accepts any.
    """
    policy = load_policy(path, network)
    if edition:
        check_edition(policy, edition)
    return player_of(policy, workflow)


def player_of(policy: PolicyFile, workflow: str = "") -> Policy:
    """A trained policy as a function of packed observations, or of memories if it needs them."""
    view = policy.view
    ppo = learner_of(policy, workflows_of_policy(policy, workflow if policy.universal else "")[:1])

    def act(packed: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        seen = packed["observation"].reshape(len(packed), -1) if view.tracks and not view.remembers else packed
        probabilities = ppo.probabilities(view.keys(seen))
        drawn = generator.random(len(packed))[:, None]
        cumulative = probabilities.cumsum(axis=1)
        actions: np.ndarray = (cumulative <= drawn * cumulative[:, -1:]).sum(axis=1)
        actions = probabilities.argmax(axis=1) if policy.greedy else actions
        return full_actions(view.bait, packed, actions) if view.actions == "host-decoy" else actions

    kept = View("short-memory" if unlike_cage2(as_network(view.network)) else "memory", "full", view.network)
    return Defender(act, view=kept) if view.tracks else act


def learner_of(policy: PolicyFile, workflows: tuple[Workflow, ...]) -> ParallelOrderConditionedPPO:
    """The policy with the codes of the given workflows, as evaluations need it."""
    view, guarded = policy.view, policy.net.guard is not None
    config = TrainConfig(device="cpu", view=view.observation, actions=view.actions, guard=guarded)
    return ParallelOrderConditionedPPO(config, workflow_codes(workflows), policy.net, view.network)


def workflows_of_policy(policy: PolicyFile, workflow: str) -> tuple[Workflow, ...]:
    """The workflows to evaluate: the requested one, the policy's own, or all for a universal policy."""
    network = policy.view.network
    asked = (Workflow.parse(workflow, network),) if workflow else ()
    own = (Workflow.parse(policy.workflow, network),) if policy.workflow else ()
    if policy.universal:
        return asked or universal_workflows(network)
    if asked and asked != own:
        raise UserError(f"the policy follows {policy.workflow or 'no workflow'}, not {workflow}.")
    return own
