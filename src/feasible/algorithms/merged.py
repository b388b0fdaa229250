"""Several agents' algorithms as one that can be vmapped over them: what differs becomes an array, one entry an agent.

    nfwpo, ddpg-projection, ddpg-optlayer  ->  one DDPG with rule = OneOf(rules, which) and arrays for other numbers

Numbers (floats) and actor rules may differ; whatever decides shapes or structure must be the same (`alike`).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import DTypeLike

from feasible.algorithms.actor_rules import Action, ActionGradient, ActorRule
from feasible.algorithms.base import Algorithm, Metrics
from feasible.sets.base import ActionSet
from feasible.sets.box import Box

Kind = TypeVar("Kind", bound=Algorithm)


class OneOf(ActorRule):
    """The rule number `which`; vmapped, every agent has its own.

    All rules are worked out for every agent and one answer is kept, which costs less than a program for each: the
    critic, where the time goes, is asked once, at the point that the agent's own rule asks about.
    """

    rules: tuple[ActorRule, ...]
    which: Int[Array, ""]

    def direction(self, feasible_set: ActionSet, proposed: Action, gradient: ActionGradient) -> tuple[Action, Metrics]:
        points = [_asked(rule, feasible_set, proposed)[0] for rule in self.rules]
        known = gradient(self._own(points))
        answers = [rule.direction(feasible_set, proposed, lambda _: known) for rule in self.rules]
        names = {name for _, metrics in answers for name in metrics}
        nothing = jnp.zeros((), proposed.dtype)
        seen = {name: self._own([metrics.get(name, nothing) for _, metrics in answers]) for name in names}
        return self._own([direction for direction, _ in answers]), seen

    def target_action(self, feasible_set: ActionSet, proposed: Action) -> Action:
        return self._own([rule.target_action(feasible_set, proposed) for rule in self.rules])

    def _own(self, options: Sequence[Array]) -> Array:
        numbered = enumerate(options[1:], 1)
        return reduce(lambda kept, option: jnp.where(self.which == option[0], option[1], kept), numbered, options[0])


def _asked(rule: ActorRule, feasible_set: ActionSet, proposed: Action) -> list[Action]:
    """The points at which the rule asks for the critic's gradient; what it would make of it is not worked out."""
    points: list[Action] = []

    def listen(point: Action) -> Action:
        points.append(point)
        return jnp.zeros_like(point)

    rule.direction(feasible_set, proposed, listen)
    return points


@cache
def asks_once(rule: ActorRule) -> bool:
    """Whether a rule asks for the critic's gradient at one point only; found by tracing it on a box."""
    box = Box(jnp.zeros(1), jnp.ones(1))
    return len(jax.eval_shape(lambda proposed: _asked(rule, box, proposed), box.low)) == 1


def alike(algorithm: Algorithm) -> Hashable:
    """Equal for algorithms that `merged` can make one of."""
    rule = getattr(algorithm, "rule", None)
    plain = replace(algorithm, rule=None) if isinstance(rule, ActorRule) else algorithm
    leaves, structure = jax.tree.flatten(plain)
    numbers = tuple(float if isinstance(leaf, float) else leaf for leaf in leaves)
    # Rules that ask the critic more than once cannot share their question with others.
    alone = _kind(rule) if isinstance(rule, ActorRule) and not asks_once(rule) else None
    return type(algorithm), structure, numbers, alone


def merged(algorithms: Sequence[Kind], dtype: DTypeLike) -> Kind:
    """One algorithm instead of several that are alike: its (NumPy) arrays have a leading axis over them."""
    rules = [getattr(algorithm, "rule", None) for algorithm in algorithms]
    kinds = {_kind(rule): rule for rule in rules}
    if len(kinds) > 1:
        algorithms = [replace(algorithm, rule=_among(kinds, algorithm.rule)) for algorithm in algorithms]  # pyright: ignore[reportAttributeAccessIssue]
    leaves, structures = zip(*(jax.tree.flatten(algorithm) for algorithm in algorithms), strict=True)
    return jax.tree.unflatten(structures[0], [_joined(values, dtype) for values in zip(*leaves, strict=True)])


def _among(kinds: Mapping[Hashable, object], rule: object) -> OneOf:
    """The rule among one of each kind."""
    rules = tuple(rule if kind == _kind(rule) else other for kind, other in kinds.items())
    # The numbers are NumPy's until a program is traced: a traced one must not stay with the group.
    return OneOf(rules, np.asarray(list(kinds).index(_kind(rule)), np.int32))  # pyright: ignore[reportArgumentType]


def _kind(rule: object) -> Hashable:
    """What must be the same of rules that differ in numbers only."""
    leaves, structure = jax.tree.flatten(rule)
    return structure, tuple(float if isinstance(leaf, float) else leaf for leaf in leaves)


def _joined(values: Sequence[object], dtype: DTypeLike) -> object:
    if isinstance(values[0], np.ndarray):
        return np.stack(values)  # pyright: ignore[reportArgumentType, reportCallIssue] -- arrays all
    if all(value == values[0] for value in values):
        return values[0]
    return np.array(values, dtype)
