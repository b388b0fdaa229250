"""Action-constrained reinforcement learning: every executed action lies in the feasible set of its state.

Importing the package registers its environments with Gymnasium and loads little else: JAX, simulators and
drawing come with the first name that needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from feasible import envs as envs
from feasible.errors import EmptySetError as EmptySetError
from feasible.errors import InfeasibleActionError as InfeasibleActionError

if TYPE_CHECKING:
    from feasible import constraints as constraints
    from feasible import sets as sets
    from feasible.agents import FOCOPS as FOCOPS
    from feasible.agents import NFWPO as NFWPO
    from feasible.agents import PPO as PPO
    from feasible.agents import SAC as SAC
    from feasible.agents import TRPO as TRPO
    from feasible.agents import DDPGOptLayer as DDPGOptLayer
    from feasible.agents import DDPGProjection as DDPGProjection
    from feasible.agents import DDPGShaping as DDPGShaping
    from feasible.agents import ProjectedGradient as ProjectedGradient
    from feasible.agents import load as load
    from feasible.catalogue.registry import make as make
    from feasible.catalogue.registry import make_vec as make_vec
    from feasible.constraints import Constraint as Constraint
    from feasible.constraints import constrain as constrain

_MODULES = ("constraints", "sets")
_HOMES = {
    "DDPGOptLayer": "feasible.agents",
    "DDPGProjection": "feasible.agents",
    "DDPGShaping": "feasible.agents",
    "FOCOPS": "feasible.agents",
    "NFWPO": "feasible.agents",
    "PPO": "feasible.agents",
    "ProjectedGradient": "feasible.agents",
    "SAC": "feasible.agents",
    "TRPO": "feasible.agents",
    "load": "feasible.agents",
    "Constraint": "feasible.constraints",
    "constrain": "feasible.constraints",
    "make": "feasible.catalogue.registry",
    "make_vec": "feasible.catalogue.registry",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"feasible.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'feasible' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOMES})
