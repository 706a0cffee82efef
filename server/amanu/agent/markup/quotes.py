"""Whether a call that a model wrote as text may be one that it has read: in a file, on a page, in the user's words.

Such a call is never made, or whoever can put text before the model could make calls. A model repeats things in part, in
another layout, even in another template, so what is compared are letters and digits only: a call is a quotation if a
message that shows any call of that tool also has a piece of its arguments.
"""

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

_ESCAPED = re.compile(r"\\[nrtbf\"'\\/]")
_CODED = re.compile(r"\\+u([0-9a-fA-F]{4})")
_NUMBERED = re.compile(r"^\s*\d+(?:[\t:|]|\s*[│→])", re.MULTILINE)
_OTHERS = re.compile(r"[\W_]+")
_MARKS = re.compile(
    "|".join(
        re.escape(_OTHERS.sub("", mark).casefold())
        for mark in (*(mark for each in TEMPLATES for mark in each.opens), *WRAPPERS)
        if len(_OTHERS.sub("", mark)) > 3
    )
)
_KEYS = re.compile(r"""\b(?:arguments|parameters|args|input|tool_input|params)\\*["']?\s*:""")


def skeleton(text: str) -> str:
    """The letters and digits of a text, without line numbers and whatever stands for other characters."""
    text = _ESCAPED.sub(" ", _NUMBERED.sub("", _plain(text)))
    return _OTHERS.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _plain(text: str) -> str:
    for _ in range(2):  # a page that shows a page
        if "&" in text:
            text = html.unescape(text)
    return _CODED.sub(lambda code: chr(int(code[1], 16)), text)


@dataclass(frozen=True)
class _Shown:
    """A text that shows a call: its skeleton, cut into pieces too."""

    text: str
    pieces: frozenset[str]

    def holds(self, call: WrittenCall) -> bool:
        if skeleton(call.tool) not in self.text:
            return False
        values = [value for each in _leaves(call.arguments) if (value := skeleton(each))]
        return not values or any(map(self._holds_part, values))

    def _holds_part(self, value: str) -> bool:
        if value in self.text:
            return True
        return any(value[at : at + RUN] in self.pieces for at in range(len(value) - RUN + 1))


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
    """Of messages that were shortened or replaced since: the model may remember them."""
    rewrites: int = 0


class Quotes:
    """What models have read, by conversation: each message is looked at once. `tools`: the names of those that may be
    called."""

    def __init__(self, tools: Collection[str]) -> None:
        self._python = re.compile(rf"\b(?:{'|'.join(map(re.escape, tools))})\s*\(") if tools else None
        self._read: WeakKeyDictionary[Conversation, _Read] = WeakKeyDictionary()

    def hold(self, calls: Iterable[WrittenCall], request: Request) -> bool:
        """Whether any of the calls may be a quotation of what that request sends."""
        told = [request.system, *(f"{tool.description}\n{tool.parameters}" for tool in request.tools)]
        shown = [*self._of(request.conversation), *filter(None, map(self._shown, told))]
        return any(each.holds(call) for call in calls for each in shown)

    def _of(self, conversation: Conversation) -> Iterator[_Shown]:
        read = self._read.setdefault(conversation, _Read([], [], []))
        same = conversation.unchanged(read.messages, read.rewrites)
        for message, shown in zip(read.messages[same:], read.shown[same:], strict=True):
            read.gone += [] if isinstance(message, Assistant) else shown
        del read.messages[same:], read.shown[same:]
        read.rewrites = conversation.rewrites
        for index in range(same, len(conversation)):
            message = conversation[index]
            read.messages.append(message)
            read.shown.append([each for text in _texts(message) if (each := self._shown(text)) is not None])
        yield from read.gone
        prompt = _last_prompt(read.messages)
        for index, (message, shown) in enumerate(zip(read.messages, read.shown, strict=True)):
            if index < prompt or not isinstance(message, Assistant):
                yield from shown

    def _shown(self, text: str) -> _Shown | None:
        """The text, if it shows a call in any template; None if it shows none."""
        skeletal = skeleton(text)
        plain = _plain(text)
        in_python = self._python is not None and self._python.search(plain) is not None
        if not in_python and _MARKS.search(skeletal) is None and _KEYS.search(plain) is None:
            return None
        return _Shown(skeletal, frozenset(skeletal[at : at + RUN] for at in range(0, len(skeletal), RUN)))


def _last_prompt(messages: Sequence[Message]) -> int:
    """The index of the user's last words: what the model wrote before may have been a quotation, what it wrote since
    may be the same call in a form that could not be read."""
    indexes = range(len(messages) - 1, -1, -1)
    return next((at for at in indexes if isinstance(each := messages[at], User) and not each.from_system), 0)


def _texts(message: Message) -> Iterator[str]:
    """What the message may put into the model's mouth."""
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
