"""RayCluster: the executor whose processes are those of a Ray cluster; the extra ``cluster``.

Each training is a Ray task that needs no shared disk; remote_training describes what is sent. Ray notices when a
process or a node dies; then the training is submitted again with its last checkpoint, so that it continues instead of
starting over. A node that joins is used, and nobody waits for a node that was lost.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from workflow_rl.config import check_jobs
from workflow_rl.errors import MissingExtraError, UserError, install_hint
from workflow_rl.search.executor import MOST_DEATHS, Executor, Job, Machines, News, Restarted, Trained

if TYPE_CHECKING:  # takes seconds to import, while the cluster starts
    from workflow_rl.search.remote_training import Message, Parcel

SECONDS_BETWEEN_LOOKS = 1.0  # at the nodes
SECONDS_TO_ANSWER = 5.0  # for a cluster, and for an earlier connection of this process to end
PROGRESS_SECONDS = 0.25  # between two messages of a training, at least
MOST_MESSAGES = 200  # of progress per second, from all trainings together
CHECKPOINT_SECONDS = 10.0
SURPLUS = 8  # one training more than there is room for waits at Ray for each so many, so that no worker waits
STARTED = "started"  # the first message of a training: on which node

_connection = Lock()  # held while Ray is connected by an executor: a process has one connection
_holder: list[RayCluster] = []


def _train_on_node(parcel: Parcel) -> Iterator[Message]:
    """The Ray task."""
    import ray

    yield STARTED, ray.get_runtime_context().get_node_id()
    from workflow_rl.search.remote_training import train_away  # seconds, during which the node may be lost

    yield from train_away(parcel)


def _warm_up() -> None:
    """Another Ray task: imports what trainings need."""
    import workflow_rl.search.remote_training  # noqa: F401


class RayCluster(Executor):
    """As many trainings at once as the cluster has CPUs for. Connects and disconnects in the background.

    Args:
        address: ``auto`` is the cluster that this machine is part of, ``local`` one of its own on this machine, which
            ends with it; or the address of a cluster that this machine is part of. A process that is connected to Ray
            already keeps its connection.
        cpus: CPUs that each training takes.
        gpus: GPUs that each training takes, also a fraction.
        jobs: most trainings at once.
        checkpoint_seconds: seconds between two checkpoints that a training sends.
    """

    def __init__(
        self,
        address: str = "auto",
        cpus: float = 1.0,
        gpus: float = 0.0,
        jobs: int | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        self.address, self.cpus, self.gpus, self.jobs = address, cpus, gpus, jobs
        self.checkpoint_seconds = checkpoint_seconds
        self._check()
        self._waiting: deque[Job] = deque()
        self._running: dict[Any, Job] = {}  # by the generator of a training's messages
        self._places: dict[str, str] = {}  # nodes of trainings, by name
        self._news: deque[News] = deque()
        self._deaths: dict[str, int] = {}
        self._nodes: dict[str, tuple[str, int]] = {}  # address and room, by id
        self._lost: set[str] = set()  # nodes that a task was lost with, which Ray may not know yet
        self._looked = -math.inf
        self._failure = ""
        self._warm: list[Any] = []
        self._connected, self._closing = Event(), Event()
        Thread(target=self._connect, daemon=True).start()

    def _check(self) -> None:
        """Refuses impossible settings before anything is started."""
        for name, value, least in (("cpus", self.cpus, 1e-3), ("gpus", self.gpus, 0.0)):
            if not least <= value < math.inf:
                raise UserError(f"{name} per evaluation must be a number of at least {least:g}, not {value}.")
        if (self.gpus > 1 and self.gpus != int(self.gpus)) or 0 < self.gpus < 1e-3:
            raise UserError(f"gpus per evaluation must be a fraction of at least 0.001 or whole, not {self.gpus}.")
        check_jobs(self.jobs)
        if self.address.startswith("ray://"):
            raise UserError("run the search on a machine of the cluster; the Ray client (ray://) cannot be used.")
        host, _, port = self.address.rpartition(":")
        if self.address not in ("auto", "local") and not (host and port.isdigit()):
            raise UserError(f"a Ray address is auto, local or HOST:PORT, not {self.address!r}.")
        try:
            import ray
        except ImportError:
            raise MissingExtraError(f"--ray needs Ray; {install_hint('cluster')}.") from None
        self._ray: Any = ray
        if host and not ray.is_initialized():
            try:
                socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
            except (OSError, OverflowError):  # Ray itself would try for minutes
                raise UserError(f"no Ray cluster answers at {self.address}.") from None

    def _connect(self) -> None:
        """Connects and then waits: the processes of a local cluster end with the *thread* that started them."""
        while not _connection.acquire(timeout=SECONDS_TO_ANSWER):
            if _holder and not _holder[0]._closing.is_set():
                self._failure = "another search of this process is connected to Ray; one at a time"
                self._connected.set()
                return
        _holder[:] = [self]
        try:
            own = not self._ray.is_initialized()
            if own:
                self._begin()
            self._connected.set()
            self._closing.wait()
            for messages in () if own else self._running:
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._ray.cancel(messages, force=True)
            self._running.clear()  # freed while Ray is there: afterwards it would end this process
            if own:
                self._ray.shutdown()
        except Exception as error:
            self._failure = f"there is no Ray cluster to connect to ({_first_sentence(error)})"
        finally:
            _holder.clear()
            _connection.release()
            self._connected.set()

    def _begin(self) -> None:
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # we report deaths, also of earlier searches
        options: dict[str, object] = {"log_to_driver": False, "logging_level": "error"}
        cpus = math.ceil(self.jobs * self.cpus) if self.jobs else check_jobs(None)
        if self.address == "local":
            options |= {"num_cpus": cpus, "include_dashboard": False}
            options["_system_config"] = {"worker_niceness": 0}  # as the processes of a worker pool
        try:
            self._ray.init(self.address, **options)
        except ConnectionError as error:
            hint = "start one with ray start --head, or " if self.address == "auto" else ""
            hint += "set RAY_AUTH_MODE=token if it asks for a token"
            self._failure = f"there is no Ray cluster to connect to: {hint} ({_first_sentence(error)})"
            return
        if self.address == "local":
            warm_up = self._ray.remote(_warm_up).options(num_cpus=self.cpus)
            self._warm = [warm_up.remote() for _ in range(int(cpus / self.cpus))]

    def _wait(self) -> None:
        """Waits for the connection."""
        self._connected.wait()
        if self._failure:
            raise UserError(f"{self._failure}.")

    @property
    def room(self) -> int:
        """Trainings for which the nodes that are alive have CPUs and GPUs."""
        self._look()
        room = sum(slots for _, slots in self._nodes.values())
        return min(room, self.jobs or room)

    def _look(self) -> None:
        """Notices nodes that joined or were lost."""
        self._wait()
        if time.monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        first, before = self._looked == -math.inf, self._nodes
        self._looked = time.monotonic()
        try:
            nodes = self._ray.nodes()
        except Exception as error:
            raise UserError(f"the Ray cluster does not answer any more ({_first_sentence(error)}).") from None
        alive = [node for node in nodes if node["Alive"] and node["NodeID"] not in self._lost]
        self._nodes = {node["NodeID"]: (node["NodeManagerAddress"], self._slots(node["Resources"])) for node in alive}
        room = sum(slots for _, slots in self._nodes.values())
        words = [f"node {self._nodes[name][0]} joined" for name in sorted(self._nodes.keys() - before.keys())]
        words += [f"node {before[name][0]} was lost" for name in sorted(before.keys() - self._nodes.keys())]
        if first:
            words = [f"Ray cluster of {_count(len(self._nodes), 'node')}"]
        if words:
            text = f"{', '.join(words)}: room for {_count(room, 'training')} at once."
            self._news.append(Machines("", text, room, len(self._nodes)))

    def _slots(self, resources: dict[str, float]) -> int:
        """Trainings that a node has room for."""
        by_cpu = resources.get("CPU", 0.0) / self.cpus
        return int(min(by_cpu, resources.get("GPU", 0.0) / self.gpus) if self.gpus else by_cpu)

    def submit(self, job: Job) -> None:
        """Adds a job to the queue."""
        self._waiting.append(job)
        self._hand_out()

    def _hand_out(self) -> None:
        """Submits waiting jobs to Ray: as many as there is room for and a few more, for Ray's queue has no order."""
        from workflow_rl.search.remote_training import pack
        from workflow_rl.search.worker_pool import training_result

        self._wait()
        room = self.room
        most = self.jobs or room + 1 + room // SURPLUS
        while self._waiting and len(self._running) < most:
            job = self._waiting.popleft()
            interval = max(PROGRESS_SECONDS, room / MOST_MESSAGES)
            parcel = pack(job, interval, self.checkpoint_seconds)
            result = training_result(job.path) if parcel is None else None
            if result is not None:
                self._news.append(Trained(job.name, result))
                continue
            train = self._ray.remote(_train_on_node).options(
                num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0, num_returns="streaming",
                name=f"training {job.name}",
            )  # fmt: skip
            self._running[train.remote(parcel)] = job

    def news(self, timeout: float) -> News | None:
        """The next news; None if there are none for ``timeout`` seconds."""
        self._look()
        if not self._news:
            self._listen(timeout)
        return self._news.popleft() if self._news else None

    def _listen(self, timeout: float) -> None:
        """Waits for messages and processes all that have arrived."""
        if not self._running:
            time.sleep(timeout)
            self._hand_out()
            return
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        for messages in ready:
            try:
                kind, value = self._ray.get(next(messages))
            except self._ray.exceptions.RayError as error:
                self._begin_again(messages, error)
            except StopIteration:
                self._begin_again(messages, "it ended without a result")
            else:
                self._process(messages, kind, value)
        self._hand_out()

    def _process(self, messages: Any, kind: str, value: Any) -> None:
        from workflow_rl.search.remote_training import CHECKPOINT, DONE, ERROR, FAILED, PROGRESS, keep

        job = self._running[messages]
        if kind == ERROR:
            raise UserError(value)
        if kind == STARTED:
            self._places[job.name] = value
            self._lost.discard(value)
        elif kind == PROGRESS:
            self._news.append(value)
        elif kind == CHECKPOINT:
            keep(job, kind, value)
            self._deaths.pop(job.name, None)
        elif kind == DONE:
            del self._running[messages]
            result = keep(job, kind, value)
            assert result is not None
            self._news.append(Trained(job.name, result))
        elif kind == FAILED:
            self._begin_again(messages, value)

    def _begin_again(self, messages: Any, error: Any) -> None:
        """Submits a lost training again, unless the loss seems to be its own fault."""
        job, exceptions = self._running.pop(messages), self._ray.exceptions
        place = self._places.pop(job.name, "")
        if "failed to import on the worker" in str(error):
            raise UserError("a node of the cluster has no workflow_rl; install the same on all of them.")
        if isinstance(error, exceptions.NodeDiedError | exceptions.ObjectLostError):
            reason = "its node was lost"
            self._lost |= {place} - {""}
            self._looked -= SECONDS_BETWEEN_LOOKS  # look again now
        else:
            reason = _first_sentence(error.cause if isinstance(error, exceptions.RayTaskError) else error)
            self._deaths[job.name] = self._deaths.get(job.name, 0) + 1
            if self._deaths[job.name] >= MOST_DEATHS:
                raise UserError(f"training {job.name} was lost {MOST_DEATHS} times ({reason}); Ray's logs may say why.")
        self._waiting.appendleft(job)
        self._news.append(Restarted(job.name, reason))

    def close(self) -> None:
        """Ends the trainings, and the connection or the cluster if it started them; does not wait for the end."""
        self._connected.wait()
        self._closing.set()


def _first_sentence(error: object) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].split(". ")[0].rstrip(".")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
