"""Shortens tool output to make room: output that is too big, a duplicate, or old. The model can read all of it again.

Pure functions, except that `save` stores a text for `read_output`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from amanu.agent.window.token_gauge import result_tokens
from amanu.core.conversation import STUB, Assistant, Call, Conversation, Masked, Result, Results
from amanu.core.skills import ACTIVATE_SKILL
from amanu.core.token_estimate import estimate

SaveText = Callable[[str], Awaitable[str]]
"""Stores a text and returns its id for `read_output`; "" when it could not be stored."""

MIN_TOKENS = 120
"""A shorter result is left alone: its stub would be as long."""
ENDS = 160
"""Characters of a masked result that stay from its beginning and from its end."""


async def shorten(text: str, limit: float, save: SaveText) -> str:
    """The text if it takes at most `limit` tokens; otherwise its head and tail, and how to read what is between."""
    size = estimate(text)
    if size <= limit:
        return text
    visible = int(len(text) * limit / size)
    head, tail = text[: visible // 2], text[len(text) - visible // 2 :]
    saved_as = await save(text)
    missing = len(text) - len(head) - len(tail)
    note = f"[… {missing:,} of {len(text):,} characters left out{_read_hint(saved_as)} …]"
    return f"{head}\n\n{note}\n\n{tail}"


async def shorten_fields(fields: Mapping[str, JsonValue], limit: float, save: SaveText) -> Mapping[str, JsonValue]:
    """The fields if their texts take at most `limit` tokens together; otherwise each shortened to its share."""
    sizes = {name: estimate(value) for name, value in fields.items() if isinstance(value, str)}
    total = sum(sizes.values())
    if total <= limit:
        return fields
    return {
        name: await shorten(value, limit * sizes[name] / total, save) if isinstance(value, str) else value
        for name, value in fields.items()
    }


async def cut(result: Result, limit: float, save: SaveText) -> str:
    """A text of at most `limit` tokens in place of a result that takes more."""
    text = await shorten(result.sent_text, limit, save)
    return f"{text}\n[{_names(result)}: left out for lack of room]" if result.pictures else text


@dataclass(frozen=True)
class MaskableResults:
    """Results that can be shortened, oldest first."""

    results: tuple[tuple[Call, Result], ...]
    duplicates: tuple[tuple[Call, Result], ...]
    """Results whose text a later result of the same call holds too."""
    tokens: float
    """What all of them take, uncalibrated."""


def find_maskable(conversation: Conversation, protected: float) -> MaskableResults:
    """Results older than the newest `protected` tokens of tool output, or duplicated by later ones; never those of the
    last step, nor a skill."""
    candidates: list[tuple[Call, Result]] = []
    duplicates: list[tuple[Call, Result]] = []
    newer_results: set[str] = set()
    newer_tokens = 0.0
    tokens = 0.0
    last = len(conversation) - 1
    for index in range(last, 0, -1):
        answers, request = conversation[index], conversation[index - 1]
        if not isinstance(answers, Results) or not isinstance(request, Assistant):
            continue
        for call, result in reversed(list(zip(request.calls, answers.results, strict=False))):
            size = result_tokens(result)
            if size < MIN_TOKENS or result.text.startswith(STUB) or call.tool == ACTIVATE_SKILL:
                continue
            shown = [picture.blob_id for picture in result.pictures]
            key = json.dumps([call.tool, call.arguments, result.text, shown], sort_keys=True)
            if index < last - 1 and key in newer_results:
                duplicates.append((call, result))
                tokens += size
            elif index < last - 1 and newer_tokens >= protected:
                candidates.append((call, result))
                tokens += size
            newer_tokens += size
            newer_results.add(key)
    return MaskableResults(tuple(reversed(candidates)), tuple(reversed(duplicates)), tokens)


async def make_mask(candidates: MaskableResults, save: SaveText) -> Masked:
    """The entry with shorter texts for these results."""
    texts = {result.call_id: _duplicate_stub(call) for call, result in candidates.duplicates}
    for call, result in candidates.results:
        texts[result.call_id] = _stub(call, result, await save(result.text))
    return Masked(texts=texts)


def _duplicate_stub(call: Call) -> str:
    return f"{STUB}: a later result of {describe_call(call)} holds the same text.]"


def _stub(call: Call, result: Result, saved_as: str) -> str:
    if result.pictures and estimate(result.text) < MIN_TOKENS:
        return f"{STUB}: {_names(result)} that {describe_call(call)} showed; call it again to see it.]\n{result.text}"
    head, tail = result.text[:ENDS].rstrip(), result.text[-ENDS:].lstrip()
    return (
        f"{STUB}: {len(result.text):,} characters that {describe_call(call)} returned{_read_hint(saved_as)}. What they "
        f"describe may have changed since. Their beginning and end:]\n{head}\n[…]\n{tail}"
    )


def _names(result: Result) -> str:
    return ", ".join(picture.name for picture in result.pictures)


def _read_hint(saved_as: str) -> str:
    return f'; read_output(id="{saved_as}") reads them' if saved_as else ""


def describe_call(call: Call, limit: int = 120) -> str:
    """A call on one line, its arguments cut to `limit` characters."""
    if isinstance(call.arguments, str):
        written = call.arguments
    else:
        written = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    line = " ".join(written.split())
    return f"{call.tool}({line if len(line) <= limit else line[: limit - 1] + '…'})"
