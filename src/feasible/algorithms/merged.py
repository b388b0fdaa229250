"""Several agents' algorithms as one that can be vmapped over them: what differs becomes an array, one entry an agent.

    nfwpo, ddpg-projection, ddpg-optlayer  ->  one DDPG with rule = OneOf(rules, which) and arrays for other numbers
    td3-projection, td3-proposed, td3-alpha  ->  one with map = OneOfMaps(maps, which) and critic_at an array, too

Numbers (floats), actor rules, maps, where the critic looks and an algorithm's `switches` may differ; whatever decides
shapes or structure must be the same (`alike`).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import DTypeLike

from feasible.algorithms.actor_rules import Action, ActionGradient, ActorRule
from feasible.algorithms.base import Algorithm, Metrics, Spec
from feasible.algorithms.ddpg import DDPG
from feasible.algorithms.maps import MAPS, ActionMap
from feasible.algorithms.nets import Output, activated
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
        return one_of(self.which, options)


class OneOfMaps(ActionMap):
    """The map number `which`, each with its own output activation; the actor's own is "linear".

    A map is asked about 0 by agents of another: what it has no answer or no derivative to does not reach them.
    """

    maps: tuple[ActionMap, ...]
    activations: tuple[Output, ...] = eqx.field(static=True)
    which: Int[Array, ""]

    def outputs(self, region: ActionSet) -> int:
        return self.maps[0].outputs(region)

    def bounds(self, spec: Spec, region: ActionSet) -> tuple[Array, Array]:
        return self.maps[0].bounds(spec, region)

    def point(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        return self._own(spec, region, output, lambda map, own: map.point(spec, region, own))

    def action(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        return self._own(spec, region, output, lambda map, own: map.action(spec, region, own))

    def proposed(self, spec: Spec, region: ActionSet, output: Array) -> Action:
        return self._own(spec, region, output, lambda map, own: map.proposed(spec, region, own))

    def explored(self, spec: Spec, region: ActionSet, output: Array, deviation: Array, normal: Array) -> Action:
        return self._own(spec, region, output, lambda map, own: map.explored(spec, region, own, deviation, normal))

    def target(self, spec: Spec, region: ActionSet, output: Array, noise: Action | None) -> Action:
        return self._own(spec, region, output, lambda map, own: map.target(spec, region, own, noise))

    def _own(self, spec: Spec, region: ActionSet, output: Array, asked: Callable[[ActionMap, Array], Action]) -> Action:
        answers = []
        for number, (action_map, activation) in enumerate(zip(self.maps, self.activations, strict=True)):
            own = jnp.where(self.which == number, output, 0.0)
            answers.append(asked(action_map, activated(activation, own, *action_map.bounds(spec, region))))
        return one_of(self.which, answers)


def one_of(which: Int[Array, ""], options: Sequence[Array]) -> Array:
    """The option of that number."""
    numbered = enumerate(options[1:], 1)
    return reduce(lambda kept, option: jnp.where(which == option[0], option[1], kept), numbered, options[0])


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


def alike(algorithm: Algorithm, flat: bool = False) -> Hashable:
    """Equal for algorithms that `merged` can make one of.

    Where feasible sets are flat, maps into them have fewer outputs than there are actions: those are kept apart.
    """
    rule = getattr(algorithm, "rule", None)
    plain = replace(algorithm, rule=None) if isinstance(rule, ActorRule) else algorithm
    if type(plain) is DDPG:
        outputs = "few" if flat and plain.map != "projection" else "all"
        plain = replace(plain, map=outputs, output="linear", critic_at="executed")  # pyright: ignore[reportArgumentType]
    plain = replace(plain, **dict.fromkeys(plain.switches, False))
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
    algorithms = _with_heads(algorithms)
    leaves, structures = zip(*(jax.tree.flatten(algorithm) for algorithm in algorithms), strict=True)
    return jax.tree.unflatten(structures[0], [_joined(values, dtype) for values in zip(*leaves, strict=True)])


def _with_heads(algorithms: Sequence[Kind]) -> Sequence[Kind]:
    """The algorithms with the same map, output and critic, of which each has its own."""
    members = [algorithm for algorithm in algorithms if type(algorithm) is DDPG]
    heads = [(algorithm.map, algorithm.output) for algorithm in members]
    kinds = list(dict.fromkeys(heads))
    if len(kinds) > 1:
        maps, activations = tuple(MAPS[name] for name, _ in kinds), tuple(output for _, output in kinds)
        numbers = [np.asarray(kinds.index(head), np.int32) for head in heads]
        of_agents = [OneOfMaps(maps, activations, number) for number in numbers]  # pyright: ignore[reportArgumentType]
        pairs = zip(members, of_agents, strict=True)
        members = [replace(algorithm, map=own, output="linear") for algorithm, own in pairs]  # pyright: ignore[reportArgumentType]
    if len({algorithm.critic_at for algorithm in members}) > 1:
        members = [replace(a, critic_at=np.asarray(a.critic_at == "proposed")) for a in members]  # pyright: ignore[reportArgumentType]
    return members or algorithms  # pyright: ignore[reportReturnType] -- those that are alike are of one type


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
    return np.array(values, bool if isinstance(values[0], bool) else dtype)
