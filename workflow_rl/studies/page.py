"""The page of results: written from the result files alone, so that it says what they say."""

from __future__ import annotations

import os
from pathlib import Path

from workflow_rl.errors import UserError
from workflow_rl.run_store import write_atomically
from workflow_rl.studies import page_answers, page_challenge, page_studies, page_training
from workflow_rl.studies.page_parts import Files

HEAD = """# Results

Written by `workflow-rl study --render` from the files in [benchmarks/results]({results}); not to be edited by hand. Each
section names its command and what it does not show. A return is the sum of the environment's rewards over an episode: 0
would be a network that nobody touched and nobody had to repair. Where a defender was trained, a figure is the
interquartile mean over seeds with its 95 % bootstrap interval in brackets; for rules, which have no seed, the interval is
that of their games. (With five seeds such an interval holds the truth in about nine of ten cases.) Where nothing else is said: current edition, 100 steps, {machine}.
"""


def render(results: Path, page: Path) -> str:
    """The page as text; ``page`` is where it will stand, for its links."""
    files = Files(results)
    machine = files("study_baselines")["machine"]
    where = os.path.relpath(results, page.parent)
    words = f"{machine['cores']} shared cores ({machine['processor']})"
    sections = (
        HEAD.format(results=where, machine=words),
        page_answers.answers(files),
        page_answers.claims(files),
        page_studies.limit(files),
        page_studies.baselines(files),
        page_training.rollout(files),
        page_training.ablation(files),
        page_studies.robustness(files),
        page_training.scaling(files),
        page_challenge.challenge(files),
        page_challenge.repeating(files),
        page_answers.again(files),
    )
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
