"""The page of results: written from the result files alone, so that it says what they say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.page import answers, challenge, incidents, limit, studies, training
from benchmarks.page.parts import Files
from benchmarks.studies.registry import STUDIES
from workflow_rl.errors import UserError
from workflow_rl.runs import write_atomically

HEAD = """# Results

Written by `python -m benchmarks.study --render` from the files in [benchmarks/results]({results}); not to be edited by hand. Each
section names its command and what it does not show. A return is the sum of the environment's rewards over an episode: 0
would be a network that nobody touched and nobody had to repair. Where a defender was trained, a figure is the
interquartile mean over seeds with its 95 % bootstrap interval in brackets; for rules, which have no seed, the interval is
that of their games. (With five seeds such an interval holds the truth in about nine of ten cases.) Where nothing else is said: current edition, 100 steps, {machine}.
"""


SECTIONS: tuple[tuple[tuple[str, ...], Callable[[Files], str]], ...] = (  # with the studies that each needs
    ((), answers.answers),
    (("rollout", "ablation"), answers.claims),
    ((), limit.limit),
    ((), incidents.incidents),
    ((), studies.baselines),
    (("rollout",), training.rollout),
    (("ablation",), training.ablation),
    (("robustness",), studies.robustness),
    (("scaling",), training.scaling),
    ((), challenge.challenge),
    ((), challenge.repeating),
    ((), answers.again),
)


def render(results: Path, page: Path) -> str:
    """The page as text; ``page`` is where it will stand, for its links."""
    files = Files(results)
    machine = files("study_baselines")["machine"]
    where = os.path.relpath(results, page.parent)
    words = f"{machine['cores']} shared cores ({machine['processor']})"
    missing = [name for name in STUDIES if not files.has(name)]
    sections = [HEAD.format(results=where, machine=words)]
    if missing:
        named = ", ".join(f"`{name}`" for name in missing)
        sections.append(f"**Not measured yet** with the present learner and definition of compliance: {named}.\n")
    sections += [section(files) for needs, section in SECTIONS if files.has(*needs)]
    return "\n".join(section.rstrip() + "\n" for section in sections)


def write_page(results: Path, page: Path) -> Path:
    """Writes the page atomically."""
    try:
        text = render(results, page)
    except KeyError as error:
        raise UserError(
            f"the result files in {results} lack {error}: run the studies again with this version."
        ) from None
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(page, text.encode())
    except OSError as error:
        raise UserError(f"{page}: cannot be written ({error.strerror}).") from None
    return page
