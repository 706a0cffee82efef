"""The change that undoes another one, like `git reset --soft`: refs go back, and so do the entries of the index that
are still as the change left them. A log gets the line that git would add; it goes back if the change removed lines of
it, or made its ref. Objects and git's small files stay. Everything here blocks and raises `OSError`."""

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from amanu.workspace.git.change import STATE, Appended, Replaced, RepositoryChange
from amanu.workspace.git.index import Entry, Key
from amanu.workspace.git.present import Present

_RUNNING = {
    "MERGE_HEAD": "A merge",
    "rebase-merge": "A rebase",
    "rebase-apply": "A rebase",
    "CHERRY_PICK_HEAD": "A cherry-pick",
    "REVERT_HEAD": "A revert",
    "sequencer": "A cherry-pick or revert",
    "BISECT_LOG": "A bisect",
}
_STASH = "refs/stash"
"""Its log is the list of stashes."""
_NOTHING = "0" * 40
_RECORD = re.compile(rb"[0-9a-f]{40} [0-9a-f]{40} (?P<who>.*) [0-9]+ (?P<zone>[+-][0-9]{4})(?:\t.*)?", re.DOTALL)


def undo_fault(change: RepositoryChange, present: Present, published: Collection[str]) -> str:
    """The reason why the change must stay, as a sentence; "" if it can be undone. `published`: commits of the change,
    one of which a remote-tracking ref contains, as far as the caller knows."""
    for name, title in _RUNNING.items() if change.moved else ():
        if present.folder.status(name) is not None:
            return f"{title} is running in the repository. Finish or abort it first."
    if set(change.commits) & {*published, *(present.remote_values() if change.commits else ())}:
        return "A commit of this change has been pushed. To take it back, use `git revert`."
    ended = [name for name in STATE if (sides := change.files.get(name)) and sides[0] is not None and sides[1] is None]
    if ended and change.moved and any(stage and old for (_, stage), (old, _) in change.entries.items()):
        return "This ended a merge or cherry-pick with conflicts, which Amanu cannot begin again."
    return ""


def inverse(change: RepositoryChange, present: Present) -> RepositoryChange:
    """The change that undoes `change` in the repository as it is now, which may be half undone already."""
    logs = {name: log for name in change.logs if (log := _log(change, present, name)) is not None}
    return replace(
        change,
        refs={name: (after, before) for name, (before, after) in change.refs.items()},
        entries=_entries(change.entries, present) if change.entries else {},
        logs=logs,
        files={},
        objects={},
    )


def _entries(
    entries: Mapping[Key, tuple[Entry | None, Entry | None]], present: Present
) -> Mapping[Key, tuple[Entry | None, Entry | None]]:
    """The way back for the entries of the paths that are staged as the change left them."""
    others = {key[0] for key, (_, after) in entries.items() if present.entries.get(key) != after}
    return {key: (after, before) for key, (before, after) in entries.items() if key[0] not in others}


def _log(change: RepositoryChange, present: Present, name: str) -> Appended | Replaced | None:
    log, now = change.logs[name], present.log(name)
    if isinstance(log, Replaced):
        return Replaced(log.after, log.before)
    before, after = change.refs.get(name, ("", ""))
    if after and not before:
        return Replaced(now, None)  # git removes the log with the ref
    if name == _STASH:
        kept = None if now is None else now.removesuffix(log.lines)
        return Replaced(now, kept) if present.value(name) == after else None
    old = present.resolved(name, {each: values[1] for each, values in change.refs.items()})
    new = present.resolved(name, {each: values[0] for each, values in change.refs.items()})
    line = _reset_line(log.lines, old, new) if old and old != new else b""
    return Appended(_last_alike(now or b"", line)) if line else None


def _reset_line(lines: bytes, old: str, new: str) -> bytes:
    """The line that git would add after these, in the same person's name, when it resets to a commit or deletes the
    branch (`new` is ""); empty if they cannot be read."""
    *_, last = [b"", *lines.splitlines()]
    if (found := _RECORD.fullmatch(last)) is None:
        return b""
    message = f"\treset: moving to {new}" if new else ""
    head, end = f"{old} {new or _NOTHING} ".encode(), f"{message}\n".encode()
    return head + found["who"] + b" %d %b" % (time.time(), found["zone"]) + end


def _last_alike(log: bytes, line: bytes) -> bytes:
    """The last line of the log, if it is the same but for the time, as a killed daemon has added it; else `line`."""
    *_, last = [b"", *log.splitlines(keepends=True)]
    return last if _timeless(last) == _timeless(line) else line


def _timeless(line: bytes) -> tuple[bytes, bytes]:
    return line[:81], line.partition(b"\t")[2]
