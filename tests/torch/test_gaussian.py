"""Densities of mapped Gaussians integrate to one, in the set and on its boundary, and are those of the samples."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes a folder of tests for it.

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import feasible.torch as ft
from feasible import sets
from feasible.algorithms.base import Spec
from feasible.algorithms.heads import AlphaHead, RadialHead
from tests.run.runs import as_a_user

LOW, HIGH = np.array([-1.0, -3.0]), np.array([2.0, 3.0])


def budget(obs: jax.Array) -> sets.ActionSet:
    """A set that is not symmetric about its centre, in a box whose sides differ."""
    return sets.HalfSpaceBox(
        jnp.stack([obs[0], jnp.ones_like(obs[0])]), obs[1], LOW.astype(obs.dtype), HIGH.astype(obs.dtype)
    )


OBS = torch.tensor([0.7, 1.0], dtype=torch.float64)
MEAN, LOG_STD = torch.tensor([0.3, -0.2], dtype=torch.float64), torch.tensor([-0.9, -0.6], dtype=torch.float64)


def rays(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The set's boundary around its centre by angle, found by plain arithmetic: centre, points and angles."""
    angles = (np.arange(count) + 0.5) * 2 * np.pi / count
    centre = np.asarray(budget(jnp.asarray(OBS.numpy())).centre())
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rows = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0.7, 1.0]])
    room = np.array([HIGH[0], -LOW[0], HIGH[1], -LOW[1], 1.0]) - rows @ centre
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(ways @ rows.T > 1e-12, room / (ways @ rows.T), np.inf).min(axis=1)
    return centre, times, ways


def density(policy: ft.MappedGaussian, actions: np.ndarray) -> np.ndarray:
    many = torch.as_tensor(actions)
    shape = (len(many), 2)
    return policy.log_prob(many, MEAN.expand(shape), LOG_STD, OBS.expand(shape)).exp().numpy()


def test_samples_on_the_edge_have_their_density_for_small_deviations() -> None:
    """As in tests/algorithms/test_densities.py: on the face of a box what is left is a Gaussian across the ray."""
    policy = ft.MappedGaussian(sets.Box([-1.0, -1.0], [1.0, 1.0]), [-1.0, -1.0], [1.0, 1.0], "alpha")
    noise = torch.randn((200, 2), generator=torch.Generator().manual_seed(0))
    for log_std in (-8.0, -18.0):
        mean = torch.tensor([2.0, 0.5]).expand(200, 2)
        _, found = policy.sample(mean, torch.full((200, 2), log_std), noise=noise)
        across = (noise[:, 1] - 0.25 * noise[:, 0]) / np.hypot(1.0, 0.25)
        expected = -0.5 * across**2 - 0.5 * np.log(2 * np.pi) - log_std - np.log(np.hypot(1.0, 0.25) / 2.0)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=5e-3)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("map", ["radial", "alpha"])
def test_densities_integrate_to_one(map: str, scaled: bool) -> None:
    policy = ft.MappedGaussian(budget, LOW, HIGH, map, scaled=scaled)
    middle, half = (0.5 * (HIGH + LOW), 0.5 * (HIGH - LOW)) if scaled else (np.zeros(2), np.ones(2))
    count, (points, weights) = 2000, np.polynomial.legendre.leggauss(60)
    centre, times, ways = rays(count)
    radii, total = 0.5 * (points + 1), 0.0
    for radius, weight in zip(radii, 0.5 * weights, strict=True):
        actions = centre + radius * times[:, None] * ways
        volume = radius * times**2 / np.prod(half)  # of polar coordinates, in the units of the answers
        total += weight * np.sum(density(policy, (actions - middle) / half) * volume) * 2 * np.pi / count
    if map == "alpha":
        assert total < 0.95  # the rest lies on the boundary
        corners = (centre + times[:, None] * ways - middle) / half
        steps = 0.5 * (
            np.linalg.norm(np.roll(corners, -1, 0) - corners, axis=1)
            + np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1)
        )
        total += np.sum(density(policy, corners) * steps)
    assert total == pytest.approx(1.0, abs=2e-3 if map == "alpha" else 1e-5)


@pytest.mark.parametrize("map", ["radial", "alpha"])
def test_a_sample_has_the_density_of_its_action(map: str) -> None:
    policy = ft.MappedGaussian(budget, LOW, HIGH, map, scaled=True)
    many = 500
    mean, obs = MEAN.expand(many, 2), OBS.expand(many, 2)
    actions, log_prob = policy.sample(mean, LOG_STD, obs)
    torch.testing.assert_close(policy.log_prob(actions, mean, LOG_STD, obs), log_prob, atol=1e-6, rtol=1e-6)
    single = [tensor.float() for tensor in (actions, mean, LOG_STD, obs)]
    torch.testing.assert_close(policy.log_prob(*single).double(), log_prob, atol=0.02, rtol=0.02)
    executed = 0.5 * (HIGH + LOW) + 0.5 * (HIGH - LOW) * actions.numpy()
    assert np.max(executed @ [0.7, 1.0]) <= 1.0 + 1e-9
    assert np.all(executed <= HIGH + 1e-9)
    assert np.all(executed >= LOW - 1e-9)


@pytest.mark.parametrize(("map", "head"), [("radial", RadialHead()), ("alpha", AlphaHead())])
def test_samples_and_their_gradients_are_those_of_the_jax_side(map: str, head) -> None:
    key = jax.random.key(1)
    spec = Spec(2, jnp.asarray(LOW), jnp.asarray(HIGH), budget)
    obs = jnp.asarray(OBS.numpy())

    def actor(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        del x
        return parameters

    def drawn(given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        nonlocal parameters
        parameters = given
        found = head.sample(actor, spec, spec.feasible_set(obs), obs, key)
        return found.action, found.log_density

    parameters = given = (jnp.asarray(MEAN.numpy()), jnp.asarray(LOG_STD.numpy()))
    (action, log_density), pullback = jax.vjp(drawn, given)
    by_mean, by_std = pullback((jnp.ones_like(action), jnp.ones_like(log_density)))[0]
    noise = torch.from_numpy(np.array(jax.random.normal(key, (2,), jnp.float64)))
    mean, log_std = MEAN.clone().requires_grad_(), LOG_STD.clone().requires_grad_()
    with as_a_user():
        ours, log_prob = ft.MappedGaussian(budget, LOW, HIGH, map).sample(mean, log_std, OBS, noise)
        (ours.sum() + log_prob).backward()
    for found, wanted in ((ours, action), (log_prob, log_density), (mean.grad, by_mean), (log_std.grad, by_std)):
        np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-9, rtol=1e-9)


def test_flat_sets_have_densities_in_their_hull() -> None:
    """An allocation of 1 over two entries is a segment: its density integrates to one along it."""
    region = sets.Allocation(1.0, jnp.zeros(2), jnp.ones(2))
    for scaled in (False, True):
        policy = ft.MappedGaussian(region, [0.0, 0.0], [1.0, 2.0], "radial", scaled=scaled)
        shares = torch.linspace(1e-4, 1 - 1e-4, 20_001, dtype=torch.float64)
        actions = torch.stack([shares, 1 - shares], dim=1)
        actions = actions * 2 / torch.tensor([1.0, 2.0]) - 1 if scaled else actions
        log_prob = policy.log_prob(
            actions, torch.full((len(shares), 1), 0.2, dtype=torch.float64), torch.tensor([-1.0], dtype=torch.float64)
        )
        lengths = (actions[1:] - actions[:-1]).norm(dim=1)
        heights = 0.5 * (log_prob.exp()[1:] + log_prob.exp()[:-1])
        assert float((lengths * heights).sum()) == pytest.approx(1.0, abs=1e-3)


def test_what_does_not_fit_is_said_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="MappedGaussian: There is no map 'projection'"):
        ft.MappedGaussian(budget, LOW, HIGH, "projection")
    with pytest.raises(ValueError, match="low and high must be finite"):
        ft.MappedGaussian(budget, [-np.inf, 0.0], HIGH)
    with pytest.raises(ValueError, match=r"expected tensors of shape \(\.\.\., 2\), the dimension of the set's hull"):
        ft.MappedGaussian(budget, LOW, HIGH).mode(torch.zeros(3, 4), torch.ones(3, 2))
