"""The tests from an empty clone in several surroundings, as root: ``python -m benchmarks test_ways [NAME]``.

Each way clones the last commit next to the project, sets up a new environment and runs ``make test`` (or
``make test-all``) with ``CI=true``, so that nothing is skipped. Nothing is stored: the tests pass or they do not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.command import main
from workflow_rl.cli.common import say
from workflow_rl.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
WAYS = ROOT.parent / "ways"
SHARED = ROOT.parent / "shared"
LATIN = "de_DE.ISO-8859-1"
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)")
LOOPBACK = "ip link set lo up && exec "
READ_ONLY = (
    "for place in /tmp /var/tmp; do mount --bind $place $place && mount -o remount,ro,bind $place; done && exec "
)


@dataclass(frozen=True)
class Way:
    """Surroundings of a run; ``around`` goes before the command, ``shell`` before it inside a shell."""

    words: str
    target: str = "test"
    around: tuple[str, ...] = ()
    shell: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    nobody: bool = False


NAMES = {
    "plain": Way("as it is"),
    "processor": Way(
        "machine code for any processor, arithmetic as on an old one",
        environment={
            "NUMBA_CPU_NAME": "generic",
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_CBWR": "COMPATIBLE",
            "OPENBLAS_CORETYPE": "Sandybridge",
            "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX",
        },
    ),
    "core": Way("one core", around=("taskset", "-c", "0")),
    "locale": Way(
        "German in Latin-1, time zone of the Chatham Islands",
        environment={"LC_ALL": LATIN, "LOCPATH": str(WAYS / "locale"), "TZ": "Pacific/Chatham"},
    ),
    "home": Way("empty home, no cache of packages", environment={"HOME": str(WAYS / "home"), "PIP_NO_CACHE_DIR": "1"}),
    "network": Way("no network after the set-up", around=("unshare", "--net"), shell=LOOPBACK),
    "user": Way(
        "a user who can write in the clone alone",
        around=("unshare", "--mount"),
        shell=READ_ONLY + "setpriv --reuid=nobody --regid=nogroup --clear-groups ",
        environment={"HOME": "/nonexistent", "PYTHON": "/usr/bin/python3"},  # needs Debian's python3-venv
        nobody=True,
    ),
    "all": Way("as it is, all tests", target="test-all"),
}


def run(name: str, way: Way) -> dict[str, Any]:
    """Clones, sets up and tests; everything that is said goes to WAYS/NAME.log."""
    folder = WAYS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "shared").symlink_to(SHARED)
    clone = folder / "main"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    environment = os.environ | {"CI": "true"} | way.environment
    environment.pop("OMP_NUM_THREADS", None)
    environment["TMPDIR"] = str(clone / "tmp")
    (clone / "tmp").mkdir()
    with open(WAYS / f"{name}.log", "w", encoding="utf-8") as log:

        def timed(command: list[str]) -> tuple[int, float]:
            start = time.perf_counter()
            code = subprocess.run(command, cwd=clone, env=environment, stdout=log, stderr=log).returncode
            return code, time.perf_counter() - start

        _, setup = timed(["make", ".venv/installed-dev"])
        if way.nobody:
            subprocess.run(["chown", "-R", "nobody:nogroup", str(clone)], check=True)
        command = ["make", way.target]
        if way.shell:
            command = ["sh", "-c", f'{way.shell} "$@"', "sh", *command]
        code, seconds = timed([*way.around, *command])
    said = (WAYS / f"{name}.log").read_text("utf-8", errors="replace")
    closing = next((line for line in reversed(said.splitlines()) if " passed" in line), "")
    counts = {kind.rstrip("s") if kind.startswith("error") else kind: int(n) for n, kind in COUNTS.findall(closing)}
    return {
        "way": way.words, "command": f"make {way.target}", "exit_code": code, "setup_seconds": round(setup, 1),
        "seconds": round(seconds, 1),
    } | {kind: counts.get(kind, 0) for kind in ("passed", "failed", "error", "skipped")}  # fmt: skip


def prepare() -> None:
    """The locale and the empty home that some ways need."""
    shutil.rmtree(WAYS / "home", ignore_errors=True)
    (WAYS / "home").mkdir(parents=True)
    (WAYS / "locale").mkdir(exist_ok=True)
    command = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(WAYS / "locale" / LATIN)]
    subprocess.run(command, check=False, capture_output=True)  # its warnings count as failure
    assert (WAYS / "locale" / LATIN).is_dir(), "localedef made no locale; install Debian's package locales"


def measure(name: str) -> None:
    """Runs one way and says what came of it; its clone is kept if a test failed."""
    prepare()
    found = run(name, NAMES[name])
    say(f"{name}: {', '.join(f'{value} {key}' for key, value in found.items())}")
    if found["exit_code"]:
        raise UserError(f"the tests fail in these surroundings: {NAMES[name].words}; see {WAYS / name}.log.")
    shutil.rmtree(WAYS / name)


if __name__ == "__main__":
    main("test_ways")
