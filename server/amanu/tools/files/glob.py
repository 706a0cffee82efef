"""Find files by name."""

import asyncio
import re

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject
from amanu.tools.environment import SessionTool
from amanu.workspace.globs import glob_pattern


class GlobParams(Params):
    pattern: str = Field(
        min_length=1,
        description="Glob such as 'src/**/*.{ts,tsx}', relative to path. Without a / it fits names anywhere: '*.py'.",
    )
    path: str | None = Field(default=None, description="Folder to look in. Default: the whole workspace.")


class Glob(SessionTool[GlobParams]):
    name = "glob"
    effect = "read"
    description = (
        "Finds files by name, in path order; files ignored by git and node_modules are left out. At most 500 paths."
    )
    params = GlobParams

    async def preview(self, params: GlobParams, call: CallContext) -> Preview:
        folder = self._workspace.resolve(params.path) if params.path else self._workspace.roots[0]
        shown = self._workspace.relative(folder)
        where = f" in {shown}" if params.path else ""
        return Preview(
            title=f"Find {params.pattern}{where}",
            subject=Subject(self.name, self.effect, shown),
            detail=f"{params.pattern}{where}",
            reads=frozenset(map(str, [folder] if params.path else self._workspace.roots)),
        )

    async def run(self, params: GlobParams, call: CallContext) -> Outcome:
        folders = [self._workspace.resolve(params.path)] if params.path else list(self._workspace.roots)
        pattern = glob_pattern(params.pattern)
        found: list[str] = []
        for folder in folders:
            call.hold_to(folder)
            names = await self._environment.search.files(folder)
            at, relative = self._workspace.guard.locate(folder)
            prefix = "" if not relative.parts else relative.as_posix() + "/"
            fits = await asyncio.to_thread(_fitting, names, pattern, len(prefix))
            found += [self._workspace.shown(self._workspace.roots[at] / name) for name in fits]
        if not found:
            return Outcome(f"No file fits {params.pattern}.", "no files")
        limit = self._limits.glob_files
        text = "\n".join(found[:limit])
        if len(found) > limit:
            text += f"\n[{len(found) - limit} more files left out; use a narrower pattern or a path]"
        return Outcome(text + "\n", f"{len(found)} file{'s' * (len(found) != 1)}")


def _fitting(names: list[str], pattern: re.Pattern[str], skip: int) -> list[str]:
    return [name for name in names if pattern.fullmatch(name, skip)]
