"""How the command line shows a search: a live view on a terminal, plain lines otherwise, and the result in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rich.console import Console
from rich.live import Live
from rich.text import Text

from workflow_rl.cli.screen import Rows, Screen
from workflow_rl.config import chain, opponent_words
from workflow_rl.report.answer import FINALIST_COLUMNS, against_best, decimals, finalist_rows
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
from workflow_rl.search.findings import RankingRow, SearchResult
from workflow_rl.search.verdict import Verdict

SHOWN = 20  # rows of the ranking on the screen; the rest is in ranking.csv
ALIKE = 3  # orders that are equal, from which on they share a line
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
            self.live.update(Text(self._screen()), refresh=True)

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

    def _screen(self) -> str:
        """What the live view shows, fitted to the terminal."""
        rows = []
        for name, news in sorted(self.others.items()):
            why = "to start from" if name.startswith("base") else "to the end"
            figures = (decimals(news.mean_return, 2), decimals(news.compliance, 3))
            rows.append(["", name, "", f"update {news.update}", *figures, why])
        for index, line in sorted(self.in_flight.items()):
            guess, latest = line.suggested.suggestion, [*line.latest.values()][-1:]
            expected = "" if guess.mean is None else f"{guess.mean:.1f} ± {guess.sigma:.1f}"
            figures = (decimals(latest[0].mean_return, 2), decimals(latest[0].compliance, 3)) if latest else ("", "")
            about = [str(index + 1), ",".join(guess.order), expected, f"{line.finished} of {self.replicates}"]
            rows.append([*about, *figures, guess.reason.split(":")[0]])
        columns = ["#", "workflow", "expected", "trained", "return", "compliance", "why"]
        table = Rows(columns, rows, ("why", "expected"), ("workflow", "why"))
        best = f"{chain(self.best.workflow)}  {self.best.mean:.2f} ± {self.best.sigma:.2f}" if self.best else "none yet"
        footer = [f"Best so far: {best}"]
        footer.append(f"{self.done} of {self.total} evaluations, {self.seconds:.0f} s, about {self._left()} left")
        if not self.trained:
            footer = ["The workers are starting; the first time they compile the rules."]
        return Screen(console=self.console).drawn("Under way", table, footer)


def print_search(result: SearchResult, found: Verdict, screen: Screen) -> None:
    """The result for people: the answer, how sure it is, what to do next, and the tables behind it."""
    screen.heading(found.known[0])
    for sentence in found.known[1:]:
        screen.text(sentence)
    if found.sure:
        screen.heading("How sure")
    for sentence in found.sure:
        screen.text(sentence)
    screen.heading("What next")
    for step in found.next_steps:
        screen.text(f"{step.what}:")
        screen.command(step.command)
    about = f"against {opponent_words(result.red_agent, result.takeover)}, {result.edition} edition"
    if result.finalists:
        columns, rows = ["workflow", *FINALIST_COLUMNS], finalist_rows(result.finalists)
        spare = ("idle fixes", "repairs", "kept", "compliance", "half as long")
        title = f"Finalists {about}, trained to the end"
        screen.table(title, Rows(columns, rows, spare), "finalists.csv")
    stage = ", short trainings" if result.finalists else ""
    screen.table(
        f"Ranking of {len(result.ranking)} orders {about}{stage}", _ranking(result.ranking, screen.wide), "ranking.csv"
    )
    if len(result.ranking) > SHOWN and not screen.wide:
        screen.text("All orders are in ranking.csv.")
    screen.text("")
    screen.text(f"{result.seconds:.0f} s, {result.transitions / 1e6:.0f} million steps. All files are in {result.run}.")


def _ranking(ranking: Sequence[RankingRow], wide: bool) -> Rows:
    """The ranking; orders that are equal to the best, and those that are not followed, share a line."""
    rows, place = list[list[str]](), 1
    for words, group in groupby(ranking, lambda row: against_best(row, 1)):
        same = list(group)
        alike = len(same) >= ALIKE and not wide
        for number, row in enumerate(same[:1] if alike else same, place):
            figures = [f"{row.mean_return:.2f} ± {row.standard_error:.2f}", words, decimals(row.compliance, 3)]
            figures += [decimals(row.kept, 3), str(row.visits), f"{row.episodes:,}"]
            rows.append([f"{number:2}", row.workflow, *figures])
        if alike:
            rows.append(["", f"and {len(same) - 1} more", f"to {same[-1].mean_return:.2f}", words, *[""] * 4])
        place += len(same)
    columns = ["#", "workflow", "return", "behind", "compliance", "kept", "visits", "episodes"]
    return Rows(columns, rows if wide else rows[:SHOWN], ("episodes", "visits", "kept", "compliance", "#"))
