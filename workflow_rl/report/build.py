"""What ``report`` does: a page for a run, one that compares several, and figures for papers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_rl.config import SearchConfig, TrainConfig, chain, config_to_json, opponent_words
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import AnyNetwork, chosen_network, network_option
from workflow_rl.errors import UserError
from workflow_rl.report.answer import FINALIST_COLUMNS, OBEDIENCE_COLUMNS, finalist_rows, obedience_cells
from workflow_rl.report.compare import comparison
from workflow_rl.report.figures import figures, write_figures
from workflow_rl.report.lesson import lesson
from workflow_rl.report.page.priorities import order_picture
from workflow_rl.report.page.render import intervals, render, with_error
from workflow_rl.report.run_data import NO_FINDINGS, report_data
from workflow_rl.report.run_types import RunData
from workflow_rl.report.story import SEED, Episodes, Story
from workflow_rl.runs import SEARCH, is_number, read_about, write_atomically
from workflow_rl.search.verdict import Source, Verdict, verdict
from workflow_rl.training.compliance import NOTHING, Obedience
from workflow_rl.training.events import WorkflowResult

if TYPE_CHECKING:
    from workflow_rl.defenders.own import AnyPolicy, Contender

EPISODES = 500  # fresh games per red agent of the evaluation table
MOST_TOLD = 4  # red agents of which episodes can be replayed, first those of the training
DEFENDER = "defender"  # kind of a page without a run
MARK = b'content="workflow_rl report"'


@dataclass(frozen=True)
class Games:
    """Fresh games of a run's policy."""

    n_episodes: int = 0  # of the evaluation, per red agent
    evaluation: Mapping[str, Any] | None = None
    stories: Sequence[Story] = ()
    problem: str = ""  # why the policy cannot play


def write_report(
    paths: list[Path], network: Network | None = None, target: Path | None = None, figures: Path | None = None
) -> dict[str, Any]:
    """Writes the page of a run or a policy file, or one that compares several runs, and figures into a given folder.

    The page is report.html in the run's directory, or comparison.html beside the first run; that of a policy file is
    beside it. Each run has its own network; one of another than ``network``, if that is given, is refused.
    """
    if len(paths) > 1:
        if figures is not None:
            raise UserError("figures are made of one run at a time.")
        target = target or paths[0].absolute().parent / "comparison.html"
        _check_target(target)
        every = [report_data(path, chosen_network(path, network)) for path in paths]
        found = {data.run: answer(data).known[0] for data in every}
        return {"report": _write(target, comparison(paths, every, found)), "runs": [str(path) for path in paths]}
    (path,) = paths
    if path.is_file() and path.suffix == ".safetensors":
        if figures is not None:
            raise UserError("figures are made of a run; a policy file has none.")
        return _report_file(path, chosen_network(path, network), target or path.with_suffix(".html"))
    read_about(path)  # a run at all?
    target = target or path / "report.html"
    _check_target(target)
    data = report_data(path, chosen_network(path, network))
    text = run_page(data, fresh_games(path, data), answer(data))
    result: dict[str, Any] = {"report": _write(target, text), "run": str(path), "state": data.state}
    if figures is not None:
        result |= {"figures": str(figures), "files": write_figures(data, figures)}
    return result


def _check_target(target: Path) -> None:
    """Refuses to write over anything but a report."""
    if target.is_dir():
        raise UserError(f"{target} is a directory; name a file.")
    if target.exists() and MARK not in target.read_bytes()[:4000]:
        raise UserError(f"{target} exists and is no report; it is left as it is.")


def _write(target: Path, text: str) -> str:
    try:
        write_atomically(target, text.encode())
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror}).") from None
    return str(target)


def report_defender(
    policy: AnyPolicy, path: str | Path = "report.html", edition: str | None = None, workflow: str = "",
    takeover: str | None = None, batch: bool = False, network: AnyNetwork = CAGE2, episodes: int = EPISODES,
) -> Path:  # fmt: skip
    """Writes a page about a defender, its returns and replays of its episodes, and returns the page's path.

    Args:
        policy: a function from an observation to an action, or a policy of ours; see ``workflow_rl.challenge``.
        path: the file to write.
        edition: the rules; default: the policy's own, else the network's first.
        workflow: the order by which fixes are judged; default: the policy's own, else none.
        takeover: steps that red plays before blue; default: the policy's own, else 0.
        batch: whether the function maps many observations to as many actions.
        network: the network to defend.
        episodes: games per red agent of the table of returns.
    """
    from workflow_rl.defenders.own import contender  # late: it imports torch

    target, defended = Path(path), as_network(network)
    _check_target(target)
    own = contender(policy, defended, batch, edition, workflow, takeover)
    return Path(_write(target, _defender_page(own, defended, episodes)))


def _report_file(path: Path, network: Network, target: Path) -> dict[str, Any]:
    """Writes the page of a policy file."""
    from workflow_rl.defenders.own import contender
    from workflow_rl.training.policy_file import load_policy

    _check_target(target)
    own = replace(contender(load_policy(path, network), network), name=path.name)
    return {"report": _write(target, _defender_page(own, network, EPISODES)), "policy": str(path)}


def _defender_page(own: Contender, network: Network, episodes: int) -> str:
    config = TrainConfig(red_agent=",".join(own.red_agents), edition=own.edition, takeover=own.takeover)
    data = RunData(
        **vars(NO_FINDINGS), run=own.name, kind=DEFENDER, state="finished", config=config, versions={}, commit="",
        problem="", trainings=[], network=network,
    )  # fmt: skip
    games = _play(own, network, episodes)
    assert games.evaluation is not None
    total = with_error(games.evaluation["total"], games.evaluation["total_standard_error"])
    known = f"Its mean returns add up to {total} in {episodes} games per red agent."
    return run_page(data, games, Verdict((known,), (), (), (), 0, ""))


def fresh_games(path: Path, data: RunData) -> Games:
    """Games of the run's policy: an evaluation against each red agent, and episodes to replay."""
    from workflow_rl.defenders.own import contender
    from workflow_rl.training.policy_file import load_policy

    policy, network = best_policy(path, data), data.network
    try:
        return _play(contender(load_policy(policy, network), network), network) if policy else Games()
    except UserError as error:
        return Games(problem=f"The policy cannot be used: {error}")


def _play(own: Contender, network: Network, n_episodes: int = EPISODES) -> Games:
    table, stories = own.returns(network, n_episodes, SEED), list[Story]()
    for red in () if own.any_order else own.red_agents[:MOST_TOLD]:
        stories += Episodes(own.blue, red, network, own.edition, own.workflow, takeover=own.takeover).choose()
    return Games(n_episodes, table, stories)


def run_page(data: RunData, games: Games, answer: Verdict) -> str:
    """The page of one run; ``answer`` is what the run found."""
    what = {SEARCH: "Search for the best workflow", DEFENDER: data.run}.get(data.kind, "Training")
    opponent = opponent_words(data.train.red_agent, data.train.takeover)
    is_known = answer.priorities or answer.equal_orders
    pairs, returns = data.pair_weights, [row.mean_return for row in data.ranking]
    return render(
        "run.html",
        data.network,
        figures(data),
        games.stories,
        [lesson(story, data.network) for story in games.stories],
        title=f"{what} against {opponent}, {data.train.edition} edition{data.where}",
        data=data,
        games=games,
        answer=answer,
        order=order_picture(data.unit_types, answer.priorities) if is_known else None,
        ranking_scale=intervals(returns, [data.quantile * row.standard_error for row in data.ranking]),
        pair_scale=intervals([pair.effect for pair in pairs], [pair.interval for pair in pairs], with_zero=True),
        finalists=finalist_rows(data.finalists),
        finalist_columns=FINALIST_COLUMNS,
        evaluation=_evaluation(games.evaluation) if games.evaluation else [],
        settings=_settings(data),
    )


def _settings(data: RunData) -> dict[str, Any]:
    """All settings of a search and of its trainings, or of a training."""
    config = config_to_json(data.config)
    about = {"network": f"{data.network.name} ({data.network.digest})"}
    return about | {name: value for name, value in config.items() if name != "train"} | config_to_json(data.train)


def _evaluation(found: Mapping[str, Any]) -> list[list[str]]:
    """The evaluation as a table, headings first: a row per red agent, a column per length of the games."""
    cells, obedience = found["cells"], found.get("obedience", {})
    lengths = next(iter(cells.values()))
    rows = [["red agent", *(f"{length} steps" for length in lengths), *(OBEDIENCE_COLUMNS if obedience else [])]]
    for red, own in cells.items():
        returns = [with_error(cell["mean"], cell["standard_error"]) for cell in own.values()]
        rows.append([red, *returns, *(obedience_cells(obedience[red]) if obedience else [])])
    return rows


def best_policy(path: Path, data: RunData) -> Path | None:
    """The run's policy; of a search that is not finished the best training of the best workflow so far."""
    if (path / "policy.safetensors").exists():
        return path / "policy.safetensors"
    if data.kind != SEARCH or not data.ranking:
        return None
    best, kind = (data.best, "finals") if data.finalists else (data.ranking[0].workflow, "trainings")
    own = [one for one in (data.finals if data.finalists else data.trainings) if one.workflow == best]
    places = [(one.result, path / kind / one.name.removeprefix("final ")) for one in own]
    files = [(result.mean_return, place / "policy.safetensors") for result, place in places if result]
    there = [pair for pair in files if pair[1].exists()]
    return max(there)[1] if there else None


def answer(data: RunData) -> Verdict:
    """What the run found."""
    if not isinstance(data.config, SearchConfig):
        return Verdict((_answer_of_training(data),), (), (), (), 0, "")
    if not data.ranking and data.problem:
        return Verdict(("No evaluation of this run can be read.",), (), (), (), 0, "")
    source = Source(data.run, data.config, network_option(data.network, data.run), data.state == "finished")
    found = verdict(data, len(data.evaluations), source)
    here = f"workflow-rl report {shlex.quote(data.run)}"
    return replace(found, next_steps=tuple(step for step in found.next_steps if step.command != here))


def _answer_of_training(data: RunData) -> str:
    result = data.trainings[0].result
    if data.state == "damaged":
        return "Its result cannot be read."
    if result is None:
        return f"{len(data.trainings[0].updates)} updates have been made; there is no result yet."
    figure = f"return {result.mean_return:.2f} ± {result.standard_error:.2f} on fresh episodes"
    if not data.trainings[0].judged:
        return f"A general defender: {figure}, after {result.updates} updates."
    conduct = "follows" if result.followed else "does NOT follow"
    order = "every workflow" if data.train.universal else f"the order {chain(result.workflow)}"
    worst = f"; of the worst one {_worst(result)}" if data.train.universal else ""
    return f"The defender {conduct} {order}: {Obedience.read(vars(result)).words()}{worst}; {figure}."


def _worst(result: WorkflowResult) -> str:
    """By what a universal policy is judged, in words."""
    found = {"compliance": result.worst_compliance, "kept": result.worst_kept}
    return ", ".join(f"{name} {value:.3f}" for name, value in found.items() if is_number(value)) or NOTHING
