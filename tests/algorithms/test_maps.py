"""Maps into sets: feasible everywhere, exact derivatives against differences, the identity at the centre, flat sets."""

import functools
from collections.abc import Callable, Mapping
from typing import TypeAlias

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import feasible
from feasible.algorithms.base import Algorithm, Spec
from feasible.algorithms.densities import radial_log_det
from feasible.algorithms.gaussian import Normal
from feasible.algorithms.maps import MAPS, Hull, alpha, gauge, radial, trouble_inside
from feasible.algorithms.ppo import PPO
from feasible.algorithms.sac import SAC
from feasible.algorithms.trpo import TRPO
from feasible.algorithms.truncated import Frame, spread_directions
from feasible.sets import (
    ActionSet,
    Allocation,
    AllocationAtMost,
    Ball,
    BallBox,
    Box,
    EllipsoidBox,
    HalfSpaceBox,
    IntegerAllocation,
    Polytope,
    PositivePowerBox,
    TurnoverAllocation,
    WeightedL1Box,
    WeightedL1EllipsoidBox,
)
from tests.lazily import Lazily
from tests.one_by_one import one_by_one

SETS: Mapping[str, ActionSet] = Lazily(
    {
        "ball": lambda: Ball([0.2, -0.1, 0.0], 0.7),
        "box": lambda: Box([-1.0, -0.5, 0.0], [0.5, 0.5, 2.0]),
        "weighted-l1": lambda: WeightedL1Box([1.0, -2.0, 0.0], 1.5, [1.0, 1.0, 0.5]),
        "positive-power": lambda: PositivePowerBox([1.0, -2.0, 0.5], 0.5, [1.0, 1.0, 1.0]),
        "allocation": lambda: Allocation(1.0, [0.0, 0.0, 0.1], [0.8, 0.6, 0.9]),
        "allocation-at-most": lambda: AllocationAtMost(1.0, [0.0, 0.0, 0.1], [0.8, 0.6, 0.9]),
        "integers": lambda: IntegerAllocation(9, [0, 0, 0], [5, 5, 5]),
        "ellipsoid": lambda: EllipsoidBox(np.diag([1.0, 2.0, 4.0]) + 0.2, 0.8, [1.0, 0.4, 1.0]),
        "half-space": lambda: HalfSpaceBox([1.0, -2.0, 0.5], 0.3, [-1.0] * 3, [1.0, 0.5, 1.0]),
        "ball-and-box": lambda: BallBox([0.0] * 3, 1.0, [-0.5, -1.0, -0.2], [0.5, 0.4, 2.0]),
        "l1-and-ellipsoid": lambda: WeightedL1EllipsoidBox([1.0, 2.0, 0.5], 1.2, [1.0, 0.0, 4.0], 0.5, [1.0, 1.0, 1.0]),
        "turnover": lambda: TurnoverAllocation(1.0, [0.0] * 3, [0.8, 0.6, 0.9], [0.2, 0.3, 0.5], 0.6),
        "polytope": lambda: Polytope([[1.0, 1.0, 0.0], [0.0, -1.0, 1.0]], [0.5, 0.4], [-1.0] * 3, [1.0] * 3),
        "plane": lambda: Polytope([[1.0, -1.0, 0.0]], [0.3], [-1.0] * 3, [1.0] * 3, [[1.0, 2.0, -1.0]], [0.4]),
    }
)
Brought: TypeAlias = Callable[[ActionSet, Hull, jax.Array], jax.Array]
BROUGHT: dict[str, Brought] = {"alpha": alpha, "radial": radial}
# Maps ask sets for their centre, their hull and their exits alone, which these have as others do.
ALIKE = ("positive-power", "half-space", "allocation-at-most", "ball-and-box", "l1-and-ellipsoid", "polytope")
every_set = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ALIKE else []) for name in SETS]
)


@functools.cache
def asked(name: str) -> dict[str, np.ndarray]:
    """Both maps of a set at random points, with their Jacobians and the gauge, in one program."""
    region, rng = SETS[name], np.random.default_rng(3)
    d = region.hull_dim
    y = rng.normal(size=(60, d)) * float(region.scale) * rng.choice([0.05, 0.5, 2.0], size=(60, 1))
    y[0] = 0.0
    y[1] *= 3e-3 * float(region.scale) / np.linalg.norm(y[1])  # hardly off the centre

    @jax.jit
    def answers(region: ActionSet, y: jax.Array) -> dict[str, jax.Array]:
        hull, eye = Hull.of(region), jnp.eye(d)
        found = {"gauge": jax.vmap(lambda one: gauge(region, hull.centre, hull.lifted(one)))(y)}
        steps = 1e-6 * region.scale * jnp.concatenate([jnp.zeros((1, d)), eye, -eye])
        for kind, brought in BROUGHT.items():

            def linearised(one: jax.Array, brought: Brought = brought) -> tuple[jax.Array, jax.Array, jax.Array]:
                """A point with its Jacobians, forward and reverse, all of one linearisation."""
                point, slope = jax.linearize(functools.partial(brought, region, hull), one)
                back = jax.linear_transpose(slope, one)
                return point, jax.vmap(slope, out_axes=1)(eye), jax.vmap(lambda row: back(row)[0])(eye)

            points, slopes, backs = one_by_one(one_by_one(linearised))(y[:, None] + steps[None])
            found[kind], found[f"{kind} slope"], found[f"{kind} back"] = points[:, 0], slopes[:, 0], backs[:, 0]
            apart = points[:, 1 : d + 1] - points[:, d + 1 :]
            found[f"{kind} difference"] = jnp.swapaxes(apart, 1, 2) / (2e-6 * region.scale)
        found["log det"] = jax.vmap(lambda g: radial_log_det(g, d))(found["gauge"])
        found["action"] = jax.vmap(hull.action)(jnp.concatenate([found["alpha"], found["radial"]]))
        found["violation"] = jax.vmap(region.violation)(found["action"])
        ways = jnp.concatenate([jnp.eye(region.dim), -jnp.eye(region.dim)])
        found["ends"] = one_by_one(lambda way: region.maximise_linear(way) - hull.centre)(ways)
        found["basis"] = region.hull_basis()
        return found

    return {key: np.asarray(value) for key, value in answers(region, jnp.asarray(y)).items()} | {"y": y}


@every_set
def test_what_a_map_proposes_is_feasible(name: str) -> None:
    found = asked(name)
    assert np.max(found["violation"]) <= 1e-12 * float(SETS[name].scale)
    assert np.mean(found["gauge"] > 1) > 0.1  # some were outside
    assert np.mean(found["gauge"] < 1) > 0.1


@every_set
def test_inside_alpha_changes_nothing_and_radial_goes_a_hyperbolic_tangent_of_the_way(name: str) -> None:
    found = asked(name)
    inside, g = found["gauge"] <= 1, found["gauge"][:, None]
    np.testing.assert_allclose(found["alpha"][inside], found["y"][inside], rtol=1e-14)
    np.testing.assert_allclose(found["alpha"][~inside], (found["y"] / np.where(g > 0, g, 1))[~inside], rtol=1e-12)
    np.testing.assert_allclose(g * found["radial"], np.tanh(g) * found["y"], atol=1e-9)


@every_set
@pytest.mark.parametrize("kind", BROUGHT)
def test_derivatives_are_those_of_differences(name: str, kind: str) -> None:
    """At the centre, too; where a kink is near, differences are of no use."""
    found = asked(name)
    slope, apart = found[f"{kind} slope"], np.abs(found[f"{kind} slope"] - found[f"{kind} difference"]).max(axis=(1, 2))
    np.testing.assert_allclose(slope, found[f"{kind} back"], atol=1e-10)
    np.testing.assert_allclose(slope[0], np.eye(slope.shape[1]), atol=1e-12)
    assert np.mean(apart < 1e-5) > 0.9
    assert apart[0] < 1e-5


@every_set
def test_the_log_determinant_of_radial_is_that_of_its_jacobian(name: str) -> None:
    found = asked(name)
    near = found["gauge"] < 6  # further out the Jacobian's own digits are gone
    sign, logdet = np.linalg.slogdet(found["radial slope"][near])
    assert np.all(sign > 0)
    np.testing.assert_allclose(found["log det"][near], logdet, atol=1e-6)


@every_set
def test_a_hull_has_an_orthonormal_basis_of_its_directions(name: str) -> None:
    """The farthest points along every axis lie in it, and fill it."""
    region, basis, ends = SETS[name], asked(name)["basis"], asked(name)["ends"]
    assert basis.shape == (region.dim, region.hull_dim)
    np.testing.assert_allclose(basis.T @ basis, np.eye(region.hull_dim), atol=1e-12)
    np.testing.assert_allclose(ends @ basis @ basis.T, ends, atol=1e-9 * float(region.scale))
    assert np.linalg.matrix_rank(ends, 1e-3 * float(region.scale)) == region.hull_dim


def power(obs: jax.Array) -> ActionSet:
    """As HalfCheetah's, with a budget that nearly vanishes in some states."""
    return WeightedL1Box(obs[:6], jnp.abs(obs[6]) + 1e-3, jnp.ones(6, obs.dtype))


def shares(obs: jax.Array) -> ActionSet:
    return Allocation(1.0, jnp.zeros(6, obs.dtype), 0.2 + jnp.abs(obs[:6]))


STATES = 20_000


@pytest.mark.parametrize("constraint", [power, shares])
def test_proposals_are_feasible_in_very_many_states(constraint: Callable[[jax.Array], ActionSet]) -> None:
    """In float32, with exploration: of both maps and of the restricted Gaussian, before any projection."""
    rng = np.random.default_rng(0)
    spec = Spec(7, jnp.full(6, -1.0, jnp.float32), jnp.ones(6, jnp.float32), constraint)
    obs = jnp.asarray(rng.normal(size=(STATES, 7)) * 5, jnp.float32)
    d = spec.region.hull_dim
    outputs = jnp.asarray(rng.normal(size=(STATES, d)) * rng.choice([0.1, 1, 10], size=(STATES, 1)), jnp.float32)

    @jax.jit
    @jax.vmap
    def violations(obs: jax.Array, output: jax.Array, key: jax.Array) -> jax.Array:
        region = spec.feasible_set(obs)
        noise = jax.random.normal(key, output.shape, output.dtype)
        points = [MAPS[kind].explored(spec, region, output, jnp.float32(0.3), noise) for kind in ("alpha", "radial")]
        frame = Frame.of(spec, region)
        ways = spread_directions(key, 8, d, obs.dtype)
        points.append(frame.hull.action(frame.truncated(Normal(output, noise), ways).sample(key)[0]))
        return jnp.stack([region.violation(point) / region.tolerance for point in points])

    found = violations(obs, outputs, jax.random.split(jax.random.key(1), STATES))
    assert found.shape == (STATES, 3)
    assert float(jnp.max(found)) <= 1  # NaN is not


def test_a_centre_without_room_is_named_with_what_can_be_used() -> None:
    assert trouble_inside(SETS["box"], "alpha") is None
    said = trouble_inside(Box([0.0, 1.0], [1.0, 1.0]), "alpha")
    assert said is not None
    assert "map='alpha'" in said
    assert "td3-projected-gradient, sac-projection or ppo-projection" in said
    assert np.isnan(gauge(Ball([0.0, 0.0], 0.0), jnp.zeros(2), jnp.ones(2)))


def whole(obs: jax.Array) -> ActionSet:
    return IntegerAllocation(9, jnp.zeros(3, obs.dtype), jnp.full(3, 5.0, obs.dtype))


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        (SAC(map="truncated"), r"^SAC: map='truncated' needs a set with a density, .* whole numbers; use map='radial'"),
        (PPO(map="truncated"), r"^PPO: map='truncated' needs a set with a density"),
        (TRPO(map="truncated"), r"^TRPO: map='truncated' is for PPO only; use map='radial' or 'projection'\.$"),
    ],
)
def test_what_has_no_density_is_refused_with_what_can_be_used(algorithm: Algorithm, said: str) -> None:
    spec = Spec(2, jnp.zeros(3), jnp.full(3, 5.0), whole)
    with pytest.raises(ValueError, match=said):
        algorithm.init(jax.random.key(0), spec)


def test_an_odd_number_of_directions_is_refused() -> None:
    spec = Spec(7, jnp.full(6, -1.0), jnp.ones(6), power)
    with pytest.raises(ValueError, match=r"^SAC: directions must be even, since they come in pairs, not 5\.$"):
        SAC(map="truncated", directions=5).init(jax.random.key(0), spec)


class Pinned(gym.Env):
    """Its second force is always one."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None):
        return np.zeros(1, np.float32), {}


def test_a_map_on_a_set_without_room_is_refused_before_the_first_step() -> None:
    env = feasible.constrain(Pinned(), lambda obs: Box([0.0, 1.0], [1.0, 1.0]))
    with pytest.raises(ValueError, match=r"^DDPG: map='radial' goes out from .* such as td3-projected-gradient"):
        feasible.agent("td3-radial", env, warmup=1_000).learn(1)
