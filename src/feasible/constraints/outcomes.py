"""What environments hand over, read: who gives something else is told so, with the step and the field.

Reading costs some tenths of a microsecond; what is wrong is looked for once something is.
"""

from traceback import walk_tb
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from feasible.constraints.observations import Layout, MisfitError
from feasible.errors import InvalidStepError

Shape: TypeAlias = tuple[int, ...]
# What observations are like: arrays of a shape, or structures, which `flattened` reads.
Form: TypeAlias = Shape | Layout
# An observation, a reward, whether the episode terminated, whether it was truncated, and the rest.
Outcome: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]

_FLAGS = ("reward", "terminated", "truncated")
# Gymnasium's code that reads what environments return. What it raises there is of the environment, but names nothing.
_COPIES = "gymnasium.vector.sync_vector_env"
_READERS = ("gymnasium.wrappers", _COPIES, "gymnasium.vector.utils")


def stepped(env: gym.Env, action: NDArray, form: Form | None, step: int) -> Outcome:
    """One step of an environment with observations of that form (None: any); `step` is its number."""
    try:
        outcome = env.step(action)
    except (KeyError, TypeError, ValueError) as error:
        _tell(error, env, form, step)
        raise
    try:
        obs, reward, terminated, truncated, _ = outcome
        usual = isinstance(reward, float) and type(terminated) is bool and type(truncated) is bool
        if (usual or _are_numbers(reward, terminated, truncated)) and _has_shape(obs, form):
            return outcome
    except (TypeError, ValueError):
        pass
    raise _fault(outcome, form, (), step)


def restarted(env: gym.Env, form: Form | None, step: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The beginning of an episode after so many steps."""
    outcome: Any = env.reset(**options)
    if not isinstance(outcome, tuple | list) or len(outcome) != 2:
        raise InvalidStepError(
            f"The environment returned {_words(outcome)} from reset at step {step}: it must return (observation, info)."
        )
    check_observation(outcome[0], form, step)
    return tuple(outcome)


def stepped_copies(env: VectorEnv, actions: NDArray, form: Form | None, step: int) -> Outcome:
    """One step of all copies; `form` is that of their observations: a shape of all together."""
    try:
        outcome = env.step(actions)
    except (KeyError, TypeError, ValueError) as error:
        _tell(error, env, form, step)
        raise
    copies = (env.num_envs,)
    try:
        seen, rewards, terminated, truncated, _ = outcome
        if _has_shape(seen, form) and all(_has_shape(values, copies) for values in (rewards, terminated, truncated)):
            return outcome
    except (TypeError, ValueError):
        pass
    raise _fault(outcome, form, copies, step)


def restarted_copies(env: VectorEnv, form: Form | None, step: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The beginning of an episode in all copies."""
    try:
        seen, info = env.reset(**options)
    except (KeyError, TypeError, ValueError) as error:
        _tell(error, env, form, step)
        raise
    if not isinstance(form, Layout):  # of structures every copy's has been told apart, or `flattened_copies` does
        check_observation(seen, form, step)
    return seen, info


def check_observation(obs: object, form: Form | None, step: int, of: str = "") -> None:
    """Refuse an observation that is not of that form; `of` names whose it is."""
    if isinstance(form, Layout):
        flattened(obs, form, step, of)
        return
    if form is None:
        return
    try:
        found = np.asarray(obs, np.float32).shape
    except (TypeError, ValueError):
        found = None
    if obs is None or isinstance(obs, str | bytes) or found is None:
        raise InvalidStepError(
            f"The observation{of} is {_words(obs)} at step {step}: the environment must give numbers of shape {form}."
        )
    if found != form:
        raise InvalidStepError(
            f"The observation{of} has shape {found} at step {step}, but the observation space has shape {form}."
        )


def flattened(obs: Any, form: Form | None, step: int, of: str = "") -> Any:
    """The observation, as the vector of what has a structure; `of` names whose it is."""
    if form is None or isinstance(form, tuple):
        return obs
    try:
        return form.flat(obs)
    except MisfitError as misfit:
        raise _misfit(misfit, step, of) from None


def flattened_copies(seen: Any, form: Form | None, copies: int, step: int) -> Any:
    """The same of the observations of all copies together, a row each."""
    if form is None or isinstance(form, tuple):
        return seen
    try:
        return form.flats(seen, copies)
    except MisfitError as misfit:
        raise _misfit(misfit, step) from None


def _misfit(misfit: MisfitError, step: int, of: str = "") -> InvalidStepError:
    return InvalidStepError(f"The observation{of} at step {step} is none of the observation space: {misfit}.")


def _has_shape(value: Any, form: Form | None) -> bool:
    """Whether a value has numbers of that shape; what are no numbers may be an error. Structures are not looked at."""
    if not isinstance(form, tuple):
        return True
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return value.shape == form
    return np.asarray(value, np.float32).shape == form


def _are_numbers(*values: Any) -> bool:
    for value in values:
        if getattr(value, "ndim", 0):
            return False
        float(value)  # raises for what is none
    return True


def _fault(outcome: Any, form: Form | None, of_numbers: Shape, step: int) -> InvalidStepError:
    """What is wrong with an outcome that could not be read."""
    if not isinstance(outcome, tuple | list) or len(outcome) != 5:
        return _not_five(_words(outcome), step)
    try:
        check_observation(outcome[0], None if of_numbers and isinstance(form, Layout) else form, step)
    except InvalidStepError as fault:
        return fault
    for name, value in zip(_FLAGS, outcome[1:4], strict=True):
        try:
            fits = np.asarray(value, np.float64).shape == of_numbers and value is not None
        except (TypeError, ValueError):
            fits = False
        if not fits:
            wanted = f"{of_numbers[0]} numbers, one for each copy" if of_numbers else "one number"
            return InvalidStepError(
                f"The {name} is {_words(value)} at step {step}: the environment must give {wanted}."
            )
    raise AssertionError(f"step {step}: nothing is wrong with {outcome!r}")


def _tell(error: Exception, env: gym.Env | VectorEnv, form: Form | None, step: int) -> None:
    """Raise in words what Gymnasium could not read of an environment; errors of the environment's own are let pass."""
    frames = [(frame, frame.f_globals["__name__"]) for frame, _ in walk_tb(error.__traceback__)]
    frames = [(frame, module) for frame, module in frames if not module.startswith("numpy")]
    if not frames or not frames[-1][1].startswith(_READERS):
        return
    for copy, obs in enumerate(getattr(env.unwrapped, "_env_obs", ())):
        check_observation(obs, form[1:] if isinstance(form, tuple) else form, step, f" of copy {copy}")
    at = [frame.f_locals["i"] for frame, module in frames if module == _COPIES and frame.f_code.co_name == "step"]
    of = f" of copy {at[-1]}" if at else ""
    if "unpack" in str(error):
        raise _not_five("no five values", step, of) from error
    if at and frames[-1][1] == _COPIES:
        raise InvalidStepError(f"The reward, terminated or truncated{of} is not one number at step {step}.") from error


def _not_five(returned: str, step: int, of: str = "") -> InvalidStepError:
    return InvalidStepError(
        f"The environment{of} returned {returned} from step {step}: it must return (observation, reward, terminated, "
        "truncated, info)."
    )


def _words(value: object) -> str:
    """A value as a person is told of it, never many lines long."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)[:80]
