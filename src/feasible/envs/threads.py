"""Copies of an environment shared out among threads that stay, for compiled code that releases Python's lock."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

Result = TypeVar("Result")


def check_threads(threads: int) -> None:
    """Refuse what is no number of threads."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be an integer of at least 1, not {threads!r}.")


def fewest_threads(threads: int, copies: int) -> int:
    """As many of `threads` as shorten a step of all copies: one more would only wait for the longest share."""
    check_threads(threads)
    longest = -(-copies // threads)
    return -(-copies // longest)


class Threads:
    """Contiguous shares of `copies` for each of `threads`; one thread is the caller's own."""

    def __init__(self, threads: int, copies: int) -> None:
        shares = fewest_threads(threads, copies)
        self._bounds = list(pairwise(copies * share // shares for share in range(shares + 1)))
        self._pool = ThreadPoolExecutor(shares) if shares > 1 else None

    def run(self, work: Callable[[int, int], Result]) -> list[Result]:
        """Call `work(first, last)` for every share, wait for all of them, and return what each gave."""
        if self._pool is None:
            return [work(*self._bounds[0])]
        return list(self._pool.map(lambda bounds: work(*bounds), self._bounds))

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
