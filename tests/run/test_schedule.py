"""Which updates follow a round of steps, against counting multiples and against single steps one after the other."""

import random
from dataclasses import replace

import pytest

from feasible.algorithms.ddpg import DDPG
from feasible.run.drive.schedule import Due, Loop, Schedule, due_after, folded
from tests.run.toys import TOY

CRITIC, BOTH = frozenset({"critic"}), frozenset({"actor", "critic"})


def learner(copies: int, actor: int, critic: int, warmup: int = 10) -> DDPG:
    return replace(TOY, copies=copies, actor_interval=actor, critic_interval=critic, warmup=warmup)


@pytest.mark.parametrize("copies", [1, 2, 3, 8, 64])
@pytest.mark.parametrize(("actor", "critic"), [(1, 1), (2, 1), (3, 2), (50, 7)])
def test_a_part_is_due_as_often_as_its_interval_has_multiples_in_the_round(
    copies: int, actor: int, critic: int
) -> None:
    algorithm, alone = learner(copies, actor, critic), learner(1, actor, critic)
    for step in range(copies, 40 * copies, copies):
        due = due_after(algorithm, step)
        for part, every in (("actor", actor), ("critic", critic)):
            past = max(step - copies, 10)  # a warm-up that ends within a round leaves the rest of its numbers
            assert sum(part in parts for parts in due) == max(step // every - past // every, 0)
        singles = [due_after(alone, number) for number in range(step - copies + 1, step + 1)]
        assert due == sum(singles, ())


@pytest.mark.parametrize(("copies", "actor", "critic"), [(1, 2, 3), (4, 3, 2), (5, 1, 1), (6, 7, 2)])
def test_the_schedule_finds_what_is_due(copies: int, actor: int, critic: int) -> None:
    algorithm = learner(copies, actor, critic)
    schedule = Schedule([algorithm], lambda step: due_after(algorithm, step))
    for step in range(copies, 60 * copies, copies):
        assert schedule.program(step) == due_after(algorithm, step)


def unfolded(parts: tuple[frozenset[str] | Loop, ...]) -> Due:
    whole: Due = ()
    for part in parts:
        whole += unfolded(part.body) * part.times if isinstance(part, Loop) else (part,)
    return whole


def written(parts: tuple[frozenset[str] | Loop, ...]) -> int:
    """Updates that a program of these parts holds."""
    return sum(written(part.body) if isinstance(part, Loop) else 1 for part in parts)


def test_loops_make_the_same_updates_in_the_same_order() -> None:
    draw = random.Random(0)
    for _ in range(300):
        due = tuple(draw.choice([CRITIC, BOTH]) for _ in range(draw.randrange(1, 20)))
        assert unfolded(folded(due)) == due
        assert sum(part.updates if isinstance(part, Loop) else 1 for part in folded(due)) == len(due)


def test_what_repeats_is_written_once() -> None:
    assert folded((BOTH,)) == (BOTH,)
    assert folded((BOTH,) * 64) == (Loop((BOTH,), 64),)
    assert folded((CRITIC, BOTH) * 32) == (Loop((CRITIC, BOTH), 32),)
    assert folded((CRITIC,) * 40 + (BOTH,) + (CRITIC,) * 23) == (Loop((CRITIC,), 40), BOTH, Loop((CRITIC,), 23))
    for copies, actor, most in ((64, 1, 1), (64, 2, 2), (64, 3, 4), (1000, 100, 5), (7, 1, 1)):
        algorithm = learner(copies, actor, 1)
        for step in range(copies, 7 * copies, copies):
            assert written(folded(due_after(algorithm, step))) <= most
