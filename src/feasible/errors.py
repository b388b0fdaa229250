"""Errors that carry a name, so that a caller can tell them apart."""


class EmptySetError(ValueError):
    """A feasible set contains no action at all."""


class InfeasibleActionError(ValueError):
    """An action outside its feasible set was about to be executed; nothing was stepped."""


class InvalidStepError(ValueError):
    """An environment returned something that is no observation, reward or end of an episode."""


def sentence(error: BaseException) -> str:
    """What a person is told of an error."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
