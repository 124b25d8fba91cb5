"""What a person sees of a search: a live view on a terminal, plain lines otherwise, and the result in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workflow_rl.cli.common import table
from workflow_rl.report.answer import FINALIST_COLUMNS, _number, _opponent, finalist_rows, sentences

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
