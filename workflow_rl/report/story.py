"""An episode told step by step: what both sides did, what is true, what blue believes, and how a fix was judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workflow_rl.engine import state as outcomes
from workflow_rl.engine.network import BITS_PER_HOST, RED_ACTIONS, Network
from workflow_rl.engine.observe import by_host
from workflow_rl.engine.tables import compile_tables, fixed_unit_types
from workflow_rl.envs.blue import Policy, begin_games, most_at_once, view_of
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.takeover import takeovers_of
from workflow_rl.envs.views import with_view
from workflow_rl.errors import UserError
from workflow_rl.fidelity.replay import Replayer
from workflow_rl.fidelity.traces import Trace
from workflow_rl.training.compliance import (
    IDLE,
    IN_ORDER,
    NO_TYPE,
    NOT_A_FIX,
    VIOLATION,
    Compliance,
    due_type,
    judge_fix,
    type_masks,
)
from workflow_rl.training.workflow import Workflow

N_EPISODES = 200  # games of which a report and ``watch`` show the median, the best and the worst ...
SEED = 77  # ... which neither a training nor its evaluation plays
N_STEPS = 100  # of an episode
VERDICTS = {IN_ORDER: "in order", VIOLATION: "violation", IDLE: "idle"}
LEVELS = ("none", "user", "privileged")
BELIEFS = ("clean", "unknown", "user", "privileged")  # by the two bits of the observation, the first one low
ACTIVITIES = ("none", "scan", "?", "exploit")

VERBS = {
    "DiscoverNetworkServices": "scans",
    "PrivilegeEscalate": "escalates on",
    "Impact": "stops the operational service on",
}
RESULTS = {
    outcomes.SESSION: "gets in",
    outcomes.DECOY_ANSWERED: "runs into a decoy",
    outcomes.NOTHING_THERE: "finds nothing to attack",
    outcomes.UNROUTABLE: "cannot reach it",
    outcomes.NOT_EXPLOITABLE: "fails",
    outcomes.NO_OPTION: "knows no way in",
}


@dataclass(frozen=True)
class Fix:
    """How a Remove or Restore was judged; ``due`` is the compromised unit type of highest priority."""

    unit_type: str
    verdict: str  # see VERDICTS
    due: str = ""


@dataclass(frozen=True)
class Hosts:
    """What is true of each host, and what blue believes of it; lists have one entry per host."""

    level: list[int]  # true access of red, see LEVELS
    belief: list[int]  # see BELIEFS
    activity: list[int]  # what blue saw in the step, see ACTIVITIES
    decoys: list[list[str]]


@dataclass(frozen=True, kw_only=True)
class Frame(Hosts):
    """One step; step 0 is the takeover. The hosts are those after the step, ``fix`` is judged by those before it."""

    step: int
    blue: str
    red: str
    service_down: bool
    reward: float = 0.0
    total: float = 0.0
    fix: Fix | None = None
    reason: str = ""  # why blue acted so, if it can tell


@dataclass(frozen=True)
class Story:
    """A whole episode; ``why`` says why it is told."""

    why: str
    red_agent: str
    edition: str
    workflow: str
    frames: list[Frame]

    @property
    def total(self) -> float:
        """Return of the episode."""
        return self.frames[-1].total

    @property
    def n_steps(self) -> int:
        """Steps that blue played."""
        return self.frames[-1].step

    @property
    def counts(self) -> list[int]:
        """Number of fixes with each verdict, in the order of VERDICTS."""
        verdicts = [frame.fix.verdict for frame in self.frames if frame.fix]
        return [verdicts.count(verdict) for verdict in VERDICTS.values()]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self)


class Episodes:
    """Many episodes of one policy against one red agent, played side by side and recorded.

    Args:
        act: blue.
        red_agent: the opponent.
        network: the hosts and subnets that blue defends.
        edition: the rules.
        workflow: the order by which fixes are judged; empty: none.
        n_episodes: number of episodes.
        seed: of the games and of blue's own chance.
        takeover: steps that red plays before blue.
    """

    def __init__(
        self,
        act: Policy,
        red_agent: str,
        network: Network,
        edition: str = "current",
        workflow: str = "",
        n_episodes: int = N_EPISODES,
        seed: int = SEED,
        takeover: str = "0",
    ) -> None:
        if n_episodes < 1:
            raise UserError(f"there must be at least 1 episode, not {n_episodes}.")
        self.red_agent, self.edition, self.workflow = red_agent, edition, workflow
        self.network = network
        size, red = most_at_once(act, n_episodes), network.red_number(red_agent)
        envs = with_view(CageVectorEnv(size, red_agent, edition, None, "sleep", network), view_of(act))
        seeds = np.random.SeedSequence([seed, red, 5]).generate_state(n_episodes, np.uint64)
        generator = np.random.default_rng([seed, red, 6])
        starts, parts = [], []
        for first in range(0, n_episodes, size):
            begin_games(act)
            rows = np.arange(first, first + size)
            infos = envs.reset(seed=seeds[rows].tolist(), options={"takeover": takeovers_of(takeover, rows)})[1]
            starts.append((infos["takeover"], envs.snapshot()))
            parts.append(_played(envs, act, generator))
        self.takeovers, self.start = (np.concatenate(some) for some in zip(*starts, strict=True))
        # Arrays (N_STEPS, n_episodes, ...):
        self.states: np.ndarray  # after the step
        self.actions: np.ndarray
        self.rewards: np.ndarray
        self.before: np.ndarray  # hosts compromised before it; (..., n_hosts)
        self.repaired: np.ndarray  # unit type that was repaired in it, or NO_TYPE
        self.reasons: np.ndarray  # why blue acted so, where it can tell
        every = (np.concatenate(some, axis=1) for some in zip(*parts, strict=True))
        self.states, self.actions, self.rewards, self.before, self.repaired, self.reasons = every
        self.returns: np.ndarray = self.rewards.sum(axis=0)

    def tell(self, episode: int, why: str = "") -> Story:
        """One of the episodes."""
        frames, total = self._takeover(episode), 0.0
        for step, states in enumerate(self.states):
            state, action = states[episode], int(self.actions[step][episode])
            reward, repaired = float(self.rewards[step][episode]), int(self.repaired[step][episode])
            total += reward
            frames.append(
                Frame(
                    step=step + 1,
                    blue=self.network.action_name(action),
                    red=red_in_words(self.network, state),
                    service_down=bool(state["service_down"]),
                    reward=round(reward, 1),
                    total=round(total, 1),
                    fix=judge(self.network, self.workflow, action, self.before[step][episode], repaired),
                    reason=self.reasons[step][episode],
                    **vars(hosts_of(self.network, state)),
                )
            )
        return Story(why, self.red_agent, self.edition, self.workflow, frames)

    def _takeover(self, episode: int) -> list[Frame]:
        """What blue takes over, if red played before."""
        steps, state = int(self.takeovers[episode]), self.start[episode]
        if not steps:
            return []
        blue, red, down = f"takes over after {steps} steps", held_in_words(self.network, state), state["service_down"]
        return [Frame(step=0, blue=blue, red=red, service_down=bool(down), **vars(hosts_of(self.network, state)))]

    def choose(self) -> list[Story]:
        """The first episode with a violation, if there is one, and the worst, the median and the best by return."""
        ranked = np.argsort(self.returns.round(1), kind="stable")  # rewards are tenths: rounding decides no tie
        chosen = {"worst": ranked[0], "median": ranked[len(ranked) // 2], "best": ranked[-1]}
        stories = [self.tell(int(episode), why) for why, episode in chosen.items()]
        first = self.first_violation()
        return ([self.tell(first, "first violation")] if first is not None else []) + stories

    def first_violation(self) -> int | None:
        """The first episode in which the workflow is violated; None if there is none."""
        if not self.workflow:
            return None
        orders = np.tile(Workflow.parse(self.workflow, self.network).indices(), (len(self.returns), 1))
        compliance, fixed = Compliance(self.network, orders), fixed_unit_types(self.network)
        for actions, repaired, before in zip(self.actions, self.repaired, self.before, strict=True):
            compliance.update(fixed[actions], repaired, before)
        return next(iter(np.flatnonzero(compliance.episodes["violations"]).tolist()), None)


def _played(envs: Any, act: Policy, generator: np.random.Generator) -> tuple[np.ndarray, ...]:
    """An episode of each environment: what :class:`Episodes` keeps of every step."""
    explain, steps = getattr(act, "explain", None), []
    for _ in range(N_STEPS):
        packed = envs.packed_observations
        actions = act(packed, generator)
        reasons = np.array(explain(packed) if explain else [""] * len(actions), object)
        _, rewards, _, _, infos = envs.step(actions)
        found = (infos["compromised_before"], infos["repaired_unit_type"])
        steps.append((envs.snapshot(), actions, rewards, *found, reasons))
    return tuple(np.stack(some) for some in zip(*steps, strict=True))


def judge(network: Network, workflow: str, action: int, before: np.ndarray, repaired: int) -> Fix | None:
    """How an action is judged by a workflow; None if it is no fix or there is no workflow.

    Args:
        network: hosts, unit types and actions.
        workflow: the order; empty: none.
        action: blue's.
        before: hosts compromised before the step; (n_hosts,) bool.
        repaired: unit type that the action repaired, or NO_TYPE.
    """
    if not workflow:
        return None
    fixed, compromised = int(fixed_unit_types(network)[action]), int(before @ (1 << np.arange(len(before))))
    due = due_type(Workflow.parse(workflow, network).indices(), type_masks(network), compromised)
    kind = judge_fix(fixed, repaired, due)
    if kind == NOT_A_FIX:
        return None
    return Fix(network.unit_types[fixed], VERDICTS[kind], network.unit_types[due] if due != NO_TYPE else "")


def story_of_trace(trace: Trace, episode: int, network: Network, edition: str, workflow: str = "") -> Story:
    """A recorded game of genuine CybORG."""
    if not 0 <= episode < trace.n_episodes:
        raise UserError(f"episode {episode} is not in {trace.path}; it has 0 to {trace.n_episodes - 1}.")
    frames, total = [], 0.0
    fixed, before, freed = fixed_unit_types(network), np.zeros(len(network.hosts), bool), np.zeros(trace.max_steps)
    if workflow:
        freed = Replayer(trace, network).repaired(compile_tables(network, edition or "current"))[episode]
    for step in range(int(trace["n_steps"][episode])):
        row = {name: trace[name][episode, step] for name in trace.arrays if trace[name].ndim > 1 and name != "obs0"}
        action, total = int(row["blue_action"]), total + float(row["reward"])
        exploit = trace.codes.exploits[row["exploit"]] if row["exploit"] >= 0 else ""
        bits = np.unpackbits(row["obs"])[: BITS_PER_HOST * len(network.hosts)].reshape(-1, BITS_PER_HOST).astype(int)
        frames.append(
            Frame(
                step=step + 1,
                blue=network.action_name(action),
                red=_words(network, row, exploit, int(row["detect"])),
                level=row["priv"].astype(int).tolist(),
                belief=(bits[:, 2] + 2 * bits[:, 3]).tolist(),
                activity=(bits[:, 0] + 2 * bits[:, 1]).tolist(),
                decoys=[_members(trace.codes.decoys, mask) for mask in row["decoys"].tolist()],
                service_down=not row["ot_running"],
                reward=round(float(row["reward"]), 1),
                total=round(total, 1),
                fix=judge(network, workflow, action, before, fixed[action] if freed[step] else NO_TYPE),
            )
        )
        before = row["priv"] > 0
    return Story(f"episode {episode} of {trace.path}", trace.red_agent(episode), edition, workflow, frames)


def held_in_words(network: Network, state: Any) -> str:
    """The unit types that red holds, each with its cost per step, the most expensive first."""
    privileged, user = int(state["privileged"]), int(state["traced"]) | int(state["untraced"])
    cost: dict[str, float] = {}
    for number, host in enumerate(network.hosts):
        if (privileged | user) >> number & 1 and host.name != network.red.foothold:
            cost[host.unit_type] = cost.get(host.unit_type, 0.0) + host.value * (privileged >> number & 1)
    if state["service_down"]:
        where = network.hosts[network.host_names.index(network.operational_service.host)].unit_type
        cost[where] = cost.get(where, 0.0) + network.reward.service_down
    if not cost:
        return "holds nothing but its foothold"
    words = [f"{kind} ({price:.1f})" for kind, price in sorted(cost.items(), key=lambda item: (-item[1], item[0]))]
    return f"holds, with the cost per step: {', '.join(words)}"


def hosts_of(network: Network, state: Any) -> Hosts:
    """The hosts in a state of the engine."""
    n = len(network.hosts)
    hosts = np.arange(n)
    privileged = int(state["privileged"]) >> hosts & 1
    user = (int(state["traced"]) | int(state["untraced"])) >> hosts & 1
    names = [decoy.name for decoy in network.decoys]
    seen = by_host(state["observation"][None], n)[0].tolist()
    return Hosts(
        level=np.where(privileged, 2, user).tolist(),
        belief=[bits >> 2 for bits in seen],
        activity=[bits & 3 for bits in seen],
        decoys=[_members(names, int(mask)) for mask in state["decoys"][:n]],
    )


def _members(names: Sequence[str], mask: int) -> list[str]:
    """Names whose bits are set."""
    return [name for bit, name in enumerate(names) if mask >> bit & 1]


def red_in_words(network: Network, state: Any) -> str:
    """Red's last move in a state of the engine."""
    exploit = network.exploits[state["exploit"]].name if state["exploit"] >= 0 else ""
    return _words(network, state, exploit, int(state["detected"]))


def _words(network: Network, move: Any, exploit: str, detected: int) -> str:
    """Red's move as a sentence without its subject; ``move`` is a state of the engine or a row of a recording."""
    action, target = int(move["red_action"]), int(move["red_target"])
    if action >= len(RED_ACTIONS):
        return "does nothing that is allowed"
    name = RED_ACTIONS[action]
    if name == "Sleep":
        return "sleeps"
    if name == "DiscoverRemoteSystems":
        what = f"sweeps the {network.subnet_names[target]} subnet"
    elif name in VERBS:
        what = f"{VERBS[name]} {network.host_names[target]}"
    else:
        way, unseen = f" with {exploit}" if exploit else "", "" if detected else " unseen"
        return f"attacks {network.host_names[target]}{way}: {RESULTS[int(move['exploit_result'])]}{unseen}"
    return what if move["red_success"] == outcomes.SUCCEEDED else f"{what}: in vain"
