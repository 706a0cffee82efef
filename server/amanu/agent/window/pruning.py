"""Tool output that makes room: too big from the start, read twice, or old. All of it can be read again.

Pure functions but for `keep`, which puts a text where `read_output` finds it.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from amanu.agent.window.token_gauge import estimate
from amanu.core.conversation import STUB, Assistant, Call, Conversation, Masked, Result, Results

SaveText = Callable[[str], Awaitable[str]]
"""Keeps a text and returns the id `read_output` takes; "" when it could not be kept."""

LEAST = 120
"""Tokens; a shorter result is left alone: its stub would be as long."""
SHOWN = 160
"""Characters of the beginning and of the end that stay of a result that made room."""


async def shorten(text: str, limit: float, keep: SaveText) -> str:
    """The text if it takes at most `limit` tokens; else its head and tail, and how to read what is between."""
    size = estimate(text)
    if size <= limit:
        return text
    visible = int(len(text) * limit / size)
    head, tail = text[: visible // 2], text[len(text) - visible // 2 :]
    saved_as = await keep(text)
    missing = len(text) - len(head) - len(tail)
    note = f"[… {missing:,} of {len(text):,} characters left out{_where(saved_as)} …]"
    return f"{head}\n\n{note}\n\n{tail}"


@dataclass(frozen=True)
class MaskableResults:
    """Results that can make room, oldest first."""

    results: tuple[tuple[Call, Result], ...]
    duplicates: tuple[tuple[Call, Result], ...]
    """Of them, those whose very text a later result of the same call holds."""
    tokens: float
    """What they take, uncalibrated."""


def find_maskable(conversation: Conversation, protected: float) -> MaskableResults:
    """What is older than the newest `protected` tokens of tool output and the last step, or was read again."""
    candidates: list[tuple[Call, Result]] = []
    again: list[tuple[Call, Result]] = []
    paths: set[str] = set()
    newer = 0.0
    tokens = 0.0
    last = len(conversation) - 1
    for index in range(last, 0, -1):
        answers, request = conversation[index], conversation[index - 1]
        if not isinstance(answers, Results) or not isinstance(request, Assistant):
            continue
        for call, result in reversed(list(zip(request.calls, answers.results, strict=False))):
            size = estimate(result.text)
            if size < LEAST or result.text.startswith(STUB):
                continue
            read = json.dumps([call.tool, call.arguments, result.text], sort_keys=True)
            if index < last - 1 and read in paths:
                again.append((call, result))
                tokens += size
            elif index < last - 1 and newer >= protected:
                candidates.append((call, result))
                tokens += size
            newer += size
            paths.add(read)
    return MaskableResults(tuple(reversed(candidates)), tuple(reversed(again)), tokens)


async def make_mask(candidates: MaskableResults, keep: SaveText) -> Masked:
    """The shorter texts for them."""
    texts = {result.call_id: _again(call) for call, result in candidates.duplicates}
    for call, result in candidates.results:
        texts[result.call_id] = _stub(call, result, await keep(result.text))
    return Masked(texts=texts)


def _again(call: Call) -> str:
    return f"{STUB}: a later result of {describe_call(call)} holds the same text.]"


def _stub(call: Call, result: Result, saved_as: str) -> str:
    head, tail = result.text[:SHOWN].rstrip(), result.text[-SHOWN:].lstrip()
    return (
        f"{STUB}: {len(result.text):,} characters that {describe_call(call)} returned{_where(saved_as)}. What they "
        f"describe may have changed since. Their beginning and end:]\n{head}\n[…]\n{tail}"
    )


def _where(saved_as: str) -> str:
    return f'; read_output(id="{saved_as}") reads them' if saved_as else ""


def describe_call(call: Call, limit: int = 120) -> str:
    """A call in one line, its arguments shortened."""
    if isinstance(call.arguments, str):
        written = call.arguments
    else:
        written = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    line = " ".join(written.split())
    return f"{call.tool}({line if len(line) <= limit else line[: limit - 1] + '…'})"
