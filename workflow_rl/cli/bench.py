"""The commands ``workflow-rl bench ...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workflow_rl.cli.options import Jobs, Json
from workflow_rl.cli.printing import (
    print_bench_cyborg,
    print_bench_env,
    print_bench_search,
    print_bench_train,
    say,
    show_result,
)

bench_app = typer.Typer(help="Measured figures, each beside its reference in the same run.", no_args_is_help=True)


@bench_app.command("env")
def bench_env_command(
    seconds: Annotated[float, typer.Option(help="Seconds to measure each figure.")] = 1.0,
    red_agent: Annotated[str, typer.Option(help="Opponents; the last gives the headline figures.")] = "bline,meander",
    cyborg: Annotated[bool, typer.Option(help="Measure genuine CybORG too, if it is installed.")] = True,
    as_json: Json = False,
) -> None:
    """Steps per second of the environments at 1 to 4096 environments, of the engine alone, and of genuine CybORG."""
    from workflow_rl.envs.checks import parse_red_agents
    from workflow_rl.studies.bench import bench_env

    figures = bench_env(seconds, parse_red_agents(red_agent), cyborg, say)
    show_result(figures, as_json, lambda: print_bench_env(figures))


@bench_app.command("train")
def bench_train_command(
    updates: Annotated[int, typer.Option(help="Updates of the fast path, per red agent.")] = 300,
    plain_updates: Annotated[int, typer.Option(help="Updates of the plain path and of the network alone.")] = 12,
    as_json: Json = False,
) -> None:
    """Transitions per second of training, beside the network's own arithmetic and stable-baselines3."""
    from workflow_rl.studies.bench_train import bench_train

    figures = bench_train(updates, plain_updates, say)
    show_result(figures, as_json, lambda: print_bench_train(figures))


@bench_app.command("cyborg")
def bench_cyborg_command(
    processes: Annotated[int, typer.Option(help="Processes of CybORG, and environments of both.")] = 25,
    updates: Annotated[int, typer.Option(help="Updates on genuine CybORG, per red agent.")] = 3,
    native_updates: Annotated[int, typer.Option(help="Updates on the native engine, per red agent.")] = 100,
    as_json: Json = False,
) -> None:
    """Transitions per second of training on processes of genuine CybORG, beside the native engine."""
    from workflow_rl.envs.backends import Backend, check_backend

    check_backend(Backend("cyborg"))
    from workflow_rl.studies.bench_cyborg import bench_cyborg

    figures = bench_cyborg(processes, updates, native_updates, say)
    show_result(figures, as_json, lambda: print_bench_cyborg(figures))


@bench_app.command("search")
def bench_search_command(
    table: Annotated[
        list[Path] | None, typer.Option(help="Stored table of true returns; default: those of the checkout.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Searches per table and strategy.")] = 100,
    large_seeds: Annotated[int, typer.Option(help="Synthetic tables with 8 unit types; 0: none.")] = 20,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Regret of GP-UCB, random search and round-robin on tables whose truth is known."""
    from workflow_rl.config import check_jobs
    from workflow_rl.studies.bench_search import bench_search, default_tables

    figures = bench_search(table or default_tables(), seeds, large_seeds, check_jobs(jobs), say)
    show_result(figures, as_json, lambda: print_bench_search(figures))
