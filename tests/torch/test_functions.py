"""Tensors cross to the sets and back: values and gradients are those of the JAX side and of cvxpylayers."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The type checker also runs where PyTorch is not installed, and then takes a folder of tests for it.

import subprocess
import sys
from pathlib import Path
from typing import cast

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from cvxpylayers.torch import CvxpyLayer

import feasible.torch as ft
from feasible import sets
from feasible.algorithms import maps
from feasible.algorithms.densities import radial_log_det
from feasible.algorithms.maps import Hull
from feasible.torch.functions import Region
from tests.run.runs import as_a_user
from tests.torch import workers

BATCH = 32
NAMES = ("project", "maximise_linear", "alpha", "radial")


def power(obs: jax.Array) -> sets.ActionSet:
    """HalfCheetah's: the observation has the weights."""
    return sets.WeightedL1Box(weights=obs, budget=3.0, bound=1.0)


def flat(obs: jax.Array) -> sets.ActionSet:
    """A set with an equality, whose hull has one dimension less."""
    return sets.Allocation(obs[0], jnp.zeros_like(obs), jnp.full_like(obs, 2.0))


CONSTRAINTS = {"power": (power, 6, 6), "flat": (flat, 4, 3)}


def given(name: str, dtype: torch.dtype) -> tuple[Region, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A constraint, observations, points and coordinates of its hulls."""
    constraint, n, d = CONSTRAINTS[name]
    generator = torch.Generator().manual_seed(0)
    obs = 1.0 + torch.rand(BATCH, n, generator=generator, dtype=dtype)
    z, y = (2.0 * torch.randn(BATCH, k, generator=generator, dtype=dtype) for k in (n, d))
    return constraint, obs, z, y


def on_the_jax_side(name: str, constraint, obs: np.ndarray, point: np.ndarray):
    """Value and pullback of all ones, in z and in obs."""

    def one(obs: jax.Array, point: jax.Array) -> jax.Array:
        region = constraint(obs)
        if name in ("project", "maximise_linear"):
            return getattr(region, name)(point)
        hull = Hull.of(region)
        return hull.action(getattr(maps, name)(region, hull, point))

    value, pullback = jax.vjp(lambda o, p: jax.vmap(one)(o, p), jnp.asarray(obs), jnp.asarray(point))
    return value, *pullback(jnp.ones_like(value))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", CONSTRAINTS)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_the_jax_side(name: str, kind: str, dtype: torch.dtype) -> None:
    constraint, obs, z, y = given(kind, dtype)
    point = z if name in ("project", "maximise_linear") else y
    expected = on_the_jax_side(name, constraint, obs.numpy(), point.numpy())
    obs, point = obs.requires_grad_(), point.requires_grad_()
    with as_a_user():  # float64 needs no flag of JAX's
        value = getattr(ft, name)(constraint, point, obs)
        value.sum().backward(retain_graph=True)
        first = point.grad.clone()
        value.sum().backward()
    assert value.dtype == point.grad.dtype == obs.grad.dtype == dtype
    torch.testing.assert_close(point.grad, 2 * first)
    for found, wanted in zip((value, obs.grad / 2, first), expected, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-6, rtol=1e-6)
    with torch.no_grad():
        quiet = getattr(ft, name)(constraint, point, obs)
    assert not quiet.requires_grad
    torch.testing.assert_close(quiet, value.detach(), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # of cvxpylayers
def test_projections_are_those_of_cvxpylayers() -> None:
    """The answer and its gradients in z and in the weights."""
    a, z, weights = cp.Variable(6), cp.Parameter(6), cp.Parameter(6, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(a - z)), [cp.norm1(cp.multiply(weights, a)) <= 3.0, cp.abs(a) <= 1])
    settings = {"solve_method": "SCS", "eps": 1e-10, "max_iters": 100_000, "mode": "dense"}  # derivatives to all digits
    layer = CvxpyLayer(problem, [z, weights], [a], solver_args=settings)
    _, obs, points, _ = given("power", torch.float64)
    found = []
    for projected in (lambda z, w: layer(z, w)[0], lambda z, w: ft.project(power, z, w)):
        z_, w = points.clone().requires_grad_(), obs.clone().requires_grad_()
        value = projected(z_, w)
        (value * torch.arange(6.0, dtype=torch.float64)).sum().backward()
        found.append((value.detach(), z_.grad, w.grad))
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-8, rtol=1e-8)


def test_gradients_by_finite_differences() -> None:
    constraint, obs, _, y = given("power", torch.float64)
    with as_a_user():
        for function in (ft.project, ft.alpha, ft.radial, lambda c, y, o: ft.radial(c, y, o, log_det=True)[1]):
            torch.autograd.gradcheck(
                lambda y, o, function=function: function(constraint, y, o),
                (y[:4].clone().requires_grad_(), obs[:4].clone().requires_grad_()),
            )


def test_the_best_vertex_of_a_polytope_moves_with_its_rows() -> None:
    """Its gradient, by finite differences; in the direction it is a constant."""

    def cut(obs: jax.Array) -> sets.ActionSet:
        rows = jnp.stack([obs, jnp.flip(obs) - 2.0])
        return sets.Polytope(rows, jnp.ones(2, obs.dtype), -jnp.ones_like(obs), jnp.ones_like(obs))

    _, obs, g, _ = given("flat", torch.float64)
    with as_a_user():
        inputs = g[:4].clone().requires_grad_(), obs[:4].clone().requires_grad_()
        torch.autograd.gradcheck(lambda g, obs: ft.maximise_linear(cut, g, obs), inputs)


def test_derivatives_of_second_order_are_refused_where_they_would_be_asked_for() -> None:
    """Also where the gradient that comes in is a constant, in which case PyTorch's own guard lets a zero pass."""
    ball = sets.Ball(jnp.zeros(2), 0.5)
    z, scale = torch.randn(5, 2, requires_grad=True), torch.ones(5, 2, requires_grad=True)
    for loss in (lambda a: a.sum(), lambda a: (a * scale).sum(), lambda a: a.square().sum()):
        (first,) = torch.autograd.grad(loss(ft.project(ball, z)), z, create_graph=True)
        with pytest.raises(RuntimeError, match="derivatives are of first order only"):
            first.square().sum().backward()
    z.grad = None
    z.sum().add(ft.project(ball, z.detach()).sum()).backward()  # what is detached is not asked
    torch.testing.assert_close(z.grad, torch.ones(5, 2))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # of PyTorch itself, at its first dual number
def test_other_kinds_of_differentiation_are_refused() -> None:
    ball, z = sets.Ball(jnp.zeros(2), 0.5), torch.randn(5, 2)
    for transform in (torch.func.vmap, torch.func.jacrev):
        with pytest.raises(RuntimeError, match=r"torch\.func's transforms .* do not reach into JAX"):
            transform(lambda z: ft.project(ball, z))(z)
    with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp"):
        ft.project(ball, torch.autograd.forward_ad.make_dual(z, z))


def test_log_determinants_are_those_of_the_jacobian() -> None:
    constraint, obs, _, y = given("power", torch.float64)
    y = 0.3 * y  # where the determinant has digits
    _, found = ft.radial(constraint, y, obs, log_det=True)
    for row in range(4):
        jacobian = torch.autograd.functional.jacobian(lambda v, row=row: ft.radial(constraint, v, obs[row]), y[row])
        torch.testing.assert_close(found[row], torch.linalg.slogdet(jacobian)[1], atol=1e-9, rtol=1e-9)
    ball = sets.Ball(jnp.zeros(2), 1.0)
    inside, outside = ft.alpha(ball, torch.tensor([[0.5, 0.0], [3.0, 0.0]]), log_det=True)[1]
    assert (inside, outside) == (0.0, -torch.inf)
    g = 0.7
    volume = ft.radial(ball, torch.tensor([g, 0.0]), log_det=True)[1]
    assert float(volume) == pytest.approx(float(radial_log_det(jnp.float64(g), 2)), abs=1e-6)


def test_fixed_sets_shapes_and_memory() -> None:
    ball = sets.Ball(jnp.zeros(2), 0.5)
    z = torch.randn(3, 4, 2)
    answer = ft.project(ball, z)
    expected = z * torch.clamp(0.5 / z.norm(dim=-1, keepdim=True), max=1.0)
    torch.testing.assert_close(answer, expected)
    torch.testing.assert_close(ft.project(ball, z[1, 2]), expected[1, 2])
    torch.testing.assert_close(ft.project(ball, z.transpose(0, 1)), expected.transpose(0, 1))  # strided
    assert ft.project(ball, z[:0]).shape == (0, 4, 2)
    large = torch.randn(70_000, 2)  # comes back without a copy
    kept, answer = large.clone(), ft.project(ball, large)
    answer.mul_(0.0)  # the answer is PyTorch's own memory
    torch.testing.assert_close(large, kept, rtol=0, atol=0)
    assert float(ft.project(ball, large).norm(dim=-1).max()) == pytest.approx(0.5, abs=1e-6)


def test_what_is_overwritten_before_the_backward_pass_is_noticed() -> None:
    ball = sets.Ball(jnp.zeros(2), 0.5)
    z = torch.randn(5, 2, requires_grad=True) * 1.0
    answer = ft.project(ball, z)
    z.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        answer.sum().backward()


def test_one_program_serves_sets_of_one_structure() -> None:
    from feasible.torch.crossing import program
    from feasible.torch.functions import _project

    z = torch.randn(7, 2)
    with as_a_user():
        for radius in (0.5, 0.6, 0.7):
            ft.project(sets.Ball(jnp.zeros(2), radius), z)
        assert program(_project, None)._value._cache_size() >= 1
        before = program(_project, None)._value._cache_size()
        ft.project(sets.Ball(jnp.ones(2), 0.1), z)
        assert program(_project, None)._value._cache_size() == before


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # of torch.compile, which looks at all it is given
def test_under_torch_compile_it_is_an_opaque_call() -> None:
    constraint, obs, z, _ = given("power", torch.float32)

    def loss(z: torch.Tensor) -> torch.Tensor:
        return (ft.project(constraint, 2.0 * z, obs) ** 2).sum()

    found = []
    for function in (loss, torch.compile(loss, backend="aot_eager")):
        point = z.clone().requires_grad_()
        function(point).backward()
        found.append(point.grad)
    torch.testing.assert_close(*found)


def test_the_layer_in_a_network() -> None:
    constraint, obs, _, _ = given("power", torch.float32)
    for name, function in (("projection", ft.project), ("alpha", ft.alpha), ("radial", ft.radial)):
        network, layer = torch.nn.Linear(6, 6), ft.Feasible(constraint, map=name)
        output = network(obs)
        torch.testing.assert_close(layer(output, obs), function(constraint, output, obs))
        layer(output, obs).square().sum().backward()
        assert network.weight.grad.abs().sum() > 0
        assert list(layer.parameters()) == []
    with pytest.raises(ValueError, match="There is no map 'radail'; did you mean 'radial'"):
        ft.Feasible(constraint, map="radail")


def test_structured_observations() -> None:
    def constraint(obs: dict) -> sets.ActionSet:
        return sets.Ball(obs["centre"], jnp.asarray([0.5, 2.0], obs["centre"].dtype)[obs["gear"]])

    obs = {"centre": torch.ones(4, 2, requires_grad=True), "gear": torch.tensor([0, 1, 0, 1])}
    answer = ft.project(constraint, torch.zeros(4, 2), obs)
    near = 1.0 - 0.5 / np.sqrt(2.0)
    np.testing.assert_allclose(answer.detach().numpy(), [[near, near], [0, 0], [near, near], [0, 0]], atol=1e-6)
    answer.sum().backward()
    assert obs["centre"].grad.shape == (4, 2)


def test_what_does_not_fit_is_said_in_a_sentence() -> None:
    constraint, obs, z, _ = given("power", torch.float32)
    ball = sets.Ball(jnp.zeros(2), 0.5)
    for wrong, sentence in (
        (lambda: ft.project(constraint, z), "project: the constraint is a function of the observation, so pass obs="),
        (lambda: ft.project(constraint, z, obs[:3]), r"obs must have one row per row of the actions, whose batch is"),
        (lambda: ft.project(ball, z), r"expected tensors of shape \(\.\.\., 2\), the set's dimension"),
        (lambda: ft.alpha(flat, torch.zeros(3, 4), torch.ones(3, 4)), "the dimension of the set's hull"),
        (
            lambda: ft.project(ball, z.half()),
            r"a tensor of torch.float32 or torch.float64, as \.float\(\) gives, got torch.float16",
        ),
        (lambda: ft.project(ball, cast(torch.Tensor, [0.0, 1.0])), "got list"),
        (lambda: ft.project(cast(Region, 3.0), z), "expected a feasible set or a constraint, got float"),
        (lambda: ft.project(constraint, z, obs.numpy()), "obs must be a tensor, or a dict or tuple of them"),
        (lambda: ft.project(lambda obs: obs, z, obs), "The constraint must return an ActionSet"),
    ):
        with pytest.raises(ValueError, match=sentence):
            wrong()
    with pytest.raises(RuntimeError, match=r"tensors on 'meta' do not cross to JAX; move the tensor with \.cpu\(\)"):
        ft.project(ball, torch.zeros(3, 2, device="meta"))


def test_workers_that_are_spawned_compute_and_forked_ones_are_told() -> None:
    """In a process of its own: this one has threads enough."""
    program = """
import warnings
warnings.simplefilter("ignore")
import torch
from tests.torch.workers import Projected
if __name__ == "__main__":
    data = Projected()
    print(data[3].tolist())  # JAX starts
    for way in ("spawn", "fork"):
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=1, multiprocessing_context=way)
        try:
            print(torch.cat(list(loader)).tolist())
        except RuntimeError as error:
            print("this process was forked after JAX had started" in str(error))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300
    )
    lines = run.stdout.splitlines()
    assert len(lines) == 3, run.stderr
    expected = [[float(row), 0.0] if row <= 2 else [2.0, 0.0] for row in range(workers.LENGTH)]
    np.testing.assert_allclose(eval(lines[1]), expected, atol=1e-6)
    assert lines[2] == "True"
