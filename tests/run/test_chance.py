"""A step's random numbers drawn many steps at once are those that the step would draw by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from feasible.run.drive.chance import STRETCH, AtEachStep, ByStretches, Cut
from feasible.run.drive.lone import Lone
from feasible.run.drive.plant import Steps
from feasible.run.drive.schedule import due_after
from feasible.run.drive.step import Step
from tests.run.toys import TOY, toy_plant

pytestmark = pytest.mark.xdist_group("toy")
KEY = jax.random.key_data(jax.random.key(3))


def step(state: Array, key: Array, number: Array) -> tuple[Array, Array, Array]:
    """Uses numbers, a key of which more is drawn with the state, and a constant."""
    own = jax.random.fold_in(jax.random.wrap_key_data(key), number)
    noise_key, later = jax.random.split(own)
    noise = jax.random.normal(noise_key, (2, 3), jnp.float32)
    places = jax.random.bits(noise_key, (4,), jnp.uint32) % state.astype(jnp.uint32)
    drawn = jax.random.uniform(jax.random.fold_in(later, state.astype(jnp.int32)), (5,), jnp.float32)
    return state + jnp.sum(noise * jnp.ones((2, 3), jnp.float32)), places, drawn


@pytest.fixture(scope="module")
def cut() -> Cut:
    program = jax.make_jaxpr(step)(jnp.float32(7), KEY, jnp.int32(0))
    return Cut(program, 2)


def test_only_what_depends_on_nothing_else_is_drawn_before(cut: Cut) -> None:
    # The sum of the noise, the bits of the places, the numbers of a key; no constant and nothing that needs the state.
    assert sorted((shape.shape, shape.dtype.name) for shape in cut.shapes) == [
        ((), "float32"),
        ((2,), "uint32"),
        ((4,), "uint32"),
    ]


@pytest.mark.parametrize("every", [1, 3])
def test_a_stretch_holds_the_numbers_of_its_steps(cut: Cut, every: int) -> None:
    stretches, by_itself, state, whole = ByStretches(cut, every), AtEachStep(cut), jnp.float32(7), jax.jit(step)
    told = jax.jit(lambda tables, made: cut.rest([state], stretches.of(tables, KEY, made)))
    drawing = jax.jit(lambda made: cut.rest([state], by_itself.of([], KEY, made)))
    for number in (0, 5, STRETCH - 1, STRETCH, 3 * STRETCH + 7, 5):
        made = number * every
        expected = whole(state, KEY, np.int32(made))
        for found in (told(stretches.tables(KEY, made), np.int32(made)), drawing(np.int32(made))):
            for own, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-6)


def test_a_stretch_is_drawn_once_and_anew_for_another_run(cut: Cut) -> None:
    stretches = ByStretches(cut, 1)
    first = stretches.tables(KEY, 0)
    assert stretches.tables(KEY, STRETCH - 1) is first
    other = stretches.tables(jax.random.key_data(jax.random.key(4)), STRETCH - 1)
    assert not any(np.array_equal(own, theirs) for own, theirs in zip(first, other, strict=True))
    begun_late = ByStretches(cut, 1).tables(KEY, STRETCH - 1)  # as a resumed run does
    for own, theirs in zip(first, begun_late, strict=True):
        np.testing.assert_array_equal(own, theirs)


@pytest.mark.usefixtures("shared_programs")
def test_a_driver_s_steps_are_those_of_the_whole_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """With warm-up, its end and updates: the carry after each is what `Step.advance` makes of the packet."""
    plant, packets = toy_plant(), []
    made = plant.step

    def stepped(actions: np.ndarray, number: int) -> Steps:
        steps = made(actions, number)
        packets.append(steps.packets[0])
        return steps

    monkeypatch.setattr(plant, "step", stepped)
    driver, whole = Lone(TOY, plant, seed=5), Step(TOY, plant.spec)
    advance = jax.jit(whole.advance, static_argnames=("due", "warm"))
    driver.start()
    carry, _, _ = jax.jit(whole.first)(jax.random.key(5), jnp.asarray(driver.carry.obs))
    for number in range(1, TOY.warmup + 5):
        driver.advance(number)
        carry, _, _ = advance(carry, packets[-1], due=due_after(TOY, number), warm=number < TOY.warmup)
        for own, other in zip(jax.tree.leaves(driver.carry), jax.tree.leaves(carry), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-6)
