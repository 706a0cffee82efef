"""Read several files at once."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.text.notebook import is_notebook, read_notebook
from amanu.tools.environment import SessionTool
from amanu.tools.files.read_file import cut_long_lines, read_notes
from amanu.workspace.placed_globs import place
from amanu.workspace.text_file import split_lines


class ReadManyFilesParams(Params):
    paths: list[str] = Field(
        min_length=1,
        description="Paths or globs, e.g. ['README.md', 'src/**/*.{ts,tsx}'].",
    )


class ReadManyFiles(SessionTool[ReadManyFilesParams]):
    name = "read_many_files"
    effect = "read"
    description = (
        "Reads several text files at once, at most 100 files and 200,000 characters. Globs do not match files that "
        "git ignores."
    )
    params = ReadManyFilesParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return "Read files"

    async def preview(self, params: ReadManyFilesParams, call: CallContext) -> Preview:
        names = (await self._expand(params.paths))[: self._limits.many_files]
        paths = [self._workspace.resolve(name) for name in names]
        subjects = [Subject(self.name, self.effect, self._workspace.relative(path)) for path in paths]
        return Preview(
            title=f"Read {subjects[0].text}" if len(names) == 1 else f"Read {len(names)} files",
            subject=subjects[0],
            detail="\n".join(names),
            reads=frozenset(map(str, paths)),
            extra_subjects=tuple(subjects[1:]),
        )

    async def run(self, params: ReadManyFilesParams, call: CallContext) -> Outcome:
        names = await self._expand(params.paths)
        remaining = self._limits.many_characters
        parts: list[str] = []
        skipped: list[str] = []
        read = 0
        for index, name in enumerate(names):
            if index >= self._limits.many_files or remaining <= 0:
                skipped += names[index:]
                break
            try:
                path = self._workspace.resolve(name)
                call.require_reviewed(path)
                file = await self._workspace.read(path)
            except ToolError as error:
                parts.append(f"--- {name} ---\n[not read: {error}]\n")
                continue
            self._workspace.shown_files.show(file, call.call_id)
            notebook = await asyncio.to_thread(read_notebook, file.text) if is_notebook(path) else None
            if notebook is not None:
                text = f"[notebook; read_file shows its pictures]\n{notebook.text}"
            else:
                _, text = cut_long_lines(split_lines(file.text), self._limits.line_characters)
            if len(text) > remaining:
                text = text[:remaining] + f"\n[cut here; use read_file {name} for the rest]\n"
            remaining -= len(text)
            notes = "".join(f"[{note}]\n" for note in read_notes(file))
            parts.append(f"--- {name} ---\n{notes}{text}" + ("" if text.endswith("\n") or not text else "\n"))
            read += 1
        if skipped:
            named = ", ".join(skipped[:20]) + (", …" if len(skipped) > 20 else "")
            parts.append(f"[{len(skipped)} files left out: {named}. Read them with another call.]\n")
        user = f"{read} file{'s' * (read != 1)}" + (f", {len(skipped)} left out" if skipped else "")
        return Outcome("".join(parts), user)

    async def _expand(self, patterns: list[str]) -> list[str]:
        names: dict[str, None] = {}
        listed: dict[Path, Sequence[str]] = {}
        for pattern_or_name in patterns:
            if not any(character in pattern_or_name for character in "*?[{") or self._is_file(pattern_or_name):
                names[pattern_or_name] = None
                continue
            for glob in await asyncio.to_thread(place, self._workspace, pattern_or_name):
                matches = await self._environment.search.matching(glob, listed)
                names |= {self._workspace.display_path(glob.root / glob.shown(name)): None for name in matches}
        if not names:
            raise ToolError(f"No file matches {', '.join(patterns)}. Use glob or list_directory to find files.")
        return list(names)

    def _is_file(self, name: str) -> bool:
        try:
            return self._workspace.guard.real(self._workspace.resolve(name)).is_file()
        except ToolError:
            return False
