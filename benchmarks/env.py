"""Stores what ``workflow-rl bench env`` measures.

python -m benchmarks.env
"""

from __future__ import annotations

import sys
from dataclasses import asdict

from benchmarks.results import write_result
from workflow_rl.engine.network_file import load_network
from workflow_rl.studies.bench import bench_env

if __name__ == "__main__":
    figures = asdict(
        bench_env(1.0, ("bline", "meander"), True, load_network(), lambda line: print(line, file=sys.stderr))
    )
    del figures["machine"]  # write_result adds it
    print(write_result("env", "python -m benchmarks.env", figures))
