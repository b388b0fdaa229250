"""Archives: the same contents are the same bytes, any damage is found, and nothing in a file is ever run."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feasible.run.disk.archive import ArchiveError, read_archive, write_archive, write_atomically

DESCRIPTION = {"format": 1, "name": "é", "list": [1.5, None]}
ARRAYS = {
    "scalar": np.float32(3.0),
    "matrix": np.arange(6, dtype=np.int32).reshape(2, 3),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "empty": np.zeros((0, 4), np.float32),
    "words": np.array([1, 2**63], np.uint64),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "file"
    write_archive(path, DESCRIPTION, {name: np.asarray(array) for name, array in ARRAYS.items()})
    return path


def test_what_is_written_is_read(archive: Path) -> None:
    description, arrays = read_archive(archive)
    assert description == DESCRIPTION
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].shape == array.shape
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_the_same_contents_are_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    backwards = dict(reversed(DESCRIPTION.items()))
    write_archive(tmp_path / "other name", backwards, {name: np.asarray(array) for name, array in ARRAYS.items()})
    assert (tmp_path / "other name").read_bytes() == archive.read_bytes()


def test_others_can_read_it(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened, np.load(archive) as arrays:
        assert json.loads(opened.read("description.json")) == DESCRIPTION
        np.testing.assert_array_equal(arrays["matrix"], ARRAYS["matrix"])


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}, None], dtype=object)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        write_archive(tmp_path / "file", {}, {"objects": objects})
    assert list(tmp_path.iterdir()) == []
    pickled = io.BytesIO()
    np.save(pickled, objects, allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "file", "w") as opened:
        opened.writestr("description.json", "{}")
        opened.writestr("objects.npy", pickled.getvalue())
    with pytest.raises(ArchiveError, match="allow_pickle=False"):
        read_archive(tmp_path / "file")


@pytest.mark.parametrize("contents", [b"", b"PK", b"not a zip", bytes(1000)])
def test_other_files_are_refused(contents: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(contents)
    with pytest.raises(ArchiveError, match="is damaged or no file of feasible"):
        read_archive(tmp_path / "file")


@pytest.mark.parametrize("text", ["", "[]", "{", "3"])
def test_descriptions_are_objects(text: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "file", "w") as opened:
        opened.writestr("description.json", text)
    with pytest.raises(ArchiveError):
        read_archive(tmp_path / "file")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("default")  # a damaged name, in the zip's directory, is a warning of its own
def test_damage_is_found_or_did_no_harm(archive: Path, data: st.DataObject) -> None:
    contents = bytearray(archive.read_bytes())
    if data.draw(st.booleans(), "cut"):
        del contents[data.draw(st.integers(0, len(contents) - 1), "length") :]
    else:
        contents[data.draw(st.integers(0, len(contents) - 1), "place")] ^= data.draw(st.integers(1, 255), "bits")
    assert_found_or_harmless(archive, contents)


@pytest.mark.filterwarnings("default")
def test_every_bit_of_the_last_entry_and_the_end_counts(archive: Path) -> None:
    """The zip's directory says where everything is: any of its bits can point out of the file."""
    contents = bytearray(archive.read_bytes())
    for place in range(len(contents) - 120, len(contents)):
        for bit in range(8):
            contents[place] ^= 1 << bit
            assert_found_or_harmless(archive, contents)
            contents[place] ^= 1 << bit


def assert_found_or_harmless(archive: Path, contents: bytearray) -> None:
    harmed = archive.with_name("harmed")
    harmed.write_bytes(contents)
    try:
        description, arrays = read_archive(harmed)
    except ArchiveError:
        return
    assert description == DESCRIPTION
    for name in set(ARRAYS) & set(arrays):
        np.testing.assert_array_equal(arrays[name], ARRAYS[name])


def test_a_write_that_fails_leaves_the_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"good")

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(name, fail)
            with pytest.raises(OSError, match=r"No space left on device.*intact"):
                write_atomically(path, b"new contents")
        assert path.read_bytes() == b"good"
        assert list(tmp_path.iterdir()) == [path]
