"""The commands ``workflow-rl bench ...``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workflow_rl.cli.common import Jobs, Json, NetworkName, acting, say, show_result
from workflow_rl.cli.screen import Rows, Screen
from workflow_rl.errors import UserError

if TYPE_CHECKING:
    from workflow_rl.studies.bench import EnvFigures, HostFigures
    from workflow_rl.studies.bench_cyborg import CyborgFigures
    from workflow_rl.studies.bench_search import SearchFigures
    from workflow_rl.studies.bench_train import TrainFigures

REDS = ("bline", "meander")  # opponents of the measurements

bench_app = typer.Typer(help="Measures speed and regret, each beside its reference.", no_args_is_help=True)


@bench_app.command("env")
def bench_env_command(
    seconds: Annotated[float, typer.Option(help="Seconds to measure each figure.")] = 1.0,
    red_agent: Annotated[
        str | None, typer.Option(help="Opponents; the last gives the headline figures.", show_default="all that act")
    ] = None,
    cyborg: Annotated[bool, typer.Option(help="Measure genuine CybORG too, if it is installed.")] = True,
    network: NetworkName = None,
    hosts: Annotated[
        str | None, typer.Option(help="Measure the engine in generated networks of these sizes, such as 13,30,60.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Speed of the environments. Steps per second of 1 to 4096 of them, of the engine alone, and of genuine CybORG."""
    from workflow_rl.engine.networks.copies import chosen_network
    from workflow_rl.envs.checks import parse_red_agents
    from workflow_rl.studies.bench import bench_env, bench_hosts

    if hosts is not None:
        if network is not None:
            raise UserError("--hosts generates its networks; leave --network out.")
        by_size = bench_hosts(_sizes(hosts), seconds, tuple((red_agent or ",".join(REDS)).split(",")), say)
        show_result(by_size, as_json, lambda: print_bench_hosts(by_size))
        return
    played = chosen_network(None, network)
    reds = parse_red_agents(acting(played.red_agents) if red_agent is None else red_agent, played)
    figures = bench_env(seconds, reds, cyborg, played, say)
    show_result(figures, as_json, lambda: print_bench_env(figures))


@bench_app.command("train")
def bench_train_command(
    updates: Annotated[int, typer.Option(help="Updates of the fast path, per red agent.")] = 300,
    plain_updates: Annotated[int, typer.Option(help="Updates of the plain path and of the network alone.")] = 12,
    as_json: Json = False,
) -> None:
    """Speed of training. Transitions per second beside the network's own arithmetic and stable-baselines3."""
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
    """Speed of training on genuine CybORG. Transitions per second beside the native engine."""
    from workflow_rl.envs.cyborg_sim import Backend, check_backend

    check_backend(Backend("cyborg"))
    from workflow_rl.studies.bench_cyborg import bench_cyborg

    figures = bench_cyborg(processes, updates, native_updates, say)
    show_result(figures, as_json, lambda: print_bench_cyborg(figures))


@bench_app.command("search")
def bench_search_command(
    tables: Annotated[
        list[Path] | None, typer.Option("--table", help="Stored table of true returns; default: those of the checkout.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Searches per table and strategy.")] = 100,
    large_seeds: Annotated[int, typer.Option(help="Synthetic tables with 8 unit types; 0: none.")] = 20,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Regret of the search on known tables. GP-UCB stands beside random search and round-robin."""
    from workflow_rl.config import check_jobs
    from workflow_rl.engine.network_file import load_network
    from workflow_rl.studies.bench_search import bench_search, default_tables

    paths = tables or default_tables()
    figures = bench_search(paths, seeds, large_seeds, check_jobs(jobs), load_network().unit_types, say)
    show_result(figures, as_json, lambda: print_bench_search(figures))


def _sizes(hosts: str) -> tuple[int, ...]:
    numbers = [part.strip() for part in hosts.split(",")]
    if not all(number.isdecimal() and len(number) < 4 for number in numbers):
        raise UserError(f"the numbers of hosts must be a comma list such as 13,30,60, not {hosts!r}.")
    return tuple(dict.fromkeys(map(int, numbers)))


def print_bench_hosts(figures: HostFigures) -> None:
    """Speeds of the engine by the number of hosts."""
    sizes = list(figures.bytes_per_env)
    rows = [
        [f"engine, {red}", *(f"{rates[size] / 1e6:.2f}" for size in sizes)]
        for red, rates in figures.engine_steps_per_s.items()
    ]
    rows.append(["bytes per environment", *(str(figures.bytes_per_env[size]) for size in sizes)])
    title = f"Million steps per second, one thread, {figures.n_envs} environments, by number of hosts"
    Screen().table(title, Rows(["", *sizes], rows))


def print_bench_env(figures: EnvFigures) -> None:
    """Speeds of the environments."""
    rows = []
    for red, speeds in figures.by_red_agent.items():
        for what, rates in (("vector env", speeds.vector_steps_per_s), ("engine", speeds.engine_steps_per_s)):
            rows.append([f"{what}, {red}", *(f"{rate / 1e6:.2f}" for rate in rates.values())])
    sizes = list(figures.vector_steps_per_s)
    Screen().table("Million steps per second, one thread, by number of environments", Rows(["", *sizes], rows))
    print(f"Single environment: {figures.single_env_steps_per_s:,.0f} steps/s")
    if figures.cyborg_steps_per_s is not None:
        print(
            f"Genuine CybORG: {figures.cyborg_steps_per_s:,.0f} steps/s; the vector env with 200 environments makes "
            f"{figures.ratio_to_cyborg_at_200:,.0f} times as many."
        )
    print(f"Start to first step: {figures.cold_start_s:.1f} s cold, {figures.cached_start_s:.1f} s cached")
    print(f"Memory: {figures.bytes_per_env} bytes per environment, peak {figures.peak_memory_mb:.0f} MB")


def print_bench_train(figures: TrainFigures) -> None:
    """Speeds of training."""
    by_red, n = [(red, getattr(figures, red)) for red in REDS], figures.updates
    rows = [[f"fast path, {red}, {n} updates from scratch", f"{own.transitions_per_s:,.0f}"] for red, own in by_red]
    for red, own in by_red:
        rate = own.sb3_transitions_per_s
        rows.append([f"stable-baselines3, {red}", "not installed" if rate is None else f"{rate:,.0f}"])
    for name in ("plain", "network_only", "plain_two_threads", "one_process", "two_process"):
        rows.append([name.replace("_", " "), f"{getattr(figures, f'{name}_transitions_per_s'):,.0f}"])
    Screen().table("Training, 200 environments x 100 steps, 4 epochs, one thread", Rows(["", "transitions/s"], rows))
    print(f"Plain path over network only: {figures.ratio_to_network_only:.2f}")


def print_bench_cyborg(figures: CyborgFigures) -> None:
    """Training on genuine CybORG and on the native engine."""
    n, speeds = figures.processes, (figures.bline, figures.meander)
    rows = [
        [f"CybORG, {n} processes", *(f"{own.cyborg_transitions_per_s:,.0f}" for own in speeds)],
        [f"native, {n} environments", *(f"{own.native_transitions_per_s:,.0f}" for own in speeds)],
        ["native, 200", *(f"{own.native_200_transitions_per_s:,.0f}" for own in speeds)],
        ["ratio", *(f"{own.ratio:,.0f} x" for own in speeds)],
        ["ratio with 200", *(f"{own.ratio_200:,.0f} x" for own in speeds)],
    ]
    Screen().table("Training, transitions per second", Rows(["", *REDS], rows))
    print(f"Start of {n} processes and first reset: {figures.start_s:.1f} s")


def print_bench_search(figures: SearchFigures) -> None:
    """Regret on each table, and on the synthetic ones."""
    for name, found in figures.tables.items():
        looks = list(found.by_strategy["gp-ucb"].median_regret)
        rows = [
            [
                strategy,
                *(f"{regret.median_regret[look]:.3f}" for look in looks),
                *(f"{regret.mean_regret[look]:.3f}" for look in looks),
                *(f"{regret.within_one_standard_error[look]:.0%}" for look in looks),
            ]
            for strategy, regret in found.by_strategy.items()
        ]
        columns = ["", *(f"{kind} {look}" for kind in ("median", "mean", "within 1 SE") for look in looks)]
        about = f"range {found.range:.2f}, standard error {found.standard_error:.2f}, {found.seeds} seeds"
        Screen().table(f"{name}: regret after so many evaluations; {about}", Rows(columns, rows))
    for large in figures.large.values():
        print(
            f"8 unit types, {large.orders:,} orders, {large.tables} tables, noise {large.noise_over_range:.0%} of the "
            f"range: after {large.evaluations} evaluations GP-UCB is within 5 % of the best in "
            f"{large.within_5_percent:.0%}, random search in {large.random_within_5_percent:.0%}; random orders needed "
            f"until one is as close, without noise: {large.random_median_draws_to_5_percent_without_noise:,.0f}."
        )
