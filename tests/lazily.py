"""Values that are made when they are first asked for: every worker imports all tests, and runs half of them."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class Lazily(Mapping[str, Value]):
    """Values by name; the names are known from the first, for tests that are parametrised by them."""

    def __init__(self, makers: Mapping[str, Callable[[], Value]]):
        self._makers, self._made = makers, dict[str, Value]()

    def __getitem__(self, name: str) -> Value:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
