"""The review on a page of its own: which changes there are, which one is chosen, what is drawn, what may be decided.

Knows no terminal and no daemon. Nothing is decided but what was drawn: a decision has the changes and their proposals
as they were when the page was drawn last."""

import bisect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from amanu.cli.diff import BaseText, base_text_of, relative
from amanu.cli.review_page_text import FileText, Lines, Rows, file_part, folded, hunk_part, row_part
from amanu.cli.styles import Span, Style
from amanu.cli.text import cell_width, cut, one_line, visible
from amanu.cli.ui.page_keys import PageAction, page_table
from amanu.text.amounts import plural
from amanu.workspace.text_file import line_count
from amanu_protocol.items import Hunk, HunkState, Proposal, ProposedFile, Row, Verb
from amanu_protocol.labels import IGNORED
from amanu_protocol.state import SessionState

Key = tuple[str, str]
"""Of a proposal, and of a hunk or row in it."""
FRESH_SECONDS = 0.5
"""So long after somebody else changed the chosen change, no decision on it is taken: it may be about what was there."""
WIDE = 120
"""Columns from which the list stands beside the chosen change."""
LOW = 16
"""Lines below which everything but the change gives way."""
_MARKS: dict[HunkState, tuple[Style, str]] = {
    "pending": ("", "○"),
    "conflicted": ("yellow", "!"),
    "accepted": ("green", "✓"),
    "applied": ("green", "✓"),
    "rejected": ("red", "✗"),
    "undoing": ("dim", "↶"),
    "reverted": ("dim", "↶"),
}
_WORDS: dict[HunkState, str] = {
    "accepted": "It is being applied.",
    "undoing": "It is being undone.",
    "rejected": "It was rejected, and the model was told. Ask for it again in a prompt.",
    "applied": "It is applied. u undoes it.",
    "reverted": "It was undone. a applies it again.",
    "pending": "It is not applied yet.",
    "conflicted": "It is in conflict: restore its lines and accept it, or reject it.",
}
"""Why something cannot be done with a change in that state."""
_DOES: dict[Verb, str] = {
    "accept": "accept",
    "reject": "reject",
    "keep": "keep",
    "undo": "undo",
    "redo": "apply again",
}
_YES: Sequence[Verb] = ("accept", "keep", "redo")
_NO: Sequence[Verb] = ("reject", "undo")


@dataclass(frozen=True)
class Listed:
    """A change as it is drawn."""

    proposal: Proposal
    file: ProposedFile | None
    change: Hunk | Row
    path: str
    """Its place now."""

    @property
    def key(self) -> Key:
        change = self.change
        return self.proposal.proposal_id, change.hunk_id if isinstance(change, Hunk) else change.row_id

    @property
    def waits(self) -> bool:
        return bool(self.change.waits and self.change.verbs)

    def verb(self, wanted: Sequence[Verb]) -> Verb | None:
        """The first of them that it takes."""
        return next((verb for verb in wanted if verb in self.change.verbs), None)

    @property
    def why_not(self) -> str:
        if isinstance(self.change, Row) and self.change.undecidable:
            return one_line(self.change.undecidable)
        return _WORDS[self.change.state]

    @property
    def label(self) -> Sequence[Span]:
        style, mark = _MARKS[self.change.state]
        if self.change.state == "applied" and not self.change.reviewed:
            style, mark = "", "●"
        return [(style, mark), ("", f" {self._name}")]

    @property
    def _name(self) -> str:
        match self.change:
            case Row() as row:
                return one_line(row.title)
            case hunk:
                added, removed = line_count(hunk.new_text), line_count(hunk.old_text)
                return f"line {hunk.lines.first}  +{added} −{removed}"


@dataclass(frozen=True)
class Decision:
    """The user's decision about the changes as they saw them."""

    changes: Sequence[tuple[Verb, Listed]]
    reason: str = ""
    new_text: str | None = None


@dataclass(frozen=True)
class HunkEdit:
    """A hunk that the user wants to edit, as it was drawn, and the text to begin with."""

    listed: Listed
    text: str


@dataclass(frozen=True)
class Bulk:
    """All of a file, which the user is to look at before."""

    name: str
    changes: Sequence[tuple[Verb, Listed]]

    @property
    def question(self) -> str:
        word = _DOES[self.changes[0][0]]
        return f"{word.capitalize()} all {plural(len(self.changes), 'change')} of {self.name}, shown above?"


class ReviewPage:
    """The changes of one proposal, or (None) all of a session that wait. `clock` counts seconds."""

    def __init__(self, proposal_id: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._proposal_id = proposal_id
        self._clock = clock
        self._roots: Sequence[str] = ()
        self._listed: list[Listed] = []
        self._files: Mapping[str, None] = {}
        """Their paths, in order."""
        self._known: set[Key] = set()
        self.waiting = 0
        """Changes that wait for the user."""
        self._chosen = 0
        self._text: tuple[Sequence[Listed], FileText, list[int]] | None = None
        """Of the file of the chosen change: its changes, their lines, the part at which each begins."""
        self._top = (0, 0)
        """The line at the top, and how many of its rows are above."""
        self._height, self._columns = 10, 80
        """Of what is drawn of the change."""
        self._drawn: Listed | None = None
        self._in_sight = False
        """Some of the chosen change's lines were drawn."""
        self._fresh_at = -FRESH_SECONDS
        self._bulk: Bulk | None = None
        self._message: Span = ("", "")
        self.kept_texts: dict[Key, str] = {}
        """The texts that the user wrote in the editor and that could not be taken."""
        self.words = ""
        """Words to the model that were not sent."""
        self.shows_keys = False
        self._keys_top = 0
        self.other_questions = 0
        """That wait for the user, and are not about these changes."""

    # What there is ---------------------------------------------------------------------------------------

    def follow(self, state: SessionState) -> None:
        """The session has become that. The chosen change stays chosen, decided or not."""
        before = self._chosen_one
        self._roots = state.roots
        self._listed = sorted_by_file([each for each in self._changes(state) if self._belongs(each)])
        self._known |= {each.key for each in self._listed}
        self._files = dict.fromkeys(each.path for each in self._listed)
        self.waiting = sum(each.waits for each in self._listed)
        self._text = None
        if before is None:
            self._next_open()
            self._fresh_at = self._clock()  # what was typed before the page came is no decision
        else:
            kept = next((at for at, each in enumerate(self._listed) if each.key == before.key), None)
            self._chosen = min(self._chosen, max(0, len(self._listed) - 1)) if kept is None else kept
            if kept is None:
                self._show_chosen()
            if kept is None or _content(self._listed[kept].change) != _content(before.change):
                self._fresh_at = self._clock()
        if self._bulk is not None and not self._still(self._bulk):
            self._bulk = None
            self.say("yellow", "The changes are others now. Look at them again.")

    @property
    def is_drawn(self) -> bool:
        """The chosen change stands on the screen, in this version or an earlier one."""
        chosen = self._chosen_one
        return chosen is not None and self._drawn is not None and chosen.key == self._drawn.key

    @property
    def proposals(self) -> set[str]:
        return {each.proposal.proposal_id for each in self._listed}

    @property
    def is_done(self) -> bool:
        return self.waiting == 0

    def summary(self) -> str:
        """The outcome of the changes."""
        counts: dict[str, int] = {}
        words = {"applied": "applied", "rejected": "rejected", "reverted": "undone", "conflicted": "in conflict"}
        for each in self._listed:
            word = words.get(each.change.state, "open")
            counts[word] = counts.get(word, 0) + 1
        return ", ".join(f"{count} {word}" for word, count in counts.items()) or "nothing is left of them"

    def _changes(self, state: SessionState) -> list[Listed]:
        return [
            each
            for proposal in state.proposals
            if self._proposal_id in (None, proposal.proposal_id)
            for each in (
                *(
                    Listed(proposal, file, hunk, path)
                    for file, path in [(file, file.present_path) for file in proposal.files]
                    for hunk in file.hunks
                ),
                *(Listed(proposal, None, row, row.present_path) for row in proposal.rows),
            )
        ]

    def _belongs(self, each: Listed) -> bool:
        return self._proposal_id is not None or each.waits or each.key in self._known

    def _still(self, bulk: Bulk) -> bool:
        versions = {each.key: each.proposal.version for each in self._listed}
        return all(versions.get(each.key) == each.proposal.version for _, each in bulk.changes)

    @property
    def _chosen_one(self) -> Listed | None:
        return self._listed[self._chosen] if self._chosen < len(self._listed) else None

    def _file(self) -> list[Listed]:
        """All of the file of the chosen change."""
        chosen = self._chosen_one
        return [] if chosen is None else [each for each in self._listed if each.path == chosen.path]

    # Keys ------------------------------------------------------------------------------------------------

    def press(self, key: PageAction, reason: str = "") -> Decision | None:
        """What is to be sent, if anything is. `why`, `edit` and `back` are for who draws the page."""
        self._message = ("", "")
        if self.shows_keys and key in ("next", "previous", "down", "up"):
            self._keys_top += 1 if key in ("next", "down") else -1
            return None
        if self._bulk is not None and key in ("reject", "why", "undo", "acceptFile", "rejectFile"):
            return None
        match key:
            case "next" | "previous":
                self._move(1 if key == "next" else -1)
            case "nextFile" | "previousFile":
                self._move_file(1 if key == "nextFile" else -1)
            case "down" | "up":
                self._scroll(self._height - 1 if key == "down" else 1 - self._height)
            case "top" | "bottom":
                self._go(key == "bottom")
            case "acceptFile" | "rejectFile":
                self._ask_about_all(_YES if key == "acceptFile" else _NO)
            case "accept" if self._bulk is not None:
                bulk, self._bulk = self._bulk, None
                return Decision(bulk.changes)
            case "accept":
                return self._decide(_YES)
            case "reject" | "why":
                return self._decide(_NO, reason)
            case "undo":
                return self._decide(("undo",))
            case "keys":
                self.shows_keys, self._keys_top = not self.shows_keys, 0
            case _:
                pass
        return None

    def escape(self) -> bool:
        """Leave a question of the page or its list of keys. False when there is nothing to leave but the page."""
        was = self.shows_keys or self._bulk is not None
        self.shows_keys, self._bulk = False, None
        return was

    def editing(self) -> HunkEdit | None:
        """The chosen hunk, if it can be edited."""
        drawn = self._seen()
        if drawn is None:
            return None
        if not isinstance(drawn.change, Hunk) or drawn.verb(("accept",)) is None:
            row = isinstance(drawn.change, Row)
            self.say("yellow", "Only text can be edited." if row else f"It cannot be edited: {drawn.why_not}")
            return None
        return HunkEdit(drawn, self.kept_texts.get(drawn.key, drawn.change.new_text))

    def can_refuse(self) -> bool:
        """Whether words to the model make sense; else the page says why not."""
        drawn = self._seen()
        if drawn is not None and drawn.verb(("reject",)) is None:
            self.say("yellow", f"It cannot be rejected: {drawn.why_not}")
        return drawn is not None and drawn.verb(("reject",)) is not None

    def decided(self, decision: Decision) -> None:
        """It was carried out, as far as it could be: the next change that waits is chosen."""
        for _, each in decision.changes:
            self.kept_texts.pop(each.key, None)
        self.words = "" if decision.reason == self.words.strip() else self.words
        states = {each.key: each.change for each in self._listed}
        left = [
            states[each.key] for verb, each in decision.changes if verb in ("accept", "redo") and each.key in states
        ]
        left = [change for change in left if change.state not in ("accepted", "applied")]
        if left:
            count = f"{len(decision.changes) - len(left)} of {len(decision.changes)} applied: " if len(left) > 1 else ""
            self.say("yellow", f"{count}{left[0].reason or _WORDS[left[0].state]}")
        elif decision.changes[0][1].waits:  # else it was decided before, and is to be looked at again
            self._next_open()
        self._fresh_at = -FRESH_SECONDS  # what changed is the user's own doing

    def say(self, style: Style, text: str) -> None:
        self._message = (style, one_line(visible(text), 400))

    def _seen(self) -> Listed | None:
        """The chosen change as it was drawn, unless the user cannot have seen it as it is."""
        if not self.is_drawn or self._clock() - self._fresh_at < FRESH_SECONDS:
            self.say("yellow", IGNORED["tooSoon"])
            return None
        if not self._in_sight:
            self.shows_keys = False
            self._show_chosen()
            self.say("yellow", "It was out of sight. Here it is: decide again.")
            return None
        return self._drawn

    def _decide(self, wanted: Sequence[Verb], reason: str = "") -> Decision | None:
        drawn = self._seen()
        if drawn is None:
            return None
        verb = drawn.verb(wanted)
        if verb is None:
            self.say("yellow", f"Not possible: {drawn.why_not}")
            return None
        return Decision([(verb, drawn)], reason)

    def _ask_about_all(self, wanted: Sequence[Verb]) -> None:
        drawn = self._seen()
        if drawn is None:
            return
        waiting: list[tuple[Verb, Listed]] = [
            (verb, each) for each in self._file() if each.waits and (verb := each.verb(wanted)) is not None
        ]
        if not waiting:
            self.say("yellow", "Nothing of this file waits for a decision.")
            return
        self._bulk = Bulk(relative(drawn.path, self._roots), waiting)
        self._top = (0, 0)

    def _move(self, by: int) -> None:
        if self._listed:
            self._choose(min(max(0, self._chosen + by), len(self._listed) - 1))

    def _move_file(self, by: int) -> None:
        chosen = self._chosen_one
        if chosen is None:
            return
        paths = [*self._files]
        path = paths[min(max(0, paths.index(chosen.path) + by), len(paths) - 1)]
        if path != chosen.path:
            of_file = [at for at, each in enumerate(self._listed) if each.path == path]
            self._choose(next((at for at in of_file if self._listed[at].waits), of_file[0]))

    def _next_open(self) -> None:
        order = [*range(self._chosen, len(self._listed)), *range(self._chosen)]
        if (at := next((at for at in order if self._listed[at].waits), None)) is not None:
            self._choose(at)

    def _choose(self, at: int) -> None:
        self._bulk = None
        if self._listed[at].path != self._listed[self._chosen].path:
            self._text = None
        self._chosen = at
        self._show_chosen()

    def _show_chosen(self) -> None:
        changes, text, starts = self._file_text()
        chosen = self._chosen_one
        at = next((at for at, each in enumerate(changes) if chosen is not None and each.key == chosen.key), 0)
        self._top = (text.start(starts[at]) if at and starts else 0, 0)

    # Scrolling -------------------------------------------------------------------------------------------

    def _scroll(self, by: int) -> None:
        _, text, _ = self._file_text()
        line, row = self._top
        while by > 0:
            rows = len(text.rows(line, self._columns))
            step = min(by, rows - row)
            by, row = by - step, row + step
            if row == rows:
                if line + 1 >= len(text):
                    row = rows - 1
                    break
                line, row = line + 1, 0
        while by < 0 and (line, row) != (0, 0):
            if row == 0:
                line -= 1
                row = len(text.rows(line, self._columns))
            step = min(-by, row)
            by, row = by + step, row - step
        self._top = (line, row)

    def _go(self, bottom: bool) -> None:
        _, text, _ = self._file_text()
        self._top = (max(0, len(text) - 1), 0) if bottom else (0, 0)
        if bottom:
            self._scroll(2 - self._height)

    # Drawing ---------------------------------------------------------------------------------------------

    def rows(self, columns: int, height: int) -> Rows:
        """The page, `height` rows of at most `columns`."""
        bottom = [*self._message_rows(columns), *self._hints(columns, height)]
        title = [self._title(columns)]
        room = max(1, height - len(title) - len(bottom))
        if self.shows_keys:
            return [*title, *self._keys(columns, room), *bottom][:height]
        wide = columns >= WIDE
        listed = self._list(room if wide else 1 if height < LOW else max(1, min(room // 3, self._list_length)))
        if wide:
            width = min(44, columns // 3)
            change = self._change(columns - width - 3, room)
            empty: Sequence[Span] = ()
            middle: list[Sequence[Span]] = [
                [*_padded(listed[at] if at < len(listed) else empty, width), ("dim", " │ "), *change[at]]
                for at in range(room)
            ]
        else:
            rule: list[Sequence[Span]] = [[("dim", "─" * columns)]] if height >= LOW else []
            above = [*(_fitted(row, columns) for row in listed), *rule]
            middle = [*above, *self._change(columns, max(1, room - len(above)))]
        self._drawn = self._chosen_one
        return [*title, *middle[:room], *bottom][:height]

    def _title(self, columns: int) -> Sequence[Span]:
        chosen = self._chosen_one
        parts = ["Review", f"{self._chosen + 1} of {plural(len(self._listed), 'change')}", f"{self.waiting} open"]
        if chosen is not None:
            parts.insert(1, relative(chosen.path, self._roots))
        text = f" {' · '.join(parts)}"
        notes = f" · ● {plural(self.other_questions, 'question')} more" if self.other_questions else ""
        room = columns - cell_width(notes)
        return [("heading", cut(text, room)), ("yellow", notes)]

    @property
    def _list_length(self) -> int:
        return len(self._listed) + len(self._files)

    def _list(self, most: int) -> list[Sequence[Span]]:
        """The rows around the chosen one."""
        first = max(0, self._chosen - most)
        rows: list[Sequence[Span]] = []
        at = 0
        for index, each in enumerate(self._listed[first : self._chosen + most], first):
            if index == 0 or self._listed[index - 1].path != each.path:
                rows.append([("bold", relative(each.path, self._roots))])
            is_chosen = index == self._chosen
            if is_chosen:
                at = len(rows)
            mark, name = each.label
            rows.append([("heading", "❯ " if is_chosen else "  "), mark, ("heading" if is_chosen else "", name[1])])
        start = max(0, min(at - most // 2, len(rows) - most))
        return rows[start : start + most]

    def _change(self, columns: int, height: int) -> Rows:
        self._columns, self._height = max(20, columns - 2), height
        changes, text, starts = self._file_text()
        line, hidden = self._top
        if line >= len(text):
            line, hidden = self._top = (0, 0)
        chosen = self._chosen_one
        bulk = {each.key for _, each in self._bulk.changes} if self._bulk is not None else None
        rows: list[Sequence[Span]] = []
        self._in_sight = False
        while line < len(text) and len(rows) < height:
            part = text.part(line)
            owner = changes[bisect.bisect_right(starts, part) - 1]
            is_meant = owner.key in bulk if bulk is not None else owner is chosen
            self._in_sight |= owner is chosen
            gutter: Span = ("heading", "▌ ") if is_meant else ("", "  ")
            rows += [[gutter, *row] for row in text.rows(line, self._columns)[hidden:]]
            line, hidden = line + 1, 0
        rows = rows[:height]
        return [*rows, *([("", "")] for _ in range(height - len(rows)))]

    def _file_text(self) -> tuple[Sequence[Listed], FileText, list[int]]:
        if self._text is None:
            changes = self._file()
            parts: list[Lines] = []
            starts: list[int] = []
            file: ProposedFile | None = None
            base = BaseText([], {}, windows=False)
            explained = ""
            for number, each in enumerate(changes, 1):
                starts.append(len(parts))
                count = f"{number} of {len(changes)}" if len(changes) > 1 else ""
                if isinstance(each.change, Row):
                    parts.append(row_part(each.change, self._roots, count))
                elif each.file is not None:
                    if each.file is not file:
                        file, base = each.file, base_text_of(each.file)
                        parts.append(file_part(file, self._roots))
                    again = each.change.explanation == explained
                    parts += hunk_part(each.file, base, each.change, count, explained=not again)
                    explained = each.change.explanation
            self._text = changes, FileText(parts), starts
        return self._text

    def _message_rows(self, columns: int) -> Rows:
        if self._bulk is not None:
            return folded([("heading", f" {self._bulk.question}")], columns)
        return [_fitted([(self._message[0], f" {self._message[1]}")], columns)]

    def _hints(self, columns: int, height: int) -> Rows:
        """The acts that are possible now, the likeliest first, in as many rows as there is room for."""
        rows: list[str] = [""]
        for hint in self._possible():
            if cell_width(rows[-1]) + cell_width(hint) + 3 > columns:
                if len(rows) == (1 if height < LOW else 2):
                    break
                rows.append("")
            rows[-1] += f" · {hint}" if rows[-1] else f" {hint}"
        return [[("dim", row)] for row in rows]

    def _possible(self) -> Sequence[str]:
        if self._bulk is not None:
            return ["Enter does it", "Esc goes back", "PgDn PgUp scroll"]
        chosen = self._chosen_one
        if chosen is None:
            return ["q back"]
        hints: list[str] = []
        for key, wanted in (("a", _YES), ("r", _NO)):
            if (verb := chosen.verb(wanted)) is not None:
                hints.append(f"{key} {_DOES[verb]}")
        if chosen.verb(("reject",)) is not None:
            hints += ["w say why", *(["e edit"] if isinstance(chosen.change, Hunk) else [])]
        hints += ["q back", "? keys"]
        if sum(each.waits for each in self._file()) > 1:
            hints.append("A R whole file")
        return [*hints, "j k change", "n p file", "PgDn PgUp scroll"]

    def _keys(self, columns: int, height: int) -> Rows:
        self._in_sight = False  # it is covered
        keys = page_table()
        self._keys_top = max(0, min(self._keys_top, len(keys) - height))
        rows = [_fitted([("bold", f"  {name:14}"), ("dim", about)], columns) for name, about in keys]
        rows = rows[self._keys_top : self._keys_top + height]
        return [*rows, *([("", "")] for _ in range(height - len(rows)))]


def sorted_by_file(listed: Sequence[Listed]) -> list[Listed]:
    """The changes with those of one file together, where its first stands."""
    paths = {path: at for at, path in enumerate(dict.fromkeys(each.path for each in listed))}
    return sorted(listed, key=lambda each: paths[each.path])


def _content(change: Hunk | Row) -> object:
    """The text that somebody who looks at it sees."""
    if isinstance(change, Hunk):
        return change.old_text, change.new_text, change.state, change.reason
    return change.digest, change.state, change.reason, change.lines


def _fitted(spans: Sequence[Span], columns: int) -> list[Span]:
    """The part of one row that fits, with a sign where something is missing."""
    fitted: list[Span] = []
    for style, text in spans:
        width = cell_width(text)
        if width > columns:
            return [*fitted, (style, cut(text, columns))] if columns > 0 else fitted
        fitted.append((style, text))
        columns -= width
    return fitted


def _padded(spans: Sequence[Span], columns: int) -> list[Span]:
    fitted = _fitted(spans, columns)
    return [*fitted, ("", " " * (columns - sum(cell_width(text) for _, text in fitted)))]
