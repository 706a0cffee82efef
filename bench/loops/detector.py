"""What every detector on the bench looks like."""

from collections.abc import Sequence
from typing import Protocol

from bench.loops.corpus import Called


class Detector(Protocol):
    """Sees one case from its beginning. Each method says whether a loop is seen now."""

    def turn(self, request: str) -> None:
        """The user says something: a turn begins."""
        ...

    def reply(self) -> None:
        """A reply of the model begins."""
        ...

    def said(self, kind: str, delta: str) -> bool:
        """A piece of a "thought" or a "text"."""
        ...

    def called(self, calls: Sequence[Called]) -> bool:
        """The reply asked for these calls, and got these results."""
        ...
