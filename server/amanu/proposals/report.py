"""What became of a call's edits, in words for the model. It must not believe in text that is not there."""

from collections.abc import Callable, Sequence
from pathlib import Path

from amanu.proposals.model import FILE_CHANGED, LINES_CHANGED, LiveFile, LiveProposal
from amanu.proposals.places import LiveHunk
from amanu.proposals.presence import BY_HAND
from amanu.proposals.rows import LiveRow, row_title
from amanu.text.display import file_list
from amanu.text.fences import block
from amanu.workspace.text_file import line_count
from amanu_protocol.items import Hunk

_SHOWN = 4000  # characters of the user's own text that are repeated to the model
RETRY = "To be made again on the present text."
"""The reason of a change that was rejected because the model is to make it again."""
_AGAIN = "The user asks you to make this change again: look at what is there now, then propose it anew."
_RETRIED = 16_000
"""Characters of each side of such a change that are repeated to the model."""


def report(live: LiveProposal, call_id: str | None, display_path: Callable[[Path], str]) -> str:
    """One paragraph per file that the call wrote (None: per file); line numbers are those of the file as it is now."""
    paragraphs: list[str] = []
    for file in live.files:
        hunks = [hunk for hunk in file.hunks if call_id is None or call_id in live.owners(file, hunk)]
        if hunks:
            path = display_path(file.base.path)
            new_path = None if file.new_path is None else display_path(file.new_path)
            paragraphs.append(_file(live, file, hunks, call_id, path, new_path))
    rows = [row for row in live.rows if call_id is None or call_id in row.owners]
    return "\n\n".join([*paragraphs, *_rows(rows, live, display_path)])


def _rows(rows: Sequence[LiveRow], live: LiveProposal, display_path: Callable[[Path], str]) -> list[str]:
    """One line for all applied rows, one for all drafted rows, and one for each other row."""

    def name(row: LiveRow) -> str:
        title, path = row.change.title or row_title(row.change), " → ".join(map(display_path, row.change.paths))
        if row.change.kind == "git" or (row.state == "applied" and row.change.kind != "mode"):
            return title if row.change.kind == "git" else path
        return f"{path} ({title})"

    applied = [name(row) for row in rows if row.state == "applied"]
    drafted = [name(row) for row in rows if row.state == "pending" and live.draft and not row.reason]
    lines = [f"Applied: {file_list(applied)}."] if applied else []
    lines += [f"Drafted: {file_list(drafted)}. Your commands see this."] if drafted else []
    for row in rows:
        because = f": {_sentence(row.reason)}" if row.reason else "."
        match row.state:
            case "rejected" if row.reason == RETRY:
                lines.append(f"- {name(row)}: not applied. {_AGAIN}")
            case "rejected":
                lines.append(f"- {name(row)}: rejected{' by the user' if row.reviewed else ''}{because}")
            case "conflicted":
                lines.append(f"- {name(row)}: not applied{because}")
            case "reverted" if row.reason in BY_HAND:
                lines.append(f"- {name(row)}: no longer there{because}")
            case "reverted":
                lines.append(f"- {name(row)}: the user took this change back.")
            case "pending" if row.reason or not live.draft:
                lines.append(f"- {name(row)}: open, not applied{because}")
            case _:
                pass
    return lines


def _file(
    live: LiveProposal, file: LiveFile, hunks: list[LiveHunk], call_id: str | None, path: str, new_path: str | None
) -> str:
    states = {hunk.state for hunk in hunks}
    places = _positions(file)
    if live.draft and states == {"pending"}:
        where = ", ".join(places[hunk.hunk_id] for hunk in hunks)
        done = {"create": f"created {path}", "delete": f"deleted {path}", "rename": f"renamed {path} to {new_path}"}
        return f"Drafted: {done.get(file.change, f'{path}, {where}')}. Your tools and commands see it."
    plain = states == {"applied"} and not any(hunk.edited_by_user for hunk in hunks)
    if plain:
        match file.change:
            case "create":
                lines = [f"Created {path}."]
            case "delete":
                lines = [f"Deleted {path}."]
            case "rename":
                changed = any(hunk.old_text != hunk.new_text for hunk in hunks)
                lines = [f"Renamed {path} to {new_path}{' and changed it' if changed else ''}."]
            case "edit":
                lines = [f"Applied to {path}: {', '.join(places[hunk.hunk_id] for hunk in hunks)}."]
    else:
        path = path if new_path is None else f"{path} to {new_path}"
        count = sum(hunk.state == "applied" for hunk in hunks)
        lines = [f"{path}: {count} of {len(hunks)} changes applied."]
        for hunk in hunks:
            lines += _hunk(live, file, hunk, call_id, places[hunk.hunk_id])
    if "applied" in states and file.unsaved:
        lines.append(
            "The change is in the editor but not saved: commands will not see it until the user saves the file."
        )
    return "\n".join(lines)


def _hunk(live: LiveProposal, file: LiveFile, hunk: Hunk, call_id: str | None, location: str) -> list[str]:
    because = f": {_sentence(hunk.reason)}" if hunk.reason else "."
    match hunk.state:
        case "applied" if hunk.edited_by_user:
            # In the file, a program may have done it.
            changed = "the user changed your text" if hunk.applied_text is None else "it was changed in the file since"
            if not hunk.new_text and hunk.old_text:
                return [f"- {location}: applied, but {changed}. Nothing is left of it."]
            text = hunk.new_text
            if len(text) > _SHOWN:
                text = text[:_SHOWN] + "\n[… shortened; read the file for the rest]\n"
            return [f"- {location}: applied, but {changed}. It now reads:", text.rstrip("\r\n")]
        case "applied":
            return [f"- {location}: applied."]
        case "rejected" if hunk.reason == RETRY:
            return [f"- {location}: not applied. {_AGAIN}", *_texts(hunk)]
        case "rejected" if not hunk.reviewed:
            return [f"- {location}: not applied{because} It is not in the file."]
        case "rejected":
            return [f"- {location}: rejected by the user{because} It is not in the file."]
        case "conflicted":
            advice = " Read it again before proposing anew." if hunk.reason in (FILE_CHANGED, LINES_CHANGED) else ""
            return [f"- {location}: not applied{because}{advice}"]
        case "reverted" if hunk.reason in BY_HAND:
            return [f"- {location}: no longer there{because}"]
        case "reverted":
            return [f"- {location}: the user took this change back."]
        case _:
            others = live.owners(file, hunk) - {call_id}
            if others and call_id in live.allowed_calls:
                return [f"- {location}: not applied yet; another edit of this step changes the same lines and waits."]
            if hunk.reason:
                return [f"- {location}: open, not applied{because} It may still be accepted later."]
            return [f"- {location}: open, not applied. The user has not decided; it may still be accepted later."]


def _texts(hunk: Hunk) -> list[str]:
    """Both sides of a hunk, as data: the model may no longer have them, and the user may have changed its text."""
    old = block("lines_to_replace", _cut(hunk.old_text)) if hunk.old_text else "It was to insert, where no line was:"
    return [old, block("new_lines", _cut(hunk.new_text)) if hunk.new_text else "It was to remove these lines."]


def _cut(text: str) -> str:
    text = text.removesuffix("\n")
    return text if len(text) <= _RETRIED else text[:_RETRIED] + "\n[… shortened]"


def _positions(file: LiveFile) -> dict[str, str]:
    """By hunk: where it is, or would be, in the file as it is now."""
    places: dict[str, str] = {}
    shift = 0
    for hunk in file.hunks:
        places[hunk.hunk_id] = _position(file, hunk, hunk.base_lines.start + shift + 1)
        if hunk.state == "applied":
            shift += line_count(hunk.new_text) - hunk.base_lines.count
    return places


def _position(file: LiveFile, hunk: LiveHunk, start: int) -> str:
    if file.change in ("delete", "rename"):
        return "the deletion" if file.change == "delete" else "the rename"
    count = line_count(hunk.new_text) if hunk.state == "applied" else hunk.base_lines.count
    if count == 0:
        return f"after line {start - 1}" if hunk.state != "applied" else f"lines removed after line {start - 1}"
    return f"line {start}" if count == 1 else f"lines {start}–{start + count - 1}"


def _sentence(reason: str) -> str:
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."
