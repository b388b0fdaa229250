"""Copies that step as one against single environments, packet by packet, over ends of episodes and saved states."""

from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from feasible.catalogue import registry
from feasible.constraints import ConstrainedEnv, ConstrainedVectorEnv
from feasible.errors import InvalidStepError
from feasible.run.drive.faults import NotFiniteError
from feasible.run.drive.plant import Steps, VectorPlant, plant_of
from tests.run.toys import UNREADABLE, Fault, SavedDrift, Unreadable, force

SEEDS = (3, 0, 7)


def toys(
    fault: Fault = "", at: int = 0, mode: AutoresetMode = AutoresetMode.SAME_STEP, *, copy: bool = True
) -> VectorPlant:
    """Three toys, the second with a fault."""
    makers = [SavedDrift, lambda: SavedDrift(fault, at), SavedDrift]
    return VectorPlant(ConstrainedVectorEnv(SyncVectorEnv(makers, copy=copy, autoreset_mode=mode), force))


TOYS = {
    "toy": toys,
    "toy, a step late": partial(toys, mode=AutoresetMode.NEXT_STEP),
    "toy, a step late, one array": partial(toys, mode=AutoresetMode.NEXT_STEP, copy=False),
    "toy, never": partial(toys, mode=AutoresetMode.DISABLED),
}
"""By when a copy that has ended would start again by itself."""


def actions(env: VectorPlant, steps: int) -> NDArray:
    size = env.spec.action_size
    if env.spec.observation_size == 11 and size == 5:  # bikes
        return np.full((steps, len(SEEDS), 5), 30.0, np.float32)
    return np.random.default_rng(0).uniform(0.0, 0.1, (steps, len(SEEDS), size)).astype(np.float32)


@pytest.mark.parametrize(
    ("task", "steps"), [*((toy, 70) for toy in TOYS), ("reacher", 120), ("bss-5", 130), ("nsfnet", 3)]
)
def test_every_copy_gives_the_packets_of_the_single_environment_with_its_seed(task: str, steps: int) -> None:
    copies = TOYS[task]() if task in TOYS else VectorPlant(registry.make_vec(task, 3, threads=2))
    chosen = actions(copies, steps)
    seen = copies.reset(SEEDS)
    played = [copies.step(chosen[k], k + 1) for k in range(steps)]
    ends = 0
    for copy, seed in enumerate(SEEDS):
        env = SavedDrift() if task in TOYS else plant_of(registry.make(task)).env
        obs, _ = env.reset(seed=seed)
        np.testing.assert_array_equal(seen[copy], np.asarray(obs, np.float32))
        for k in range(steps):
            next_obs, reward, terminated, truncated, _ = env.step(chosen[k, copy])
            acted_on = next_obs
            if terminated or truncated:
                ends += 1
                acted_on, _ = env.reset()
            expected = np.concatenate([next_obs, acted_on, [reward, terminated, truncated]]).astype(np.float32)
            np.testing.assert_array_equal(played[k].packets[copy], expected)
            np.testing.assert_array_equal(played[k].seen[copy], np.asarray(acted_on, np.float32))
            assert played[k].rewards[copy] == reward
            assert played[k].ended[copy] == (terminated or truncated)
    assert ends >= (0 if task == "nsfnet" else 3)
    copies.env.close()


def test_a_single_environment_is_a_row_with_its_last_and_its_first_observations() -> None:
    plant, env = plant_of(ConstrainedEnv(SavedDrift(), force)), SavedDrift()
    chosen, ends = np.random.default_rng(0).uniform(0.0, 0.1, (70, 1, 2)).astype(np.float32), 0
    np.testing.assert_array_equal(plant.reset([5])[0], env.reset(seed=5)[0])
    for k, action in enumerate(chosen, 1):
        steps = plant.step(action, k)
        next_obs, reward, terminated, truncated, _ = env.step(action[0])
        ended = terminated or truncated
        seen = env.reset()[0] if ended else next_obs
        expected = np.concatenate([next_obs, seen, [reward, terminated, truncated]]).astype(np.float32)
        np.testing.assert_array_equal(steps.packets, expected[None])
        assert (list(steps.rewards), list(steps.ended)) == ([reward], [ended])
        ends += ended
    assert ends >= 3


@pytest.mark.parametrize("task", [*TOYS, "reacher"])
def test_restored_copies_go_on_as_they_would_have(task: str) -> None:
    def make() -> VectorPlant:
        return TOYS[task]() if task in TOYS else VectorPlant(registry.make_vec(task, 3))

    copies, restored = make(), make()
    chosen = actions(copies, 90)
    copies.reset(SEEDS)
    for k in range(30):
        copies.step(chosen[k], k + 1)
    assert copies.restorable
    restored.reset((1, 2, 3))
    restored.set_state({name: array.copy() for name, array in copies.get_state().items()})
    for k in range(30, 90):
        np.testing.assert_array_equal(copies.step(chosen[k], k + 1).packets, restored.step(chosen[k], k + 1).packets)


def test_the_spec_is_that_of_the_single_environment() -> None:
    for task in ("reacher", "bss-5", "nsfnet", "halfcheetah"):
        one, many = plant_of(registry.make(task)).spec, VectorPlant(registry.make_vec(task, 2)).spec
        assert (one.observation_size, one.action_size) == (many.observation_size, many.action_size)
        assert one.episode_length == many.episode_length == registry.TASKS[task].episode_length
        np.testing.assert_array_equal(one.low, many.low)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("observation", "Entry 1 of the observation of copy 1 is nan at step 4:"),
        ("reward", "The reward of copy 1 is nan"),
    ],
)
def test_a_number_that_is_not_finite_names_its_copy(fault: Fault, says: str) -> None:
    copies = toys(fault, at=4)
    chosen = actions(copies, 4)
    copies.reset(SEEDS)
    for k in range(3):
        assert not copies.step(chosen[k], k + 1).faults(k + 1)
    found = copies.step(chosen[3], 4).faults(4)
    assert list(found) == [1]
    with pytest.raises(NotFiniteError, match=says):
        raise found[1]


def test_a_first_observation_that_is_not_finite_names_its_copy() -> None:
    with pytest.raises(NotFiniteError, match="Entry 1 of the observation of copy 1 is inf at step 0:"):
        toys("first observation").reset(SEEDS)


def play(copies: VectorPlant, steps: int) -> list[Steps]:
    return [copies.step(chosen, k + 1) for k, chosen in enumerate(actions(copies, steps))]


class Deaf(SyncVectorEnv):
    """Resets all copies, whichever it is asked to."""

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, object] | None = None):
        del options
        return super().reset(seed=seed)


class Thrifty(SyncVectorEnv):
    """Gives the same arrays at every step."""

    def __init__(self, makers: list[type[SavedDrift]]):
        super().__init__(makers, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)

    def step(self, actions: NDArray):
        outcome = super().step(actions)
        given = self._rewards, self._terminations, self._truncations
        for array, new in zip(given, outcome[1:4], strict=True):
            array[:] = new
        return outcome[0], *given, outcome[4]


def test_a_vector_may_give_the_same_arrays_again() -> None:
    copies, other = VectorPlant(ConstrainedVectorEnv(Thrifty([SavedDrift] * 3), force)), toys()
    np.testing.assert_array_equal(copies.reset(SEEDS), other.reset(SEEDS))
    for found, expected in zip(play(copies, 30), play(other, 30), strict=True):
        np.testing.assert_array_equal(found.packets, expected.packets)
        np.testing.assert_array_equal(found.rewards, expected.rewards)
        np.testing.assert_array_equal(found.ended, expected.ended)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_a_vector_that_resets_copies_whose_episode_runs_is_refused(mode: AutoresetMode) -> None:
    # The second copy's episodes end two steps after those of the others.
    vector = Deaf([SavedDrift, partial(Short, 18), SavedDrift], autoreset_mode=mode)
    copies = VectorPlant(ConstrainedVectorEnv(vector, force))
    copies.reset(SEEDS)
    with pytest.raises(InvalidStepError, match=r'not ended at step 18: its reset must heed options\["reset_mask"\]'):
        play(copies, 20)


class Short(SavedDrift):
    """Episodes are shorter."""

    def __init__(self, length: int):
        super().__init__()
        self.length = length

    def step(self, action: NDArray):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated or self.time == self.length, info


def test_a_vector_must_say_when_its_episodes_start_again() -> None:
    silent = SyncVectorEnv([SavedDrift] * 2)
    silent.metadata = {}
    with pytest.raises(ValueError, match=r"^env: the vector environment must say when its episodes start again"):
        VectorPlant(ConstrainedVectorEnv(silent, force))


def test_a_vector_whose_workers_forget_a_reset_is_refused() -> None:
    """Gymnasium 1.4's, asked for the next step after a reset of some copies, resets these once more."""
    vector = AsyncVectorEnv.__new__(AsyncVectorEnv)
    vector.shared_memory, vector.closed = False, True
    wrapped = ConstrainedVectorEnv(toys().env, force)
    wrapped.env = vector
    wrapped.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    with pytest.raises(ValueError, match=r"^env: AsyncVectorEnv with shared_memory=False needs autoreset_mode="):
        VectorPlant(wrapped)


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_step_that_cannot_be_read_names_its_copy(name: str) -> None:
    change, said = UNREADABLE[name]
    env = SyncVectorEnv([SavedDrift, lambda: Unreadable(change)], autoreset_mode=AutoresetMode.SAME_STEP)
    copies = VectorPlant(ConstrainedVectorEnv(env, force))
    copies.reset(SEEDS[:2])
    idle = np.zeros((2, 2), np.float32)
    copies.step(idle, 1)
    with pytest.raises(InvalidStepError, match=said) as stop:
        copies.step(idle, 2)
    assert " of copy 1 " in str(stop.value)
