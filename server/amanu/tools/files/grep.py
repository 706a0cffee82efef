"""Search the contents of files."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.tools.environment import SessionTool
from amanu.workspace.grep_format import FileMatches, SearchQuery
from amanu.workspace.placed_globs import Include

_NAMED = 5  # of the files left out
_NO_FILE = (
    "Nothing was searched: no file matches the include {include}. It is a glob for the path in the workspace, such as "
    "'*.ts' or 'src/**'. To search in files that git ignores, name them as path."
)


class GrepParams(Params):
    pattern: str = Field(min_length=1, description="Regular expression, matched line by line.")
    path: str | None = Field(default=None, description="File or folder to search in. Default: the workspace.")
    include: str | None = Field(default=None, description="Only files whose path matches this glob, e.g. '*.{ts,tsx}'.")
    ignore_case: bool = False
    fixed: bool = Field(default=False, description="The pattern is literal text.")
    context: int = Field(default=0, ge=0, le=50, description="Lines to show around each match.")
    limit: int | None = Field(
        default=None, ge=1, le=2000, description="Matching lines to show. Default: 100; at most 2000."
    )


class Grep(SessionTool[GrepParams]):
    name = "grep"
    effect = "read"
    description = (
        "Searches file contents, unsaved changes in the editor included. Left out are binary files, node_modules, "
        "files that git ignores, and files with secrets (.env, keys), unless path names one. Shows `path`, then "
        "`line: text` for each match."
    )
    params = GrepParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Search for {arguments.get('pattern', 'text')}"

    async def preview(self, params: GrepParams, call: CallContext) -> Preview:
        folder = self._workspace.resolve(params.path) if params.path else self._workspace.roots[0]
        relative = self._workspace.relative(folder)
        location = f" in {relative}" if params.path else ""
        return Preview(
            title=f"Search for {params.pattern}{location}",
            subject=Subject(self.name, self.effect, relative),
            detail=f"{params.pattern}{location}" + (f" ({params.include})" if params.include else ""),
            reads=frozenset(map(str, [folder] if params.path else self._workspace.roots)),
        )

    async def run(self, params: GrepParams, call: CallContext) -> Outcome:
        if "\n" in params.pattern:
            raise ToolError(
                "The pattern contains a line break, but lines are searched one by one. Search for a single line."
            )
        query = SearchQuery(params.pattern, params.fixed, params.ignore_case, params.context, params.include)
        matches: list[tuple[Path, FileMatches]] = []
        skipped, big, binary, undecoded = list[str](), list[str](), list[str](), list[str]()
        complete, searched = True, query.include is None
        for path in [self._workspace.resolve(params.path)] if params.path else self._workspace.roots:
            call.require_reviewed(path)
            search = self._environment.search
            result, (names, secrets) = await asyncio.gather(search.grep(query, path), search.listing(path))
            complete = complete and result.complete
            include = Include(self._workspace, query.include, path) if query.include else None
            if include is not None:
                secrets = sorted(include.matching(secrets))
                named = self._workspace.relative(path)
                searched = searched or bool(result.files) or await asyncio.to_thread(include.fits, (named, *names))
            root = self._workspace.root_of(path)
            readable = await asyncio.to_thread(self._readable, result.files, path, call)
            matches += [(root, file) for file in readable]
            too_big = await asyncio.to_thread(self._readable, result.big, path, call)
            big += [self._workspace.display_path(root / file.path) for file in too_big]
            left = await asyncio.to_thread(self._readable, result.undecoded, path, call)
            undecoded += [self._workspace.display_path(root / file.path) for file in left]
            if not readable and complete:
                found = await search.binary(names, include, path)
                binary += [self._workspace.display_path(root / name) for name in found]
            secret = await asyncio.to_thread(self._skipped, secrets, path, call)
            skipped += [self._workspace.display_path(root / name) for name in secret]
        total = sum(file.matches for _, file in matches)
        if not searched:
            return Outcome(_NO_FILE.format(include=query.include), "no files")
        if not total and complete:
            notes = _left_out(skipped) + _too_big(big) + _binary(binary) + _undecoded(undecoded)
            return Outcome(f"Nothing matches {params.pattern}.\n{notes}".rstrip(), "no matches")
        limit = params.limit or self._limits.grep_lines
        text = self._show(matches, limit, params.context)
        least = "" if complete else "at least "
        if total > limit or not complete:
            text += (
                f"[{least}{total} matches in {len(matches)} files; {total - min(limit, total)} of them left out. "
                "Narrow the pattern, path or include.]\n"
            )
        text += _left_out(skipped) + _too_big(big) + _undecoded(undecoded)
        if cut := [self._workspace.display_path(root / file.path) for root, file in matches if file.is_cut]:
            text += f"[{_named(cut)}: not searched to the end, which is binary.]\n"
        return Outcome(
            text, f"{least}{total} match{'es' * (total != 1)} in {len(matches)} file{'s' * (len(matches) != 1)}"
        )

    def _readable(self, files: list[FileMatches], searched: Path, call: CallContext) -> list[FileMatches]:
        """The files that the model may read without approval, and the one it named, which was decided on. The others
        are not counted either: counts would reveal, guess by guess, what such a file contains."""
        named = self._workspace.relative(searched)
        allowed = {
            subject.text for subject in call.allowed(Subject(self.name, self.effect, file.path) for file in files)
        }
        return [file for file in files if file.path == named or file.path in allowed]

    def _skipped(self, secrets: Sequence[str], searched: Path, call: CallContext) -> list[str]:
        """Files with secrets that were not searched, whether they match or not."""
        named = self._workspace.relative(searched)
        secret = sorted(name for name in secrets if name != named)
        allowed = {subject.text for subject in call.allowed(Subject(self.name, self.effect, name) for name in secret)}
        return [name for name in secret if name not in allowed]

    def _show(self, matches: list[tuple[Path, FileMatches]], limit: int, context: int) -> str:
        out: list[str] = []
        remaining = limit
        for root, file in matches:
            if remaining <= 0:
                break
            path = self._workspace.display_path(root / file.path)
            out.append(path + (f" ({file.text_of})" if file.text_of else "") + "\n")
            last = 0
            for line in file.lines:
                if line.matches:
                    if remaining <= 0:
                        break
                    remaining -= 1
                if context and last and line.number > last + 1:
                    out.append("--\n")
                out.append(f"{line.number}{':' if line.matches else '-'} {line.text}\n")
                last = line.number
        return "".join(out)


def _named(paths: list[str]) -> str:
    return ", ".join(paths[:_NAMED]) + (", …" if len(paths) > _NAMED else "")


def _files(paths: list[str], kind: str) -> str:
    return f"1 {kind.format('')}" if len(paths) == 1 else f"{len(paths)} {kind.format('s')}"


def _left_out(skipped: list[str]) -> str:
    if not skipped:
        return ""
    return (
        f"[{_files(skipped, 'file{}')} with secrets not searched: {_named(skipped)}. "
        "To search one, name it as path; the user is asked.]\n"
    )


def _too_big(paths: list[str]) -> str:
    if not paths:
        return ""
    kind = _files(paths, "file{}")
    return f"[{kind} above 20 MB left out, which may match: {_named(paths)}. To search one, name it as path.]\n"


def _undecoded(paths: list[str]) -> str:
    if not paths:
        return ""
    kind = _files(paths, "file{}")
    return f"[{kind} in older encodings searched only for ASCII: {_named(paths)}. Narrow the path or include.]\n"


def _binary(paths: list[str]) -> str:
    return f"[{_files(paths, 'binary file{}')} not searched: {_named(paths)}.]\n" if paths else ""
