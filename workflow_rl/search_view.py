"""What a person sees of a search: a live view on a terminal, plain lines otherwise, and the result in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workflow_rl.compliance import Obedience
from workflow_rl.printing import table
from workflow_rl.takeover import opponent_words

FEW = 6  # evaluations below which nothing is said about differences
SHOWN = 20  # rows of the ranking on the screen; the rest is in ranking.csv

Line = Callable[[str], None]


class SearchView:
    """Follows a search. Use as a context manager; call it with each event.

    Args:
        console: where to draw; plain lines go to ``line`` if it is no terminal.
        line: writes one line.
    """

    def __init__(self, console: Console, line: Line) -> None:
        self.console, self.line = console, line
        self.live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None
        self.under_way: dict[int, dict[str, Any]] = {}  # evaluations by index
        self.best: dict[str, Any] | None = None
        self.run = ""
        self.others: dict[str, dict[str, Any]] = {}  # trainings of bases and finalists, by name
        self.total, self.replicates, self.done, self.before = 0, 1, 0, 0
        self.seconds = self.seconds_before = 0.0
        self.trained = False
        self._last = 0.0

    def __enter__(self) -> SearchView:
        if self.live:
            self.live.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        if self.live:
            self.live.__exit__(*details)

    def __call__(self, event: dict[str, Any]) -> None:
        """Takes in an event of :class:`workflow_search.WorkflowSearch`."""
        getattr(self, f"_{event['kind']}")(event)
        self.seconds = event.get("seconds", self.seconds)
        self.trained |= event["kind"] in ("progress", "done", "evaluation")
        if self.live and time.monotonic() - self._last > 0.1:
            self._last = time.monotonic()
            self.live.update(self._screen(), refresh=True)

    def _start(self, event: dict[str, Any]) -> None:
        self.total, self.replicates = event["config"].n_workflows, event["config"].replicates
        self.done = self.before = event["done"]
        self.seconds_before = event["seconds"]
        self.run = event["run"]
        self.line(f"run: {event['run']}" + (f" ({self.done} of {self.total} evaluations done)" if self.done else ""))

    def _tick(self, event: dict[str, Any]) -> None:
        pass

    def _suggestion(self, event: dict[str, Any]) -> None:
        if not event.get("observed"):
            self.under_way[event["index"]] = {"finished": 0} | event | {"progress": {}}

    def _progress(self, event: dict[str, Any]) -> None:
        if event["name"].startswith(("base", "final")):
            self.others[event["name"]] = event
        else:
            index, replicate = map(int, event["name"].split("-"))
            self.under_way[index]["progress"][replicate] = event

    def _done(self, event: dict[str, Any]) -> None:
        if event["name"].startswith(("base", "final")):
            self.others.pop(event["name"], None)
            what = event["workflow"] or "general policy"
            self.line(f"{event['name']}: {what}, return {event['mean_return']:.2f} after {event['updates']} updates")
            return
        index = int(event["name"].split("-")[0])
        if index in self.under_way:
            self.under_way[index]["finished"] += 1

    def _restarted(self, event: dict[str, Any]) -> None:
        self.line(f"a worker died ({event['reason']}); its training {event['name']} goes on in another.")

    def _machines(self, event: dict[str, Any]) -> None:
        self.line(event["text"])

    def _overtaken(self, event: dict[str, Any]) -> None:
        self.line(event["text"])

    def _finalists(self, event: dict[str, Any]) -> None:
        names = [row[0] for row in event["finalists"]]
        self.line(f"{len(names)} finalists are trained to the end: {' | '.join(names)}")

    def _evaluation(self, event: dict[str, Any]) -> None:
        self.under_way.pop(event["index"], None)
        self.done += 1
        self.best = event["best"]
        words = [
            f"{self.done:3} of {self.total}", event["workflow"], f"return {event['mean_return']:.2f}",
            f"compliance {_number(event['compliance'], 3) or 'undefined'}", f"kept {_number(event['kept'], 3) or '-'}",
        ]  # fmt: skip
        if self.best:
            best = self.best
            words.append(f"best so far {best['workflow']} {best['mean']:.2f} ± {best['sigma']:.2f}")
        if not self.live:
            self.line("  ".join(words))

    def _left(self) -> str:
        fresh = self.done - self.before
        if not fresh:
            return "?"
        return f"{(self.seconds - self.seconds_before) / fresh * (self.total - self.done):.0f} s"

    def _screen(self) -> Group:
        grid = Table(title="Under way", title_justify="left", box=None, padding=(0, 2, 0, 0))
        for name in ("#", "workflow", "expected", "trained", "return", "compliance", "why"):
            grid.add_column(name, no_wrap=True)
        for name, event in sorted(self.others.items()):
            why = "to start from" if name.startswith("base") else "to the end"
            figures = (_number(event["return"], 2), _number(event["compliance"], 3))
            grid.add_row("", name, "", f"update {event['update']}", *figures, why)
        for index, event in sorted(self.under_way.items()):
            news = list(event["progress"].values())
            latest = news[-1] if news else {"return": None, "compliance": None}
            expected = "" if event["mean"] is None else f"{event['mean']:.1f} ± {event['sigma']:.1f}"
            grid.add_row(
                str(index + 1), event["workflow"], expected, f"{event['finished']} of {self.replicates}",
                _number(latest["return"], 2), _number(latest["compliance"], 3), event["reason"].split(":")[0],
            )  # fmt: skip
        best = "none yet"
        if self.best:
            best = f"{self.best['workflow']}  {self.best['mean']:.2f} ± {self.best['sigma']:.2f}"
        if not self.trained:
            return Group(grid, Text("The workers are starting; the first time they compile the rules."))
        footer = f"{self.done} of {self.total} evaluations, {self.seconds:.0f} s, about {self._left()} left"
        return Group(grid, Text(f"Best so far: {best}", style="bold"), Text(footer))


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _opponent(result: dict[str, Any]) -> str:
    return opponent_words(result["red_agent"], result.get("takeover", "0"))


def print_search(result: dict[str, Any]) -> None:
    """The result in words: ranking, answer, pairs, files."""
    if result["finalists"]:
        title = f"Finalists against {_opponent(result)}, {result['edition']} edition, trained to the end"
        table(title, ["workflow", *FINALIST_COLUMNS], finalist_rows(result))
    rows = []
    for place, row in enumerate(result["ranking"][:SHOWN], 1):
        mark = "" if row["follows"] else "not followed"
        if row["follows"]:
            mark = "= best" if row["equal_to_best"] else f"{row['behind_best']:.1f} ± {row['behind_error']:.1f} behind"
        figure = f"{row['mean_return']:.2f} ± {row['standard_error']:.2f}"
        kept = [_number(row[name], 3) for name in ("compliance", "kept")]
        rows.append([f"{place:2}  {row['workflow']}", figure, mark, *kept, str(row["visits"]), f"{row['episodes']:,}"])
    columns = ["    workflow", "return", "against the best", "compliance", "kept", "visits", "episodes"]
    stage = ", short trainings" if result["finalists"] else ""
    about = f"against {_opponent(result)}, {result['edition']} edition{stage}"
    title = f"Ranking of {len(result['ranking'])} workflows {about}"
    table(title, columns, rows)
    if len(result["ranking"]) > SHOWN:
        print(f"... and {len(result['ranking']) - SHOWN} more in ranking.csv.")
    print("\n".join(sentences(result)))


FINALIST_COLUMNS = ["return", "half as long", "compliance", "kept", "repairs", "idle fixes", "reverses"]


def finalist_rows(result: dict[str, Any]) -> list[list[str]]:
    """The finalists as rows of a table: the workflow and FINALIST_COLUMNS."""
    return [
        [
            row["workflow"], f"{row['mean_return']:.2f} ± {row['standard_error']:.2f}", f"{row['half_as_long']:.2f}",
            _number(row["compliance"], 3) or "nothing shown", _number(row["kept"], 3), f"{row['repairs']:.1f}",
            f"{row['idle_fixes']:.1f}", row["reverses"] + ("" if row["followed"] else " (NOT followed)"),
        ]
        for row in result["finalists"]
    ]  # fmt: skip


def sentences(result: dict[str, Any]) -> list[str]:
    """The answer to the user, plainly."""
    lines = ["", *_answer(result), *_priorities(result)]
    level = "to an unknown degree" if result["level_error"] is None else f"by {result['level_error']:.1f}"
    lines.append(
        f"(In the ranking ± is for comparisons. The level common to all its workflows is uncertain {level}; "
        f"training noise as learned: {result['training_noise']:.2f}.)"
    )
    if result["defender"]:
        found = result["defender"]
        lines.append(
            f"The best of its {result['replicates']} defenders is in {found['policy']}: return "
            f"{found['mean_return']:.2f} ± {found['standard_error']:.2f}, {Obedience.read(found).words()}, on games of "
            "its own."
        )
    lines.append(f"{result['seconds']:.1f} s, {result['transitions'] / 1e6:.1f} M transitions. All in {result['run']}.")
    if "report" in result:
        lines.append(f"To look at: {result['report']}")
    return lines


def _answer(result: dict[str, Any]) -> list[str]:
    """Which workflow is best, and which are as good."""
    followed = sum(row["follows"] for row in result["ranking"])
    equals = len(result["equal_to_best"])
    if result["best"] is None:
        what = "finalist" if result["finalists"] else "workflow"
        return [f"No {what} is followed as the threshold asks; there is no best one."]
    lines = [f"Best workflow: repair {in_words(result['best'])}."]
    if result["evaluations"] < FEW:
        lines.append(f"{result['evaluations']} evaluations are too few to tell workflows apart.")
    elif equals == followed > 1:
        lines.append(f"But none of the {followed} evaluated workflows can be told apart from it: any of them will do.")
    elif equals > 1:
        lines.append(f"{equals} of the {followed} evaluated and followed workflows cannot be told apart from it.")
    return lines


def _priorities(result: dict[str, Any]) -> list[str]:
    """Which priorities matter, by the finished trainings if there are any."""
    pairs = result["pair_weights"]
    matter, rest = ([pair for pair in pairs if pair["matters"] is wanted] for wanted in (True, False))
    if result["evaluations"] < FEW:
        return [f"Which priorities matter can be said after {FEW} evaluations or more."]
    if not matter:
        return [f"No priority between two unit types clearly matters; the largest: {_effect(rest[0])}."]
    lines = ["What matters:", *(f"  {_effect(pair)}" for pair in matter)]
    return lines + ([f"Nothing clear of the other {len(rest)} pairs; the largest: {_effect(rest[0])}."] if rest else [])


def _effect(pair: dict[str, Any]) -> str:
    digits = 1 if pair["effect"] >= 1 else 2
    figure = f"{pair['effect']:+.{digits}f} ± {pair['standard_error']:.{digits}f}"
    where = "" if pair["half_as_long"] is None else f" (trained half as long {pair['half_as_long']:+.{digits}f})"
    return f"{pair['first']} before {pair['second']}: {figure} return{where}"


def in_words(workflow: str) -> str:
    """A workflow as a sentence.

    >>> in_words("enterprise,user,op_server")
    'enterprise first, then user, then op_server'
    """
    first, *rest = workflow.split(",")
    return f"{first} first" + "".join(f", then {name}" for name in rest)
