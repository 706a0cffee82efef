"""The rules of Gemini CLI, as published (0.56), without the model's judgement.

Calls: five rounds of the same one to five calls in a row, by a hash of name and arguments as they were written; what
came back is not looked at. Text: a window of 50 characters moves along by one; the same window ten times, on average no
more than 250 characters apart and with few different texts between, is a chant. A piece with a code fence, a table
row, a list item, a heading, a quote or a rule in it starts everything anew; in a code block nothing is counted. Its
expressions for lists (no dash) and rules (any digits and capitals) are as published. Thoughts are not watched.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Sequence

from bench.loops.corpus import Called

LONGEST_CYCLE = 5
ROUNDS = 5
KEPT_CALLS = 25
KEPT_TEXT = 5000
WINDOW = 50
TIMES = 10
MEAN_DISTANCE = 5 * WINDOW
BETWEEN = 5

FENCE = re.compile(r"```")
STARTS_ANEW = (
    re.compile(r"(^|\n)\s*(\|.*\||[|+-]{3,})"),  # table
    re.compile(r"(^|\n)\s*[*-+]\s"),  # list: a range from * to +
    re.compile(r"(^|\n)\s*\d+\.\s"),
    re.compile(r"(^|\n)#+\s"),
    re.compile(r"(^|\n)>\s"),
    re.compile(r"^[+-_=*\u2500-\u257f]+$"),  # rule: a range from + to _
)


class GeminiCli:
    def __init__(self) -> None:
        self._calls: list[str] = []
        self._in_code = False  # outlives the turn, as published
        self._start_anew()

    def turn(self, request: str) -> None:
        self._calls = []
        self._start_anew()

    def reply(self) -> None:
        pass

    def said(self, kind: str, delta: str) -> bool:
        if kind != "text":
            return False
        fences = len(FENCE.findall(delta))
        if fences or any(each.search(delta) for each in STARTS_ANEW):
            self._start_anew()
        was_in_code = self._in_code
        self._in_code = was_in_code if fences % 2 == 0 else not was_in_code
        if was_in_code or self._in_code or fences:
            return False
        self._text += delta
        self._cut()
        return self._chants()

    def called(self, calls: Sequence[Called]) -> bool:
        self._start_anew()
        return any([self._call(each) for each in calls])

    def _call(self, call: Called) -> bool:
        arguments = json.dumps(call.arguments)
        self._calls = [*self._calls, _hash(f"{call.tool}:{arguments}")][-KEPT_CALLS:]
        return any(self._cycle(length) for length in range(1, LONGEST_CYCLE + 1))

    def _cycle(self, length: int) -> bool:
        last = self._calls[-ROUNDS * length :]
        return len(last) == ROUNDS * length and all(key == last[at % length] for at, key in enumerate(last))

    def _chants(self) -> bool:
        while self._at + WINDOW <= len(self._text):
            window = self._text[self._at : self._at + WINDOW]
            seen = self._seen.setdefault(_hash(window), [])
            seen.append(self._at)
            self._at += 1
            if self._chant(seen[-TIMES:]):
                return True
        return False

    def _chant(self, last: list[int]) -> bool:
        if len(last) < TIMES or (last[-1] - last[0]) / (TIMES - 1) > MEAN_DISTANCE:
            return False
        between = {self._text[here:there] for here, there in itertools.pairwise(last)}
        return len(between) <= BETWEEN

    def _cut(self) -> None:
        over = len(self._text) - KEPT_TEXT
        if over <= 0:
            return
        self._text = self._text[over:]
        self._at = max(0, self._at - over)
        moved = {key: [at - over for at in places if at >= over] for key, places in self._seen.items()}
        self._seen = {key: places for key, places in moved.items() if places}

    def _start_anew(self) -> None:
        self._text = ""
        self._at = 0
        self._seen: dict[str, list[int]] = {}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
