"""What the page concludes from the figures: which pairs show an effect, and whether the documents' claims hold."""

from __future__ import annotations

from typing import Any

SURE = 2.8  # standard errors: 95 % for ten pairs together, and for the difference of two means of three
SMALL = 1.0  # points of return that early stopping may cost
ONE, SOME, MANY = "1 episode", "25 environments", "200 environments"
ALONE = (ONE, "5 episodes", "10 episodes")  # the documents' ways to use one environment
CLAIMS = (
    "25 environments train about 10 times faster than one",
    "more environments give less noisy gradients",
    "training is more stable and at least as good",
    "200 environments converge faster than 25",
    "the same memory footprint",
    "stopping early by compliance saves work at no loss",
    "GP-UCB finds better orders than naive choice",
)
STRATEGIES = ("gp-ucb", "random", "round-robin")
OUTSIDE = {"gp_ucb": "GP-UCB", "random": "random search", "local_search": "local search", "annealing": "annealing"}
OTHERS = tuple(name for name in OUTSIDE if name != "gp_ucb")
VERDICTS = {"better": "better than", "within the noise": "indistinguishable from", "worse": "worse than"}


def clear_pairs(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pairs of unit types whose order has an effect, allowing for how many pairs there are."""
    return [pair for pair in pairs if abs(pair["effect"]) > SURE * pair["standard_error"]]


def closest_pair(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """The pair that is closest to showing an effect."""
    return max(pairs, key=lambda pair: float(abs(pair["effect"] / pair["standard_error"])))


def speed(rows: dict[str, Any]) -> str:
    """25 environments train about 10 times faster than one."""
    return "yes" if rows[SOME]["transitions_per_s"] / rows[ONE]["transitions_per_s"] >= 8 else "in part"


def noise(kinds: dict[str, Any]) -> str:
    """More environments give less noisy gradients."""
    one, some, many = (kinds[kind]["noise"]["iqm"] for kind in (ONE, SOME, MANY))
    return "yes" if many < some < one else "no"


def stability(rows: dict[str, Any]) -> str:
    """Training is more stable and at least as good: with 25 and with 200 environments, than with one in any way."""
    found = {kind: rows[kind]["equal_transitions"]["mean_return"] for kind in (*ALONE, SOME, MANY)}
    spread = {kind: cell["high"] - cell["low"] for kind, cell in found.items()}
    holds = [
        spread[many] < spread[one] and found[many]["iqm"] >= found[one]["iqm"] for many in (SOME, MANY) for one in ALONE
    ]
    return "yes" if all(holds) else "in part" if any(holds) else "no"


def convergence(rows: dict[str, Any]) -> str:
    """200 environments converge faster than 25: clearly ahead after equal seconds, and followed sooner."""
    some, many = (rows[kind]["equal_seconds"]["mean_return"] for kind in (SOME, MANY))
    times = [rows[kind]["followed"]["seconds"] for kind in (SOME, MANY)]
    sooner = all(times) and times[1]["iqm"] < times[0]["iqm"]
    if many["low"] > some["high"] and sooner:
        return "yes"
    return "no" if many["high"] < some["low"] else "not shown"


def memory(rows: dict[str, Any]) -> str:
    """The memory footprint is the same."""
    ratio = rows[MANY]["peak_memory_mb"] / rows[ONE]["peak_memory_mb"]
    return "yes" if ratio < 1.1 else "nearly" if ratio < 1.5 else "no"


def early_stopping(gains: dict[str, Any]) -> str:
    """Stopping early by compliance saves work at no loss: continuing must not gain more than a small amount."""
    if any(gain["low"] > SMALL for gain in gains.values()):
        return "no"
    return "yes" if all(gain["high"] < SMALL for gain in gains.values()) else "not shown"


def gp_ucb(searches: dict[str, Any]) -> str:
    """GP-UCB finds better orders than naive choice: twice as often as the better of the two others."""
    informed, *naive = (searches[name]["enterprise_before_user_in_best"] for name in STRATEGIES)
    if informed == max(naive) == searches[STRATEGIES[0]]["searches"]:
        return "cannot be judged here: all succeed"
    return "yes" if informed >= 2 * max(naive) else "no"


def compared(difference: float, standard_error: float) -> str:
    """Whether one strategy found better orders than another."""
    return "within the noise" if abs(difference) <= SURE * standard_error else "better" if difference > 0 else "worse"


def outside(found: dict[str, Any]) -> str:
    """How GP-UCB does on one kind of problem beside each other strategy, by the number of evaluations."""
    said: dict[str, list[str]] = {}  # words, and the numbers of evaluations after which they hold
    for budget in sorted(found["gp_ucb"], key=int):
        groups: dict[str, list[str]] = {}
        for name in OTHERS:
            groups.setdefault(_beside(found, name, budget), []).append(OUTSIDE[name])
        parts = [f"{VERDICTS[verdict]} {_listed(groups[verdict])}" for verdict in VERDICTS if verdict in groups]
        said.setdefault(" and ".join(parts), []).append(budget)
    return "; ".join(f"{words} after {_listed(budgets)} evaluations" for words, budgets in said.items())


def always(found: dict[str, Any]) -> str:
    """Which strategies GP-UCB is better or worse than on one kind of problem, whatever the number of evaluations."""
    verdicts = {name: {_beside(found, name, budget) for budget in found["gp_ucb"]} for name in OTHERS}
    parts = []
    for verdict in ("better", "worse"):
        if names := [OUTSIDE[name] for name in OTHERS if verdicts[name] == {verdict}]:
            parts.append(f"{verdict} than {_listed(names)}")
    return " and ".join(parts) or "neither better nor worse than any other"


def _beside(found: dict[str, Any], name: str, budget: str) -> str:
    cell = found[name][budget]
    return compared(-cell["gp_ucb_minus_this"], cell["difference_error"])


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def worthwhile(verdicts: list[str], tables: list[dict[str, Any]]) -> str:
    """Whether GP-UCB is worth it: on the tables of incidents, and where there are thousands of orders."""
    few, default = (all(_apart(table, evaluations) for table in tables) for evaluations in ("10", "20"))
    share = verdicts.count("better") / len(verdicts)
    many = "no gain was found" if not share else "yes in some places" if share <= 0.5 else "yes in most places"
    gain = "yes" if default else "yes after ten evaluations, not clearly after the default twenty"
    incidents = f"{gain} (simulated)" if few else "no gain was found"
    return f"In incidents with five unit types, {incidents}; on networks with thousands of orders, {many}"


def _apart(table: dict[str, Any], evaluations: str) -> bool:
    """Whether the intervals of the mean regrets of GP-UCB and random search do not touch."""
    informed, naive = table["gp-ucb"], table["random"]
    highest = informed["mean_regret"][evaluations] + informed["interval"][evaluations]
    return bool(highest < naive["mean_regret"][evaluations] - naive["interval"][evaluations])


def behind(curves: dict[str, Any]) -> int:
    """The most transitions after which our tuned PPO is clearly behind the tuned one of stable-baselines3."""
    ours, theirs = curves["ours-tuned"], curves["sb3-tuned"]
    found = [int(n) for n in ours if theirs[n]["mean_return"]["low"] > ours[n]["mean_return"]["high"]]
    return max(found, default=0)


def more_often(tuned: dict[str, Any]) -> int:
    """In how many of the trials that both learners made ours returned more."""
    return sum(own > other for own, other in zip(tuned["ours"]["returns"], tuned["sb3"]["returns"], strict=True))


def annealed(tuned: dict[str, Any], learner: str) -> int:
    """Against how many opponents the best trial of a learner anneals its learning rate."""
    return sum(foe[learner]["values"]["anneal"] for foe in tuned.values())


def price(foes: dict[str, Any]) -> str:
    """What a good order costs a trained defender: the larger loss of the two opponents."""
    loss = max(-foe["obedience"]["difference"] for foe in foes.values())
    return "Little" if loss < SMALL else f"Up to {loss:.1f} points even"


def trend(effects: list[float]) -> str:
    """What becomes of an effect as the defenders get better, from the weakest kind to the best."""
    first, last = effects[0], effects[-1]
    return "shrinks" if last < 0.75 * first else "grows" if last > 1.25 * first else "stays about the same"


def alike(kinds: list[list[float]]) -> str:
    """Whether effects are about the same for every kind of defender, in several games."""
    same = all(max(effects) < 1.25 * min(effects) for effects in kinds)
    return "is about the same for every kind of defender" if same else "depends on the kind of defender"


def verdicts(rollout: dict[str, Any], ablation: dict[str, Any]) -> list[str]:
    """The verdicts on the documents' claims, in the order of their table."""
    rows, middle = rollout["rows"], rollout["gradients"][list(rollout["gradients"])[1]]
    stopping = ablation["early_stopping"]["gain_of_going_on"]
    about_batches = [speed(rows), noise(middle), stability(rows), convergence(rows), memory(rows)]
    return [*about_batches, early_stopping(stopping), gp_ucb(ablation["searches"])]
