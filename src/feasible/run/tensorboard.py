"""TensorBoard event files of a run, for people who watch their runs there."""

from pathlib import Path

from feasible.extras import require
from feasible.run.config import RunConfig
from feasible.run.watch import Line, Watcher


def require_tensorboard() -> None:
    """Refuse to go on without the package, before anything is written."""
    require("tensorboard", "--tensorboard")


class EventFiles(Watcher):
    """Writes every metric of every line as a scalar under its own name."""

    def __init__(self, folder: Path):
        require_tensorboard()
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        self._open = lambda: EventFileWriter(str(folder / "tensorboard"))
        self._writer: EventFileWriter | None = None

    def logged(self, config: RunConfig, line: Line) -> None:
        del config
        self._writer = self._writer or self._open()  # only now: a run that is refused leaves nothing behind
        values = [
            self._summary.Value(tag=name, simple_value=value)
            for name, value in line.items()
            if isinstance(value, int | float) and name != "step"
        ]
        self._writer.add_event(self._event(step=int(line["step"]), summary=self._summary(value=values)))  # pyright: ignore[reportArgumentType]
        self._writer.flush()
