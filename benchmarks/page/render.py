"""The page of results: written from the result files alone, so that it says what they say.

The templates have the words, the other modules of this folder the values.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError

from benchmarks.experiments import EXPERIMENTS
from benchmarks.page import answers, priorities, values
from benchmarks.page.curves import NAMES as LEARNERS
from benchmarks.page.curves import write_curves
from benchmarks.page.documents import GENERATED, update_documents
from benchmarks.page.files import EDITIONS, FOES, LENGTHS, Files
from benchmarks.page.formats import FILTERS, wrap
from benchmarks.results import RESULTS, ROOT
from benchmarks.studies.registry import STUDIES
from workflow_rl.errors import UserError
from workflow_rl.runs import write_atomically

SECTIONS: dict[str, tuple[str, ...]] = {  # with the results that each needs besides the first ones
    "answers": (),
    "priorities": (),
    "problems": ("problems",),
    "claims": ("study_rollout", "study_ablation"),
    "beliefs": ("study_ablation",),
    "limit": (),
    "incidents": (),
    "baselines": (),
    "learners": ("study_learners",),
    "rollout": ("study_rollout",),
    "ablation": ("study_ablation",),
    "lengths": ("study_lengths",),
    "robustness": ("study_robustness",),
    "scaling": ("study_scaling",),
    "challenge": (),
    "repeating": (),
    "again": (),
}


class Templates(Environment):
    """Templates in which a figure takes precedence over a method of its dictionary, such as ``clear`` or ``values``."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """What ``obj.attribute`` means in a template."""
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)


def render(results: Path, page: Path) -> str:
    """The page as text; ``page`` is where it will stand, for its links."""
    files = Files(results)
    templates = Templates(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= FILTERS | {"zip": zip}
    templates.globals |= {
        "files": files,
        "results": os.path.relpath(results, page.parent),
        "measured": [name for name in STUDIES if files.has(f"study_{name}")],
        "sections": [name for name, needs in SECTIONS.items() if files.has(*needs)],
        "answers": answers,
        "priorities": priorities,
        "values": values,
        "STUDIES": STUDIES,
        "EXPERIMENTS": EXPERIMENTS,
        "EDITIONS": EDITIONS,
        "LENGTHS": LENGTHS,
        "FOES": FOES,
        "LEARNERS": LEARNERS,
    }
    return wrap(templates.get_template("results.md.j2").render())


def write_page(results: Path, page: Path) -> Path:
    """Writes the page atomically; that of the checkout with the bound numbers of all other documents."""
    try:
        text = render(results, page)
    except (KeyError, UndefinedError) as error:
        raise UserError(
            f"the result files in {results} lack something ({error}): run the studies again with this version."
        ) from None
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(page, text.encode())
        if (files := Files(results)).has("study_learners"):
            write_curves(files, page.parent / "pictures")
        if (page.resolve(), results.resolve()) == (ROOT / GENERATED, RESULTS):
            update_documents()
    except OSError as error:
        raise UserError(f"{page}: cannot be written ({error.strerror}).") from None
    return page
