"""TensorBoard event files of a run, for people who watch their runs there."""

from importlib.util import find_spec
from pathlib import Path

from feasible.run.config import RunConfig
from feasible.run.training import Line, Watcher


def require_tensorboard() -> None:
    """Refuse to go on without the package, before anything is written."""
    if find_spec("tensorboard") is None:
        raise ValueError("--tensorboard needs the package: pip install 'feasible[tensorboard]'.")


class EventFiles(Watcher):
    """Writes every metric of every line as a scalar under its own name."""

    def __init__(self, folder: Path):
        require_tensorboard()
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        self._open = lambda: EventFileWriter(str(folder / "tensorboard"))

    def begin(self, config: RunConfig, step: int) -> None:
        """Open the file, only now: a run that is refused leaves nothing behind."""
        del config, step
        self._writer = self._open()

    def logged(self, line: Line) -> None:
        values = [
            self._summary.Value(tag=name, simple_value=value)
            for name, value in line.items()
            if isinstance(value, int | float) and name != "step"
        ]
        self._writer.add_event(self._event(step=int(line["step"]), summary=self._summary(value=values)))  # pyright: ignore[reportArgumentType]
        self._writer.flush()
