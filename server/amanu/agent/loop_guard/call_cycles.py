"""Do the calls go in circles? Steps are compared by what they called and by what came back; only digests are kept.

A circle is one to five steps that come again with equal calls *and* equal results: polling whose result changes is
none, nor is the same failing test after ever other edits. Equal is meant as the tools mean it: the order of arguments
and of calls within a step, a default written out, stray blanks make no difference.

Results that differ in times only (clocks, durations, process ids) may be a build that is waited for, or tests run again
with nothing changed. They count, with twice the patience; so do calls that wait by themselves (`sleep 30; …`). Any
other figure may be progress: a line number, a percentage.
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amanu.core.conversation import Call, Result

ROUNDS = (5, 4, 3, 3, 3)
"""Of circles of one step, two, …, five. The longer the circle, the less can be chance; bench/loops holds the cases."""
PATIENCE = 2
"""Times as many rounds, for times that change and for calls that wait."""
SAME_FAILURES = 6
"""Steps in which one tool failed at one file, the same way, with no success of it there in between."""
SAME_IN_STEP = 5
"""Equal calls with equal results within one step."""
_PLACES = 64
"""Tools and files whose failures are counted at once."""

_PATHS = ("path", "file_path", "filePath", "file", "filename")
_COMMANDS = ("command", "cmd")
_TALK = ("description", "explanation")
"""Of a command, what is said about it; elsewhere a description may be the very thing."""
_WAITS = re.compile(r"\b(sleep|wait|watch)\b|--follow\b", re.IGNORECASE)
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d(:\d\d)?([.,]\d+)?"  # dates, clocks
    r"|(\d+([.,]\d+)?\s?(ns|us|µs|ms|s|m|h|secs?|seconds?|mins?|minutes?|hours?)\s?)+(?!\w)"  # 2m 10s
    r"|0x[0-9a-f]{4,}|\bpid\W{0,2}\d+|/tmp/[^\s:'\"]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_REJECTED = "rejected"
"""A user's no is no failure of the model."""

Defaults = Mapping[str, Mapping[str, Any]]
"""Tool → argument → the value it has when it is left out."""


class CallCycles:
    """Watches the steps of a turn. `defaults` of the tools: an argument that equals its own is as good as absent."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self.reset()

    def reset(self) -> None:
        """What came before is settled; a new alarm takes new evidence."""
        self._exact = _Rounds()
        self._rough = _Rounds()
        self._failures: dict[str, tuple[str, int]] = {}

    def add_step(self, calls: Sequence[Call], results: Sequence[Result]) -> str | None:
        """What goes in circles, as the rest of a sentence about the model ("made the same call … "), or None."""
        keys = [self._key(call) for call in calls]
        pairs = list(zip(keys, results, strict=False))
        patience = PATIENCE if any(map(_waits, calls)) else 1
        exact = self._exact.add(_digest(sorted(f"{key}\n{result.text}" for key, result in pairs)), patience)
        rough = self._rough.add(
            _digest(sorted(f"{key}\n{_TIMES.sub('0', result.text)}" for key, result in pairs)), patience * PATIENCE
        )
        if exact:
            return _circle(exact, calls, "the same results")
        if rough:
            return _circle(rough, calls, "results that differ in times only")
        return self._failing(calls, results) or _at_once(calls, pairs)

    def _failing(self, calls: Sequence[Call], results: Sequence[Result]) -> str | None:
        failures: dict[str, tuple[Call, str | None]] = {}
        """Place → how the calls of this step failed there, None where one worked: a reply is one try, however many
        calls it makes."""
        for call, result in zip(calls, results, strict=False):
            path = _path(call)
            target = f"{call.tool} {path}"
            worked = not result.is_error or failures.get(target, (call, ""))[1] is None
            failures[target] = (call, None if worked else _way(result.text, path))
        for target, (call, failure) in failures.items():
            if failure is None:
                self._failures.pop(target, None)
                continue
            if _REJECTED in failure:
                continue
            previous, times = self._failures.pop(target, ("", 0))
            times = times + 1 if failure == previous else 1
            self._failures[target] = (failure, times)
            if times >= SAME_FAILURES:
                subject = f" on {path}" if (path := _path(call)) else ""
                return f"used {call.tool}{subject} {times} times and failed in the same way each time"
            if len(self._failures) > _PLACES:
                del self._failures[next(iter(self._failures))]
        return None

    def _key(self, call: Call) -> str:
        """Equal for calls that mean the same."""
        if isinstance(call.arguments, str):
            return f"{call.tool} {call.arguments.strip()}"
        defaults = self._defaults.get(call.tool, {})
        talk = _TALK if any(name in call.arguments for name in _COMMANDS) else ()
        arguments = {
            name: _plain(value)
            for name, value in call.arguments.items()
            if value is not None and name not in talk and (name not in defaults or value != defaults[name])
        }
        return f"{call.tool} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


class _Rounds:
    """For each length of a circle, how many of the last steps were as the one so many before them."""

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=len(ROUNDS))
        self._runs = [0] * len(ROUNDS)

    def add(self, step: str, patience: int) -> tuple[int, int] | None:
        """(length of the circle, rounds) when there are enough."""
        circle = None
        for index, rounds in enumerate(ROUNDS):
            length = index + 1
            again = len(self._last) >= length and self._last[-length] == step
            self._runs[index] = self._runs[index] + 1 if again else 0
            completed = self._runs[index] // length + 1
            if circle is None and completed >= rounds * patience:
                circle = (length, completed)
        self._last.append(step)
        return circle


def _circle(circle: tuple[int, int], calls: Sequence[Call], outcome: str) -> str:
    length, rounds = circle
    if length > 1:
        return f"gone through the same {length} steps {rounds} times, with {outcome}"
    subject = "call" if len(calls) == 1 else f"{len(calls)} calls"
    return f"made the same {subject} ({_names(calls)}) {rounds} times in a row, with {outcome}"


def _at_once(calls: Sequence[Call], pairs: Iterable[tuple[str, Result]]) -> str | None:
    outcomes = [f"{key}\n{result.text}" for key, result in pairs]
    times, first = max(((outcomes.count(outcome), first) for first, outcome in enumerate(outcomes)), default=(0, 0))
    return (
        f"made the same call ({_names(calls[first : first + 1])}) {times} times at once"
        if times >= SAME_IN_STEP
        else None
    )


def _names(calls: Sequence[Call]) -> str:
    names = list(dict.fromkeys(f"{call.tool} {_shown(call)}".strip() for call in calls))
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _shown(call: Call) -> str:
    if isinstance(call.arguments, str):
        return ""
    text = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


def _path(call: Call) -> str:
    if isinstance(call.arguments, str):
        return ""
    paths = (call.arguments.get(name) for name in _PATHS)
    return next((str(_plain(path)) for path in paths if isinstance(path, str)), "")


def _waits(call: Call) -> bool:
    if isinstance(call.arguments, str):
        return False
    return any(_WAITS.search(str(call.arguments.get(name, ""))) for name in _COMMANDS)


def _way(error: str, path: str) -> str:
    """How a call failed: the first line of its error, without what varies from try to try."""
    line = error.strip().partition("\n")[0].replace(path, "") if path else error.strip().partition("\n")[0]
    return _NUMBER.sub("0", _QUOTED.sub("", line)).lower()[:120]


def _plain(value: Any) -> Any:
    """A value without the blanks that mean nothing. Within a text of several lines they may."""
    match value:
        case str():
            text = value.strip()
            return text if "\n" in text else " ".join(text.split()).removeprefix("./")
        case dict():
            return {key: _plain(item) for key, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
