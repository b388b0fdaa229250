"""Sets from CVXPY against CVXPY itself: nearest points and supports with random parameters, and what is refused."""

import functools
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from feasible.errors import EmptySetError
from feasible.sets import (
    ActionSet,
    Allocation,
    Ball,
    BallBox,
    Box,
    ConePolytope,
    EllipsoidBox,
    HalfSpaceBox,
    Intersection,
    Polytope,
    PositivePowerBox,
    WeightedL1Box,
    WeightedL1EllipsoidBox,
    from_cvxpy,
)
from tests.one_by_one import one_by_one
from tests.reference import TIGHT

COUNT = 40
Draw = Callable[[np.random.Generator], Sequence[NDArray | float]]


@dataclass(eq=False)
class Model:
    """Constraints on a variable of 3 entries, and random values of their parameters for which there is a point."""

    name: str
    kind: type[ActionSet]
    constraints: Callable[..., list]
    parameters: Sequence[cp.Parameter]
    draw: Draw

    def __post_init__(self) -> None:
        self.x, self.target = cp.Variable(3), cp.Parameter(3)
        stated = self.constraints(self.x, *self.parameters)
        self.set = from_cvxpy(self.x, stated, self.parameters)
        self.nearest = cp.Problem(cp.Minimize(cp.sum_squares(self.x - self.target)), stated)
        self.highest = cp.Problem(cp.Maximize(self.target @ self.x), stated)


def _in_unit_box(x: cp.Variable) -> list:
    return [cp.abs(x) <= 1]


def _vector(name: str = "w") -> cp.Parameter:
    return cp.Parameter(3, name=name)


def _level(name: str = "k") -> cp.Parameter:
    return cp.Parameter(nonneg=True, name=name)


def _of_level(rng: np.random.Generator) -> Sequence[NDArray | float]:
    return rng.normal(size=3), rng.uniform(0.1, 2)


def _models() -> list[Model]:
    return [
        Model("box", Box, lambda x, w: [x <= w + 1, x >= w - 2], [_vector()], lambda rng: [rng.normal(size=3)]),
        Model("ball", Ball, lambda x, w, k: [cp.norm(x - w) <= k], [_vector(), _level()], _of_level),
        Model(
            "squares",
            Ball,
            lambda x, w, k: [cp.sum(cp.square(x - w)) <= k],
            [_vector(), _level()],
            lambda rng: (rng.normal(size=3), 10.0 ** rng.uniform(-4, 1)),
        ),
        Model(
            "power",
            WeightedL1Box,
            lambda x, w, k: [cp.norm1(cp.multiply(w, x)) <= k, *_in_unit_box(x)],
            [_vector(), _level()],
            _of_level,
        ),
        Model(
            "positive power",
            PositivePowerBox,
            lambda x, w, k: [cp.sum(cp.pos(cp.multiply(w, x))) <= k, *_in_unit_box(x)],
            [_vector(), _level()],
            _of_level,
        ),
        Model(
            "rows",  # a parametric matrix, a maximum, a scaled absolute value, a slack variable and an equality
            Polytope,
            lambda x, M, w, k: [
                cp.max(M @ x) <= 0.5 + k,
                k * cp.abs(x[0] - x[1]) <= 1,
                (slack := cp.Variable()) >= w @ x,
                slack <= 0.7,
                cp.sum(x) == 0.2,
                x >= -1,
            ],
            [cp.Parameter((2, 3), name="M"), _vector(), _level()],
            lambda rng: (rng.normal(size=(2, 3)), rng.normal(size=3), rng.uniform(0, 2)),
        ),
        Model(
            "friction",  # a cone whose head is an action, and a chance constraint with a parametric quantile
            ConePolytope,
            lambda x, w, k: [
                cp.SOC(0.6 * x[0], x[1:]),
                w @ x + k * cp.norm(np.diag([1.0, 0.5, 2.0]) @ x) <= 1,
                cp.abs(x) <= 2,
            ],
            [_vector(), _level()],
            _of_level,
        ),
        Model(
            "paraboloid",  # two squares under a row that has actions too
            ConePolytope,
            lambda x, w, k: [
                2 * cp.sum_squares(x[:2]) + 3 * cp.square(x[2] - w[0]) <= k + w[0] ** 0 * x[0] + 1,
                cp.abs(x) <= 2,
            ],
            [_vector(), _level()],
            lambda rng: (0.5 * rng.normal(size=3), rng.uniform(0.3, 2)),
        ),
    ]


MODELS = _models()
each_precision = [
    pytest.param(
        model,
        dtype,
        id=f"{model.name}-{dtype.__name__}",
        marks=[
            pytest.mark.xdist_group(f"from cvxpy {model.name}"),
            # Their kernel is asked in float32 by itself (tests/solve/test_conic.py).
            *([pytest.mark.slow] if model.name in ("friction", "paraboloid") and dtype == jnp.float32 else []),
        ],
    )
    for model in MODELS
    for dtype in (jnp.float64, jnp.float32)
]


CLOSED = [
    Model(
        "half-space",
        HalfSpaceBox,
        lambda x, w: [w @ x <= 0.5, x >= [-1, -2, -1], x <= 1],
        [_vector()],
        lambda rng: [rng.normal(size=3)],
    ),
    Model(
        "allocation",
        Allocation,
        lambda x, k: [2 * cp.sum(x) == k, x >= 0, x <= [1, 2, 3]],
        [_level()],
        lambda rng: [rng.uniform(0.5, 6)],
    ),
    Model(
        "ball in a box",
        BallBox,
        lambda x, w, k: [cp.norm(x - w) <= k, x >= -1, x <= 0.5],
        [_vector(), _level()],
        lambda rng: (0.3 * rng.normal(size=3), rng.uniform(0.8, 2)),
    ),
    Model(
        "heat",
        EllipsoidBox,
        lambda x, w, k: [cp.norm(cp.multiply(w, x)) <= k, *_in_unit_box(x)],
        [_vector(), _level()],
        _of_level,
    ),
    Model(
        "power and heat",
        WeightedL1EllipsoidBox,
        lambda x, w, k: [
            cp.norm1(cp.multiply(w, x)) <= k,
            cp.sum_squares(cp.multiply([1.0, 2.0, 0.5], x)) <= 0.6,
            *_in_unit_box(x),
        ],
        [_vector(), _level()],
        _of_level,
    ),
]


@pytest.mark.parametrize("model", CLOSED, ids=lambda m: m.name)
def test_closed_forms_are_recognised(model: Model) -> None:
    rng = np.random.default_rng(3)
    values = model.draw(rng)
    region = model.set(*values)
    assert type(region) is model.kind
    for z in 3.0 * rng.normal(size=(4, 3)):
        expected = _solved(model, model.nearest, z, values)
        np.testing.assert_allclose(region.project(z), expected, atol=1e-4)


def test_what_has_no_closed_form_beside_a_budget_is_still_represented() -> None:
    """A cone that is not around zero, and bounds that are not symmetric."""
    x = cp.Variable(2)
    power = cp.norm1(x) <= 1
    for others in ([cp.norm(x - 0.1) <= 0.8, cp.abs(x) <= 1], [cp.norm(x) <= 0.8, x >= -1, x <= 2]):
        assert type(jax.eval_shape(from_cvxpy(x, [power, *others]))) is ConePolytope


def _state(model: Model, values: Sequence[NDArray | float]) -> None:
    for parameter, value in zip(model.parameters, values, strict=True):
        parameter.value = value


def _solved(model: Model, problem: cp.Problem, target: NDArray, values: Sequence[NDArray | float]) -> NDArray:
    model.target.value = target
    _state(model, values)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, **TIGHT)
    assert model.x.value is not None, problem.status
    return model.x.value


@dataclass(frozen=True)
class Problems:
    """Random values of a model's parameters, points and directions, and CVXPY's answers, for both precisions."""

    values: Sequence[Sequence[NDArray | float]]
    z: NDArray
    g: NDArray
    nearest: Sequence[NDArray]
    highest: Sequence[float]


@functools.cache
def problems(model: Model) -> Problems:
    rng = np.random.default_rng(1)
    values = [model.draw(rng) for _ in range(COUNT)]
    z = rng.normal(size=(COUNT, 3)) * rng.choice([0.3, 1, 10], size=(COUNT, 1))
    g = rng.normal(size=(COUNT, 3))
    nearest = [_solved(model, model.nearest, z[k], values[k]) for k in range(COUNT)]
    highest = [float(g[k] @ _solved(model, model.highest, g[k], values[k])) for k in range(COUNT)]
    return Problems(values, z, g, nearest, highest)


@pytest.mark.parametrize(("model", "dtype"), each_precision)
def test_answers_are_cvxpy_s(model: Model, dtype: type) -> None:
    """Clarabel itself is off by up to 1e-6 at curved sets; the support is flat there and agrees more closely."""
    asked = problems(model)

    @jax.jit
    @one_by_one
    def answers(z: jax.Array, g: jax.Array, *values: jax.Array) -> tuple[jax.Array, ...]:
        region = model.set(*values)
        near, best = region.project(z), region.maximise_linear(g)
        return near, best, jnp.maximum(region.violation(near), region.violation(best)), region.scale

    columns = [np.stack([values[i] for values in asked.values]) for i in range(len(model.parameters))]
    found = answers(*(jnp.asarray(x, dtype) for x in (asked.z, asked.g, *columns)))
    near, best, violation, scale = (np.asarray(x, np.float64) for x in found)
    assert found[0].dtype == dtype
    assert np.all(violation <= 1e-5 * scale)
    accuracy = 5e-6 if dtype == jnp.float64 else 1e-4
    for k, values in enumerate(asked.values):
        np.testing.assert_allclose(near[k], asked.nearest[k], atol=accuracy * scale[k])
        slack = 0.2 * accuracy * scale[k] * np.linalg.norm(asked.g[k])
        np.testing.assert_allclose(asked.g[k] @ best[k], asked.highest[k], atol=slack)
        _state(model, values)
        model.x.value = near[k]
        assert all(np.all(c.violation() <= 2e-5 * max(scale[k], 1)) for c in model.nearest.constraints[-1:])


@pytest.mark.parametrize(
    "model",
    [pytest.param(m, marks=pytest.mark.xdist_group(f"from cvxpy {m.name}")) for m in MODELS[:6]],
    ids=lambda m: m.name,
)
def test_the_kind_is_the_one_that_answers_fastest_and_new_values_compile_nothing(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(2)

    def ask() -> ActionSet:
        region = model.set(*model.draw(rng))
        region.project(rng.normal(size=3))
        region.maximise_linear(rng.normal(size=3))
        return region

    first = ask()
    assert type(first) is model.kind
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        for _ in range(3):
            ask()
    assert [record.message for record in caplog.records if "Compiling" in record.message] == []


def test_derivatives_go_through_the_parameters() -> None:
    """Against finite differences, for a ball whose level is a parameter: the root is taken with care."""
    x, k = cp.Variable(2), cp.Parameter(nonneg=True, name="k")
    region = from_cvxpy(x, [cp.sum_squares(x) <= k], [k])

    def first(level: jax.Array) -> jax.Array:
        return region(level).project(jnp.array([3.0, 4.0]))[0]

    both = jax.jit(jax.value_and_grad(first))
    values, slopes = np.transpose([both(level) for level in (0.25, 0.2499, 0.2501, 0.0)])
    np.testing.assert_allclose(slopes[0], (values[2] - values[1]) / 2e-4, rtol=1e-6)
    assert np.isfinite(slopes[3])


def test_attributes_of_the_variable_are_constraints() -> None:
    share = cp.Variable(3, nonneg=True)
    region = from_cvxpy(share, [cp.sum(share) == 1])()  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(region.project([0.6, 0.6, -1.0]), [0.5, 0.5, 0.0], atol=1e-12)
    bounded = cp.Variable(3, bounds=[-1, 1])
    assert isinstance(from_cvxpy(bounded, [cp.norm1(bounded) <= 1])(), WeightedL1Box)


def test_a_budget_beside_other_rows_keeps_its_closed_form() -> None:
    x = cp.Variable(8)
    region = from_cvxpy(x, [cp.norm1(x) <= 1, x <= 1, x >= -0.5])()
    assert isinstance(region, Intersection)
    assert [type(part) for part in region.parts] == [WeightedL1Box, Box]


def test_variables_that_constraints_share_are_eliminated_together() -> None:
    x, slack = cp.Variable(2), cp.Variable()
    region = from_cvxpy(x, [x[0] + slack <= 1, slack >= x[1], slack >= -x[1], cp.abs(x) <= 5])()
    assert region.contains([0.5, -0.5])
    assert not region.contains([0.5, 0.6])
    assert not region.contains([0.5, -0.6])


def _refusals() -> list:
    x, w, k = cp.Variable(3), _vector(), _level()
    box = _in_unit_box(x)
    return [
        pytest.param(x, [cp.lambda_max(cp.diag(x)) <= 1], [], "needs a semi-definite cone", id="semi-definite"),
        pytest.param(x, [cp.sum(cp.exp(x)) <= 1, *box], [], "needs an exponential cone", id="exponential"),
        pytest.param(x, [cp.PowCone3D(x[0], x[1], x[2], 0.3)], [], "needs a power cone", id="power"),
        pytest.param(x, [cp.norm(x[:2]) + cp.norm(x[1:]) <= 1], [], "cannot be eliminated exactly", id="sum of norms"),
        pytest.param(x, [cp.norm(cp.pos(x)) <= 1, *box], [], "cannot be eliminated exactly", id="nested"),
        pytest.param(x, [cp.norm1(np.ones((12, 3)) @ x) <= 1, *box], [], "more than 512 rows", id="rows"),
        pytest.param(x, [cp.norm(x) >= 1], [], r"not convex by CVXPY's rules \(DCP\)", id="not convex"),
        pytest.param(x, [k * w @ x <= 1, *box], [k, w], r"\(DPP\)", id="not parametrised"),
        pytest.param(x, [w @ x <= 1, *box], [k], "its parameter w is not among the parameters given", id="parameter"),
        pytest.param(x, [cp.sum(x) <= 1, x >= w, x[:2] <= 3], [w], None, id="implied bound"),
        pytest.param(x, [w @ x <= 1, x >= 0], [w], "entry 0 of the variable has no upper bound", id="unbounded"),
        pytest.param(
            (b := cp.Variable(3, boolean=True, name="b")),
            [b <= 1],
            [],
            "the variable b is integer or boolean",
            id="integer",
        ),
        pytest.param(cp.Variable((2, 2)), [], [], "must be a cvxpy.Variable that is a vector", id="matrix"),
        pytest.param(x, box, [cp.Parameter((3, 3), PSD=True, name="P")], "P is declared PSD", id="attribute"),
    ]


@pytest.mark.parametrize(("variable", "constraints", "parameters", "said"), _refusals())
def test_what_cannot_be_represented_is_refused_by_name(
    variable: cp.Variable, constraints: list, parameters: list, said: str | None
) -> None:
    if said is None:
        from_cvxpy(variable, constraints, parameters)
        return
    with pytest.raises(ValueError, match=said) as refusal:
        from_cvxpy(variable, constraints, parameters)
    assert str(refusal.value).startswith("from_cvxpy: ")
    assert "\n" not in str(refusal.value)


def test_values_that_do_not_fit_are_named() -> None:
    x, w, k = cp.Variable(3), _vector(), _level()
    region = from_cvxpy(x, [cp.norm(x - w) <= k], [w, k])
    with pytest.raises(ValueError, match=r"a value for each of its parameters \(w, k\), not 1"):
        region(np.zeros(3))
    with pytest.raises(ValueError, match=r"w must have shape \(3,\), but has shape \(2,\)"):
        region(np.zeros(2), 1.0)
    with pytest.raises(ValueError, match="k must not be negative"):
        region(np.zeros(3), -1.0)
    with pytest.raises(ValueError, match="w must be finite"):
        region(np.full(3, np.nan), 1.0)


@pytest.mark.parametrize("level", [-0.25, -4.0])
def test_a_negative_level_is_an_empty_set(level: float) -> None:
    x, k = cp.Variable(2), cp.Parameter(name="k")
    with pytest.raises(EmptySetError, match="these values of the parameters leave no action"):
        from_cvxpy(x, [cp.sum_squares(x) <= k], [k])(level)


def test_without_cvxpy_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ValueError, match=r"from_cvxpy needs CVXPY: pip install 'feasible\[cvxpy\]'"):
        from_cvxpy(cp.Variable(2), [])
