"""Find files by name."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject
from amanu.tools.environment import SessionTool
from amanu.workspace.globs import glob_pattern


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
        folder = self._workspace.resolve(params.path) if params.path else self._workspace.roots[0]
        relative = self._workspace.relative(folder)
        location = f" in {relative}" if params.path else ""
        return Preview(
            title=f"Find {params.pattern}{location}",
            subject=Subject(self.name, self.effect, relative),
            detail=f"{params.pattern}{location}",
            reads=frozenset(map(str, [folder] if params.path else self._workspace.roots)),
        )

    async def run(self, params: GlobParams, call: CallContext) -> Outcome:
        folders = [self._workspace.resolve(params.path)] if params.path else list(self._workspace.roots)
        pattern = glob_pattern(params.pattern)
        limit = self._limits.glob_files
        paths: list[str] = []
        total = 0
        for folder in folders:
            call.require_reviewed(folder)
            names = await self._environment.search.files(folder)
            root_index, relative = self._workspace.guard.locate(folder)
            prefix = "" if not relative.parts else relative.as_posix() + "/"
            matches = await asyncio.to_thread(_matching, names, pattern, len(prefix))
            total += len(matches)
            root = self._workspace.roots[root_index]
            paths += [self._workspace.display_path(root / name) for name in matches[: limit - len(paths)]]
        if not paths:
            return Outcome(f"No file matches {params.pattern}.", "no files")
        text = "\n".join(paths)
        if total > limit:
            text += f"\n[{total - limit} more files left out; use a narrower pattern or a path]"
        return Outcome(text + "\n", f"{total} file{'s' * (total != 1)}")


def _matching(names: Sequence[str], pattern: re.Pattern[str], skip: int) -> list[str]:
    return [name for name in names if pattern.fullmatch(name, skip)]
