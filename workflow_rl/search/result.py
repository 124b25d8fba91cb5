"""The result of a search: its findings and its best defender, as result.json and as tables in the run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from workflow_rl.config import SearchConfig, check_jobs
from workflow_rl.engine.network import Network
from workflow_rl.engine.networks.copies import network_of, network_option
from workflow_rl.envs.cyborg_sim import Backend
from workflow_rl.envs.game import Games
from workflow_rl.runs import Json, Run, read_search_config, write_atomically
from workflow_rl.search.finalists import LENGTHS, Finished, final_path, findings
from workflow_rl.search.findings import Defender, EvaluationRow, SearchResult
from workflow_rl.search.outcome import PREDICTED, WorkflowEvaluation, training_path
from workflow_rl.search.ranking import Posterior
from workflow_rl.search.verdict import Source, Verdict, verdict
from workflow_rl.training.collectors import Stream
from workflow_rl.training.evaluation import FreshGames, evaluate_workflow_policy
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.train_task import base_config

SEED_OF_DEFENDER = 43  # purpose: fresh games, for the policy was chosen by its return


def search_result(
    run: Run[SearchConfig],
    posterior: Posterior,
    evaluations: Sequence[WorkflowEvaluation],
    finished: Sequence[Finished],
    bases: Sequence[WorkflowResult],
    seconds: float,
    network: Network,
) -> SearchResult:
    """Computes the result and writes all files; result.json last.

    Args:
        run: the search's directory.
        posterior: the process after all evaluations.
        evaluations: all evaluations.
        finished: the finalists, if there was a second stage.
        bases: results of the general policies from which trainings start.
        seconds: how long the search took.
        network: the hosts and subnets that were defended.
    """
    config, train = run.config, run.config.train
    found, winner = findings(posterior, evaluations, finished, train.compliance_threshold)
    results = [result for one in evaluations for result in one.trained]
    results += [result for one in finished for trained in one.results.values() for result in trained]
    updates, base_updates = (sum(result.updates for result in each) for each in (results, bases))
    trainings = _trainings(run.path, evaluations, winner, finished)
    result = SearchResult(
        **vars(found), red_agent=train.red_agent, edition=train.edition, takeover=train.takeover,
        backend=train.backend, seed=train.seed, evaluations=len(evaluations), replicates=config.replicates,
        seconds=seconds, transitions=updates * train.batch + base_updates * base_config(train).batch,
        run=str(run.path), defender=_defender(run, found.best, trainings, network) if found.best else None,
    )  # fmt: skip
    run.write_table("ranking.csv", [asdict(row) for row in result.ranking])
    run.write_table("suggestions.csv", [_suggestion(one.row()) for one in evaluations])
    run.write_table("finalists.csv", [asdict(row) for row in result.finalists])
    run.write_result(with_verdict(result))
    return result


def verdict_of(result: SearchResult) -> Verdict:
    """The verdict of a finished search, whose run is still in its directory."""
    path = Path(result.run)
    network = network_of(path)
    option = network_option(network, result.run)
    source = Source(result.run, read_search_config(path), option, len(network.hosts))
    return verdict(result, result.evaluations, source)


def with_verdict(result: SearchResult) -> Json:
    """The result as in result.json."""
    return result.to_json() | {"verdict": asdict(verdict_of(result))}


def _suggestion(row: EvaluationRow) -> dict[str, object]:
    """A row of suggestions.csv."""
    suggested = ("index", "workflow", "visit", *PREDICTED, "reason")
    found = ("mean_return", "standard_error", "compliance", "kept", "repairs")
    return {name: getattr(row, name) for name in suggested} | {f"found_{name}": getattr(row, name) for name in found}


def _trainings(
    run: Path, evaluations: Sequence[WorkflowEvaluation], winner: Finished | None, finished: Sequence[Finished]
) -> list[tuple[WorkflowResult, Path]]:
    """The trainings among which the defender is chosen: the longest of the best finalist, else all evaluations'."""
    if winner is None:
        return [(e.results[r], training_path(run, e.index, r)) for e in evaluations for r in sorted(e.results)]
    number, length = finished.index(winner), LENGTHS[-1]
    return [(result, final_path(run, number, r, length)) for r, result in enumerate(winner.results[length])]


def _defender(
    run: Run[SearchConfig], best: str, trainings: list[tuple[WorkflowResult, Path]], network: Network
) -> Defender:
    """Copies the best policy of the best workflow, preferably one that follows it, and evaluates it on fresh games."""
    own = [(result, path) for result, path in trainings if result.workflow == best]
    followed = [(result, path) for result, path in own if result.followed]
    path = max(followed or own, key=lambda pair: (pair[0].mean_return, str(pair[1])))[1]
    target, train = run.path / "policy.safetensors", run.config.train
    games = Games.of(train, network)
    fresh = FreshGames(games, train.n_eval_episodes, Stream(train.seed, (SEED_OF_DEFENDER,)))
    cell = evaluate_workflow_policy(path, fresh, Backend(train.backend, train.cyborg_path, check_jobs(None)))
    write_atomically(target, (path / "policy.safetensors").read_bytes())
    return Defender(str(target), str(path), cell.mean_return, cell.standard_error, **asdict(cell.obedience))
