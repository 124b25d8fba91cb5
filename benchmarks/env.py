"""Stores what ``workflow-rl bench env`` measures.

python -m benchmarks.env
"""

from __future__ import annotations

import sys

from benchmarks.results import write_result
from workflow_rl.studies.bench import bench_env

if __name__ == "__main__":
    figures = bench_env(1.0, ("bline", "meander"), with_cyborg=True, say=lambda line: print(line, file=sys.stderr))
    del figures["machine"]  # write_result adds it
    print(write_result("env", "python -m benchmarks.env", figures))
