"""The words of this field and of this program, each in a sentence or two.

``docs/glossary.md`` is made from them, and the report explains them where they occur.
"""

from __future__ import annotations

GLOSSARY: dict[str, str] = {  # a word is explained before another explanation uses it, where that is possible
    "network": "The hosts and subnets to defend. The default is that of CAGE Challenge 2; a file describes your own.",
    "host": "A computer of the network.",
    "unit type": "A group of hosts that are repaired with the same priority. "
    "CAGE Challenge 2 has five: defender, enterprise, op_server, op_host and user.",
    "workflow": "An order of all unit types, highest priority first: hosts of the first type are repaired first, "
    "and so on.",
    "red agent": "The attacker. B_line goes straight for the operational server; Meander takes every host of a subnet "
    "before it moves on; Sleep does nothing.",
    "episode": "One game: the defender (blue) and the attacker (red) each act once per step, by default for 100 steps.",
    "return": "The sum of the environment's rewards in an episode. It is what attacks and repairs cost, so it is "
    "negative, and closer to zero is better.",
    "challenge": "CAGE Challenge 2, the benchmark of the field. Blue watches from the first step.",
    "takeover": "The number of steps that red plays before blue may act. Blue's return counts from there.",
    "incident": "A game with a takeover: blue inherits a network that is already breached, and the order of repair "
    "decides.",
    "edition": "One of two public states of the simulator CybORG that share the version number 2.1: current (the "
    "default) and leaderboard, with which the official final scores were computed. Returns of the two cannot be "
    "compared.",
    "compromised": "A host is compromised while red holds at least one session on it. User0, from which red starts and "
    "cannot be removed, never counts.",
    "fix": "Blue's action Remove or Restore on a host.",
    "repair": "A fix that ends red's presence: its host was compromised before and is not any more.",
    "idle fix": "A fix that repairs nothing, because red was not there or was not removed. It counts neither for nor "
    "against a workflow.",
    "due type": "The unit type to repair next: the one of highest priority that has a compromised host.",
    "violation": "A repair of a host whose type is not due.",
    "compliance": "The share of repairs that are no violations, over all episodes together. Without a repair it is "
    "undefined.",
    "kept": "The share of the episodes with a repair that have no violation at all.",
    "followed": "A workflow is followed if compliance and kept both reach the threshold (95 % by default) on fresh "
    "episodes. Only a followed workflow can be declared best.",
    "nothing shown": "Fewer than one repair in two episodes: too few to tell whether the workflow is followed.",
    "alignment": "What training adds to the reward so that the workflow is followed. It is never part of a reported "
    "return.",
    "penalty": "The default alignment: each violation costs a fixed amount during training, and obeying earns nothing.",
    "guard": "A mask that forbids fixes of a unit type while a host of a type with higher priority looks compromised."
    " The champion's also forbids to wait while red seems to hold the operational server.",
    "update": "One improvement of the policy (by PPO) from one batch of steps, by default 200 environments times 100 "
    "steps.",
    "warm start": "The policy with which a training starts: none, a briefly trained general policy, or one from a "
    "file.",
    "time limit": "The end of an episode after its last step. The attack would go on, so the episode is truncated, not "
    "terminated, and training still counts the estimated value of what would follow.",
    "evaluation": "One visit of the search to a workflow: train it, then measure its return on fresh episodes.",
    "replicate": "One of several independent trainings of the same workflow.",
    "training noise": "How much the returns of trainings of the same workflow differ by chance (a standard deviation).",
    "level": "The average return that all workflows of a search share. Its error does not affect comparisons between "
    "them.",
    "bound": "Upper confidence bound: the predicted return plus beta times its uncertainty. The search tries the "
    "workflow with the highest bound next.",
    "pair effect": "The value of a priority: how much the return changes if one unit type is repaired before another "
    "instead of after it.",
    "kernel weight": "How strongly the model lets the returns of two workflows differ because they disagree on a pair "
    "of unit types. Near zero: the pair hardly matters.",
    "finalist": "A workflow that is trained to the end after the search. Finalists decide the verdict.",
    "champion": "The trained defender that is bundled with the program. It keeps the workflow it is told, if any.",
    "expert": "The defender by hand-written rules from which the champion was derived.",
    "limit": "The most that a defender could reach if it saw the true state and red's plans, but not future chance.",
    "run": "One search or training in its own directory, which is all that is needed to resume, repeat or report it.",
    "trace": "A file with recorded games of CybORG, which the engine replays to show that it plays by the same rules.",
}


def glossary_page() -> str:
    """The text of ``docs/glossary.md``."""
    rows = [f'| <a id="{term.replace(" ", "-")}"></a>{term} | {text} |' for term, text in sorted(GLOSSARY.items())]
    return "\n".join(["# Glossary", "", "| word | meaning |", "|---|---|", *rows, ""])
