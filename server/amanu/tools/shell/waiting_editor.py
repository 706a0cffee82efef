"""Notice that a command waits for somebody to type into an editor, which nobody can: it has no terminal."""

import asyncio
import os
import re
from pathlib import Path

from amanu.system.process_tree import living

LOOK_SECONDS = 2.0
"""Seconds without output before the first look, and between two."""
_EDITORS = re.compile(
    r"(?:r?(?:vi|view|ex|vim|gvim|vimdiff)|nvi|elvis|vile)(?:\.(?:basic|tiny|nox|gtk3?|gnome|athena|motif))?|nvim|r?nano|pico|mcedit|joe|jed|jmacs|mg|zile|micro|hx|"
    r"helix|kak|ne|tilde|dte|emacs(?:client)?(?:-\w+)?"
)
_SCRIPTED = re.compile(
    rb"-[eE]?s|-[eEl]|--?eval(?:=.*)?|--?batch|--?script|--headless|--embed|--(?:[bf]g-)?daemon(?:=.*)?|-x", re.DOTALL
)
"""Options with which an editor works by itself."""


class WaitingEditor:
    """Looks at the processes of a command."""

    def __init__(self, leader: int, mark: str) -> None:
        self._leader = leader
        self._mark = mark
        self._before: dict[int, bytes] = {}
        self._next = LOOK_SECONDS

    async def after(self, silent: float) -> str:
        """`look`, now and then: to be called all the time, with the seconds since the last output."""
        if silent < self._next:
            self._next = LOOK_SECONDS if silent < LOOK_SECONDS else self._next
            return ""
        self._next = silent + LOOK_SECONDS
        return await asyncio.to_thread(self.look)

    def look(self) -> str:
        """The name of an editor that has done nothing since the last look, and runs nothing that it could wait for; ""
        for none. Blocking."""
        found = {pid: state for pid in living(self._leader, self._mark) if (state := _idle_editor(pid)) is not None}
        before, self._before = self._before, {pid: time for pid, (_, time) in found.items()}
        return next((name for pid, (name, time) in found.items() if before.get(pid) == time), "")


def _idle_editor(pid: int) -> tuple[str, bytes] | None:
    """(name, processor time so far) of a process that is an editor and sleeps."""
    folder = Path(f"/proc/{pid}")
    try:
        name = (folder / "comm").read_text("utf-8", "replace").strip()
        if not _EDITORS.fullmatch(name):
            return None
        program, *arguments = (folder / "cmdline").read_bytes().split(b"\0")
        is_script = not _EDITORS.fullmatch(os.fsdecode(program).rpartition("/")[2])  # run by a shell or Python
        if is_script or any(map(_SCRIPTED.fullmatch, arguments)):
            return None
        fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        has_children = (folder / "task" / str(pid) / "children").read_bytes().strip()
    except OSError:  # it has ended, or there is no /proc
        return None
    return (name, b" ".join(fields[11:13])) if fields[0] == b"S" and not has_children else None
