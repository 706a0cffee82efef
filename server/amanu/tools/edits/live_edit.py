"""Live edits: edits that the model is still writing, for the user to look at and never to decide on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from amanu.text.display import visible
from amanu.tools.edits.partial_json import JsonStrings, StringPiece
from amanu.tools.edits.patch import named_file

SHOWN = 64 * 1024
"""Characters of a live edit that are shown. The proposal has it all."""
READ = 2 * SHOWN
"""Characters of the arguments that are read for it; where the path comes later than that nothing is shown."""
GOES_ON = "… goes on\n"


class _Lines:
    """Complete lines with nothing hidden in them, up to a limit. A text in pieces costs what it is long."""

    def __init__(self) -> None:
        self._part: list[str] = []
        self._part_size = 0
        self._left = SHOWN
        self.waiting: list[str] = []
        """What was not taken yet."""

    @property
    def full(self) -> bool:
        return self._left <= 0

    def add(self, sign: str, text: str) -> None:
        """More text; of its last line more may come."""
        whole, newline, part = text.rpartition("\n")
        if newline:
            self.put(sign, "".join([*self._part, whole]))
            self._part, self._part_size = [], 0
        self._part.append(part)
        self._part_size += len(part)
        if self._part_size > self._left:
            self.end(sign)

    def end(self, sign: str) -> None:
        """The last line is whole; an empty one is none."""
        if self._part_size:
            self.put(sign, "".join(self._part))
        self._part, self._part_size = [], 0

    def put(self, sign: str, text: str) -> None:
        """Whole lines, the last without its line feed."""
        if self.full:
            return
        text, self._left = text[: self._left], self._left - len(text) - 1
        lines = visible(f"{text}\n")  # a carriage return before the line feed is none
        self.waiting.append(sign + lines[:-1].replace("\n", f"\n{sign}") + "\n")
        if self.full:
            self.waiting.append(GOES_ON)

    def take(self) -> str:
        """The lines that came since it was last called."""
        text, self.waiting = "".join(self.waiting), []
        return text


class LiveLines(ABC):
    """Implements `core.tool.LiveCall`: nothing is shown before the path is known."""

    def __init__(self) -> None:
        self.title: str | None = None
        self._strings = JsonStrings()
        self._lines = _Lines()
        self._read = 0

    def feed(self, text: str) -> str:
        if self._read > READ or (self._lines.full and self.title is not None):
            return ""
        self._read += len(text)
        for piece in self._strings.feed(text[: READ + 1]):
            self._take(piece)
            if self._lines.full and self.title is not None:
                break
        return "" if self.title is None else self._lines.take()

    @abstractmethod
    def _take(self, piece: StringPiece) -> None: ...


class LiveEdit(LiveLines):
    """Of a tool whose arguments hold `path`, and texts under the names in `signs`: what goes ("-"), what comes ("+").
    They may be nested in a list of several edits. `title` makes the call's title from its arguments."""

    def __init__(self, title: Callable[[Mapping[str, Any]], str], signs: Mapping[str, str]) -> None:
        super().__init__()
        self._make_title = title
        self._signs = signs
        self._path: list[str] = []
        self._edit: tuple[str | int, ...] | None = None

    def _take(self, piece: StringPiece) -> None:
        *edit, name = piece.path or ("",)
        sign = self._signs.get(str(name))
        if piece.path == ("path",):
            self._path.append(piece.text)
            if piece.ended:
                self.title = self._make_title({"path": "".join(self._path)})
        elif sign is not None:
            if self._edit is not None and tuple(edit) != self._edit:
                self._lines.put("", "@@")
            self._edit = tuple(edit)
            self._lines.add(sign, piece.text)
            if piece.ended:
                self._lines.end(sign)


class LivePatch(LiveLines):
    """Of a tool that takes a patch under the name `argument`: the first file it names makes the call's title, and the
    patch itself is shown. `shown` is how a path is written for the user."""

    def __init__(self, argument: str, display_path: Callable[[str], str]) -> None:
        super().__init__()
        self._argument = argument
        self._shown = display_path
        self._seen = 0

    def _take(self, piece: StringPiece) -> None:
        if piece.path == (self._argument,):
            self._lines.add("", piece.text)
            if piece.ended:
                self._lines.end("")
            fresh, self._seen = self._lines.waiting[self._seen :], len(self._lines.waiting)
            if self.title is None:
                self.title = patch_title("".join(fresh), self._shown)


_VERBS = {"add": "Create", "delete": "Delete", "update": "Edit"}


def patch_title(patch: str, display_path: Callable[[str], str]) -> str | None:
    """The title of a call with that patch, or with whole lines of its beginning; None as long as no file is named."""
    name = next(filter(None, map(named_file, patch.splitlines())), None)
    return None if name is None else f"{_VERBS[name[0]]} {display_path(name[1])}"
