"""Writes the figures of each update for TensorBoard, into the run's own directory."""

from __future__ import annotations

from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from workflow_rl.training.events import UpdateEvent


class TensorBoardLog:
    """Called with each update; one graph per figure, with the warm start beside the training."""

    def __init__(self, run: Path) -> None:
        self.directory = run / "tensorboard"
        self.writers: dict[str, SummaryWriter] = {}

    def __call__(self, event: UpdateEvent) -> None:
        """Adds the figures of one update."""
        phase, update = event.phase, event.update
        if phase not in self.writers:
            self.writers[phase] = SummaryWriter(str(self.directory / phase), purge_step=update)
        for name, value in event.to_json().items():
            if isinstance(value, (int, float)) and name not in ("update", "fast"):
                self.writers[phase].add_scalar(name, value, update)

    def close(self) -> None:
        """Flushes and closes the files."""
        for writer in self.writers.values():
            writer.close()
