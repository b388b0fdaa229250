"""A linear and a quadratic budget in a box, the quadratic one diagonal: two nested scalar duals.

    max  sum_i y_i x_i - c/2 x_i^2   over  {0 <= x <= b, w . x <= budget, sum_i q_i x_i^2 <= 1},   y, w, q >= 0,

which for c = 1 is the projection of y and for c = 0 a linear maximisation. For multipliers l, m >= 0 the answer is
x_i = clip((y_i - l w_i) / (c + m q_i), 0, b_i). For given m the load w . x is piecewise linear in l, so l is exact by
breakpoints; where c + m q_i = 0 a coordinate jumps from b_i to 0 at l = y_i / w_i, and the one at which the load
passes the budget is filled in part, as in a fractional knapsack. The energy sum_i q_i x_i^2 of what is found falls
as m rises: a root of one variable, by Newton on 1/sqrt(energy), which is nearly linear in m, within a bracket. As a
rule 3 to 8 rounds of O(n^2) operations for few coordinates, O(n log n) for many.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int

from feasible.solve.breakpoints import bracket

ROUNDS = 60


class Budgets(NamedTuple):
    """The data of a problem: what coordinates earn, weigh, heat and may at most be, and the linear budget."""

    worth: Float[Array, " n"]
    weights: Float[Array, " n"] | None  # None without the linear budget
    heat: Float[Array, " n"]
    most: Float[Array, " n"]
    budget: Float[Array, ""]


class _Inner(NamedTuple):
    """The answer for one m, and its price l."""

    x: Float[Array, " n"]
    price: Float[Array, ""]
    charged: Bool[Array, ""]


class _Search(eqx.Module):
    m: Float[Array, ""]
    found: _Inner
    least: Float[Array, ""]  # an m whose energy is above 1, with its answer
    hot: Float[Array, " n"]
    largest: Float[Array, ""]  # one whose energy is not, likewise
    cool: Float[Array, " n"]
    finished: Bool[Array, ""]
    rounds: Int[Array, ""]


def nearest_in_budgets(given: Budgets) -> Float[Array, " n"]:
    """The projection of `worth` >= 0, with exact derivatives in all of the data: the implicit function theorem."""
    fixed = stop_gradient(given)
    search = _searched(fixed, curvature=1.0)
    return _with_derivatives(given, fixed, stop_gradient(_finished(search, fixed)), stop_gradient(search))


def highest_in_budgets(given: Budgets) -> Float[Array, " n"]:
    """A maximiser of worth . x, with exact derivatives where it is unique; what earns nothing stays at zero."""
    fixed = stop_gradient(given)
    search = _searched(fixed, curvature=0.0)
    return _moving_maximiser(given, fixed, stop_gradient(_finished(search, fixed)), stop_gradient(search))


def energy(heat: Float[Array, " n"], x: Float[Array, " n"]) -> Float[Array, ""]:
    return jnp.sum(heat * x**2)


def _searched(given: Budgets, *, curvature: float) -> _Search:
    worth, _, heat, most, _ = given
    dtype, eps = worth.dtype, jnp.finfo(worth.dtype).eps
    given = given._replace(worth=worth / _unit(worth)) if curvature == 0.0 else given
    # An m at which no coordinate heats more than its share; those that never do need none.
    hot = heat * most**2 * given.worth.shape[0] > 1.0
    slope = jnp.where(hot, heat, 1.0)
    needed = (given.worth * jnp.sqrt(given.worth.shape[0] * slope) - curvature) / slope
    largest = jnp.max(jnp.where(hot, needed, 0.0), initial=0.0)

    first = _answer(given, jnp.zeros((), dtype), curvature)
    begun = _Search(
        m=jnp.zeros((), dtype),
        found=first,
        least=jnp.zeros((), dtype),
        hot=first.x,
        largest=largest,
        cool=jnp.zeros_like(worth),
        finished=~(energy(heat, first.x) > 1.0),
        rounds=jnp.asarray(0),
    )

    def unfinished(search: _Search) -> Bool[Array, ""]:
        return ~search.finished & (search.rounds < ROUNDS)

    def advance(search: _Search) -> _Search:
        m = _next(search, given, curvature)
        found = _answer(given, m, curvature)
        level = energy(heat, found.x)
        over = level > 1.0
        least, largest = jnp.where(over, m, search.least), jnp.where(over, search.largest, m)
        settled = jnp.abs(level - 1.0) <= 4 * eps
        return _Search(
            m=m,
            found=found,
            least=least,
            hot=jnp.where(over, found.x, search.hot),
            largest=largest,
            cool=jnp.where(over, search.cool, found.x),
            finished=settled | ~(largest - least > 2 * eps * largest),
            rounds=search.rounds + 1,
        )

    return jax.lax.while_loop(unfinished, advance, begun)


def _unit(worth: Float[Array, " n"]) -> Float[Array, ""]:
    """What a linear maximiser does not depend on: in such units no multiplier is far from what x is about."""
    peak = jnp.max(worth)
    return jnp.where(peak > 0, peak, 1.0)


def _next(search: _Search, given: Budgets, curvature: float) -> Float[Array, ""]:
    """Newton's next m; where that leaves the bracket or nothing moves, a point between its ends by their ratio."""
    x, _, charged = search.found
    bend = curvature + search.m * given.heat
    moves = (x > 0) & (x < given.most) & (bend > 0)
    give = jnp.where(moves, 1.0 / jnp.where(moves, bend, 1.0), 0.0)
    level, pull = energy(given.heat, x), given.heat * x
    fall = jnp.sum(give * pull**2)
    if given.weights is not None:
        weight = jnp.sum(give * given.weights**2)
        # A coordinate that is filled in part takes what the others leave of the budget: the price stays.
        filled = jnp.any((x > 0) & (x < given.most) & (bend <= 0) & (given.weights > 0))
        tied = charged & (weight > 0) & ~filled
        shared = jnp.sum(give * given.weights * pull) ** 2 / jnp.where(tied, weight, 1.0)
        fall = fall - jnp.where(tied, shared, 0.0)
    sloped = fall > 0
    newton = search.m + level * (jnp.sqrt(level) - 1.0) / jnp.where(sloped, fall, 1.0)
    between = jnp.where(search.least > 0, jnp.sqrt(search.least) * jnp.sqrt(search.largest), 0.0625 * search.largest)
    inside = sloped & (newton > search.least) & (newton < search.largest)
    return jnp.where(inside, newton, between)


def _answer(given: Budgets, m: Float[Array, ""], curvature: float) -> _Inner:
    """x for one m, with the price that the linear budget asks."""
    worth, weights, heat, most, budget = given
    bend = curvature + m * heat
    curved = bend > 0
    inverse = 1.0 / jnp.where(curved, bend, 1.0)
    free = jnp.where(curved, jnp.clip(worth * inverse, 0.0, most), jnp.where(worth > 0, most, 0.0))
    if weights is None:
        return _Inner(free, jnp.zeros((), worth.dtype), jnp.asarray(False))
    weighty = weights > 0
    rate = jnp.where(weighty, 1.0 / jnp.where(weighty, weights, 1.0), 0.0)
    leaves, ends = (worth - bend * most) * rate, worth * rate

    def at(price: Float[Array, ""], *, before: bool) -> Float[Array, " n"]:
        """x at a price; before or after it, where coordinates jump at it."""
        between = jnp.clip((worth - price * weights) * inverse, 0.0, most)
        if before:
            moved = jnp.where(price <= leaves, most, jnp.where(price >= ends, 0.0, between))
        else:
            moved = jnp.where(price >= ends, 0.0, jnp.where(price <= leaves, most, between))
        return jnp.where(weighty, moved, free)

    def load(x: Float[Array, " n"]) -> Float[Array, ""]:
        return jnp.sum(weights * x)

    start, end = bracket(lambda price: load(at(price, before=True)), [leaves, ends], budget)
    ahead, behind = at(start, before=False), at(end, before=True)
    share = _share(load(ahead), load(behind), budget)
    x, price = ahead + share * (behind - ahead), start + share * (end - start)
    if curvature == 0.0:
        full = at(start, before=True)
        jumps = load(ahead) <= budget
        x = jnp.where(jumps, full + _share(load(full), load(ahead), budget) * (ahead - full), x)
        price = jnp.where(jumps, start, price)
    charged = load(free) > budget
    return _Inner(jnp.where(charged, x, free), jnp.where(charged, price, 0.0), charged)


def _share(above: Float[Array, ""], below: Float[Array, ""], budget: Float[Array, ""]) -> Float[Array, ""]:
    """The way from a load above the budget to one below it."""
    fall = above - below
    return jnp.clip((above - budget) / jnp.where(fall > 0, fall, 1.0), 0.0, 1.0)


def _finished(search: _Search, given: Budgets) -> Float[Array, " n"]:
    """The point of energy 1 between the answers at the ends of the bracket, or the one that needs no m.

    Where the energy jumps with m both ends maximise the same, and so does all between them.
    """
    cool, way = search.cool, search.hot - search.cool
    lean, pace = jnp.sum(given.heat * cool * way), energy(given.heat, way)
    room = jnp.maximum(1.0 - energy(given.heat, cool), 0.0)
    root = lean + jnp.sqrt(jnp.maximum(lean**2 + pace * room, 0.0))
    share = jnp.clip(room / jnp.where(root > 0, root, 1.0), 0.0, 1.0)
    x = jnp.where(search.least < search.largest, cool + share * way, search.found.x)
    return jnp.where(search.rounds > 0, x, search.found.x)


def _with_derivatives(given: Budgets, fixed: Budgets, x: Float[Array, " n"], search: _Search) -> Float[Array, " n"]:
    """x, moving with the data: coordinates off their bounds with l and m so that the budgets in use are kept."""
    price, m, charged, heated = search.found.price, search.m, search.found.charged, search.rounds > 0
    weights, bend = fixed.weights, 1.0 + search.m * fixed.heat
    net = fixed.worth if weights is None else fixed.worth - price * weights
    # "Not outside" instead of "inside": a NaN is free, so that it is in the answer, too.
    free, full = ~((net < 0) | (net > bend * fixed.most)), net > bend * fixed.most
    give = jnp.where(free, 1.0 / bend, 0.0)
    pull = fixed.heat * x
    # All of these are zero but for their derivatives.
    push = given.worth - fixed.worth - m * x * (given.heat - fixed.heat)
    if weights is not None and given.weights is not None:
        push = push - price * (given.weights - weights)
    moved = give * push + jnp.where(full, given.most - fixed.most, 0.0)
    heating = jnp.sum(pull * moved) + 0.5 * jnp.sum(x**2 * (given.heat - fixed.heat))
    steep = jnp.sum(give * pull**2)
    if weights is None or given.weights is None:
        heats = heated & (steep > 0)
        return x + moved - give * pull * jnp.where(heats, heating / jnp.where(heats, steep, 1.0), 0.0)
    spending = jnp.sum(weights * moved) + jnp.sum(x * (given.weights - weights)) - (given.budget - fixed.budget)
    heavy, mixed = jnp.sum(give * weights**2), jnp.sum(give * weights * pull)
    pays = charged & (heavy > 0)
    mixed = jnp.where(pays, mixed, 0.0)
    heavy = jnp.where(pays, heavy, 1.0)
    rest = steep - mixed**2 / heavy
    heats = heated & (rest > 1e3 * jnp.finfo(x.dtype).eps * steep)  # not where one coordinate meets both budgets
    spending = jnp.where(pays, spending, 0.0)
    hotter = jnp.where(heats, (heating - spending * mixed / heavy) / jnp.where(heats, rest, 1.0), 0.0)
    dearer = jnp.where(pays, (spending - mixed * hotter) / heavy, 0.0)
    return x + moved - give * (weights * dearer + pull * hotter)


def _moving_maximiser(given: Budgets, fixed: Budgets, x: Float[Array, " n"], search: _Search) -> Float[Array, " n"]:
    """A maximiser, moving with the data as in `_with_derivatives`; only coordinates that heat give way smoothly.

    One without heat that is filled in part holds the price where it earns what it weighs, and takes what the others
    leave of the linear budget.
    """
    unit, price, m = _unit(fixed.worth), search.found.price, search.m
    bend = m * fixed.heat
    curved = bend > 0
    weights = jnp.zeros_like(x) if fixed.weights is None else fixed.weights
    heavier = jnp.zeros_like(x) if given.weights is None else given.weights - weights
    net = fixed.worth / unit - price * weights
    even = jnp.abs(net) <= 64 * jnp.finfo(x.dtype).eps * price * weights
    part = ~curved & even & (x > 0) & (x < fixed.most) & (weights > 0)
    free = curved & ~((net < 0) | (net > bend * fixed.most))
    full = ~part & (net > bend * fixed.most)
    give, pull = jnp.where(free, 1.0 / jnp.where(free, bend, 1.0), 0.0), fixed.heat * x
    hotter = given.heat - fixed.heat
    push = (given.worth - fixed.worth) / unit - price * heavier - m * x * hotter
    moved = give * push + jnp.where(full, given.most - fixed.most, 0.0)
    heating = jnp.sum(pull * moved) + 0.5 * jnp.sum(x**2 * hotter)
    spending = jnp.sum(weights * moved) + jnp.sum(x * heavier) - (given.budget - fixed.budget)
    steep, heavy, mixed = jnp.sum(give * pull**2), jnp.sum(give * weights**2), jnp.sum(give * weights * pull)
    held = jnp.sum(jnp.where(part, weights**2, 0.0))
    pays = search.found.charged & (heavy > 0) & ~(held > 0)
    rest = steep - jnp.where(pays, mixed**2 / jnp.where(pays, heavy, 1.0), 0.0)
    heats = (search.rounds > 0) & (rest > 1e3 * jnp.finfo(x.dtype).eps * steep)
    asked = jnp.sum(jnp.where(part, weights * push, 0.0)) / jnp.where(held > 0, held, 1.0)
    taken = jnp.where(pays, spending / jnp.where(pays, heavy, 1.0), asked)
    warmer = jnp.where(heats, (heating - mixed * taken) / jnp.where(heats, rest, 1.0), 0.0)
    dearer = jnp.where(pays, (spending - mixed * warmer) / jnp.where(pays, heavy, 1.0), asked)
    moved = moved - give * (weights * dearer + pull * warmer)
    left = jnp.sum(weights * moved) + jnp.sum(x * heavier) - (given.budget - fixed.budget)
    return x + moved - jnp.where(part, weights * left / jnp.where(held > 0, held, 1.0), 0.0)
