"""Errors that carry a name, so that a caller can tell them apart."""

import difflib
import reprlib
from collections.abc import Iterable
from traceback import walk_tb


class EmptySetError(ValueError):
    """A feasible set contains no action at all."""


class InfeasibleActionError(ValueError):
    """An action outside its feasible set was about to be executed; nothing was stepped."""


class InvalidStepError(ValueError):
    """An environment returned something that is no observation, reward or end of an episode."""


class CannotCopyError(ValueError):
    """Copies are wanted of an environment that nobody knows how to make anew."""


class TaskNotFoundError(ValueError):
    """A task is named that cannot be found or imported here."""


def sentence(error: BaseException) -> str:
    """What a person is told of an error."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def first_line(error: BaseException) -> str:
    """What is told of an error of a user's code: its kind and the first line of its message, or where it was raised."""
    said = str(error).strip().partition("\n")[0].rstrip(".")
    if said or error.__traceback__ is None:
        return f"{type(error).__name__}: {said}".rstrip(": ")
    *_, (frame, line) = walk_tb(error.__traceback__)
    return f"{type(error).__name__} in {frame.f_code.co_filename}, line {line}"


def unknown(
    kind: str, name: object, known: Iterable[str], where: str = "", instead: str | None = None, listed: str = ""
) -> ValueError:
    """The error for a name that is not known: all that are, or where they are listed, and what is meant, by `instead`
    or since one is near."""
    names = list(known)
    near = nearest(str(name), names)
    hint = f": {instead}." if instead else f"; did you mean {near!r}?" if near else "."
    told = listed or f"Known: {', '.join(names)}."
    return ValueError(f"{where}There is no {kind} {reprlib.repr(name)}{hint} {told}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs by a slip of the pen or goes on from the given one, as `batch_size` from `batch`."""
    names, name = list(known), name[:200].lower()
    longer = [other for other in names if len(name) > 3 and other.startswith((f"{name}_", f"{name}-"))]
    return next(iter([*difflib.get_close_matches(name, names, n=1, cutoff=NEAR), *longer]), None)


NEAR = 0.75  # of difflib's ratio: `verbose` is 0.67 of `averaged`, and `batchsize` 0.95 of `batch_size`
