"""Sections of the page: the challenge's own protocol, and why old scores could not be repeated."""

from __future__ import annotations

from typing import Any

from benchmarks.page.parts import EDITIONS, FOES, LENGTHS, Files, below, number, table

WINNER = {  # CardiffUni, as published with the challenge's final scores
    "bline": {"30": -3.47, "50": -6.41, "100": -13.76},
    "meander": {"30": -5.64, "50": -8.69, "100": -16.60},
    "total": -54.57,
}
DEFENDERS = {"champion": "champion", "expert": "expert", "original": "preset `original`"}


def challenge(files: Files) -> str:
    """The official table in both editions."""
    found = files.figures("champion_table")
    parts = [
        "## The challenge's protocol\n\nB_line, Meander and Sleep, episodes of 30, 50 and 100 steps; the total is the sum of "
        f"the nine cells. {found['games']:,} games per opponent, by a seed that no choice was made by; ± is the standard "
        "error. No order of repair is asked for, nothing tells a defender which opponent it meets or how long the episode "
        "will last, and it has no clock.\n"
    ]
    for edition in EDITIONS[::-1]:
        parts.append(f"### {edition.capitalize()} edition\n\n{_edition_words(edition)}\n\n{_edition(files, edition)}")
    parts.append(_which(files))
    parts.append(
        "*Command:* `python -m benchmarks.champion table`, and the others at the end of this page.\n*Not shown:* games on "
        "genuine CybORG of the leaderboard edition, which is on no package index: `workflow-rl export champion FOLDER "
        "--edition leaderboard` writes the agent for its own evaluation script, and `workflow-rl evaluate champion "
        "--edition leaderboard --backend cyborg --cyborg-path CHECKOUT` plays it from a checkout. One training per edition "
        "ships, so that nothing was selected among seeds.\n"
    )
    return "\n".join(parts)


def _edition_words(edition: str) -> str:
    if edition == "leaderboard":
        return "The rules behind the official final scores."
    return (
        "Today's repository and csle-cyborg. No published score is valid here, for all were reached by the rules of the "
        "other edition."
    )


def _edition(files: Files, edition: str) -> str:
    tables = files.figures("champion_table")["editions"][edition]
    rows = []
    for name, words in DEFENDERS.items():
        cells = [
            _cell(tables[name]["cells"][red][length], files.limit(edition, red, length))
            for red in FOES
            for length in LENGTHS
        ]
        sleep = sum(tables[name]["cells"]["sleep"][length]["mean"] for length in LENGTHS)
        total = f"**{number(tables[name]['total'])} ± {tables[name]['total_standard_error']:.2f}**"
        rows.append([words, *cells, number(sleep), f"{total} {below(tables[name]['total'], _total(files, edition))}"])
    if edition == "leaderboard":
        scores: dict[str, Any] = WINNER
        cells = [
            f"{number(scores[red][n])} {below(scores[red][n], files.limit(edition, red, n))}"
            for red in FOES
            for n in LENGTHS
        ]
        total = f"{number(scores['total'])} {below(scores['total'], _total(files, edition))}"
        rows.append(["official winner (CardiffUni), as published", *cells, "0", total])
    limits = [number(files.limit(edition, red, length)) for red in FOES for length in LENGTHS]
    rows.append(["limit (Meander: estimate)", *limits, "0", number(_total(files, edition))])
    columns = ["", "B_line 30", "50", "100", "Meander 30", "50", "100", "Sleep, all", "total"]
    return table(columns, rows)


def _cell(cell: dict[str, Any], limit: float) -> str:
    return f"{number(cell['mean'])} ± {cell['standard_error']:.2f} {below(cell['mean'], limit)}"


def _total(files: Files, edition: str) -> float:
    return sum(files.limit(edition, red, length) for red in FOES for length in LENGTHS)


def _which(files: Files) -> str:
    cyborg, repeat = files.figures("champion_cyborg"), files.figures("champion_repeat")
    trained, clock = files.figures("champion_training"), files.figures("champion_clock")["editions"]
    tables = files.figures("champion_table")["editions"]
    same = all(repeat[edition]["same_weights"] for edition in EDITIONS)
    steps = [
        ("the expert", [tables[e]["expert"]["total"] for e in EDITIONS[::-1]]),
        ("with the exceptions that paired games found", [repeat[e]["teacher"]["total"] for e in EDITIONS[::-1]]),
        ("the network that imitates it, the champion", [tables[e]["champion"]["total"] for e in EDITIONS[::-1]]),
    ]
    ladder = "; ".join(f"{words} {number(left)} and {number(right)}" for words, (left, right) in steps)
    on_cyborg = "; ".join(
        f"{name} {number(one['total'])} ± {one['total_standard_error']:.2f}, the largest of nine differences to the engine "
        f"{one['largest_difference']:.2f} standard errors"
        for name, one in cyborg["policies"].items()
    )
    return (
        f"**On genuine CybORG** (csle-cyborg, current edition, {cyborg['games']} games per opponent): {on_cyborg}.\n\n"
        "**Which one ships.** `champion` is the learned policy: a network that imitates the expert after paired games have "
        f"improved it ([how](champion.md)). Trained again from its seed it has "
        f"{'the same weights, bit by bit' if same else 'other weights'}. Training took "
        f"{trained['leaderboard']['seconds']:,.0f} s (leaderboard) and {trained['current']['seconds']:,.0f} s (current) with "
        f"other work beside, and {repeat['leaderboard']['seconds']:,.0f} and {repeat['current']['seconds']:,.0f} s when it "
        "was repeated with CybORG and tests beside. `original` is what the original `train.py` is, with the documents' "
        "numbers: one general policy, 100,000 episodes of PPO from scratch, here against both attackers in turn, with the "
        "memory and one decoy action per host, playing its drawn actions.\n\n"
        f"**From the rules upwards.** Totals, leaderboard and current: {ladder}.\n\n"
        "**What the length is worth.** An expert that knew the length of the episode, and stopped to restore what does not "
        f"pay any more, would save {clock['leaderboard']['total']:.2f} (leaderboard) and {clock['current']['total']:.2f} "
        "(current) of the total. Ours may not know it, and does not count steps.\n"
    )


def repeating(files: Files) -> str:
    """Things that papers and entries do not mention."""
    policies = files.figures("champion_editions")["policies"]
    rows = [
        [f"{name} made for {made}"]
        + [number(policies[name][rules][f"made for {made}"]["total"]) for rules in EDITIONS[::-1]]
        for name in policies
        for made in EDITIONS[::-1]
    ]
    wrappers = [
        [
            f"{name}, {edition}",
            number(one["challenge_wrapper"]),
            number(one["winners_wrapper"]),
            f"{one['difference']:+.2f} ± {one['standard_error']:.2f}",
        ]
        for edition, found in files.figures("champion_wrapper")["editions"].items()
        for name, one in found.items()
        if name != "universal"  # of an earlier version, whose policies are gone
    ]
    return (
        "## Why scores could not be repeated until now\n\nThings that papers and entries do not mention, each with what it "
        "does to a score here.\n\n**Two editions call themselves 2.1.** In the leaderboard edition red never forgets a port "
        "that it saw, and a Restore breaks the main exploit of User3 and User4 for good; in the current one neither is so. "
        "A defender by the rules it was not made for:\n\n"
        + table(["total", "leaderboard rules", "current rules"], rows)
        + "\nSo a defender that leans on the leaderboard edition's rules loses everything that it gained, and more; one that "
        "does not lean on them plays the same games in both. Here a policy of another edition is refused.\n\n**Two "
        "wrappers.** The winning entry brings its own copy of the challenge's wrapper, in which a decoy placed in the same "
        "step hides nothing: what the challenge shows as no activity is a scan there. The same defenders in the same games "
        "under both, total without Sleep:\n\n"
        + table(["", "challenge's wrapper", "winner's wrapper", "difference"], wrappers)
        + "\nSo the wrapper matters little to defenders that were not made for it: they seldom place a decoy on the host "
        "that is being scanned. It is needed to repeat the winning entry, whose network saw nothing else in training.\n\n"
        "**Seeds.** CybORG draws from Python's global generator, so that a score depends on whatever else a program draws. "
        "Here every game has its own seed, and every table its own games.\n\n*Commands:* `python -m benchmarks.champion "
        "editions`, `wrapper`, `clock`, `repeat`, `cyborg`.\n"
    )
