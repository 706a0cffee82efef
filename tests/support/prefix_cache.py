"""A service's cache of prompts: how much of a request stood the same at the start of one it has seen.

The prompt is put together as services do it: tools, system prompt, messages. What they do with it differs: Anthropic
looks only where marks say that a prefix ends, the others keep whole blocks of tokens. Nothing is ever dropped, so what
is missed is missed because the prompt changed."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, cast

Kind = Literal[
    "marks",  # Anthropic: a prefix ends with a block that carries a mark
    "one mark",  # OpenRouter, of Claude: the same, with the mark it puts at the end itself
    "blocks",  # the others
]
BLOCK = 128
"""Tokens of a block; OpenAI's step."""
LOOK_BACK = 20
"""Blocks before a mark in which Anthropic looks for an earlier prefix."""
_HEAD = ("model", "thinking", "output_config", "reasoning", "reasoning_effort", "tool_choice", "prompt_cache_key")
"""What a request says beside the prompt that makes it another one."""


@dataclass(frozen=True)
class Piece:
    """A tool, the system prompt, or a block of a message."""

    text: str
    marked: bool = False


class PrefixCache:
    """`least`: tokens below which a prefix is not kept."""

    def __init__(self, kind: Kind, least: int = 1_024) -> None:
        self._kind: Kind = kind
        self._least = least
        self._kept: set[bytes] = set()
        """Digests of prefixes."""

    def read(self, body: dict[str, Any]) -> tuple[int, int]:
        """Tokens of the request's prompt, and how many of them came from the cache. Keeps the prompt."""
        found = list(_pieces(body))
        if self._kind == "blocks":
            return self._in_blocks(found)
        if self._kind == "one mark" and "cache_control" in body:
            found[-1] = Piece(found[-1].text, marked=True)
        return self._at_marks(found)

    def _at_marks(self, pieces: list[Piece]) -> tuple[int, int]:
        sizes = list(accumulate(len(tokens(piece.text)) for piece in pieces))
        digests = list(_chain(piece.text for piece in pieces))
        marks = [at for at, piece in enumerate(pieces) if piece.marked and sizes[at] >= self._least]
        reached = (at for mark in marks for at in range(mark, max(mark - LOOK_BACK, -1), -1))
        cached = max((sizes[at] for at in reached if digests[at] in self._kept), default=0)
        self._kept |= {digests[at] for at in marks}
        return sizes[-1], cached

    def _in_blocks(self, pieces: list[Piece]) -> tuple[int, int]:
        found = tokens("\n".join(piece.text for piece in pieces))
        whole = ("".join(found[at : at + BLOCK]) for at in range(0, len(found) - BLOCK + 1, BLOCK))
        digests = list(_chain(whole))
        same = next((at for at, digest in enumerate(digests) if digest not in self._kept), len(digests))
        self._kept |= set(digests)
        cached = same * BLOCK
        return len(found), cached if cached >= self._least else 0


def tokens(text: str) -> list[str]:
    """The service's own count, on purpose not the product's: words in pieces of four letters, and every other sign."""
    return re.findall(r"\s*(?:\w{1,4}|[^\w\s])|\s+", text)


def _chain(texts: Iterable[str]) -> Iterator[bytes]:
    """A digest for each text, of all up to it."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode() + b"\0")
        yield digest.digest()


def _pieces(body: dict[str, Any]) -> Iterator[Piece]:
    """What the model is shown, in order."""
    config = body.get("generationConfig", {}).get("thinkingConfig")
    yield Piece(json.dumps([config, *(body.get(name) for name in _HEAD)]))
    yield from map(_piece, body.get("tools", ()))
    for name in ("system", "systemInstruction", "instructions"):
        system = body.get(name, ())
        yield from map(_piece, cast("list[Any]", system) if isinstance(system, list | tuple) else [system])
    for message in body.get("messages") or body.get("contents") or body.get("input") or ():
        content = message.get("content")
        if isinstance(content, list) and "messages" in body:
            yield from (_piece({"role": message["role"], **block}) for block in cast("list[dict[str, Any]]", content))
        else:
            yield _piece(message)


def _piece(value: Any) -> Piece:
    if not isinstance(value, dict):
        return Piece(str(value))
    given = cast("dict[str, Any]", value)
    shown = {name: each for name, each in given.items() if name != "cache_control"}
    return Piece(json.dumps(shown, ensure_ascii=False, separators=(",", ":")), "cache_control" in given)
