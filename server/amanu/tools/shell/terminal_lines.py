"""The output of a command as lines, as a terminal would show them: what a program has overwritten on a line is gone,
and so are colours and control characters."""

import re
from collections.abc import Iterable
from itertools import pairwise

_WIDEST = 1000  # characters of a line that can still be overwritten; on a terminal, a longer line wraps
_KEPT = 64 * 1024  # characters of overwritten text that are kept to see whether it was lines; more is judged in parts
_TOKENS = re.compile(
    r"([^\x00-\x08\x0b-\x1f\x7f-\x9f]+)"  # text and line ends; a tab is a character like others: it erases nothing
    r"|(\r)|(\x08+)|(\0+)"
    r"|(?:\x1b\[|\x9b)([0-?]{0,64})[ -/]{0,16}([@-~])"  # CSI
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,16}[0-~]"  # two characters, and character sets
    r"|[\x00-\x1f\x7f-\x9f]"
)
_UNFINISHED = re.compile(
    r"(?:\r|[\x1b\x9b]\[?[0-?]{0,64}[ -/]{0,16}|\x1b\][^\x07\x1b]{0,4096}\x1b?|\x1b[PX^_][^\x1b]{0,4096}\x1b?)\Z"
)
"""The beginning of a sequence whose end has not come yet."""
_LONGEST_SEQUENCE = 4100
_WORD = re.compile(r"[^\W\d_]+")
_PROGRESS = re.compile(r"\d ?%|\d ?(?:/|of) ?\d|[=#█━▓▒░]{2}|B/s")


class TerminalLines:
    """Takes the output as it comes, in time linear in its length, and keeps only its last line.

    CR, backspace, and the sequences that move within the line or erase of it do what they do on a terminal. A NUL ends
    a line that has something on it, so that lists separated by NUL are lines. A CR ends a line, too, where it separates
    what no program would overwrite: texts of which most have no word of the one before, if there are three or more; and
    if there is no other line end at all, as in old Mac files, all but progress, which says the same words each time,
    with a percentage or the like. A terminal would show only the last, and nobody would know that there was more. What
    begins with a CR is always overwritten: no file begins so."""

    def __init__(self) -> None:
        self._unfinished = ""
        self._is_first = True
        self._begin_line()

    def _begin_line(self) -> None:
        self._cells: list[str] = []
        self._column = 0
        self._is_drawn = False
        """The cursor was moved otherwise than by CR: this is no list of lines."""
        self._is_long = False
        """The beginning of the line is done with: it cannot be overwritten."""
        self._parts: list[str] = []
        """The texts written between the CRs, if there were any."""
        self._parts_size = 0
        self._part: list[str] = []

    def add(self, text: str) -> str:
        """Returns the lines that are finished, and of an endless line what can no longer be overwritten."""
        text = (self._unfinished + text).replace("\r\n", "\n")
        begun = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_SEQUENCE))
        end = len(text) if begun is None else begun.start()
        self._unfinished = text[end:]
        return self._read(text[:end])

    def finish(self) -> str:
        """The last line, which has no end; nothing more comes."""
        return self._read("\r" if self._unfinished == "\r" else "") + self._last_line(is_ended=False)

    def _read(self, text: str) -> str:
        done: list[str] = []
        for token in _TOKENS.finditer(text):
            match token.lastindex:
                case 1:
                    self._write(token[1], done)
                case 2:
                    self._return(done)
                case 3:
                    self._move(self._column - len(token[3]))
                case 4 if self._cells:
                    self._end_line(done)
                case 6:
                    self._obey(token[6], token[5])
                case _:
                    pass
        return "".join(done)

    def _write(self, text: str, done: list[str]) -> None:
        first, end, rest = text.partition("\n")
        self._put(first, done)
        if end:
            self._end_line(done)
            lines, end, last = rest.rpartition("\n")
            done += (lines, end)
            self._put(last, done)

    def _put(self, text: str, done: list[str]) -> None:
        if not text:
            return
        self._cells += " " * (self._column - len(self._cells))
        self._cells[self._column : self._column + len(text)] = text
        self._column += len(text)
        if self._parts:
            self._part.append(text)
        if len(self._cells) > _WIDEST:
            wrapped = (len(self._cells) - 1) // _WIDEST * _WIDEST
            done += self._cells[:wrapped]
            del self._cells[:wrapped]
            self._column -= wrapped
            self._is_long, self._parts, self._part = True, [], []

    def _return(self, done: list[str]) -> None:
        if self._is_long:
            self._end_line(done)
            return
        part = "".join(self._part if self._parts else self._cells)
        self._part = []
        self._column = 0
        self._parts.append(part)
        self._parts_size += len(part) + 1
        if self._parts_size > _KEPT:
            if self._are_lines(is_ended=False):
                done += (f"{each}\n" for each in self._parts[:-1])
                self._cells = list(part)
            self._parts, self._parts_size = [part] if self._parts[0] else ["", part], len(part)

    def _move(self, column: int) -> None:
        self._column = min(max(column, 0), _WIDEST)
        self._is_drawn = True

    def _obey(self, command: str, parameters: str) -> None:
        count = int(parameters) if parameters.isdecimal() and len(parameters) < 5 else 0
        match command:
            case "C":
                self._move(self._column + max(count, 1))
            case "D":
                self._move(self._column - max(count, 1))
            case "G":
                self._move(count - 1)
            case "K" if count == 1:
                erased = min(self._column + 1, len(self._cells))
                self._cells[:erased] = " " * erased
                self._is_drawn = True
            case "K":
                del self._cells[0 if count == 2 else self._column :]
                self._is_drawn = True
            case _:
                pass

    def _end_line(self, done: list[str]) -> None:
        done += (self._last_line(is_ended=True), "\n")
        self._is_first = False
        self._begin_line()

    def _last_line(self, *, is_ended: bool) -> str:
        line = "".join(self._cells)
        if not self._parts:
            return line.rstrip(" ") if self._is_drawn else line
        if self._part or not is_ended:
            self._parts.append("".join(self._part))
        if self._are_lines(is_ended=is_ended):
            return "\n".join(self._parts)
        return line.rstrip(" ")

    def _are_lines(self, *, is_ended: bool) -> bool:
        """Whether the CRs of this line separate lines; see the class."""
        parts = [part for part in self._parts if part]
        if self._is_drawn or not self._parts[0] or len(parts) < 2:
            return False
        if is_ended or not self._is_first:
            return len(parts) > 2 and _most(_words(one) and not _stays(one, other) for one, other in pairwise(parts))
        same_words = _most(_words(one) <= _words(other) for one, other in pairwise(parts))
        return not (same_words and _most(_PROGRESS.search(part) is not None for part in parts))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _stays(text: str, later: str) -> bool:
    """Whether something of the text is in the later one."""
    return later.startswith(text.rstrip()) or bool(_words(text) & _words(later))


def _most(facts: Iterable[object]) -> bool:
    found = list(map(bool, facts))
    return 2 * sum(found) > len(found)
