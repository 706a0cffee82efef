"""List what is in a folder."""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.tools.environment import SessionTool
from amanu.workspace.disk import failure_message
from amanu.workspace.globs import glob_pattern


class ListDirectoryParams(Params):
    path: str = "."
    ignore: list[str] = Field(default=[], description="Globs of names to leave out, e.g. ['*.pyc'].")


class ListDirectory(SessionTool[ListDirectoryParams]):
    name = "list_directory"
    effect = "read"
    description = "Lists the folders and the files (with their size) directly in a folder."
    params = ListDirectoryParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return self.path_title("List", arguments)

    async def preview(self, params: ListDirectoryParams, call: CallContext) -> Preview:
        path = self._workspace.resolve(params.path)
        relative = self._workspace.relative(path)
        return Preview(
            title=f"List {relative}",
            subject=Subject(self.name, self.effect, relative),
            detail=str(path),
            reads=frozenset([str(path)]),
        )

    async def run(self, params: ListDirectoryParams, call: CallContext) -> Outcome:
        path = self._workspace.resolve(params.path)
        call.require_reviewed(path)
        unsaved = [file for file in await self._workspace.unsaved() if path in file.path.parents]
        entries = await asyncio.to_thread(self._entries, path, any(not file.exists for file in unsaved))
        for file in unsaved:
            if not file.exists and not file.from_buffer:  # gone in the draft
                if file.path.parent == path:
                    entries.pop(file.path.name, None)
                continue
            name, deeper = file.path.relative_to(path).parts[0], file.path.parent != path
            folder, line = entries.get(name, (deeper, f"{name}/" if deeper else name))
            new, changed = "not saved yet", "unsaved in the editor"
            if file.draft:
                new, changed = "new in the draft", "changed in the draft"
            if deeper:
                entries.setdefault(name, (folder, f"{line} ({new})"))
            elif not file.exists:
                entries[name] = (folder, f"{name} ({new})")
            else:
                entries[name] = (folder, f"{line.removesuffix(')')}, {changed})")
        globs = [glob.removeprefix("./").rstrip("/") for glob in params.ignore]
        patterns = [
            glob_pattern(glob) for glob in globs if glob not in entries
        ]  # `[id]` is that folder, if it is there
        visible_entries = [
            (not folder, name, line)
            for name, (folder, line) in entries.items()
            if name not in globs and not any(pattern.fullmatch(name) for pattern in patterns)
        ]
        lines = [line for _, _, line in sorted(visible_entries)]
        count = f"{len(lines)} entr{'y' if len(lines) == 1 else 'ies'}"
        if not lines:
            return Outcome("[the folder is empty]" if not entries else "[every entry is left out]", count)
        limit = self._limits.list_entries
        if len(lines) > limit:
            lines[limit:] = [f"[{len(lines) - limit} more entries left out; use glob with a narrower pattern]"]
        return Outcome("\n".join(lines) + "\n", count)

    def _entries(self, path: Path, only_in_editor: bool) -> dict[str, tuple[bool, str]]:
        """Name → (whether it is a folder, line to show). `only_in_editor`: the folder need not be on disk."""
        entries_by_name: dict[str, tuple[bool, str]] = {}
        try:
            with self._workspace.guard.listing(path) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                        entries_by_name[entry.name] = _line(entry)
        except FileNotFoundError:
            if only_in_editor:
                return entries_by_name
            raise ToolError(
                f"The folder {self._workspace.display_path(path)} does not exist. Use glob to find it."
            ) from None
        except NotADirectoryError:
            raise ToolError(f"{self._workspace.display_path(path)} is a file. Use read_file to read it.") from None
        except OSError as error:
            raise ToolError(failure_message("list", path, error)) from None
        return entries_by_name


def _line(entry: "os.DirEntry[str]") -> tuple[bool, str]:
    """(whether it is a folder, the line to show). Raises `OSError`."""
    name = os.fsencode(entry.name).decode("utf-8", "replace")
    if entry.is_symlink():
        return False, f"{name} (link)"
    if entry.is_dir():
        return True, f"{name}/"
    return False, f"{name} ({entry.stat().st_size:,} bytes)" if entry.is_file() else f"{name} (not a file)"
