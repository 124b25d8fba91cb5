"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON object as the last line of standard output.")]
Edition = Annotated[str, typer.Option(help="Edition of CybORG 2.1: current or leaderboard.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Jobs = Annotated[int | None, typer.Option(help="Processes.", show_default="one per core")]
CyborgPath = Annotated[str, typer.Option(help="A checkout of CybORG to use instead of csle-cyborg.")]
Takeover = Annotated[
    str | None,
    typer.Option(help="Steps that red plays before blue may act, or a range of them.", show_default="the policy's own"),
]
RunDir = Annotated[Path | None, typer.Option(help="Where to keep the run; default: a new one under runs/.")]
Resume = Annotated[Path | None, typer.Option(help="Go on with this run, which was interrupted.")]
