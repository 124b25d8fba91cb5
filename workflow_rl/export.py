"""Writes a trained defender as a small folder that runs inside CybORG's own evaluation with numpy alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from workflow_rl.errors import UserError
from workflow_rl.policy_evaluation import workflows_of_policy
from workflow_rl.policy_file import load_policy, policy_content
from workflow_rl.run_store import write_atomically, write_tensors
from workflow_rl.workflow import unit_types

AGENT = Path(__file__).with_name("exported_agent.py")


def export_agent(policy: Path, folder: Path, workflow: str = "", greedy: bool = False) -> dict[str, Any]:
    """Writes agent.py, policy.safetensors and a README into a new folder, all of it or nothing.

    Args:
        policy: a run or policy file.
        folder: must not exist yet, or be empty.
        workflow: for a universal policy, which needs one.
        greedy: the agent takes the most probable action.
    """
    found, folder = load_policy(policy), folder.absolute()
    if found.universal and not workflow:
        raise UserError("the policy follows any workflow: say which one with --workflow.")
    workflows = workflows_of_policy(found, workflow)
    chosen = str(workflows[0]) if workflows else ""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already; give a new folder.")
    arrays, meta = policy_content(found)
    agent = {"workflow": chosen, "greedy": greedy, "unit_types": list(unit_types())}
    new = not folder.exists()
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part") if new else folder
    try:
        part.mkdir(parents=True, exist_ok=True)
        own = {"workflow": chosen, "universal": False}  # as a policy file too it follows what it was exported for
        write_tensors(part / "policy.safetensors", arrays, meta | own | {"agent": agent})
        write_atomically(part / "agent.py", AGENT.read_bytes())
        write_atomically(part / "README.md", _readme(chosen, greedy, found.red_agent).encode())
        if new:
            os.replace(part, folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).") from None
    finally:
        if new:
            shutil.rmtree(part, ignore_errors=True)
    files = sorted(path.name for path in folder.iterdir())
    return {"folder": str(folder), "workflow": chosen, "greedy": greedy, "files": files}


def _readme(workflow: str, greedy: bool, red_agent: str) -> str:
    follows = f"It repairs in the order {workflow}." if workflow else "It follows no fixed order of repair."
    acts = "It takes the most probable action." if greedy else "It draws its actions; `Agent(seed=...)` seeds them."
    return f"""# A defender for CAGE Challenge 2

Trained by workflow_rl against {red_agent}. {follows} {acts}

In CybORG's `Evaluation/evaluation.py`, with this folder on the path, replace the line that loads the agent by

```python
from agent import Agent

agent = Agent()
```

The wrapper stays `ChallengeWrapper`. Needed: Python 3.7 or newer and numpy. `policy.safetensors` holds the weights;
it is also a policy file for `workflow-rl evaluate` (which draws actions unless it is told `--greedy`). The copy of the
script in csle-cyborg 0.0.3 does not run as it is published, for want of scenario files; docs/cyborg.md of workflow_rl
has a loop that does.
"""
