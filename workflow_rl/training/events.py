"""Records of a training: one event per update, the stop reason, and the result."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import Enum

from workflow_rl.runs import Json


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of one update; losses, entropy, KL and clip fraction are those of its last epoch."""

    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    clip_fraction: float
    distinct_inputs: int
    fast: bool


@dataclass(frozen=True)
class UpdateEvent:
    """Figures of one update; means are over the episodes that ended in its batch, None if there were none."""

    phase: str  # base: the general policy of a warm start; main: the policy itself
    update: int
    episodes: int
    mean_return: float | None
    alignment: float | None
    total: float | None
    compliance: float | None  # None for a general policy
    kept: float | None  # None for a general policy
    repairs: float | None
    idle_fixes: float | None
    violations: int
    violations_by_pair: str
    stats: UpdateStats
    seconds_collect: float
    seconds_update: float
    transitions_per_s: float
    cpu_share: float
    memory_mb: float
    gpu_memory_mb: float | None = None

    def to_json(self) -> Json:
        """As a line of events.jsonl, where the mean return is called ``return``."""
        found: Json = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, UpdateStats):
                found |= asdict(value)
            elif item.name != "gpu_memory_mb" or value is not None:
                found["return" if item.name == "mean_return" else item.name] = value
        return found


class StopReason(Enum):
    """Which rule ended a training."""

    FOLLOWED = "followed"
    MAX_EPISODES = "max_episodes"
    PATIENCE = "patience"


@dataclass(frozen=True)
class WorkflowResult:
    """The result of a training, measured on fresh episodes; ``greedy`` figures use the most probable actions."""

    workflow: str
    followed: bool | None  # None for a general policy, like the next three
    compliance: float | None
    compliance_error: float | None
    kept: float | None
    repairs: float
    idle_fixes: float
    mean_return: float
    standard_error: float
    updates: int
    episodes: int
    stop_reason: str
    seconds: float
    run: str
    greedy_compliance: float | None
    greedy_mean_return: float
    worst_compliance: float | None
    worst_kept: float | None
    red_agent: str
    edition: str
    seed: int
    backend: str = "native"
    takeover: str = "0"
    limit: float | None = None  # best return that the workflow allows, see limits.py
