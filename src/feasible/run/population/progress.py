"""What a person sees of populations: a bar for each, with speed, expected end and failures."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from feasible.run.config import RunConfig
from feasible.run.population.training import PopulationWatcher
from feasible.run.sweep.overview import expected_end
from feasible.run.training import Line


class PopulationBars(PopulationWatcher):
    """One live view, a bar for each population in turn; use as a context."""

    def __init__(self, console: Console):
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}"),
            console=console,
            refresh_per_second=4,
        )

    def __enter__(self) -> "PopulationBars":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def begin(self, configs: Sequence[RunConfig], step: int, memory: str) -> None:
        self._config, self._agents = configs[0], len(configs)
        self._rate = self._evaluation = 0.0
        self._failed = 0
        self._console.print(f"{self._config.task}: {memory}")
        about = f"{self._config.task}, {self._agents} agents"
        self._bar = self._progress.add_task(about, total=self._config.steps, completed=step, news="compiling")

    def advanced(self, step: int) -> None:
        # The bar's own clock draws it; a number is all it needs, and not at every step.
        if step % 64 == 0 or step == self._config.steps:
            self._progress.update(self._bar, completed=step)

    def logged(self, config: RunConfig, line: Line) -> None:
        rate, step = line.get("time/steps_per_second"), line["step"]
        if isinstance(rate, float) and isinstance(step, int):
            self._rate = rate
            self._progress.update(self._bar, completed=step, news=self._news(step))

    def evaluated(self, step: int, seconds: float) -> None:
        self._evaluation = seconds

    def failed(self, config: RunConfig, reason: str) -> None:
        self._failed += 1
        self._console.print(f"{config.name} failed: {reason}", style="red", markup=False)

    def _news(self, step: int) -> str:
        living = self._agents - self._failed
        news = f"{self._rate * living:,.0f} agent-steps/s, {self._failed} failed"
        steps, interval = self._config.steps, self._config.eval_every
        if step < steps:
            evaluations = -(-steps // interval) - step // interval
            seconds = (steps - step) / self._rate + evaluations * self._evaluation
            news += f", {expected_end(seconds, time.time())}"
        return news
