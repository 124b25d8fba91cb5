"""The search as a script, under the name of the design documents: the same program as ``workflow-rl search``.

python workflow_rl/parallel_train_workflow_rl.py --n-envs 50 --max-episodes 100 --min-episodes 10
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # instead of this file's folder, where Python looks first
    from workflow_rl.cli.__main__ import main

    sys.argv.insert(1, "search")
    main()
else:
    from workflow_rl.search.run_search import ParallelWorkflowRLTrainer

    __all__ = ["ParallelWorkflowRLTrainer"]
