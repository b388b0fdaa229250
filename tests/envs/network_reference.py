"""The packet network as a plain event loop in Python: slow, short, and written from the specification alone.

It shares nothing with the compiled simulator: its own copy of the topology, a `heapq` of events, and queues
kept as lists of remaining service times whose head is worked off whenever a link is looked at. The tests
compare the compiled simulator with it, and the benchmark takes it as the unit of speed.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PATHS = (
    (0, 16, 19, 21, 24, 14),
    (0, 16, 19, 21, 23, 25, 27, 30, 14),
    (0, 17, 22, 27, 30, 14),
    (0, 16, 19, 21, 23, 25, 10),
    (0, 16, 18, 20, 22, 10),
    (0, 17, 22, 10),
    (7, 23, 26, 28, 29, 14),
    (7, 24, 14),
    (7, 23, 25, 27, 30, 14),
)
LINKS = 31
PROPAGATION = 0.05
QUEUE_SIZE = 500
RETURN_SPEEDUP = 1000.0


def bandwidth(link: int) -> float:
    return 5000.0 if link < 16 else 50.0


class RandomSource:
    """Service times and gaps drawn from one seeded generator; only those that are used."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def service(self, rate: float) -> float:
        return self.generator.exponential(1.0 / rate)

    def gap(self, mean_count: float) -> float:
        return 1.0 / (self.generator.poisson(mean_count) + 1.0)


class RecordedSource:
    """Service times and gaps read from a recording, in order of use."""

    def __init__(self, services: Sequence[float], gaps: Sequence[float]) -> None:
        self.services = iter(services)
        self.gaps = iter(gaps)
        self.gaps_used = 0

    def service(self, rate: float) -> float:
        return next(self.services)

    def gap(self, mean_count: float) -> float:
        self.gaps_used += 1
        return next(self.gaps)


class Queue:
    """One direction of a link: a FIFO of remaining service times, worked off when looked at."""

    def __init__(self) -> None:
        self.remaining: list[float] = []
        self.last_look = 0.0

    def look(self, now: float) -> None:
        elapsed = now - self.last_look
        self.last_look = now
        while self.remaining and elapsed > 0.0:
            if self.remaining[0] <= elapsed:
                elapsed -= self.remaining.pop(0)
            else:
                self.remaining[0] -= elapsed
                elapsed = 0.0


@dataclass
class Packet:
    path: int
    hop: int = 0
    latency: float = 0.0


class ReferenceNetwork:
    """NSFNET by the recorded rules. `step` returns the quantities of one step by the recording's names."""

    def __init__(self, source: RandomSource | RecordedSource) -> None:
        self.source = source
        self.forward = [Queue() for _ in range(LINKS)]
        self.backward = [Queue() for _ in range(LINKS)]
        self.now = 0.0
        self.order = 0
        # An event without a packet is an emission tick; the first is at time 0.
        self.events: list[tuple[float, int, Packet | None]] = [(0.0, 0, None)]
        self.history = [[0.0] * 4 for _ in range(10)]
        self.played = 0
        for _ in range(2):
            self.run([1.0 / 6.0] * len(PATHS), 0.15, 1000.0)

    def in_flight(self) -> list[int]:
        """Packets between emission and acknowledgement, by path."""
        counts = [0] * len(PATHS)
        for _, _, packet in self.events:
            if packet is not None:
                counts[packet.path] += 1
        return counts

    def schedule(self, time: float, packet: Packet | None) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, packet))

    def run(self, action: Sequence[float], duration: float, mean_count: float) -> None:
        self.action = action
        self.left = list(action)
        self.cost = [100000.0 if rate == 0.0 else 0.0 for rate in action]
        self.waste = 0.0
        self.ticks = 0
        self.sent = [0] * len(PATHS)
        self.received = [0] * len(PATHS)
        self.dropped = [0] * len(PATHS)
        self.round_trips: list[list[float]] = [[], [], []]
        start = self.now
        while self.now < start + duration:
            self.now, _, packet = heapq.heappop(self.events)
            if packet is None:
                self.tick()
                self.schedule(self.now + self.source.gap(mean_count), None)
            else:
                self.enter(packet)
        self.duration = self.now - start

    def tick(self) -> None:
        self.ticks += 1
        candidate = 0
        for path in range(len(PATHS)):
            if self.cost[path] < self.cost[candidate] and self.left[path] > 0.0:
                candidate = path
        if self.cost[candidate] > self.waste and self.left[0] < 0.0:
            self.waste += 6.0
        elif self.left[candidate] > 0.0:
            self.left[candidate] -= 1.0
            self.cost[candidate] += 1.0 / self.action[candidate]
            self.sent[candidate] += 1
            self.enter(Packet(candidate))
        else:
            self.waste += 6.0

    def enter(self, packet: Packet) -> None:
        links = PATHS[packet.path]
        hops = len(links)
        if packet.hop == 2 * hops:
            self.received[packet.path] += 1
            self.round_trips[packet.path // 3].append(packet.latency)
            return
        if packet.hop < hops:
            link = links[packet.hop]
            queue = self.forward[link]
            queue.look(self.now)
            if len(queue.remaining) >= QUEUE_SIZE:
                self.dropped[packet.path] += 1
                return
            delay = PROPAGATION + sum(queue.remaining)
            queue.remaining.append(self.source.service(bandwidth(link)))
        else:
            # The way back crosses the last link twice and the first one never.
            link = links[min(2 * hops - packet.hop, hops - 1)]
            queue = self.backward[link]
            queue.look(self.now)
            delay = PROPAGATION / RETURN_SPEEDUP + sum(queue.remaining)
            queue.remaining.append(self.source.service(bandwidth(link)) / RETURN_SPEEDUP)
        packet.hop += 1
        packet.latency += delay
        self.schedule(self.now + delay, packet)

    def step(self, action: Sequence[float]) -> dict[str, np.ndarray | float]:
        self.run(action, 0.15 if self.played == 0 else 1.0, 500.0)
        self.played += 1
        acked = [len(times) for times in self.round_trips]
        lat = [sum(times) / len(times) if times else 0.0 for times in self.round_trips]
        thr = [(count - 1) / self.duration for count in acked]
        drop = [sum(self.dropped[index::3]) for index in range(3)]
        reward = 0.0
        for flow in range(3):
            reward += math.log(max(thr[flow], math.exp(-17.5)))
            reward -= 1.5 * math.log(max(lat[flow], math.exp(-5.0)))
            reward -= 0.5 * math.log(max(drop[flow], 1.0))
        lost = sum(drop)
        latest = [
            self.ticks * 12000.0 / self.duration / 1e7,
            (acked[0] - 1) * 12000.0 / self.duration / 1e7,
            lat[0],
            lost / (lost + acked[0]) if lost else 0.0,
        ]
        self.history = [*self.history[1:], latest]
        return {
            "reward": reward,
            "obs": np.array(self.history).ravel(),
            "drop": np.array(drop, dtype=float),
            "recv": np.array(self.received, dtype=float).reshape(3, 3),
            "sent": np.array(self.sent, dtype=float).reshape(3, 3),
            "thr": np.array(thr),
            "lat": np.array(lat),
            "t_end": self.now,
        }
