"""Errors that carry a name, so that a caller can tell them apart."""


class EmptySetError(ValueError):
    """A feasible set contains no action at all."""


class InfeasibleActionError(ValueError):
    """An action outside its feasible set was about to be executed; nothing was stepped."""
