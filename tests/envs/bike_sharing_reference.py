"""Bike sharing as plain Python loops over one copy: the trusted, slow counterpart of the vectorised step."""

import random
from typing import NamedTuple


class Played(NamedTuple):
    allocation: list[float]
    flows: list[list[float]]
    lost: float
    overflow: float
    moving: float
    revenue: float
    reward: float


def play_loop(
    allocation: list[float],
    demand: list[list[float]],
    action: list[float] | None,
    capacities: list[float],
    nearest_order: list[list[int]],
) -> Played:
    """One step by the recorded rules and unit costs, in the order in which the specification tells it."""
    stations = range(len(allocation))
    held = list(allocation if action is None else action)
    moved_in = sum(max(held[i] - allocation[i], 0.0) for i in stations)
    moved_out = sum(max(allocation[i] - held[i], 0.0) for i in stations)
    moving = (moved_in + moved_out) / 2
    flows = [split(held[i], demand[i]) for i in stations]
    after = []
    for i in stations:
        after.append(held[i] - min(held[i], sum(demand[i])) + sum(flows[k][i] for k in stations))
    overflow = 0.0
    for i in stations:
        for j in nearest_order[i]:
            excess = after[i] - capacities[i]
            room = capacities[j] - after[j]
            if excess <= 0:
                break
            if j == i or room <= 0:
                continue
            passed_on = min(excess, room)
            after[j] = after[j] + excess if room >= excess else capacities[j]
            after[i] = capacities[i] if room >= excess else after[i] - room
            overflow += passed_on
    revenue = sum(sum(row) for row in flows)
    lost = sum(sum(row) for row in demand) - revenue
    return Played(after, flows, lost, overflow, moving, revenue, -(lost + overflow + 2 * moving))


def split(held: float, demand: list[float]) -> list[float]:
    """The flows from one station: proportional to demand, whole where there are too few bikes."""
    outgoing = sum(demand)
    if outgoing == 0:
        return [0.0 for _ in demand]
    flows = [min(held, outgoing) * (wanted / outgoing) for wanted in demand]
    if held >= outgoing:
        return flows
    # Python's round takes halves to the even integer, as the recorded program does.
    flows = [float(round(flow)) for flow in flows]
    for j in reversed(range(len(flows))):
        if flows[j] != 0:
            flows[j] = held - sum(flows[:j])
            break
    return flows


class PlainBikeSharing:
    """One copy of the environment without arrays: what a batch does for all copies, done one by one."""

    def __init__(self, capacities: list[float], nearest_order: list[list[int]], bikes: int, seed: int) -> None:
        self.capacities, self.nearest_order, self.bikes = capacities, nearest_order, bikes
        self.source = random.Random(seed)
        self.reset()

    def reset(self) -> list[float]:
        """Draws a day of 100 steps, uniform on 5..24 between different stations."""
        stations = range(len(self.capacities))
        self.day = [
            [[0.0 if i == j else float(self.source.randint(5, 24)) for j in stations] for i in stations]
            for _ in range(100)
        ]
        self.allocation, self.t = [30.0 for _ in stations], 0
        return [0.0 for _ in stations] + self.allocation + [0.0]

    def step(self, action: list[float]) -> tuple[list[float], float, bool]:
        """Checks the action, plays it, and starts again after the last step."""
        if any(abs(a - round(a)) > 3.5e-4 for a in action):
            raise ValueError("not whole")
        whole = [float(round(a)) for a in action]
        if any(a < 0 or a > c for a, c in zip(whole, self.capacities, strict=True)) or sum(whole) != self.bikes:
            raise ValueError("not an allocation")
        demand = self.day[self.t]
        played = play_loop(self.allocation, demand, whole, self.capacities, self.nearest_order)
        self.allocation = played.allocation
        self.t += 1
        if self.t == 100:
            return self.reset(), played.reward, True
        return [sum(row) for row in demand] + self.allocation + [float(self.t)], played.reward, False
