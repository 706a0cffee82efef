"""Find files by name."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject
from amanu.tools.environment import SessionTool
from amanu.workspace.placed_globs import PlacedGlob, place


class GlobParams(Params):
    pattern: str = Field(
        min_length=1,
        description="Glob relative to path, e.g. 'src/**/*.{ts,tsx}'; without a / it matches names in any folder.",
    )
    path: str | None = Field(default=None, description="Folder to look in. Default: the workspace.")


class Glob(SessionTool[GlobParams]):
    name = "glob"
    effect = "read"
    description = "Finds files by name, at most 500, without node_modules and files that git ignores."
    params = GlobParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Find {arguments.get('pattern', 'files')}"

    async def preview(self, params: GlobParams, call: CallContext) -> Preview:
        globs = await asyncio.to_thread(self._place, params)
        subjects = [
            Subject(self.name, self.effect, path)
            for path in dict.fromkeys(self._workspace.relative(glob.base) for glob in globs)
        ]
        location = f" in {self._workspace.relative(self._workspace.resolve(params.path))}" if params.path else ""
        return Preview(
            title=f"Find {params.pattern}{location}",
            subject=subjects[0],
            detail=f"{params.pattern}{location}",
            reads=frozenset(str(glob.base) for glob in globs),
            extra_subjects=tuple(subjects[1:]),
        )

    async def run(self, params: GlobParams, call: CallContext) -> Outcome:
        found: dict[Path, dict[str, None]] = {}
        listed: dict[Path, Sequence[str]] = {}
        for glob in await asyncio.to_thread(self._place, params):
            call.require_reviewed(glob.base)
            names = await self._environment.search.matching(glob, listed)
            shown = names if glob.written == glob.folder else map(glob.shown, names)
            found.setdefault(glob.root, {}).update(dict.fromkeys(shown))
        total, limit = sum(map(len, found.values())), self._limits.glob_files
        if not total:
            return Outcome(f"No file matches {params.pattern}.", "no files")
        paths = ((root / name) for root, names in found.items() for name in sorted(names))
        text = "\n".join(map(self._workspace.display_path, islice(paths, limit)))
        if total > limit:
            text += f"\n[{total - limit} more files left out; use a narrower pattern or a path]"
        return Outcome(text + "\n", f"{total} file{'s' * (total != 1)}")

    def _place(self, params: GlobParams) -> list[PlacedGlob]:
        folder = self._workspace.resolve(params.path) if params.path else None
        return place(self._workspace, params.pattern, folder)
