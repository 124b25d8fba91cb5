"""The command line ``workflow-rl``: its commands, each in its own file, and how errors are reported."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from workflow_rl.cli.bench import bench_app
from workflow_rl.cli.common import Command, GroupedCommand, say
from workflow_rl.cli.evaluate import evaluate
from workflow_rl.cli.export import export
from workflow_rl.cli.network import network_app
from workflow_rl.cli.playbook import playbook
from workflow_rl.cli.replay import replay
from workflow_rl.cli.runs import report, runs
from workflow_rl.cli.screen import PLAINLY
from workflow_rl.cli.search import search
from workflow_rl.cli.train import train
from workflow_rl.cli.watch import watch
from workflow_rl.errors import UserError

app = typer.Typer(
    name="workflow-rl",
    help="Workflow search for autonomous cyber defence (CAGE Challenge 2).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
INTERRUPTED = 130


def main() -> None:
    """Runs the program; an error that the user can fix is printed as one sentence, with exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show ± must not lose a result
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAINLY)
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # Typer's answer to Ctrl-C
            say("Interrupted.")
        sys.stdout.flush()
        sys.exit(code)
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        say("Interrupted.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _fail("there is not enough memory for this; make it smaller.")
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"cannot go on: {error.strerror or error}.")
    except Exception as error:  # Typer's own errors about the command line format themselves
        if not hasattr(error, "format_message"):
            raise
        _fail(_complaint(error))


def _complaint(error: Any) -> str:
    """Typer's message about the command line, with the value at fault."""
    sentence = str(error.format_message())
    details = getattr(error.__cause__, "errors", None)  # Typer lets pydantic convert values
    if details is None:
        return sentence
    return sentence.replace("Invalid value for", f"Invalid value {details()[0]['input']!r} for", 1)


def _fail(sentence: str) -> None:
    say(f"Error: {sentence}")
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from workflow_rl.config import VERSION

        print(VERSION)
        raise typer.Exit


COMMANDS: dict[Command, str] = {  # in the order of --help: each with examples
    search: "search|search --red-agent meander --takeover 30|search --n-workflows 6 --run-dir runs/first|"
    "search --network plant|search --resume runs/first",
    report: "report runs/first|report runs/first runs/second -o both.html",
    watch: "watch runs/first --episode worst|watch champion --red-agent meander",
    evaluate: "evaluate runs/first|evaluate champion --protocol challenge|evaluate expert --takeover 30 --episodes 200",
    runs: "runs|runs runs/first runs/second",
    train: "train --workflow enterprise,op_server,op_host,user,defender|train --red-agent bline,meander|"
    "train --preset standard --max-episodes 20",
    playbook: "playbook champion|playbook runs/first --red-agent bline",
    export: "export runs/first agent|export champion agent --edition leaderboard",
    replay: "replay recorded.npz|replay --live 10 --red-agent bline",
}


def _epilog(examples: str) -> str:
    """Examples of a command, one per line, after its options."""
    return "\n  ".join(["\b\nExamples:", *(f"workflow-rl {example}" for example in examples.split("|"))])


for command, examples in COMMANDS.items():
    app.command(cls=GroupedCommand, epilog=_epilog(examples))(command)
for name, group in {"network": network_app, "bench": bench_app}.items():
    for registered in group.registered_commands:
        registered.cls = GroupedCommand
    app.add_typer(group, name=name)


if __name__ == "__main__":
    main()
