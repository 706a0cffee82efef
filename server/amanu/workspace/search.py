"""List and search the files of a workspace: ripgrep where there is one, else our own scan in other processes.

Both see the same files (`ignore.py`), give the same output, and are killed when the call is cancelled. Files that have
unsaved text in an editor are searched in that text, not in their copy on disk.
"""

import asyncio
import contextlib
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from amanu.core.protected_paths import is_secret
from amanu.core.tool import ToolError
from amanu.system.sorting import sorted_texts
from amanu.system.tasks import kill, run_to_completion, start_process
from amanu.workspace.file_list import FileList, file_list
from amanu.workspace.grep_format import (
    NOT_UTF_8,
    FileMatches,
    SearchQuery,
    SearchResult,
    checked,
    name_text,
    parse,
    ripgrep_options,
    scan_input,
)
from amanu.workspace.ignore import MAX_DEPTH, NEVER, find_special_ignore_file, is_ignored, nearest, walk
from amanu.workspace.outer_rules import OuterRules, outer_rules
from amanu.workspace.placed_globs import Include, PlacedGlob
from amanu.workspace.ripgrep import find_ripgrep
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace

TIME_LIMIT = 30.0
"""Seconds for one search; Gemini CLI's limit."""
PATIENCE = 1.0
"""Seconds before it is looked into what may hold ripgrep: hardly any search takes as long."""
_BIGGEST = 20 << 20  # bytes of a file in which lines are found
EVERYTHING = 5.0
"""Seconds that a search may read files of any size, and drop the lines of those that are too big afterwards: checking
each size first takes a fifth longer. Only a search that takes more than this starts over, checking sizes first."""
KEPT = 600.0
"""Seconds for which a list of files that nobody asks for is kept."""
_ENDED = (0, 1, 2)  # exit codes of a ripgrep that looked at everything: found, not found, some files unreadable
_MAX_OUTPUT = 32 << 20  # bytes of output after which a search is stopped
_BLOCK = 1 << 20  # bytes of a list of files that are read at once
_SNIFFED = 1000  # files that are looked into for binary data
_SNIFFING = 0.5  # seconds for that
_TEXT_SUFFIXES = (
    "bash c cc clj cpp cs css dart ex exs go h hpp html java js json jsx kt less lua m md mjs php pl proto py pyi rb "
    "rs rst scala scss sh sql svelte swift tf toml ts tsx vue xml yaml yml zig gitignore"
)
"""Suffixes of files that are hardly ever binary."""
_OLDER = 200
"""Files in older encodings that are searched as the text they are."""
_AT_ONCE = 4  # processes that search unsaved texts
_SCAN = Path(__file__).with_name("grep_worker.py")
_SAME_FILES = (
    *("--no-config", "--hidden", "--no-ignore-dot", "--no-ignore-global"),
    f"--max-depth={MAX_DEPTH}",
    f"--glob=!{{{','.join(sorted(NEVER))}}}",
)


class Search:
    """Searches in one workspace. `folder` is always a resolved path of a folder."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._kept: dict[tuple[Path, tuple[str, ...]], FileList] = {}
        self._forgetting: asyncio.TimerHandle | None = None
        self._special_ignore_file: Path | None = None
        """A `.gitignore` that is no file, and held ripgrep."""

    @property
    def _ripgrep(self) -> str | None:
        return find_ripgrep(self._workspace)  # an editor that attaches later may bring one

    async def files(self, folder: Path) -> Sequence[str]:
        """Paths of all files that count below `folder`, relative to its root, sorted; those that only exist in an
        editor among them. Not to be changed."""
        unsaved = await self._unsaved(folder)
        names = await self._kept_files(folder)
        if names is None:
            names = await self._list(folder) if await asyncio.to_thread(self._on_disk, folder, unsaved) else []
        return await asyncio.to_thread(_with_new, names, unsaved) if unsaved else names

    async def nearest(self, root: Path, most: int) -> Sequence[str]:
        """Some of the files that count in a root, on disk: those in the first `most` entries of its folders, the outer
        before the inner. For callers that cannot wait for all."""
        return await asyncio.to_thread(self._nearest, root, most)

    def _nearest(self, root: Path, most: int) -> Sequence[str]:
        try:
            with self._workspace.guard.listing(root) as handle:
                names = nearest(handle, outer_rules(self._root(root)[0]).rules, most)
        except OSError:
            return ()
        return self._without_private([name_text(os.fsencode(name)) for name in names], root)

    async def matching(self, glob: PlacedGlob, listed: dict[Path, Sequence[str]]) -> Sequence[str]:
        """The files that fit, relative to the glob's root; `listed`: those of folders that were listed for this call.
        A glob that begins with an ignored folder names it, and sees what is in it."""
        if not glob.rest:
            return glob.matching(())
        if glob.start not in listed:
            listed[glob.start] = await self.files(glob.start)
        names = await asyncio.to_thread(glob.matching, listed[glob.start])
        below = f"{glob.folder}/"
        if names or glob.base == glob.start or any(name.startswith(below) for name in listed[glob.start]):
            return names
        return await asyncio.to_thread(glob.matching, await self.files(glob.base))

    async def listing(self, folder: Path) -> tuple[Sequence[str], Sequence[str]]:
        """`files`, and those of them that hold secrets."""
        kept = await self._kept_listing(folder)
        if kept is None:
            files = await self.files(folder)
            return files, await asyncio.to_thread(lambda: [name for name in files if is_secret(name)])
        unsaved = await self._unsaved(folder)
        secret = {name: text for name, text in unsaved.items() if is_secret(name)}
        return _with_new(kept[0], unsaved), _with_new(kept[1], secret)

    async def _list(self, folder: Path) -> list[str]:
        """Those on disk, sorted. Of a root they are kept from now on."""
        root, start = self._root(folder)
        began, outer = time.time_ns(), outer_rules(root)
        ran = await self._run_ripgrep(
            [*self._ignore_options(root), "--files", "--null", "--no-messages", "./" + start], folder
        )
        if ran is None:
            walked = await asyncio.to_thread(self._walk, folder)
            names = await asyncio.to_thread(sorted_texts, (name_text(os.fsencode(name)) for name in walked))
        else:
            names = await asyncio.to_thread(sorted_texts, _names(ran[1]))
        is_whole = ran is None or (ran[0] in _ENDED and len(ran[1]) < _MAX_OUTPUT)
        if not start and is_whole:
            asyncio.get_running_loop().run_in_executor(None, self._keep, folder, names, began, outer)
        return names

    def _file_list(self, folder: Path) -> FileList:
        root, _ = self._root(folder)
        key = root, tuple(self._workspace.guard.private_below(folder))
        if key not in self._kept:
            self._kept[key] = file_list(*key)
        return self._kept[key]

    def _keep(self, folder: Path, names: Sequence[str], began: int, outer: OuterRules) -> None:
        with contextlib.suppress(OSError), self._workspace.guard.listing(folder) as handle:
            self._file_list(folder).keep(handle, self._workspace.guard.real(folder), names, began, outer)

    def _forget_later(self) -> None:
        """Drop the file lists after `KEPT` seconds without use."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        loop = asyncio.get_running_loop()
        self._forgetting = loop.call_later(KEPT, loop.run_in_executor, None, self._forget_unused)

    def _forget_unused(self) -> None:
        for kept in tuple(self._kept.values()):
            kept.forget_unused(KEPT)

    async def _kept_files(self, folder: Path) -> Sequence[str] | None:
        """None when they have to be listed."""
        self._forget_later()
        return await asyncio.to_thread(self._look, folder)

    def _look(self, folder: Path) -> Sequence[str] | None:
        _, start = self._root(folder)
        try:
            with self._workspace.guard.listing(self._workspace.root_of(folder)) as handle:
                names = self._file_list(folder).paths(handle, start)
        except OSError:
            return None
        return None if names is None else self._without_private(names, folder)

    async def _kept_listing(self, folder: Path) -> tuple[Sequence[str], Sequence[str]] | None:
        self._forget_later()
        return await asyncio.to_thread(self._look_whole, folder)

    def _look_whole(self, folder: Path) -> tuple[Sequence[str], Sequence[str]] | None:
        _, start = self._root(folder)
        try:
            with self._workspace.guard.listing(self._workspace.root_of(folder)) as handle:
                kept = self._file_list(folder).listing(handle, start)
        except OSError:
            return None
        return kept and (self._without_private(kept[0], folder), self._without_private(kept[1], folder))

    async def grep(self, query: SearchQuery, folder: Path, *, limit: int = 10_000) -> SearchResult:
        """Matching lines below `folder`. Raises `ToolError` for an expression that is wrong or takes too long."""
        unsaved = await self._unsaved(folder)
        include = Include(self._workspace, query.include, folder) if query.include else None
        slots = asyncio.Semaphore(_AT_ONCE)
        counting = unsaved if include is None else include.matching([*unsaved])
        texts = [
            asyncio.create_task(self._search_text(query, name, text, slots))
            for name, text in unsaved.items()
            if name in counting
        ]
        try:
            on_disk = SearchResult([], complete=True)
            if await asyncio.to_thread(self._on_disk, folder, unsaved):
                on_disk = await self._ripgrep_disk(query, include, folder) or await self._scan_disk(
                    query, include, folder
                )
            older, undecoded = await self._search_older(query, include, folder, on_disk, slots)
            in_memory = await asyncio.gather(*texts)
        finally:
            for task in texts:
                task.cancel()
            await asyncio.gather(*texts, return_exceptions=True)
        files = [*(file for file in on_disk.files if file.path not in older), *older.values()]
        files = [file for file in files if file.lines and file.path not in unsaved]
        if include is not None:
            counting = include.matching([file.path for file in files])
            files = [file for file in files if file.path in counting]
        files += [file for file in in_memory if file.lines]
        big = [file for file in on_disk.big if file.path not in unsaved]
        if include is not None and big:
            counting = include.matching([file.path for file in big])
            big = [file for file in big if file.path in counting]
        return SearchResult(sorted(files, key=lambda file: file.path), on_disk.complete, big, undecoded)

    async def _search_older(
        self,
        query: SearchQuery,
        include: Include | None,
        folder: Path,
        found: SearchResult,
        slots: asyncio.Semaphore,
    ) -> tuple[Mapping[str, FileMatches], list[FileMatches]]:
        """(What is found in files that are not UTF-8, by path, files that are too many for that): ripgrep does not know
        their encodings."""
        names = {file.path for file in found.files if not file.is_utf_8}
        if not query.pattern.isascii():
            args, where = self._ripgrep_target(include, folder)
            ran = await self._run_ripgrep(
                [*args, "--files-with-matches", "--null", "--no-messages", f"--regexp={NOT_UTF_8}", *where], folder
            )
            out = ran[1] if ran is not None else (await self._scan(query, include, folder, not_utf_8=True))[0]
            names |= {*_names(out)}
        names = names if include is None else set(include.matching([*names]))
        root, reading = self._workspace.root_of(folder), asyncio.Semaphore(_AT_ONCE)

        async def search(name: str) -> FileMatches | None:
            async with reading:  # all of them at once may fill the memory
                try:
                    text = await self._workspace.read(root / name)
                except ToolError:  # binary, too big, gone
                    return None
                return None if text.encoding == "utf-8" else await self._search_text(query, name, text, slots)

        ordered = sorted(names)
        matches = await asyncio.gather(*map(search, ordered[:_OLDER]))
        return {each.path: each for each in matches if each is not None}, [*map(FileMatches, ordered[_OLDER:])]

    def _ripgrep_target(self, include: Include | None, folder: Path) -> tuple[list[str], tuple[str, ...]]:
        """(The options that say which files count, where they are.)"""
        root, start = self._root(folder)
        args = [*self._ignore_options(root)]
        if include is not None and (names := include.name_globs()):  # --glob would show ignored files; a type does not
            args += [*(f"--type-add=amanu:{name}" for name in names), "--type=amanu"]
        return args, ("--", "./" + start)

    async def _ripgrep_disk(self, query: SearchQuery, include: Include | None, folder: Path) -> SearchResult | None:
        """None where ripgrep cannot be used."""
        args, where = self._ripgrep_target(include, folder)
        args += ripgrep_options(query)
        small, sized = f"--max-filesize={_BIGGEST}", False
        try:
            async with asyncio.timeout(EVERYTHING):
                ran = await self._run_ripgrep([*args, *where], folder)
            sized = ran is not None and len(ran[1]) >= _MAX_OUTPUT  # maybe of big files alone, which do not count
        except TimeoutError:
            ran, sized = None, True
        names: Sequence[str] = ()
        if sized:
            ran = await self._run_ripgrep([*args, small, *where], folder)
            names = await self.files(folder)
        return None if ran is None else await asyncio.to_thread(self._parse_disk, checked(*ran), names, folder)

    def _parse_disk(self, out: bytes, names: Sequence[str], folder: Path) -> SearchResult:
        """The result without files that are too big, unless one was named. `names`: files of which big ones were not
        searched."""
        files = parse(out)
        index, relative = self._workspace.guard.locate(folder)
        with self._workspace.guard.listing(self._workspace.roots[index]) as root:
            named = relative.as_posix()
            big = {name for name in (*names, *(file.path for file in files)) if name != named and _is_big(name, root)}
        small = [file for file in files if file.path not in big]
        return SearchResult(small, len(out) < _MAX_OUTPUT, [FileMatches(name) for name in sorted(big)])

    async def binary(self, names: Sequence[str], include: Include | None, folder: Path) -> Sequence[str]:
        """The files among those names, relative to the folder's root, that a search passes over as binary; of at most
        `_SNIFFED` files whose names do not say that they are text."""
        text_suffixes = frozenset(_TEXT_SUFFIXES.split())
        unknown = [name for name in names if name.rpartition(".")[2] not in text_suffixes]
        if include is not None and unknown:
            unknown = sorted(await asyncio.to_thread(include.matching, unknown))
        return await asyncio.to_thread(self._sniff, unknown[:_SNIFFED], self._workspace.root_of(folder))

    def _sniff(self, names: Sequence[str], root: Path) -> list[str]:
        binary: list[str] = []
        ends = time.monotonic() + _SNIFFING
        for name in names:
            if time.monotonic() > ends:
                break
            with contextlib.suppress(OSError, ToolError), self._workspace.guard.file(root / name) as file:
                data = os.read(file, 1 << 18)
                if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
                    binary.append(name)
        return binary

    async def _run_ripgrep(self, args: Sequence[str], folder: Path) -> tuple[int, bytes, bytes] | None:
        """What `_run` gives; None where there is no ripgrep, or a pipe in the place of a `.gitignore` holds it: it
        would wait there for ever, while our own scan takes nothing from pipes."""
        ripgrep = self._ripgrep
        root, _ = self._root(folder)
        if ripgrep is None or await asyncio.to_thread(self._is_still_special, root):
            return None
        running = asyncio.create_task(_run([ripgrep, *args], root))
        ended = threading.Event()
        try:
            finished, _ = await asyncio.wait([running], timeout=PATIENCE)
            if not finished and await self._kept_files(folder) is None:  # beside what is kept, all rules are plain
                looking = asyncio.create_task(asyncio.to_thread(self._find_special_file, folder, ended.is_set))
                await asyncio.wait([running, looking], return_when=asyncio.FIRST_COMPLETED)
                ended.set()
                self._special_ignore_file = await looking
                if self._special_ignore_file is not None and not running.done():
                    return None
            return await running
        finally:
            ended.set()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def _find_special_file(self, folder: Path, enough: Callable[[], bool]) -> Path | None:
        index, relative = self._workspace.guard.locate(folder)
        root = self._workspace.roots[index]
        try:
            with self._workspace.guard.listing(root) as handle:
                ignore_file = find_special_ignore_file(handle, relative.parts, enough)
        except OSError:
            return None
        return None if ignore_file is None else root / ignore_file

    def _is_still_special(self, root: Path) -> bool:
        if not outer_rules(root).is_plain:
            return True
        if self._special_ignore_file is not None:
            with contextlib.suppress(OSError):
                return not stat.S_ISREG(self._special_ignore_file.stat().st_mode)
        return False

    async def _scan_disk(self, query: SearchQuery, include: Include | None, folder: Path) -> SearchResult:
        out, names = await self._scan(query, include, folder)
        if len(names) == 1:
            return SearchResult(await asyncio.to_thread(parse, out), len(out) < _MAX_OUTPUT)
        return await asyncio.to_thread(self._parse_disk, out, names, folder)

    async def _scan(
        self, query: SearchQuery, include: Include | None, folder: Path, *, not_utf_8: bool = False
    ) -> tuple[bytes, Sequence[str]]:
        """(The output of our own scan, the files that it looked at.)"""
        root, _ = self._root(folder)
        names = await asyncio.to_thread(self._walk, folder)
        names = sorted(names if include is None else await asyncio.to_thread(include.matching, names))
        size = max(500, -(-len(names) // min(4, os.cpu_count() or 1)))
        parts = [
            b"".join(os.fsencode(name) + b"\0" for name in names[at : at + size]) for at in range(0, len(names), size)
        ]
        inputs = [scan_input(query, part, not_utf_8=not_utf_8) for part in parts]
        runs = [asyncio.create_task(_run(_scan_args(), root, chunk)) for chunk in inputs]
        try:
            results = await asyncio.gather(*runs)
        finally:  # `gather` ends with the first that fails or is cancelled
            for run in runs:
                run.cancel()
            await asyncio.gather(*runs, return_exceptions=True)
        return b"".join(checked(*result) for result in results), names

    async def _search_text(
        self, query: SearchQuery, name: str, text: FileText, slots: asyncio.Semaphore
    ) -> FileMatches:
        root, _ = self._root(text.path)
        async with slots:
            data = await asyncio.to_thread(text.text.encode, "utf-8", "replace")
            if self._ripgrep is None:
                result = await _run(_scan_args(), root, scan_input(query, data, text=True))
            else:
                result = await _run([self._ripgrep, "--no-config", *ripgrep_options(query), "--", "-"], root, data)
            matches = await asyncio.to_thread(parse, checked(*result))
        text_of = "draft" if text.draft else "unsaved in the editor" if text.unsaved else ""
        return FileMatches(name, matches[0].lines if matches else [], text_of)

    async def _unsaved(self, folder: Path) -> dict[str, FileText]:
        """The files that count below `folder` (or that file), where an editor's text is not the one on disk, by
        relative path."""
        unsaved = await self._workspace.unsaved()
        return await asyncio.to_thread(self._searchable, folder, unsaved)

    def _searchable(self, folder: Path, unsaved: Sequence[FileText]) -> dict[str, FileText]:
        texts: dict[str, FileText] = {}
        root_at, _ = self._workspace.guard.locate(folder)
        for text in unsaved:
            index, relative = self._workspace.guard.locate(text.path)
            below = text.path == folder or folder in text.path.parents
            if index == root_at and below and not self._hidden(text.path, folder):
                texts[relative.as_posix()] = text
        return texts

    def _on_disk(self, folder: Path, unsaved: Collection[str]) -> bool:
        """Whether there is anything to search on disk. `ToolError` when there is nothing in an editor either."""
        try:
            with self._workspace.guard.folder(folder.parent if self._root(folder)[1] else folder) as handle:
                os.stat(folder.name if self._root(folder)[1] else ".", dir_fd=handle, follow_symlinks=False)
            return True
        except FileNotFoundError:
            if unsaved:
                return False
            hint = " A glob is given as include or pattern, its folder as path." if "*" in str(folder) else ""
            raise ToolError(f"The folder {self._workspace.display_path(folder)} does not exist.{hint}") from None
        except OSError as error:
            raise ToolError(f"Could not search {self._workspace.display_path(folder)}: {error.strerror}.") from None

    def _hidden(self, path: Path, start: Path) -> bool:
        """Whether a search that starts there passes the file over. Who names what is ignored wants to see it."""
        if path == start:
            return False
        index, relative = self._workspace.guard.locate(path)
        _, named = self._workspace.guard.locate(start)
        outer = outer_rules(self._workspace.guard.real(self._workspace.roots[index])).rules
        with self._workspace.guard.listing(self._workspace.roots[index]) as root:
            if not is_ignored(root, relative.as_posix(), outer):
                return False
            if not (named.parts and is_ignored(root, named.as_posix(), outer, is_folder=True)):
                return True
        try:
            with self._workspace.guard.listing(start) as folder:
                return is_ignored(folder, path.relative_to(start).as_posix())
        except OSError:
            return False  # a folder that is only in the editor so far

    def _root(self, folder: Path) -> tuple[Path, str]:
        if self._workspace.guard.is_plan(folder):
            raise ToolError("The plan is in no folder that can be searched. Read it with read_file.")
        if self._workspace.guard.is_private(folder):
            raise ToolError("The workspace is a folder of Amanu itself, where no tool searches.")
        index, relative = self._workspace.guard.locate(folder)
        start = relative.as_posix() if relative.parts else ""
        return self._workspace.guard.real(self._workspace.roots[index]), start

    def _walk(self, folder: Path) -> Sequence[str]:
        index, relative = self._workspace.guard.locate(folder)
        try:
            with self._workspace.guard.listing(self._workspace.roots[index]) as root:
                outer = outer_rules(self._root(folder)[0]).rules
                return self._without_private(list(walk(root, relative.parts, outer)), folder)
        except FileNotFoundError:
            raise ToolError(f"The folder {self._workspace.display_path(folder)} does not exist.") from None
        except OSError as error:
            raise ToolError(f"Could not list {self._workspace.display_path(folder)}: {error.strerror}.") from None

    def _without_private(self, names: Sequence[str], folder: Path) -> Sequence[str]:
        """Without what is in Amanu's own folders."""
        private = tuple(f"{path}/" for path in self._workspace.guard.private_below(folder))
        return [name for name in names if not name.casefold().startswith(private)] if private else names

    def _ignore_options(self, root: Path) -> Sequence[str]:
        """Rules count as git has them in a repository. Else those above the root are not the workspace's; ripgrep is
        told so only where there are any, because then it also misses those between the root and the folder that is
        searched, but for the root's own."""
        private = self._workspace.guard.private_below(root)
        same = (*_SAME_FILES, *(part for name in private for part in ("--iglob", f"!/{_escaped(name)}")))
        outer = outer_rules(root)
        if outer.in_repository:
            return same if outer.excludes is None else (*same, "--ignore-file", str(outer.excludes))
        same = (*same, "--no-require-git")
        if not any((parent / ".gitignore").exists() for parent in root.parents):
            return same
        ignore_options = ("--ignore-file", ".gitignore") if (root / ".gitignore").exists() else ()
        return (*same, "--no-ignore-parent", *ignore_options)


def _names(out: bytes) -> Iterator[str]:
    """The paths in a list of ripgrep's, bit by bit so that other threads may run."""
    start = 0
    while start < len(out):
        end = out.find(b"\0", start + _BLOCK) + 1 or len(out)
        yield from (name.removeprefix("./") for name in name_text(out[start:end]).split("\0")[:-1])
        start = end


def _escaped(path: str) -> str:
    """A path as a glob that means only it."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", path)


def _with_new(names: Sequence[str], unsaved: Mapping[str, FileText]) -> Sequence[str]:
    """`names` and the files that exist only in an editor or a draft, without those that a draft deletes, in path
    order."""
    listed = set(names)
    new = [name for name, text in unsaved.items() if not text.exists and text.from_buffer and name not in listed]
    gone = {name for name, text in unsaved.items() if not text.exists and not text.from_buffer and name in listed}
    kept = [name for name in names if name not in gone] if gone else names
    return sorted_texts([*kept, *new]) if new else kept


def _is_big(path: str, root: int) -> bool:
    try:
        return os.stat(path, dir_fd=root, follow_symlinks=False).st_size > _BIGGEST
    except OSError:
        return False  # gone meanwhile, or a name that is no text


def _scan_args() -> list[str]:
    return [sys.executable, "-I", "-S", str(_SCAN)]


async def _run(args: Sequence[str], cwd: Path, data: bytes | None = None) -> tuple[int, bytes, bytes]:
    """(exit code, output up to `_MAX_OUTPUT`, errors). The process is gone when this returns or raises. It has no home:
    there is nothing of the user's it should look up there."""
    pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await start_process(
        kill,
        *args,
        cwd=cwd,
        env={"LC_ALL": "C.UTF-8", "HOME": os.devnull},
        stdin=none if data is None else pipe,
        stdout=pipe,
        stderr=pipe,
    )
    assert process.stdout is not None and process.stderr is not None
    errors = asyncio.create_task(process.stderr.read(1 << 16))
    feeding = asyncio.create_task(_feed(process.stdin, data)) if process.stdin and data is not None else None
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(TIME_LIMIT):
            while size < _MAX_OUTPUT and (part := await process.stdout.read(1 << 18)):
                parts.append(part)
                size += len(part)
            if size >= _MAX_OUTPUT:
                process.kill()
                return 0, b"".join(parts), b""
            return await process.wait(), b"".join(parts), await errors
    except TimeoutError:
        raise ToolError(
            f"The search took longer than {TIME_LIMIT:.0f} s and was stopped. Use a simpler pattern or folder."
        ) from None
    finally:
        for task in (errors, feeding):
            if task is not None:
                task.cancel()
        await run_to_completion(kill(process))


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        stdin.write(data)
        await stdin.drain()
        stdin.close()
