"""The rule of OpenCode, as published: the last three calls are the same, tool and input. Texts are not watched."""

import json
from collections.abc import Sequence

from bench.loops.corpus import Called

SAME = 3


class OpenCode:
    def __init__(self) -> None:
        self._last: list[str] = []

    def turn(self, request: str) -> None:
        self._last = []

    def reply(self) -> None:
        pass

    def said(self, kind: str, delta: str) -> bool:
        return False

    def called(self, calls: Sequence[Called]) -> bool:
        return any([self._call(each) for each in calls])

    def _call(self, call: Called) -> bool:
        self._last = [*self._last, json.dumps([call.tool, call.arguments])][-SAME:]
        return len(self._last) == SAME and len(set(self._last)) == 1
