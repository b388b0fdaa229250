"""Archives: a JSON description and named arrays in one file, written whole or not at all, read without running code.

A zip of `description.json` and one `.npy` an array, uncompressed, with no times in it: the same contents give the same
bytes. Reading takes no more memory than the file has bytes: its directory is checked before any member is read.
"""

import errno
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from feasible.run.plain_json import parse_object

DESCRIPTION = "description.json"
# What reading damaged bytes raises: of zip (its last two: a method or a password that the flags ask for), JSON and npy.
DAMAGE = (
    zipfile.BadZipFile,
    KeyError,
    ValueError,
    EOFError,
    zlib.error,
    MemoryError,
    NotImplementedError,
    RuntimeError,
)


class ArchiveError(ValueError):
    """A file is no archive, is damaged, or belongs to something else."""


def write_atomically(path: Path, contents: bytes) -> None:
    """Put the contents instead of the file, on the disk; on any failure the file is as it was."""
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.unlink(missing_ok=True)  # what a kill left, or a link: nothing is written through it
        with temporary.open("xb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as cause:
        temporary.unlink(missing_ok=True)
        fix = "free some space or choose another folder" if path.parent.is_dir() else "make its folder first"
        if path.is_dir():
            fix = "name a file, not a folder"
        raise OSError(
            cause.errno,
            f"{path} could not be written ({cause.strerror}): {fix}; what was saved before is intact",
        ) from cause
    _sync_folder(path.parent)


def write_archive(path: Path, description: Mapping[str, object], arrays: Mapping[str, NDArray]) -> None:
    members = {}
    for name, array in arrays.items():
        data = io.BytesIO()
        np.lib.format.write_array(data, np.asarray(array, order="C"), allow_pickle=False)
        members[f"{name}.npy"] = data.getvalue()
    write_members(path, description, members)


def write_members(path: Path, description: Mapping[str, object], members: Mapping[str, bytes]) -> None:
    """Write an archive of the description and of named bytes."""
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(DESCRIPTION), json.dumps(description, indent=1, sort_keys=True))
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    write_atomically(path, contents.getvalue())


def read_archive(path: Path) -> tuple[dict[str, object], dict[str, NDArray]]:
    """The description and the arrays; damage anywhere is an `ArchiveError`, found by the zip's checksums."""
    with _opened(path) as archive:
        for name in archive.namelist():
            if name != DESCRIPTION and not name.endswith(".npy"):
                raise ValueError(f"it holds {name!r}, which is no array")
        description = parse_object(archive.read(DESCRIPTION), DESCRIPTION)
        names = [name for name in archive.namelist() if name != DESCRIPTION]
        return description, {name.removesuffix(".npy"): read_array(archive.read(name)) for name in names}


def read_description(path: Path) -> dict[str, object]:
    """The description alone, of an archive with any members."""
    with _opened(path) as archive:
        return parse_object(archive.read(DESCRIPTION), DESCRIPTION)


def read_array(contents: bytes) -> NDArray:
    """The array of a `.npy`; memory is taken only once its header asks for exactly the bytes that there are."""
    data = io.BytesIO(contents)
    version = np.lib.format.read_magic(data)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array has the format {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(data)
    there = len(contents) - data.tell()
    if not dtype.hasobject and (dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != there):
        raise ValueError(f"an array of shape {shape} and type {dtype} has {there} bytes")
    data.seek(0)
    return np.lib.format.read_array(data, allow_pickle=False)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip, its directory checked; damage that reading finds, here or in the block, is an `ArchiveError`."""
    if path.exists() and not path.is_file():
        raise ArchiveError(f"{path} is no file.")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_directory(archive, path.stat().st_size)
            yield archive
    except FileNotFoundError:
        raise
    except DAMAGE as cause:
        raise ArchiveError(f"{path} is damaged or no file of feasible ({cause}).") from cause
    except OSError as cause:
        if cause.errno != errno.EINVAL:
            raise
        raise ArchiveError(f"{path} is damaged: it points to places outside the file.") from cause


def _check_directory(archive: zipfile.ZipFile, size: int) -> None:
    """Members are stored as they are, each once, and together fit into the file."""
    members = archive.infolist()
    if any(m.compress_type != zipfile.ZIP_STORED or m.compress_size != m.file_size for m in members):
        raise ValueError("it is compressed")
    if len({m.filename for m in members}) < len(members):
        raise ValueError("it holds a name twice")
    if sum(m.file_size for m in members) > size:
        raise ValueError("its members are larger than the file")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
