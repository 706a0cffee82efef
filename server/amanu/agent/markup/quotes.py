"""Whether a call that a model wrote as text may be one that it has read: in a file, on a page, in the user's words.

Such a call is never made, or whoever can put text before the model could make calls. A model repeats things in part, in
another layout, even in another template, so what is compared are letters and digits only. A call is a quotation if a
piece of its arguments stands in a text with a mark of any template, or in one that shows a call of that tool in JSON,
Python or tags, in whatever characters, escapes or quotation marks, and were it cut in two. A quotation too many costs
the user a word; one too few would run what a stranger wrote.
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
from amanu.core.foreign_calls import FOREIGN_NAMES
from amanu.core.model import Request

RUN = 8
"""Letters and digits of a piece that is looked up: any piece of twice the length that both have is found."""

TELLING = 4
"""Letters and digits of a value that is looked up. Shorter ones stand everywhere, and count only if all are short."""

CUT = 2_000
"""Characters before and behind the place where a text may go on in the next one: a call can stand across two pages."""

_ESCAPED = re.compile(r"\\[nrtbf\"'\\/]")
_CODED = re.compile(r"\\{1,16}(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,5})\}|x([0-9a-fA-F]{2}))")
_PERCENT = re.compile(r"%([2-7][0-9a-fA-F])")
_HTML_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_NUMBERED = re.compile(r"^[ \t]*\d+ *[\t:|│→]", re.MULTILINE)
_OTHERS = re.compile(r"[\W_]+")
_NO_LETTERS = {code: None for code in range(128) if not chr(code).isalnum()}
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһοαε“”„‟«»「」『』‹›‘’‚′″", "aeopcyxijsdhoae" + '"' * 11 + "'" * 6)
"""Letters of other alphabets, and quotation marks, that look like characters of code."""
_INVISIBLE = {code: chr(code - 0xE0000) if 0xE0020 <= code <= 0xE007E else None for code in range(0xE0000, 0xE0080)} | (
    dict.fromkeys((0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF))
)
"""Characters that nobody sees: those that stand for ASCII, which models read, and those that stand for nothing."""
_MARKS = re.compile(
    "|".join(
        re.escape(unicodedata.normalize("NFKC", "".join(mark.split())).casefold())
        for mark in (*(mark for each in TEMPLATES if not each.alone for mark in each.opens), *WRAPPERS)
        if not mark.isalpha()
    )
)
_KEYS = re.compile(
    r"""(?:["']|^[ \t]*)(?:arguments|parameters|args|input|tool_input|params)\\*["']?\s*:""", re.MULTILINE
)
_SHORT = re.compile(r"""["'>][ \t]*([^"'<>\n]{1,16}?)[ \t]*(?=["'<])""")
"""A short text between quotation marks or tags."""


def skeleton(text: str) -> str:
    """The letters and digits of a text, without line numbers and whatever stands for other characters."""
    return _letters(_plain(text))


def _letters(text: str) -> str:
    text = _NUMBERED.sub("", text)
    if "\\" in text:
        text = _ESCAPED.sub(" ", text)
    if text.isascii():
        return text.lower().translate(_NO_LETTERS)
    return _OTHERS.sub("", unicodedata.normalize("NFKC", text).casefold().translate(_LOOKALIKES))


def _plain(text: str) -> str:
    """The text without escapes, in the characters of code where it has others that look alike."""
    for _ in range(4):  # a page that shows a page
        if "&" not in text or (unescaped := html.unescape(text)) == text:
            break
        text = unescaped
    if "%3C" in text or "%3c" in text or "%22" in text:
        text = _PERCENT.sub(lambda code: chr(int(code[1], 16)), text)
    if "\\" in text:
        text = _CODED.sub(lambda code: chr(int(code[1] or code[2] or code[3], 16)), text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).translate(_LOOKALIKES)


@dataclass(frozen=True)
class _Shown:
    """A text that shows a call: its skeleton, cut into pieces too. `marked`: with a mark of a template. `tools`: those
    of ours that it calls by the name of another agent's. `short`: the short texts that stand apart in it."""

    text: str
    pieces: frozenset[str]
    marked: bool
    tools: frozenset[str]
    short: frozenset[str]

    def holds(self, values: "_Values") -> bool:
        named = values.tool in self.text or values.tool in self.tools
        if not named and not self.marked:
            return False
        if not values.texts:
            return named or not values.short.isdisjoint(self.short)
        return (
            not values.pieces.isdisjoint(self.pieces)
            or any(all(line in self.text for line in lines) for lines in values.texts)
            or (named and not values.short.isdisjoint(self.short))
        )


class _Values:
    """The skeletons of a call that are looked up: its tool, its arguments by their lines, since each may have something
    before it where it was read, and all pieces of these. `short`: the arguments that have almost no letters."""

    def __init__(self, call: WrittenCall) -> None:
        self.tool = skeleton(call.tool)
        leaves = [*_leaves(call.arguments)]
        texts = {each: text for each in leaves if (text := skeleton(each))}
        long = {each: text for each, text in texts.items() if len(text) >= TELLING} or texts
        self.texts = [[line for each in text.splitlines() if (line := skeleton(each))] for text in long]
        self.pieces = {text[at : at + RUN] for text in long.values() for at in range(len(text) - RUN + 1)}
        self.short = {each.strip() for each in leaves if each not in long and not each.strip().isdecimal()}


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
        self._ours = {name: skeleton(tool) for tool in tools for name in _odd_names(tool)}
        ours, theirs = _any(tools), _any(self._ours)
        self._called = re.compile(
            rf"""\b{ours}\s*\(|<{ours}>|["']{ours}["']\s*:|[:=]\s*["'`]*{ours}["'`]*\s*(?:[,;}}\])>\n<]|\Z)"""
        )
        self._foreign = re.compile(rf"""[:=]\s*["']({theirs})["']""")
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
            texts = [*_texts(message), _across(read.messages)]
            read.shown.append([each for text in texts if (each := self._shown(text)) is not None])
        prompt = _last_prompt(read.messages)
        recent = enumerate(zip(read.messages, read.shown, strict=True))
        kept = [shown for at, (message, shown) in recent if at < prompt or not _corrected(message)]
        return [*read.gone, *(each for shown in kept for each in shown)]

    def _shown(self, text: str) -> _Shown | None:
        """The text, if it shows a call in any template; None if it shows none."""
        forms = [text]
        if "</" in text and (bare := _HTML_TAG.sub("", text)) != text:
            forms.append(bare)  # each word of code on a page may have tags around it
        plains = [*map(_plain, forms)]
        marked = any(_MARKS.search("".join(each.split()).replace("\\", "").casefold()) for each in plains)
        foreign = {self._ours[name] for each in plains for name in self._foreign.findall(each)}
        if not marked and not foreign and not any(self._called.search(each) or _KEYS.search(each) for each in plains):
            return None
        skeletal = "\n".join(map(_letters, plains))
        pieces = frozenset(skeletal[at : at + RUN] for at in range(0, len(skeletal), RUN))
        short = frozenset(found for each in plains for found in _SHORT.findall(each))
        return _Shown(skeletal, pieces, marked, frozenset(foreign), short)


def _any(names: Iterable[str]) -> str:
    """A pattern for any of the names; it matches nothing if there are none."""
    return f"(?:{'|'.join(map(re.escape, names)) or '(?!)'})"


def _odd_names(tool: str) -> Iterator[str]:
    """The tool's names elsewhere that are no common words."""
    return (name for name in FOREIGN_NAMES.get(tool, ()) if not (name.isalpha() and name.islower()))


def _across(messages: Sequence[Message]) -> str:
    """The end of what stands before the last message, and its beginning."""
    last = "\n".join(_sent(messages[-1]))[:CUT]
    before = ""
    for message in reversed(messages[:-1]):
        if len(before) >= CUT or not last:
            break
        before = "\n".join(filter(None, (*(text[-CUT:] for text in _sent(message)), before)))
    return f"{before[-CUT:]}\n{last}" if before and last else ""


def _sent(message: Message) -> Iterator[str]:
    """The texts in the message that somebody other than the model wrote, each once."""
    match message:
        case User(text=text):
            yield text
        case Results(results=results, notes=notes):
            yield from (result.sent_text for result in results)
            yield from (str(note) for note in notes if isinstance(note, str | SystemText))
        case _:
            pass


def _last_prompt(messages: Sequence[Message]) -> int:
    """The index of the user's last words."""
    indexes = range(len(messages) - 1, -1, -1)
    return next((at for at in indexes if isinstance(each := messages[at], User) and not each.from_system), 0)


def _corrected(message: Message) -> bool:
    """Whether the message, since the user's last words, may be the same call in a form that could not be read. Any
    other may have been a quotation."""
    return isinstance(message, Assistant) and not message.calls


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
                yield from {result.sent_text, result.text}
            yield from (str(note) for note in notes if isinstance(note, str | SystemText))
