"""Archives: a JSON description and named arrays in one file, written whole or not at all, read without running code.

A zip of `description.json` and one `.npy` an array, uncompressed, with no times in it: the same contents give the same
bytes.
"""

import errno
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
    """Put the contents in the place of the file, on the disk; on any failure the file is as it was."""
    temporary = path.with_name(path.name + ".part")
    try:
        with temporary.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as cause:
        temporary.unlink(missing_ok=True)
        raise OSError(
            cause.errno,
            f"{path} could not be written ({cause.strerror}): free some space or choose another folder; "
            "what was saved before is intact",
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
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read(DESCRIPTION))
            if not isinstance(description, dict):
                raise ValueError(f"{DESCRIPTION} is no object")
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in names
            }
    except FileNotFoundError:
        raise
    except DAMAGE as cause:
        raise ArchiveError(f"{path} is damaged or no file of feasible ({cause}).") from cause
    except OSError as cause:
        if cause.errno != errno.EINVAL:
            raise
        raise ArchiveError(f"{path} is damaged: it points to places outside the file.") from cause
    return description, arrays


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
