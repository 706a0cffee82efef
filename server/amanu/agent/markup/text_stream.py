"""A reply's text as it streams: thoughts apart, and what may be a call held back until that is known."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from amanu.agent.markup.line import Line
from amanu.agent.markup.reading import HEAD, read_calls
from amanu.agent.markup.shapes import ARGUMENTS_FIRST, NotACall, Unreadable
from amanu.agent.markup.templates import (
    ANSWER_CLOSES,
    ANSWER_OPENS,
    LONE_CLOSES,
    NOISE,
    TEMPLATES,
    THOUGHTS,
    WRAPPERS,
    ThoughtMarks,
)
from amanu.core.model import TextDelta, TextWasThought, ThoughtDelta

Shown = TextDelta | ThoughtDelta | TextWasThought

MAX_RELEASED = 20
"""Texts in one reply that may begin like a call and turn out to be none; after that nothing is held back."""

MAX_BLANK = 1_000
"""Characters of space before an answer that are held back."""

_MARKS = (
    *dict.fromkeys(mark for each in TEMPLATES if not each.alone and not each.at_line_start for mark in each.opens),
    *WRAPPERS,
    NOISE,
)
_WORDS = tuple(dict.fromkeys(mark for each in TEMPLATES if each.at_line_start for mark in each.opens))
_ALONE = tuple(dict.fromkeys(mark for each in TEMPLATES if each.alone for mark in each.opens))
_OPENS = (*(each.opens for each in THOUGHTS), *ANSWER_OPENS, *LONE_CLOSES)


def _any(marks: Sequence[str]) -> str:
    return "|".join(re.escape(mark) for mark in sorted(marks, key=len, reverse=True))


def _beginnings(marks: Sequence[str]) -> frozenset[str]:
    return frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))


_FIRST = re.escape("".join(sorted({mark[0] for mark in (*_MARKS, *_OPENS)})))
_SIGNS = re.compile(
    rf"(?P<word>^(?:{_any(_WORDS)}))|(?=[{_FIRST}\n`])(?:(?P<call>{_any(_MARKS)})|(?P<close>{_any(LONE_CLOSES)})"
    rf"|(?P<think>{_any([each.opens for each in THOUGHTS])})|\n|`+)",
    re.MULTILINE,
)
_BEGINNINGS = _beginnings((*_MARKS, *LONE_CLOSES, *(each.opens for each in THOUGHTS)))
_WORD_BEGINNINGS = _beginnings(_WORDS)
_OPEN_BEGINNINGS = _beginnings(_OPENS)
_CLOSE_BEGINNINGS = {each.opens: _beginnings(each.closes) for each in THOUGHTS}
_CLOSES = frozenset(ANSWER_CLOSES) | _beginnings(ANSWER_CLOSES)
_LONGEST = max(len(mark) for mark in (*_MARKS, *_WORDS, *_OPENS, *ANSWER_CLOSES))
_BEFORE_NAMED = " \t`\"'(“„‘«「"
_BEHIND_NAMED = " \t`\"')”“’»」.,;:!?，。、"
"""Characters around a closing mark that is spoken of."""


class TextStream:
    """Takes the text of one reply in pieces, cut anywhere. `tools`: the names of those that may be called; without any
    only thoughts are looked for. Linear in the text."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools
        self._phase: Literal["start", "thought", "answer", "held"] = "start"
        self._marks: ThoughtMarks | None = None
        """The marks of the thoughts that are being written."""
        self._unread = ""
        """The end of the text, while it is too short to tell."""
        self._held: list[str] = []
        self._held_size = self._next_look = 0
        self._line = Line()
        self._released = 0
        self._is_wrapped = False
        """A mark that opens the answer was left out."""
        self._saw_marks = False
        """An opening mark of thoughts was seen."""
        self.segments: list[tuple[Literal["thought", "text"], list[str]]] = []
        """The text so far, told apart, without what is held back."""
        self._shown = 0
        """Characters of text that were shown."""
        self._passed: int | None = None
        """The place of the last mark in the middle of a sentence."""
        self.was_read = False
        """Something other than plain text was found."""

    @property
    def before(self) -> str:
        """The end of the answer so far."""
        if not self.segments or self.segments[-1][0] == "thought":
            return ""
        return "".join(self.segments[-1][1][-400:])[-400:]

    def thoughts_came(self) -> None:
        """The service itself tells thoughts apart."""
        self._saw_marks = True

    def feed(self, text: str) -> Iterator[Shown]:
        """Take the next piece; returns what can be shown."""
        if self._phase == "held":
            self._hold(text)
            if self._held_size >= self._next_look and not self._may_be_calls():
                yield from self._release(ended=False)
            return
        self._unread += text
        yield from self._advance(ended=False)

    def finish(self) -> Iterator[Shown]:
        """The text is complete; calls stay held back, even unreadable ones."""
        if self._phase != "held":
            yield from self._advance(ended=True)
        while self._phase == "held" and not self._may_be_calls(whole=True):
            yield from self._release(ended=True)

    @property
    def held(self) -> str:
        """The end of the text from a mark of a call on; "" for none."""
        return "".join(self._held)

    @property
    def passed(self) -> str:
        """The end of the text from a mark of a call in the middle of a sentence on; "" for none."""
        return "" if self._passed is None else "".join(self.segments[-1][1])[self._passed :]

    def drop_held(self) -> None:
        """The text held back was calls."""
        self.was_read = True
        self._held = []

    def release(self) -> Iterator[Shown]:
        """Show what was held back: it is no call, or not the end of the reply."""
        yield from self.finish()
        while self._phase == "held":
            yield from self._release(ended=True)

    def _advance(self, *, ended: bool) -> Iterator[Shown]:
        while self._unread and self._phase != "held":
            size, phase = len(self._unread), self._phase
            match phase:
                case "start":
                    yield from self._read_start(ended=ended)
                case "thought":
                    yield from self._read_thought(ended=ended)
                case _:
                    yield from self._read_answer(ended=ended)
            if len(self._unread) == size and self._phase == phase:
                return

    def _read_start(self, *, ended: bool) -> Iterator[Shown]:
        text = self._unread.lstrip()
        mark = next((mark for mark in _OPENS if text.startswith(mark)), None)
        if mark is not None:
            self._unread = text[len(mark) :]
            self.was_read = True
            self._is_wrapped |= mark in ANSWER_OPENS
            self._marks = next((each for each in THOUGHTS if each.opens == mark), None)
            if self._marks is not None:
                self._phase = "thought"
                self._saw_marks = True
        elif ended or (text and text not in _OPEN_BEGINNINGS) or len(self._unread) > MAX_BLANK:
            self._unread = text if self.was_read else self._unread
            self._phase = "answer"
            if self._tools and text.startswith(_ALONE):
                blank, self._unread = self._unread[: len(self._unread) - len(text)], ""
                yield from self._show(blank)
                self._begin_hold(text)
                if self._held_size >= self._next_look and not self._may_be_calls():
                    yield from self._release(ended=ended)

    def _read_thought(self, *, ended: bool) -> Iterator[Shown]:
        assert self._marks is not None
        ends = [(at, mark) for mark in self._marks.closes if (at := self._unread.find(mark)) >= 0]
        if ends:
            at, mark = min(ends)
            yield from self._think(self._unread[:at].rstrip())
            self._unread = self._unread[at + (0 if mark in ANSWER_OPENS else len(mark)) :]
            self._phase = "start"
            return
        size = 0 if ended else _overlap(self._unread, _CLOSE_BEGINNINGS[self._marks.opens])
        thought = self._unread[: len(self._unread) - size]
        thought = thought if ended else thought.rstrip()
        yield from self._think(thought)
        self._unread = self._unread[len(thought) :]

    def _read_answer(self, *, ended: bool) -> Iterator[Shown]:
        text, self._unread = self._unread, ""
        shown = begin = 0
        limit = len(text) if ended else len(text) - max(_overlap(text, _BEGINNINGS), self._word_overlap(text))
        if self._is_wrapped and not ended:
            answer = text.rstrip()
            limit = min(limit, len(answer[: len(answer) - _overlap(answer, _CLOSES)].rstrip()))
        for sign in _SIGNS.finditer(text):
            if sign.start() >= limit:
                break
            self._line.add(text[begin : sign.start()])
            begin = sign.end()
            found = sign[0]
            if found == "\n":
                self._line.end()
                continue
            if self._begins_call(sign):
                yield from self._show(text[shown : sign.start()])
                self._begin_hold(text[sign.start() :])
                if self._held_size >= self._next_look and not self._may_be_calls():
                    yield from self._release(ended=ended)
                return
            if sign["close"] and self._ends_thoughts(text, sign, ended=ended):
                if sign.end() == len(text) and not ended:
                    limit, begin = sign.start(), sign.start()
                    break
                yield from self._show(text[shown : sign.start()])
                yield from self._was_thought()
                self._unread, self._phase, self._line = text[sign.end() :], "start", Line()
                return
            self._saw_marks |= bool(sign["think"])
            if found[0] == "`":
                self._line.tick(found)
            else:
                self._line.add(found)
        if begin < limit:
            self._line.add(text[begin:limit])
        limit = max(limit, begin)
        self._unread = text[limit:]
        if ended and self._is_wrapped:
            limit = len(text[:limit].rstrip())
            while closing := next((mark for mark in ANSWER_CLOSES if text.endswith(mark, shown, limit)), ""):
                limit = len(text[: limit - len(closing)].rstrip())
        yield from self._show(text[shown:limit])

    def _word_overlap(self, text: str) -> int:
        _, broken, line = text.rpartition("\n")
        begins_line = bool(broken) or self._line.is_empty
        return len(line) if begins_line and line in _WORD_BEGINNINGS else 0

    def _begins_call(self, sign: re.Match[str]) -> bool:
        if not self._tools or self._released >= MAX_RELEASED:
            return False
        if sign["word"]:
            return self._line.is_empty and not self._line.in_code
        if not sign["call"]:
            return False
        if self._line.may_hold(sign[0]):
            return True
        if not self._line.in_code and not self._line.quotes:
            self._passed = self._shown + sign.start()
        return False

    def _ends_thoughts(self, text: str, sign: re.Match[str], *, ended: bool) -> bool:
        """Whether a closing mark without an opening one ends thoughts: nobody speaks of it, then spaces, quotes or
        punctuation would be around it."""
        before = text[sign.start() - 1 : sign.start()] or self._line.last
        after = text[sign.end() : sign.end() + 1]
        return not (
            self._saw_marks
            or self._line.in_code
            or any(kind == "thought" for kind, _ in self.segments)
            or (before and before in _BEFORE_NAMED)
            or (after and after in _BEHIND_NAMED)
        )

    def _begin_hold(self, text: str) -> None:
        self._phase = "held"
        self._held = []
        self._held_size = 0
        self._next_look = HEAD
        self._hold(text)

    def _hold(self, text: str) -> None:
        self._held.append(text)
        self._held_size += len(text)

    def _may_be_calls(self, *, whole: bool = False) -> bool:
        """Look at what is held; the next time when it is twice as long."""
        self._next_look = 2 * self._held_size
        text = self.held
        self._held = [text]
        if not any(tool in text[:HEAD] for tool in self._tools) and ARGUMENTS_FIRST.search(text, 0, HEAD) is None:
            return False
        try:
            read_calls(text, self._tools, whole=whole)
        except NotACall:
            return False
        except Unreadable:
            pass
        return True

    def _release(self, *, ended: bool) -> Iterator[Shown]:
        """It is no call: show its first character, and look at the rest."""
        text = self.held
        self._held = []
        self._released += 1
        self._phase = "answer"
        first = re.match(r"`+|.", text, re.DOTALL)
        mark = first[0] if first is not None else ""
        (self._line.tick if mark[:1] == "`" else self._line.add)(mark)
        yield from self._show(mark)
        self._unread = text[len(mark) :]
        yield from self._advance(ended=ended)

    def _show(self, text: str) -> Iterator[Shown]:
        if text:
            self._keep("text", text)
            self._shown += len(text)
            yield TextDelta(text)

    def _think(self, text: str) -> Iterator[Shown]:
        if self.segments[-1:] and self.segments[-1][0] == "thought":
            pass
        else:
            text = text.lstrip()
        if text:
            self._keep("thought", text)
            yield ThoughtDelta(text)

    def _was_thought(self) -> Iterator[Shown]:
        self.was_read = True
        self.segments = [("thought", pieces) for _, pieces in self.segments]
        self._shown, self._passed = 0, None
        yield TextWasThought()

    def _keep(self, kind: Literal["thought", "text"], text: str) -> None:
        if not self.segments or self.segments[-1][0] != kind:
            self.segments.append((kind, []))
        self.segments[-1][1].append(text)


def _overlap(text: str, beginnings: Collection[str]) -> int:
    """The number of characters at the end of the text that may begin a mark."""
    return next((size for size in range(min(_LONGEST, len(text)), 0, -1) if text[-size:] in beginnings), 0)
