"""Detects cycles in a turn's calls. Steps are compared by their calls and results; only digests are kept.

A cycle is one to five steps that repeat with equal calls *and* equal results. Polling whose result changes is no cycle,
nor is the same failing test after different edits. Calls are equal if they mean the same to the tool: the order of
arguments and of calls within a step, a default written out, and stray blanks make no difference.

Results that differ only in times (clocks, durations, process ids) may come from waiting for a build, or from running
tests again with nothing changed. They count, but it takes twice as many rounds; so do calls that wait by themselves
(`sleep 30; …`). Any other number may be progress: a line number, a percentage.
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amanu.core.conversation import Call, Result

ROUNDS = (5, 4, 3, 3, 3)
"""Rounds that raise an alarm, for cycles of one step, two, …, five. Long cycles rarely repeat by chance; the cases are
in bench/loops."""
PATIENCE = 2
"""Factor for the rounds when only times change, and for calls that wait."""
SAME_FAILURES = 6
"""Steps in which one tool failed on one file in the same way, without a success in between."""
SAME_IN_STEP = 5
"""Equal calls with equal results within one step."""
_MAX_TARGETS = 64
"""How many pairs of tool and file have their failures counted at once."""

_PATHS = ("path", "file_path", "filePath", "file", "filename")
_COMMANDS = ("command", "cmd")
_COMMENTARY = ("description", "explanation")
"""Arguments that only comment on a command; for other tools a description may be what matters."""
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
"""Marks a rejection by the user, which is no failure of the model."""

Defaults = Mapping[str, Mapping[str, Any]]
"""Tool → argument → its default value, where that is not as good as nothing (false, 0, "", [])."""


class CallCycles:
    """Watches the steps of a turn. An argument that equals its default counts as absent, and so does one that says
    nothing where no default is known: schemas do not state such defaults."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self.reset()

    def reset(self) -> None:
        """Forget all steps so far: a new alarm takes new evidence."""
        self._exact = _Rounds()
        self._rough = _Rounds()
        self._failures: dict[str, tuple[str, int]] = {}

    def add_step(self, calls: Sequence[Call], results: Sequence[Result]) -> str | None:
        """What the model repeats, as the rest of a sentence ("made the same call … "); None when there is no cycle."""
        keys = [self._key(call) for call in calls]
        pairs = list(zip(keys, results, strict=False))
        patience = PATIENCE if any(map(_waits, calls)) else 1
        exact = self._exact.add(_digest(sorted(f"{key}\n{_outcome(result)}" for key, result in pairs)), patience)
        rough = self._rough.add(
            _digest(sorted(f"{key}\n{_TIMES.sub('0', _outcome(result))}" for key, result in pairs)), patience * PATIENCE
        )
        if exact:
            return _describe_cycle(exact, calls, "the same results")
        if rough:
            return _describe_cycle(rough, calls, "results that differ only in times")
        return self._repeated_failure(calls, results) or _repeated_in_step(calls, pairs)

    def _repeated_failure(self, calls: Sequence[Call], results: Sequence[Result]) -> str | None:
        failures: dict[str, tuple[Call, str | None]] = {}
        """Tool and path → a call and how it failed, None if one succeeded: a step is one attempt, however many calls it
        makes."""
        for call, result in zip(calls, results, strict=False):
            path = _path(call)
            target = f"{call.tool} {path}"
            worked = not result.is_error or failures.get(target, (call, ""))[1] is None
            failures[target] = (call, None if worked else _failure_signature(result.text, path))
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
            if len(self._failures) > _MAX_TARGETS:
                del self._failures[next(iter(self._failures))]
        return None

    def _key(self, call: Call) -> str:
        """A text that is equal for calls that mean the same."""
        if isinstance(call.arguments, str):
            return f"{call.tool} {call.arguments.strip()}"
        defaults = self._defaults.get(call.tool, {})
        commentary = _COMMENTARY if any(name in call.arguments for name in _COMMANDS) else ()
        arguments = {
            name: _plain(value)
            for name, value in call.arguments.items()
            if value is not None and name not in commentary and (value != defaults[name] if name in defaults else value)
        }
        return f"{call.tool} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


class _Rounds:
    """For each length of a cycle, counts how many steps in a row equal the step that many steps before."""

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=len(ROUNDS))
        self._runs = [0] * len(ROUNDS)

    def add(self, step: str, patience: int) -> tuple[int, int] | None:
        """(length of the cycle, rounds) once there are enough rounds."""
        cycle = None
        for index, rounds in enumerate(ROUNDS):
            length = index + 1
            repeats = len(self._last) >= length and self._last[-length] == step
            self._runs[index] = self._runs[index] + 1 if repeats else 0
            completed = self._runs[index] // length + 1
            if cycle is None and completed >= rounds * patience:
                cycle = (length, completed)
        self._last.append(step)
        return cycle


def _outcome(result: Result) -> str:
    """What a result says and shows: a different screenshot is a different result."""
    return "\n".join([result.text, *(picture.blob_id for picture in result.pictures)])


def _describe_cycle(cycle: tuple[int, int], calls: Sequence[Call], outcome: str) -> str:
    length, rounds = cycle
    if length > 1:
        return f"gone through the same {length} steps {rounds} times, with {outcome}"
    subject = "call" if len(calls) == 1 else f"{len(calls)} calls"
    return f"made the same {subject} ({_names(calls)}) {rounds} times in a row, with {outcome}"


def _repeated_in_step(calls: Sequence[Call], pairs: Iterable[tuple[str, Result]]) -> str | None:
    outcomes = [f"{key}\n{_outcome(result)}" for key, result in pairs]
    times, first = max(((outcomes.count(outcome), first) for first, outcome in enumerate(outcomes)), default=(0, 0))
    return (
        f"made the same call ({_names(calls[first : first + 1])}) {times} times at once"
        if times >= SAME_IN_STEP
        else None
    )


def _names(calls: Sequence[Call]) -> str:
    names = list(dict.fromkeys(f"{call.tool} {_main_argument(call)}".strip() for call in calls))
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _main_argument(call: Call) -> str:
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


def _failure_signature(error: str, path: str) -> str:
    """How a call failed: the first line of its error, without what varies between attempts."""
    line = error.strip().partition("\n")[0].replace(path, "") if path else error.strip().partition("\n")[0]
    return _NUMBER.sub("0", _QUOTED.sub("", line)).lower()[:120]


def _plain(value: Any) -> Any:
    """A value without meaningless blanks; in a text of several lines they may have a meaning."""
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
