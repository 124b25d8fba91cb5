"""Exports a defender as a small folder that runs in CybORG's own evaluation and needs only numpy."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from workflow_rl.config import is_incident
from workflow_rl.defenders.names import CHAMPION, edition_of, policy_path
from workflow_rl.defenders.protocol import EXPERT, REFERENCE_POLICIES, reference_policy
from workflow_rl.engine.bait import NO_ACTION, bait_of
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import AnyNetwork, chosen_network, copy_of, in_words
from workflow_rl.envs.views import unlike_cage2
from workflow_rl.errors import UserError
from workflow_rl.runs import NETWORK_FILE, Json, tensor_bytes, write_atomically
from workflow_rl.training.evaluation import workflows_of_policy
from workflow_rl.training.policy_file import check_edition, load_policy, policy_content

FOLDER = Path(__file__).parent
SOURCES = {name: FOLDER.parent / "envs" / f"{name}.py" for name in ("memory", "inference")}
SOURCES["expert"] = FOLDER / "expert.py"
EXPORTED = (CHAMPION, EXPERT)  # bundled defenders that can be exported
COMPILED = "from workflow_rl.engine.compiled import compiled\n"
UNCOMPILED = """

def compiled(function):  # Numba compiles these functions in workflow_rl; here they run as plain Python
    return function
"""


def export_agent(
    policy: str | Path, folder: Path, workflow: str = "", greedy: bool = False, edition: str | None = None,
    network: AnyNetwork | None = None,
) -> Json:  # fmt: skip
    """Writes agent.py, the files that it needs, its network and a README into a new folder, or nothing at all.

    Args:
        policy: a run, a policy file, ``champion`` or ``expert``.
        folder: a folder that does not exist yet or is empty.
        workflow: the workflow that a universal policy is conditioned on.
        greedy: take the most probable action even if the policy was trained to sample.
        edition: the edition of champion or expert; default: current.
        network: the network that the agent defends; default: that of the run, else CAGE Challenge 2.
    """
    folder = folder.absolute()
    if policy in REFERENCE_POLICIES and policy not in EXPORTED:
        allowed = ", ".join(EXPORTED)
        raise UserError(f"{policy} cannot be exported; allowed: {allowed}, or the path of a run or policy file.")
    defended = chosen_network(None if policy in EXPORTED else Path(policy), network)
    if isinstance(policy, str):
        rules = edition_of(policy, edition, defended, EXPORTED)
    else:
        rules = edition or load_policy(policy, defended).edition
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} already exists; give a new folder.")
    if policy == EXPERT:
        if workflow or greedy:
            raise UserError("expert is a reference defender: it takes neither a workflow nor --greedy.")
        reference_policy(EXPERT, defended, rules)  # refuses another network
        about = {"workflow": "", "greedy": True, "edition": rules, "takeover": "0"}
        files = {"rules.json": json.dumps(about).encode()} | _sources("memory", "inference", "expert")
        files["README.md"] = _readme("", "rule-based", "It is deterministic.", rules, "", defended)
    else:
        path = policy_path(policy, rules, defended, EXPORTED, workflow) if isinstance(policy, str) else policy
        files, about = _policy_files(path, rules, workflow, greedy, defended)
    files[NETWORK_FILE] = copy_of(defended).content
    _write(folder, files)
    names = sorted(path.name for path in folder.iterdir())
    return {"folder": str(folder), "files": names, "network": defended.name} | about


def _policy_files(
    path: Path, edition: str, workflow: str, greedy: bool, network: Network
) -> tuple[dict[str, bytes], Json]:
    """Files of an agent with a trained policy, and their description."""
    found = load_policy(path, network)
    check_edition(found, edition)
    if found.universal and not workflow:
        raise UserError("the policy follows any workflow: say which one with --workflow.")
    workflows = workflows_of_policy(found, workflow)
    chosen, greedy = str(workflows[0]) if workflows else "", greedy or found.greedy
    arrays, meta = policy_content(found)
    own_memory = found.view.tracks and bool(unlike_cage2(network))  # CAGE Challenge 2 has more to remember
    agent = {"workflow": chosen, "greedy": greedy} | ({"bait": _bait(network)} if own_memory else {})
    own = {"workflow": chosen, "universal": False}  # the exported policy file follows the chosen workflow only
    acts = "It takes the most probable action." if greedy else "It samples its actions; `Agent(seed=...)` seeds them."
    if is_incident(found.takeover):
        acts += f" It was trained for incidents, where red plays {found.takeover} steps before blue takes over."
    files = {"policy.safetensors": tensor_bytes(arrays, meta | own | {"agent": agent})}
    files |= _sources(*["memory", "inference"] * (found.view.tracks and not own_memory))
    files["README.md"] = _readme(
        chosen, f"against {', '.join(dict.fromkeys(found.red_agent.split(',')))}", acts, edition, WEIGHTS, network
    )
    return files, {"workflow": chosen, "greedy": greedy, "edition": edition, "takeover": found.takeover}


def _bait(network: Network) -> Json:
    """The tables of the network's decoys, for an agent that remembers its own."""
    bait = bait_of(network)
    useful = [[action for action in row if action != NO_ACTION] for row in bait.useful.tolist()]
    return {name: table.tolist() for name, table in bait._asdict().items()} | {"useful": useful}


def _sources(*names: str) -> dict[str, bytes]:
    """The agent's code: the named source files of the package without Numba."""
    files = {"agent.py": (FOLDER / "exported_agent.py").read_bytes()}
    for name in names:
        text = SOURCES[name].read_text("utf-8")
        text = text.replace("from workflow_rl.envs.memory import", "from cage2_memory import")
        files[f"cage2_{name}.py"] = text.replace(COMPILED, UNCOMPILED).encode()
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


def _readme(workflow: str, how: str, acts: str, edition: str, weights: str, network: Network) -> bytes:
    follows = f"It repairs in the order {workflow}." if workflow else "It follows no fixed order of repair."
    own = network.digest == as_network(CAGE2).digest
    text = f"""# A defender for {"CAGE Challenge 2" if own else in_words(network)}

Made by workflow_rl, {how}, for the {edition} edition of CybORG 2.1. {follows} {acts}

{CHALLENGE if own else OTHER_NETWORK.format(hosts=len(network.hosts), bits=network.n_bits, actions=network.n_actions)}
The agent needs Python 3.7 or newer and numpy. Call `agent.end_episode()` after every episode, as CybORG's
script does: it clears what the agent remembers. {weights}`network.toml` is the network that it defends.
"""
    return text.encode()


CHALLENGE = """In CybORG's `Evaluation/evaluation.py`, with this folder on the path, replace the line that loads the
agent with

```python
from agent import Agent

agent = Agent()
```

Keep the wrapper `ChallengeWrapper`. The script in csle-cyborg 0.0.3 does not run because network files are missing;
docs/cyborg.md of workflow_rl has a loop that does.
"""
OTHER_NETWORK = """With this folder on the path:

```python
from agent import Agent

agent = Agent()
action = agent.get_action(observation)
```

An observation has {bits} numbers, four for each of the {hosts} hosts in the sequence of `network.toml`, as CybORG's
`ChallengeWrapper` makes them; there are {actions} actions.
"""
