"""Free play against reference returns: does the engine's own chance lead to the right averages?

    python -m benchmarks free_play 50000

Plays every reference policy against every red agent in both editions and compares the mean returns at 30, 50 and 100
steps with benchmarks/reference_returns.json. Stores the comparison and fails if a difference exceeds three standard
errors (of the difference, rounding of the reference included).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.command import main
from benchmarks.results import write_result
from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.defenders.protocol import REFERENCE_POLICIES, evaluate, reference_policy
from workflow_rl.engine.network import RED_AGENTS
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parent / "reference_returns.json").read_text("utf-8"))
LIMIT = 3.0


def compare(n_episodes: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yields one row per policy, red agent, edition, length and reference."""
    for edition in load_network().editions:
        for policy in REFERENCE_POLICIES:
            for red in RED_AGENTS:
                sources = {name: REFERENCE[name][edition].get(policy, {}).get(red) for name in ("simulated", "genuine")}
                if not any(sources.values()):
                    continue
                cells = evaluate(reference_policy(policy, load_network()), red, edition, n_episodes, seed=seed)
                for source, reference in sources.items():
                    for length, (mean, error) in zip(CHALLENGE_LENGTHS, reference or [], strict=bool(reference)):
                        cell = cells[length]
                        spread = math.sqrt(cell.standard_error**2 + error**2 + _rounding(mean) ** 2)
                        yield {
                            "edition": edition,
                            "policy": policy,
                            "red": red,
                            "steps": length,
                            "reference": source,
                            "reference_mean": mean,
                            "reference_error": error,
                            "mean": round(cell.mean, 4),
                            "error": round(cell.standard_error, 4),
                            "z": round((cell.mean - mean) / spread, 2) if spread else 0.0,
                        }


def _rounding(mean: float) -> float:
    """Standard deviation of what was lost when the reference was written with its digits; 0 for an exact 0."""
    digits = len(str(mean).partition(".")[2])
    return 0.0 if mean == 0 else 10.0**-digits / math.sqrt(12)


def measure(games: str) -> None:
    """Stores the comparison, and fails if a difference is too large."""
    if not games.isdigit():
        raise UserError(f"free_play takes a number of games, not {games!r}.")
    n_episodes = int(games)
    rows = list(compare(n_episodes))
    worst = max(rows, key=lambda row: abs(row["z"]))
    figures = {"episodes": n_episodes, "comparisons": len(rows), "largest_z": worst["z"], "rows": rows}
    write_result("free_play", f"python -m benchmarks free_play {n_episodes}", figures)
    print(f"{len(rows)} comparisons over {n_episodes} episodes each; largest difference {worst['z']} standard errors")
    if abs(worst["z"]) > LIMIT:
        raise UserError(f"the largest difference is {worst['z']} standard errors, more than {LIMIT:g}.")


if __name__ == "__main__":
    main("free_play")
