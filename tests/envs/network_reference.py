"""The packet network as a plain event loop in Python: short, lean, and written from the specification alone.

It shares nothing with the compiled simulator: its own copy of the topology, one `heapq` of events, and for each
server when it will be idle and which services are yet to be completed. The tests compare the compiled simulator
with it, and the benchmark takes it as the unit of speed; so there are no objects for packets, no calls but
those of the heap and the queues, and random numbers are drawn a thousand at a time.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

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


# Servers are the links forwards, then the links backwards. The way back crosses the last link twice and the first
# one never.
ROUTES = tuple((*path, LINKS + path[-1], *(LINKS + link for link in path[:0:-1])) for path in PATHS)
SPEEDUP = [1.0] * LINKS + [RETURN_SPEEDUP] * LINKS
DELAY = [PROPAGATION / speedup for speedup in SPEEDUP]
TICK = -1


class RandomSource:
    """Unit exponentials and gaps drawn from one seeded generator."""

    mean_service = tuple(1.0 / bandwidth(server % LINKS) for server in range(2 * LINKS))

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def services(self) -> Iterator[float]:
        while True:
            yield from self.generator.exponential(size=1000).tolist()

    def gaps(self, mean_count: float) -> Iterator[float]:
        while True:
            yield from (1.0 / (self.generator.poisson(mean_count, 1000) + 1.0)).tolist()


class RecordedSource:
    """Service times in seconds and gaps read from a recording, in order of use."""

    mean_service = (1.0,) * (2 * LINKS)

    def __init__(self, services: Sequence[float], gaps: Sequence[float]) -> None:
        self._services = services
        self._gaps = iter(gaps)
        self.gaps_used = 0

    def services(self) -> Iterator[float]:
        return iter(self._services)

    def gaps(self, mean_count: float) -> Iterator[float]:
        for gap in self._gaps:
            self.gaps_used += 1
            yield gap


class ReferenceNetwork:
    """NSFNET by the recorded rules. `step` returns the quantities of one step by the recording's names."""

    def __init__(self, source: RandomSource | RecordedSource) -> None:
        self.unit = [mean / speedup for mean, speedup in zip(source.mean_service, SPEEDUP, strict=True)]
        self.services, self.gaps, start_gaps = source.services(), source.gaps(500.0), source.gaps(1000.0)
        self.idle_at = [0.0] * (2 * LINKS)
        self.completions: list[deque[float]] = [deque() for _ in range(LINKS)]
        self.now = 0.0
        # An event is its time, path (or TICK), place in the route, and latency so far.
        self.events: list[tuple[float, int, int, float]] = [(0.0, TICK, 0, 0.0)]
        self.history = [[0.0] * 4 for _ in range(10)]
        self.played = 0
        for _ in range(2):
            self.run([1.0 / 6.0] * len(PATHS), 0.15, start_gaps)

    def run(self, action: Sequence[float], duration: float, gaps: Iterator[float]) -> None:
        events, services, unit = self.events, self.services, self.unit
        idle_at, completions = self.idle_at, self.completions
        left = list(action)
        cost = [100000.0 if rate == 0.0 else 0.0 for rate in action]
        sent, received, dropped, round_trips = [0] * 9, [0] * 9, [0] * 9, [0.0] * 3
        ticks, waste, silent = 0, 0.0, False
        now, start, end = self.now, self.now, self.now + duration
        while now < end:
            now, path, hop, latency = heappop(events)
            if path == TICK:
                ticks += 1
                heappush(events, (now + next(gaps), TICK, 0, 0.0))
                if silent:
                    continue
                path = 0
                for other in range(1, 9):
                    if cost[other] < cost[path] and left[other] > 0.0:
                        path = other
                if left[path] <= 0.0:
                    # So it will be at every later tick of this run.
                    silent = True
                    continue
                if left[0] < 0.0 and cost[path] > waste:
                    waste += 6.0
                    continue
                left[path] -= 1.0
                cost[path] += 1.0 / action[path]
                sent[path] += 1
            route = ROUTES[path]
            if hop == len(route):
                received[path] += 1
                round_trips[path // 3] += latency
                continue
            server = route[hop]
            if server < LINKS:
                queue = completions[server]
                while queue and queue[0] <= now:
                    queue.popleft()
                if len(queue) >= QUEUE_SIZE:
                    dropped[path] += 1
                    continue
            begin = idle_at[server]
            if begin < now:
                begin = now
            completion = begin + next(services) * unit[server]
            idle_at[server] = completion
            if server < LINKS:
                completions[server].append(completion)
            delay = DELAY[server] + (begin - now)
            heappush(events, (now + delay, path, hop + 1, latency + delay))
        self.now, self.duration, self.ticks = now, now - start, ticks
        self.sent, self.received, self.dropped, self.round_trips = sent, received, dropped, round_trips

    def step(self, action: Sequence[float]) -> dict[str, np.ndarray | float]:
        self.run(action, 0.15 if self.played == 0 else 1.0, self.gaps)
        self.played += 1
        acked = [sum(self.received[3 * flow : 3 * flow + 3]) for flow in range(3)]
        lat = [total / count if count else 0.0 for total, count in zip(self.round_trips, acked, strict=True)]
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
