"""How the command line shows a search: a live view on a terminal, plain lines otherwise, and the result in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workflow_rl.cli.common import table
from workflow_rl.config import opponent_words
from workflow_rl.report.answer import FINALIST_COLUMNS, against_best, decimals, finalist_rows, sentences
from workflow_rl.search.executor import (
    BestSoFar,
    FinalistsChosen,
    Machines,
    Observed,
    Overtaken,
    Progress,
    Restarted,
    SearchEvent,
    Started,
    Suggested,
    Trained,
    What,
)
from workflow_rl.search.findings import SearchResult

SHOWN = 20  # rows of the ranking on the screen; the rest is in ranking.csv
OTHERS = ("base", "final")  # begin the names of trainings that belong to no evaluation

Line = Callable[[str], None]


@dataclass
class _Line:
    """An evaluation in flight."""

    suggested: Suggested
    finished: int
    latest: dict[int, Progress] = field(default_factory=dict)  # by replicate


class SearchView:
    """Follows a search. Use as a context manager; call it with each event.

    Args:
        console: where to draw; plain lines go to ``line`` if it is no terminal.
        line: writes one line.
    """

    def __init__(self, console: Console, line: Line) -> None:
        self.console, self.line = console, line
        self.live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None
        self.in_flight: dict[int, _Line] = {}  # evaluations by index
        self.best: BestSoFar | None = None
        self.run = ""
        self.others: dict[str, Progress] = {}  # trainings of bases and finalists, by name
        self.total, self.replicates, self.done, self.before = 0, 1, 0, 0
        self.seconds = self.seconds_before = 0.0
        self.trained = False
        self._last = 0.0

    def __enter__(self) -> SearchView:
        if self.live:
            self.live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        if self.live:
            self.live.__exit__(None, None, None)

    def __call__(self, event: SearchEvent) -> None:
        """Shows an event of a search."""
        self.seconds = event.seconds
        self._show(event.what)
        self.trained |= isinstance(event.what, Progress | Trained | Observed)
        if self.live and time.monotonic() - self._last > 0.1:
            self._last = time.monotonic()
            self.live.update(self._screen(), refresh=True)

    def _show(self, what: What | None) -> None:
        match what:
            case Started(run, config, done):
                self.total, self.replicates, self.run = config.n_workflows, config.replicates, run
                self.done = self.before = done
                self.seconds_before = self.seconds
                self.line(f"run: {run}" + (f" ({done} of {self.total} evaluations done)" if done else ""))
            case Suggested(index, _, finished):
                self.in_flight[index] = _Line(what, finished)
            case Progress(name) if name.startswith(OTHERS):
                self.others[name] = what
            case Progress(name):
                evaluation, replicate = map(int, name.split("-"))
                self.in_flight[evaluation].latest[replicate] = what
            case Trained(name, result) if name.startswith(OTHERS):
                self.others.pop(name, None)
                workflow = result.workflow or "general policy"
                self.line(f"{name}: {workflow}, return {result.mean_return:.2f} after {result.updates} updates")
            case Trained(name):
                evaluation = int(name.split("-")[0])
                if evaluation in self.in_flight:
                    self.in_flight[evaluation].finished += 1
            case Restarted(name, reason):
                self.line(f"a worker died ({reason}); its training {name} continues in another.")
            case Machines() | Overtaken():
                self.line(what.text)
            case FinalistsChosen(names):
                self.line(f"{len(names)} finalists are trained to the end: {' | '.join(names)}")
            case Observed():
                self._observed(what)

    def _observed(self, event: Observed) -> None:
        row, self.best = event.row, event.best
        self.in_flight.pop(row.index, None)
        self.done += 1
        words = [
            f"{self.done:3} of {self.total}", row.workflow, f"return {row.mean_return:.2f}",
            f"compliance {decimals(row.compliance, 3) or 'undefined'}", f"kept {decimals(row.kept, 3) or '-'}",
        ]  # fmt: skip
        if event.best:
            words.append(f"best so far {event.best.workflow} {event.best.mean:.2f} ± {event.best.sigma:.2f}")
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
        for name, news in sorted(self.others.items()):
            why = "to start from" if name.startswith("base") else "to the end"
            figures = (decimals(news.mean_return, 2), decimals(news.compliance, 3))
            grid.add_row("", name, "", f"update {news.update}", *figures, why)
        for index, line in sorted(self.in_flight.items()):
            guess, latest = line.suggested.suggestion, [*line.latest.values()][-1:]
            expected = "" if guess.mean is None else f"{guess.mean:.1f} ± {guess.sigma:.1f}"
            figures = (decimals(latest[0].mean_return, 2), decimals(latest[0].compliance, 3)) if latest else ("", "")
            grid.add_row(
                str(index + 1), ",".join(guess.order), expected, f"{line.finished} of {self.replicates}", *figures,
                guess.reason.split(":")[0],
            )  # fmt: skip
        best = "none yet"
        if self.best:
            best = f"{self.best.workflow}  {self.best.mean:.2f} ± {self.best.sigma:.2f}"
        if not self.trained:
            return Group(grid, Text("The workers are starting; the first time they compile the rules."))
        footer = f"{self.done} of {self.total} evaluations, {self.seconds:.0f} s, about {self._left()} left"
        return Group(grid, Text(f"Best so far: {best}", style="bold"), Text(footer))


def print_search(result: SearchResult) -> None:
    """The result in words: ranking, answer, pairs, files."""
    about = f"against {opponent_words(result.red_agent, result.takeover)}, {result.edition} edition"
    if result.finalists:
        table(
            f"Finalists {about}, trained to the end", ["workflow", *FINALIST_COLUMNS], finalist_rows(result.finalists)
        )
    rows = [
        [
            f"{place:2}  {row.workflow}", f"{row.mean_return:.2f} ± {row.standard_error:.2f}", against_best(row, 1),
            decimals(row.compliance, 3), decimals(row.kept, 3), str(row.visits), f"{row.episodes:,}",
        ]
        for place, row in enumerate(result.ranking[:SHOWN], 1)
    ]  # fmt: skip
    columns = ["    workflow", "return", "against the best", "compliance", "kept", "visits", "episodes"]
    stage = ", short trainings" if result.finalists else ""
    table(f"Ranking of {len(result.ranking)} workflows {about}{stage}", columns, rows)
    if len(result.ranking) > SHOWN:
        print(f"... and {len(result.ranking) - SHOWN} more in ranking.csv.")
    print("\n".join(sentences(result)))
