"""Whether a call that a model wrote as text may be one that it has read: in a file, on a page, in the user's words.

Such a call is never made, or whoever can put text before the model could make calls. A model repeats things in part, in
another layout, even in another template, so what is compared are letters and digits only. A call is a quotation if a
piece of its arguments stands in a text with a mark of any template, or in one that shows a call of that tool in JSON or
Python. A quotation too many costs the user a word; one too few would run what a stranger wrote.
"""

import asyncio
import html
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pydantic import JsonValue

from amanu.agent.markup.shapes import WrittenCall
from amanu.agent.markup.templates import TEMPLATES, WRAPPERS
from amanu.core.conversation import Assistant, Conversation, Message, Results, SystemText, User
from amanu.core.model import Request

RUN = 8
"""Letters and digits of a piece that is looked up: any piece of twice the length that both have is found."""

TELLING = 4
"""Letters and digits of a value that is looked up. Shorter ones stand everywhere, and count only if all are short."""

_ESCAPED = re.compile(r"\\[nrtbf\"'\\/]")
_CODED = re.compile(r"\\+u([0-9a-fA-F]{4})")
_NUMBERED = re.compile(r"^\s*\d+ *[\t:|│→]", re.MULTILINE)
_OTHERS = re.compile(r"[\W_]+")
_NO_LETTERS = {code: None for code in range(128) if not chr(code).isalnum()}
_MARKS = re.compile(
    "|".join(
        re.escape("".join(mark.split()).casefold())
        for mark in (*(mark for each in TEMPLATES if not each.alone for mark in each.opens), *WRAPPERS)
        if not mark.isalpha()
    )
)
_KEYS = re.compile(r"""(?:["']|^\s*)(?:arguments|parameters|args|input|tool_input|params)\\*["']?\s*:""", re.MULTILINE)


def skeleton(text: str) -> str:
    """The letters and digits of a text, without line numbers and whatever stands for other characters."""
    return _letters(_plain(text))


def _letters(text: str) -> str:
    text = _NUMBERED.sub("", text)
    if "\\" in text:
        text = _ESCAPED.sub(" ", text)
    if text.isascii():
        return text.lower().translate(_NO_LETTERS)
    return _OTHERS.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _plain(text: str) -> str:
    for _ in range(2):  # a page that shows a page
        if "&" in text:
            text = html.unescape(text)
    return _CODED.sub(lambda code: chr(int(code[1], 16)), text) if "\\u" in text else text


@dataclass(frozen=True)
class _Shown:
    """A text that shows a call: its skeleton, cut into pieces too. `marked`: with a mark of a template."""

    text: str
    pieces: frozenset[str]
    marked: bool

    def holds(self, values: "_Values") -> bool:
        named = values.tool in self.text
        if not named and not self.marked:
            return False
        if not values.texts:
            return named
        return not values.pieces.isdisjoint(self.pieces) or any(text in self.text for text in values.texts)


class _Values:
    """The skeletons of a call that are looked up: its tool, its arguments, and all pieces of these."""

    def __init__(self, call: WrittenCall) -> None:
        self.tool = skeleton(call.tool)
        texts = [text for each in _leaves(call.arguments) if (text := skeleton(each))]
        self.texts = [text for text in texts if len(text) >= TELLING] or texts
        self.pieces = {text[at : at + RUN] for text in self.texts for at in range(len(text) - RUN + 1)}


def _leaves(value: JsonValue | Mapping[str, JsonValue]) -> Iterator[str]:
    """The texts and numbers in arguments."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


@dataclass
class _Read:
    messages: list[Message]
    shown: list[Sequence[_Shown]]
    gone: list[_Shown]
    """Texts of messages that were shortened or replaced since: the model may remember them."""
    rewrites: int = 0


class Quotes:
    """The texts that models have read, by conversation; each message is looked at once. `tools`: the names of those
    that may be called."""

    def __init__(self, tools: Collection[str]) -> None:
        self._python = re.compile(rf"\b(?:{'|'.join(map(re.escape, tools))})\s*\(") if tools else None
        self._read: WeakKeyDictionary[Conversation, _Read] = WeakKeyDictionary()

    async def hold(self, calls: Iterable[WrittenCall], request: Request) -> bool:
        """Whether any of the calls may be a quotation of what that request sends."""
        told = [request.system, *(f"{tool.description}\n{tool.parameters}" for tool in request.tools)]
        shown = [*filter(None, map(self._shown, told)), *await self._of(request.conversation)]
        return any(each.holds(values) for values in map(_Values, calls) for each in shown)

    async def _of(self, conversation: Conversation) -> list[_Shown]:
        read = self._read.setdefault(conversation, _Read([], [], []))
        same = conversation.unchanged(read.messages, read.rewrites)
        for message, shown in zip(read.messages[same:], read.shown[same:], strict=True):
            read.gone += [] if isinstance(message, Assistant) else shown
        del read.messages[same:], read.shown[same:]
        read.rewrites = conversation.rewrites
        for message in [*conversation][same:]:
            await asyncio.sleep(0)  # a long conversation takes a third of a second
            read.messages.append(message)
            read.shown.append([each for text in _texts(message) if (each := self._shown(text)) is not None])
        prompt = _last_prompt(read.messages)
        recent = enumerate(zip(read.messages, read.shown, strict=True))
        kept = [shown for at, (message, shown) in recent if at < prompt or not isinstance(message, Assistant)]
        return [*read.gone, *(each for shown in kept for each in shown)]

    def _shown(self, text: str) -> _Shown | None:
        """The text, if it shows a call in any template; None if it shows none."""
        plain = _plain(text)
        skeletal = _letters(plain)
        marked = _MARKS.search("".join(plain.split()).replace("\\", "").casefold()) is not None
        in_python = self._python is not None and self._python.search(plain) is not None
        if not marked and not in_python and _KEYS.search(plain) is None:
            return None
        pieces = frozenset(skeletal[at : at + RUN] for at in range(0, len(skeletal), RUN))
        return _Shown(skeletal, pieces, marked)


def _last_prompt(messages: Sequence[Message]) -> int:
    """The index of the user's last words: what the model wrote before may have been a quotation, what it wrote since
    may be the same call in a form that could not be read."""
    indexes = range(len(messages) - 1, -1, -1)
    return next((at for at in indexes if isinstance(each := messages[at], User) and not each.from_system), 0)


def _texts(message: Message) -> Iterator[str]:
    """The texts that the message may put into the model's mouth."""
    match message:
        case User(text=text, status=status):
            yield text
            yield status
        case Assistant():
            yield message.text
        case Results(results=results, notes=notes):
            for result in results:
                yield result.sent_text
                yield result.text
            yield from (str(note) for note in notes if isinstance(note, str | SystemText))
