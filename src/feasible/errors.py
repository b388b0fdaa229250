"""Errors that carry a name, so that a caller can tell them apart."""

import difflib
import reprlib
from collections.abc import Iterable


class EmptySetError(ValueError):
    """A feasible set contains no action at all."""


class InfeasibleActionError(ValueError):
    """An action outside its feasible set was about to be executed; nothing was stepped."""


class InvalidStepError(ValueError):
    """An environment returned something that is no observation, reward or end of an episode."""


class TaskNotFoundError(ValueError):
    """A task is named that cannot be found or imported here."""


def sentence(error: BaseException) -> str:
    """What a person is told of an error."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def unknown(kind: str, name: object, known: Iterable[str], where: str = "") -> ValueError:
    """The error for a name that is not known: all that are, and the one that may be meant if one is near."""
    names = list(known)
    near = difflib.get_close_matches(str(name)[:200].lower(), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return ValueError(f"{where}There is no {kind} {reprlib.repr(name)}{hint} Known: {', '.join(names)}.")
