"""Exports a defender as a small folder that runs in CybORG's own evaluation and needs only numpy."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from workflow_rl.config import is_incident
from workflow_rl.defenders.names import CHAMPION, edition_of, policy_path
from workflow_rl.defenders.protocol import EXPERT, REFERENCE_POLICIES
from workflow_rl.engine.network_file import as_network
from workflow_rl.errors import UserError
from workflow_rl.runs import Json, tensor_bytes, write_atomically
from workflow_rl.training.evaluation import workflows_of_policy
from workflow_rl.training.policy_file import check_edition, load_policy, policy_content

FOLDER = Path(__file__).parent
SOURCES = {"memory": FOLDER.parent / "envs" / "memory.py", "expert": FOLDER / "expert.py"}
EXPORTED = (CHAMPION, EXPERT)  # bundled defenders that can be exported
COMPILED = "from workflow_rl.engine.compiled import compiled\n"
UNCOMPILED = """

def compiled(function):  # Numba compiles these functions in workflow_rl; here they run as plain Python
    return function
"""


def export_agent(
    policy: str | Path, folder: Path, workflow: str = "", greedy: bool = False, edition: str | None = None
) -> Json:
    """Writes agent.py, the files that it needs and a README into a new folder, or nothing at all.

    Args:
        policy: a run, a policy file, ``champion`` or ``expert``.
        folder: a folder that does not exist yet or is empty.
        workflow: the workflow that a universal policy is conditioned on.
        greedy: take the most probable action even if the policy was trained to sample.
        edition: the edition of champion or expert; default: current.
    """
    folder = folder.absolute()
    if policy in REFERENCE_POLICIES and policy not in EXPORTED:
        allowed = ", ".join(EXPORTED)
        raise UserError(f"{policy} cannot be exported; allowed: {allowed}, or the path of a run or policy file.")
    rules = edition_of(policy, edition, EXPORTED) if isinstance(policy, str) else edition or load_policy(policy).edition
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} already exists; give a new folder.")
    if policy == EXPERT:
        if workflow or greedy:
            raise UserError("expert is a reference defender: it takes neither a workflow nor --greedy.")
        about = {"workflow": "", "greedy": True, "edition": rules, "takeover": "0"}
        files = {"rules.json": json.dumps(about).encode()} | _sources(True, True)
        files["README.md"] = _readme("", "rule-based", "It is deterministic.", rules, "")
    else:
        path = policy_path(policy, rules, EXPORTED) if isinstance(policy, str) else policy
        files, about = _policy_files(path, rules, workflow, greedy)
    _write(folder, files)
    names = sorted(path.name for path in folder.iterdir())
    return {"folder": str(folder), "files": names} | about


def _policy_files(path: Path, edition: str, workflow: str, greedy: bool) -> tuple[dict[str, bytes], Json]:
    """Files of an agent with a trained policy, and their description."""
    found = load_policy(path)
    check_edition(found, edition)
    if found.universal and not workflow:
        raise UserError("the policy follows any workflow: say which one with --workflow.")
    workflows = workflows_of_policy(found, workflow)
    chosen, greedy = str(workflows[0]) if workflows else "", greedy or found.greedy
    arrays, meta = policy_content(found)
    agent = {"workflow": chosen, "greedy": greedy, "unit_types": list(as_network(found.view.network).unit_types)}
    own = {"workflow": chosen, "universal": False}  # the exported policy file follows the chosen workflow only
    acts = "It takes the most probable action." if greedy else "It samples its actions; `Agent(seed=...)` seeds them."
    if is_incident(found.takeover):
        acts += f" It was trained for incidents, where red plays {found.takeover} steps before blue takes over."
    files = {"policy.safetensors": tensor_bytes(arrays, meta | own | {"agent": agent})}
    files |= _sources(found.view.tracks, False)
    files["README.md"] = _readme(
        chosen, f"against {', '.join(dict.fromkeys(found.red_agent.split(',')))}", acts, edition, WEIGHTS
    )
    return files, {"workflow": chosen, "greedy": greedy, "edition": edition, "takeover": found.takeover}


def _sources(memory: bool, expert: bool) -> dict[str, bytes]:
    """The agent's code: source files of the package without Numba."""
    files = {"agent.py": (FOLDER / "exported_agent.py").read_bytes()}
    for name in ["memory"] * memory + ["expert"] * expert:
        text = SOURCES[name].read_text("utf-8")
        text = text.replace(COMPILED, "").replace("from workflow_rl.envs.memory import", "from cage2_memory import")
        head, import_line, rest = text.partition("import numpy as np\n")
        files[f"cage2_{name}.py"] = (head + import_line + UNCOMPILED + rest).encode()
    return files


def _write(folder: Path, files: dict[str, bytes]) -> None:
    new = not folder.exists()
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part") if new else folder
    try:
        part.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(part / name, content)
        if new:
            os.replace(part, folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).") from None
    finally:
        if new:
            shutil.rmtree(part, ignore_errors=True)


WEIGHTS = """`policy.safetensors` holds the weights. It is also a policy file for `workflow-rl evaluate`, which samples
actions unless `--greedy` is given or the policy was trained to be greedy. """


def _readme(workflow: str, how: str, acts: str, edition: str, weights: str) -> bytes:
    follows = f"It repairs in the order {workflow}." if workflow else "It follows no fixed order of repair."
    text = f"""# A defender for CAGE Challenge 2

Made by workflow_rl, {how}, for the {edition} edition of CybORG 2.1. {follows} {acts}

In CybORG's `Evaluation/evaluation.py`, with this folder on the path, replace the line that loads the agent with

```python
from agent import Agent

agent = Agent()
```

Keep the wrapper `ChallengeWrapper`. The agent needs Python 3.7 or newer and numpy. If it has a memory
(cage2_memory.py), call `agent.end_episode()` after every episode, as the script does. {weights}The script in
csle-cyborg 0.0.3 does not run because network files are missing; docs/cyborg.md of workflow_rl has a loop that does.
"""
    return text.encode()
