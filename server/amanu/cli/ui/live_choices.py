"""Rows of a picker that change while it is open."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from amanu.cli.ui.dialog import Choice


class LiveChoices(Sequence[Choice]):
    """What `find` returns, asked once a second at most. A row that is no more stands below them as it was last: it may
    be marked."""

    def __init__(self, find: Callable[[], Sequence[Choice]], clock: Callable[[], float] = time.monotonic) -> None:
        self._find = find
        self._clock = clock
        self._second: int | None = None
        self._rows_by_value: dict[str, Choice] = {}

    def renew(self) -> None:
        """Something has changed."""
        self._second = None

    @overload
    def __getitem__(self, index: int) -> Choice: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Choice]: ...
    def __getitem__(self, index: int | slice) -> Choice | Sequence[Choice]:
        return self._rows()[index]

    def __iter__(self) -> Iterator[Choice]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def _rows(self) -> Sequence[Choice]:
        second = int(self._clock())
        if second != self._second:
            self._second = second
            found = {choice.value: choice for choice in self._find()}
            self._rows_by_value = found | {key: row for key, row in self._rows_by_value.items() if key not in found}
        return list(self._rows_by_value.values())
