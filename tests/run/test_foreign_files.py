"""Files from elsewhere: each attack is one sentence that names file and field, and nothing is read, written or lost."""

import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from feasible.run.disk.archive import ArchiveError, write_atomically
from feasible.run.folder import RunFolder
from feasible.run.launch import configure, new_run
from feasible.run.sweep.overview import Follower
from feasible.run.sweep.remote import Store
from tests.run.runs import files
from tests.run.test_damage import complaint

pytestmark = pytest.mark.usefixtures("toy")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return new_run(tmp_path / "runs", configure("toy", "nfwpo", 0, steps=140))


def changed_config(folder: RunFolder, change: Callable[[dict], object]) -> Path:
    path = folder.path / "config.json"
    described = json.loads(path.read_text())
    change(described)
    path.write_text(json.dumps(described))
    return path


CONFIGS: dict[str, tuple[Callable[[dict], object], str]] = {
    "zero interval": (lambda c: c.update(eval_every=0), "eval_every must be a whole number of at"),
    "negative interval": (lambda c: c.update(log_every=-5), "log_every must be a whole number of at least 1"),
    "fraction": (lambda c: c.update(checkpoint_every=1.5), "checkpoint_every must be a whole number"),
    "negative seed": (lambda c: c.update(seed=-1), "seed must be a whole number of at least 0, not -1"),
    "huge seed": (lambda c: c.update(seed=2**70), "seed must be a whole number of at most 4294967295"),
    "true as steps": (lambda c: c.update(steps=True), "steps must be a whole number"),
    "a billion episodes": (lambda c: c.update(episodes=10**9), "episodes must be a whole number"),
    "list as task": (lambda c: c.update(task=["toy"]), "task must be text, not ['toy']"),
    "control characters": (lambda c: c.update(variant="\x1b[2J"), r"variant must be text on one line"),
    "path as variant": (lambda c: c.update(variant="../../x"), "variant must be the name of a folder, without '/'"),
    "long name": (lambda c: c.update(variant="v" * 10**5), "variant must be a name of at most 200 bytes"),
    "unknown task": (lambda c: c.update(task="../x"), "There is no task '../x'"),
    "unknown preset": (lambda c: c.update(preset="best"), "preset must be paper or fair or default, not 'best'"),
    "no field": (lambda c: c.pop("seed"), "seed is missing"),
    "no algorithm": (lambda c: c.pop("algorithm"), "algorithm is missing"),
    "text as algorithm": (lambda c: c.update(algorithm="os.system"), "'os.system' describes no algorithm"),
    "rule as algorithm": (lambda c: c.update(algorithm={"kind": "PolicyGradient"}), "describes no algorithm"),
    "no rule": (lambda c: c["algorithm"].update(rule=3), "DDPG: rule must be an actor rule, not 3"),
    "text as number": (lambda c: c["algorithm"].update(batch_size="16"), "DDPG: batch_size must be a whole number"),
    "negative size": (lambda c: c["algorithm"].update(replay_size=-1), "DDPG: replay_size must be at least 1, not -1"),
    "huge size": (lambda c: c["algorithm"].update(replay_size=2**70), "DDPG: replay_size must be at most 2147483647"),
    "not finite": (lambda c: c["algorithm"].update(discount=float("nan")), "DDPG: discount must be finite, not nan"),
    "many layers": (lambda c: c["algorithm"].update(hidden_layers=[1] * 10**4), "must have at most 100 layers"),
}


@pytest.mark.parametrize("attack", CONFIGS)
def test_what_train_refuses_resume_refuses(attack: str, folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    change, said = CONFIGS[attack]
    path = changed_config(folder, change)
    before = files(folder.path)
    sentence = complaint(capsys, "resume", folder.path)
    where = folder.path if attack == "unknown task" else f"{path} is damaged or of another version"
    assert sentence.startswith(f"{where}: ")
    assert said in sentence
    assert len(sentence) < 2 * len(str(path)) + 600
    assert files(folder.path) == before


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (b"", "config.json is no JSON"),
        (b'\xff\xfe{"task": 1}', "config.json is no JSON"),
        (b"[" * 100_000, "config.json is nested too deeply"),
        (b'{"a": ' * 500 + b"1" + b"}" * 500, "config.json is nested too deeply"),
        (b"9" * 5000, "config.json is no JSON"),
        (b"[]", "config.json is no JSON object"),
        (b" " * 2**21 + b"{}", "config.json has more than 1,048,576 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("command", ["resume", "evaluate", "export"])
def test_what_is_no_configuration_is_one_sentence(
    command: str, contents: bytes, said: str, folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "config.json").write_bytes(contents)
    assert said in complaint(capsys, command, folder.path)


@pytest.mark.parametrize("make_it", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_not_opened(
    make_it: Callable[[Path], None], folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "config.json").unlink()
    make_it(folder.path / "config.json")
    assert "config.json is no file" in complaint(capsys, "resume", folder.path)
    make_it(folder.policy)
    (folder.path / "config.json").rename(folder.path / "away")
    folder.create(configure("toy", "nfwpo", 0, steps=140))
    assert "policy.feasible is no file" in complaint(capsys, "evaluate", folder.path)


def test_nothing_is_written_or_deleted_through_links(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    others = folder.path.parents[3] / "others"
    others.mkdir()
    for name in ("diary", "replay-0-1.npy", "x.part"):
        (others / name).write_text("precious")
    before = files(others)
    folder.metrics.symlink_to(others / "diary")
    assert f"{folder.metrics} is a link" in complaint(capsys, "resume", folder.path)
    folder.metrics.unlink()
    folder.checkpoint.symlink_to(others)
    assert f"{folder.checkpoint} is a link" in complaint(capsys, "resume", folder.path)
    (folder.path / "policy.feasible.part").symlink_to(others / "diary")
    write_atomically(folder.policy, b"new")
    assert folder.policy.read_bytes() == b"new"
    assert files(others) == before


@pytest.mark.parametrize("said", ["../../../../precious", "..", 3, None])
def test_a_population_is_beside_its_methods_and_nowhere_else(said: object, folder: RunFolder) -> None:
    (folder.path.parents[3] / "precious").mkdir()
    folder.checkpoint.mkdir()
    (folder.checkpoint / "population.json").write_text(json.dumps({"population": said}))
    with pytest.raises(ArchiveError, match=r"population\.json is damaged: it names no folder of a population"):
        folder.population()


def test_metrics_of_others_do_not_end_an_overview(folder: RunFolder) -> None:
    lines = [
        "[]",
        "3",
        "[" * 10**5,
        '{"step": 1e999, "eval/return": NaN}',
        f'{{"step": {"9" * 400}}}',
        '{"x": "\\ud800"}',
    ]
    folder.metrics.write_bytes("\n".join(lines).encode() + b'\n\xff\n{"eval/return": "1"}\n')
    follower = Follower(folder)
    follower.look()
    assert (follower.step, follower.number("eval/return")) == (0, None)


def test_names_at_an_address_do_not_lead_out_of_the_copy(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    store = Store(f"file://{tmp_path / 'store'}")
    for part in ("../x", "/x", "checkpoint/../../x"):
        store._listing = lambda name, part=part: {part: 1}  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(ValueError, match="leads out of the run's folder"):
            store.pull("run", tmp_path / "copy", part)
    with pytest.raises(ValueError, match="leads out of the run's folder"):
        store.pull("../run", tmp_path / "copy")
    assert not (tmp_path / "x").exists()


def test_a_name_with_markup_is_shown_as_it_is(folder: RunFolder) -> None:
    from rich.console import Console

    from feasible.run.progress import ProgressBar
    from feasible.run.sweep.overview import Overview

    odd = replace(folder.config(), variant="[red]")
    changed_config(folder, lambda described: described.update(variant="[red]"))
    other = new_run(folder.path.parents[2], replace(odd, variant="[bold]"))
    console = Console(file=io.StringIO(), width=200)
    console.print(Overview([folder, other], 1).drawn({folder: "waiting", other: "done"}, {}))
    with ProgressBar(console) as bar:
        bar.begin([odd], 0, "")
    printed = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "([red])" in printed
    assert "nfwpo+[red]" in printed
