"""The command line, as a person uses it."""

import functools
import importlib
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

from feasible.catalogue.registry import METHODS, TASKS
from feasible.cli import COMMANDS, main, parsed
from feasible.run.folder import read_metrics
from feasible.run.launch import configure
from feasible.run.options import Options
from tests.run.runs import as_a_user

ROOT = Path(__file__).parents[1]


def test_tasks_shows_every_task_with_its_constraint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    main(["tasks"])
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    for task in TASKS.values():
        assert any(line.split()[:1] == [task.name] for line in lines)
        assert task.words in printed


def test_tasks_fit_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["tasks"])
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(len(line) for line in printed.splitlines()) <= 80


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    for name in COMMANDS:
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert line.endswith(".")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_ends_with_examples_that_it_understands(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    _, _, examples = capsys.readouterr().out.rpartition("example")
    _, *lines = examples.splitlines()
    assert lines
    for line in lines:
        program, *words = shlex.split(line)
        assert (program, words[0]) == ("feasible", command)
        call = parsed(COMMANDS, words)
        assert isinstance(call, functools.partial)
        assert call.func is COMMANDS[command]
        named = [word for word in words if word in ("nfwpo", "ddpg-projection", "td3-projection", "sac-projection")]
        assert set(named) <= set(METHODS)


def test_help_of_training_groups_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    titles = re.findall(r"^[ ╭─]*((?:\w+ )?options)[ ╮─]*$", capsys.readouterr().out, re.MULTILINE)
    assert titles == ["options", "output options", "training options"]


@pytest.mark.parametrize("command", ["train", "compare"])
def test_help_says_what_every_option_of_training_is(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert "Steps between checkpoints. If omitted: 10,000." in printed
    assert {f"--{name.replace('_', '-')}" for name in Options.__annotations__} <= set(printed.split())
    assert configure("reacher", "nfwpo", 0).checkpoint_every == 10_000


def test_algos_shows_every_method(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    main(["algos"])
    printed = capsys.readouterr().out
    for method in METHODS.values():
        assert any(line.split()[:1] == [method.name] for line in printed.splitlines())
    assert "--algo recommended" in printed


TRAIN = ["train", "--task", "reacher", "--algo", "nfwpo"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["train", "--task", "reecher", "--algo", "nfwpo"],
            "There is no task 'reecher'; did you mean 'reacher'? `feasible tasks` lists all",
        ),
        (["train", "--task", "reacher", "--algo", "nfwp"], "There is no algorithm 'nfwp'; did you mean 'nfwpo'? Known"),
        (
            ["train", "--task", "bss-3", "--algo", "nfwpo", "--preset", "paper"],
            "algo: 'nfwpo' is not in the preset 'paper' of the task 'bss-3', which",
        ),
        ([*TRAIN, "--set", "colour=red"], "nfwpo: There is no hyper-parameter 'colour'. Known: noise"),
        ([*TRAIN, "--set", "batch_size"], "--set takes NAME=VALUE, not 'batch_size'."),
        ([*TRAIN, "--set", "batch_size=many"], "nfwpo: batch_size must be a whole number, not 'many'."),
        ([*TRAIN, "--set", "hidden_layers=[3.5]"], "nfwpo: hidden_layers must be a list, each a whole number, not"),
        ([*TRAIN, "--set", "discount=null"], "nfwpo: discount must be a number, not None."),
        ([*TRAIN, "--set", "replay_size=0"], "nfwpo: replay_size must be at least 1, not 0."),
        ([*TRAIN, "--steps", "abc"], "--steps must be a whole number, not 'abc'."),
        ([*TRAIN, "--checkpoint_every=1e4"], "--checkpoint-every must be a whole number, not '1e4'."),
        ([*TRAIN, "--seed", "x", "--steps", "5"], "--seed must be a whole number, not 'x'."),
        (
            ["compare", "--tasks", "reacher", "--algos", "nfwpo", "--seeds", "0", "x"],
            "--seeds must be whole numbers, not '0 x'.",
        ),
        (["evaluate", "nowhere", "--episodes", "3.5"], "--episodes must be a whole number, not '3.5'."),
        (["demo", "--steps", "many"], "--steps must be a whole number, not 'many'."),
        ([*TRAIN, "--steps", "0"], "steps must be a whole number of at least 1, not 0."),
        ([*TRAIN, "--seed", "-1"], "seed must be a whole number of at least 0, not -1."),
        ([*TRAIN, "--eval-every", "0"], "eval_every must be a whole number of at least 1, not 0."),
        ([*TRAIN, "--episodes", "0"], "episodes must be a whole number of at least 1, not 0."),
        ([*TRAIN, "--checkpoint-every", "-3"], "checkpoint_every must be a whole number of at least 1, not -3."),
        ([*TRAIN, "--variant", "../other"], "variant must be the name of a folder, without '/', not '../other'."),
        ([*TRAIN, "--variant", "a\nb"], "variant must be text on one line, without control characters, not 'a\\nb'."),
        (
            [*TRAIN, "--seed", str(2**70)],
            "seed must be a whole number of at most 4294967295, not 1180591620717411303424.",
        ),
        ([*TRAIN, "--episodes", "1000000000"], "episodes must be a whole number of at most 10000, not 1000"),
        ([*TRAIN, "--set", f"noise={'9' * 400}"], "nfwpo: noise must be at most 2147483647, not 99"),
        ([*TRAIN, "--set", f"noise={'9' * 5000}"], "--set noise: the value is no setting"),
        ([*TRAIN, "--set", f"noise={'[' * 100_000}"], "--set noise: the value is no setting"),
        (["evaluate", "nowhere", "--seed", "-1"], "seed must be a whole number of at least 0, not -1."),
        (["evaluate", "nowhere"], "nowhere holds no run: there is no config.json in it."),
        (["evaluate", "nowhere", "--episodes", "0"], "episodes must be at least 1, not 0."),
        (["evaluate", "nowhere", "--video", "film.avi"], "video must end in .mp4 or .gif, not 'film.avi'."),
    ],
)
def test_bad_input_is_answered_with_one_sentence(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"feasible: {said}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as end:
        main([*TRAIN, "--out", str(tmp_path / "file")])
    assert end.value.code == 1
    assert (
        capsys.readouterr().err == f"feasible: {tmp_path / 'file' / 'reacher' / 'nfwpo' / 'seed-0'}: Not a directory\n"
    )


def test_an_interrupt_outside_of_training_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "tasks", interrupted)
    with pytest.raises(SystemExit) as end:
        main(["tasks"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "feasible: interrupted.\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a short run of BSS-5 in short episodes, trained by the command line, with TensorBoard's files."""
    task = TASKS["bss-5"]
    short = replace(task, options={**task.options, "episode_length": 5}, sizes=None)
    out = tmp_path_factory.mktemp("runs")
    idle = ["warmup=0", "actor_interval=100", "critic_interval=100"]  # no update to compile
    small = ["hidden_layers=[16]", "batch_size=4", "replay_size=50", *idle]
    command = ["train", "--task", "bss-5", "--algo", "nfwpo", "--steps", "40", "--eval-every", "20", "--episodes", "2"]
    with as_a_user(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "bss-5", short)  # pyright: ignore[reportArgumentType]
        main([*command, "--variant", "short", "--out", str(out), "--tensorboard", "--set", *small])
        yield out / "bss-5" / "nfwpo+short" / "seed-0"


def test_the_event_files_hold_the_metrics(trained: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(trained / "tensorboard"))
    events.Reload()
    lines = read_metrics(trained / "metrics.jsonl")
    names = {name for line in lines for name, value in line.items() if not isinstance(value, list)} - {"step"}
    assert set(events.Tags()["scalars"]) == names
    for name in names:
        written = [(event.step, event.value) for event in events.Scalars(name)]
        assert written == [(line["step"], pytest.approx(line[name], rel=1e-6)) for line in lines if name in line]


def decoded(film: Path) -> np.ndarray:
    """The frames of a film, by decoders that did not write it."""
    if film.suffix == ".gif":
        with Image.open(film) as picture:
            return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(picture)])
    decoder = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-i", str(film)]
    raw = [*decoder, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    return np.frombuffer(subprocess.run(raw, capture_output=True, check=True).stdout, np.uint8).reshape(-1, 720, 720, 3)


@pytest.mark.parametrize("kind", ["gif", "mp4"])
def test_an_evaluation_prints_its_returns_and_writes_a_film(
    kind: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "films" / f"film.{kind}"
    main(["evaluate", str(trained), "--episodes", "2", "--seed", "3", "--video", str(film)])
    printed = capsys.readouterr().out
    returns = [float(cell) for cell in re.findall(r"│ +\d+ │ +(-?[\d.]+) │", printed)]
    assert len(returns) == 2
    assert f"{sum(returns) / 2:.1f}" in printed
    frames = decoded(film)
    assert frames.shape == (5, 720, 720, 3)
    assert (frames != frames[0]).any()


@pytest.mark.slow
def test_a_robot_is_filmed(tmp_path: Path) -> None:
    small = ["hidden_layers=[16,16]", "warmup=5", "batch_size=4", "replay_size=50"]
    with as_a_user():
        main([*TRAIN, "--steps", "20", "--episodes", "1", "--variant", "v", "--out", str(tmp_path), "--set", *small])
        run = tmp_path / "reacher" / "nfwpo+v" / "seed-0"
        main(["evaluate", str(run / "policy.feasible"), "--episodes", "1", "--video", str(tmp_path / "film.gif")])
    assert len(decoded(tmp_path / "film.gif")) == 50


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["task"])
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert "tasks" in printed.err + printed.out


def test_the_version_is_the_project_s(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert capsys.readouterr().out == f"feasible {version}\n"


@pytest.mark.parametrize("columns", [40, 50, 60, 79, 80, 100, 160])
@pytest.mark.parametrize("command", ["tasks", "algos"])
def test_lists_can_be_read_in_narrow_terminals(
    command: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is too long, no word is cut, and no column is a character wide."""
    monkeypatch.setenv("COLUMNS", str(columns))
    main([command])
    printed = capsys.readouterr().out
    assert max(len(line) for line in printed.splitlines()) <= columns
    assert "…" not in printed
    found = set(printed.split())
    wanted = [f"{task.name} {task.title} {task.words} {task.steps:,}" for task in TASKS.values()]
    if command == "algos":
        wanted = [f"{method.name} {method.title} {method.summary} {method.sets}" for method in METHODS.values()]
    assert {word for text in wanted for word in text.split()} <= found | {word.rstrip(",.:") for word in found}


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["feasible"].partition(":")
    assert getattr(importlib.import_module(module), name) is main
