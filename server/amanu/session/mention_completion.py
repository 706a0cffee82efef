"""Completes the mention at the end of what is typed: files, folders, symbols, and the words there are.

A `#` begins one as well as an `@` while it is typed, as in other assistants; what goes into the prompt has the `@`.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from amanu.context.editor import EditorContext
from amanu.context.mentions import SYMBOL, WORDS, Word
from amanu.core.tool import ToolError
from amanu.session.mention_lookup import definition_pattern
from amanu.session.path_index import PathIndex
from amanu.text.display import one_line
from amanu.workspace.editor_queries import ask
from amanu.workspace.git.changed import changed_files
from amanu.workspace.grep_format import SearchQuery
from amanu.workspace.search import Search
from amanu.workspace.workspace import Workspace
from amanu_protocol.requests import EditorSymbolsParams, MentionCompleteResult, MentionItem

MAX_ITEMS = 20
MAX_QUERY = 200
"""Characters that are compared."""
MAX_FILES = 500_000
WAIT = 0.01
"""Seconds that a key waits for the current list of files; then it is answered from the previous list."""
FIRST_WAIT = 0.15
"""Seconds that a key waits for the first list; then it is answered from the files nearest to the roots."""
MAX_NEAREST = 4_000
"""Entries of folders that are looked at for those."""
REST = 3
"""After an update of the list, the next one waits for this many times as long as the update took."""
KEPT = 600.0
"""Seconds after the last use until the list is dropped."""
SYMBOL_SECONDS = 2.0
"""How long an editor may take to name symbols."""
RESOURCE_SECONDS = 5.0
"""How long an MCP server may take to name resources."""

MAX_USED = 50
"""Files used by the session that come before others; each is looked for on disk at each key."""
MAX_CHANGED = 20
"""Files that git does not have like that, behind those."""
MAX_RECENT = 8
"""Files used lately that are offered before anything is typed; they leave room for the rest."""

_TYPED = re.compile(r"(?<![0-9A-Za-z_\u00aa-\u052f@#\\])[@#](?:\"([^\"\n]*)|([^\s@#\"]*))$")
_SPECIAL = re.compile(r"[\s\"'`,;:!?()]")
_DETAILS: dict[Word, str] = {
    "problems": "errors and warnings in the workspace",
    "diff": "uncommitted changes",
    "terminal": "output in the terminal",
}


Resources = Callable[[str], Awaitable[Sequence[MentionItem]]]


async def no_resources(server: str) -> Sequence[MentionItem]:
    """There are no servers."""
    return []


class MentionCompletion:
    """Of one workspace. `resources` returns those of the MCP server of that name, or, for "", the servers that have
    some."""

    def __init__(self, workspace: Workspace, resources: Resources = no_resources) -> None:
        self._resources = resources
        self._workspace = workspace
        self._search = Search(workspace)
        self._lists: Sequence[Sequence[str]] = ()
        self._changed: Sequence[str] = ()
        """Files that git has otherwise, the last modified first."""
        self._index: PathIndex | None = None
        self._nearest: PathIndex | None = None
        """The index of some files while there is none of all."""
        self._updating: asyncio.Task[None] | None = None
        self._next_update = 0.0
        self._forgetting: asyncio.TimerHandle | None = None

    async def complete(
        self, text: str, *, terminal: bool = False, editor: EditorContext | None = None, used: Sequence[str] = ()
    ) -> MentionCompleteResult:
        """What fits the end of `text`, best first. `terminal`: the client can send `@terminal`. `editor` says which
        files are open or were looked at; `used` are those the session changed or read, the latest first."""
        typed = _TYPED.search(text)
        if typed is None:
            return MentionCompleteResult(typed="", items=[])
        query, incomplete = (typed[1] or typed[2] or "")[:MAX_QUERY], False
        if query.startswith(SYMBOL):
            items = await self._symbols(query.removeprefix(SYMBOL))
        elif ":" in query and (found := await self._of_server(query)):
            items = found
        else:
            words = [] if typed[1] is not None else await self._words(query, terminal=terminal)
            index = await self._current_index()
            recent = await asyncio.to_thread(self._recent, editor, used)
            incomplete = index is None
            paths = await asyncio.to_thread((index or await self._nearest_index()).best, query, recent)
            files = [_file(path) for path in paths]
            before = 0 if query else min(len(recent), MAX_RECENT)
            items = [*files[:before], *words, *files[before:]]
        return MentionCompleteResult(typed=typed[0], items=items[:MAX_ITEMS], incomplete=incomplete)

    async def _words(self, query: str, *, terminal: bool) -> list[MentionItem]:
        """What is mentioned by a word, and the servers that have resources."""
        words: list[Word] = [word for word in WORDS if terminal or word != "terminal"]
        items = [
            MentionItem(text=f"@{word}", detail=_DETAILS[word], kind=word) for word in words if word.startswith(query)
        ]
        if SYMBOL.startswith(query):
            items.append(MentionItem(text=f"@{SYMBOL}", detail="function, class or variable", kind="symbol"))
        return items + [item for item in await self._resources("") if item.text.startswith(f"@{query}")]

    def _recent(self, editor: EditorContext | None, used: Sequence[str]) -> list[str]:
        """The files that the user looked at, the session used, an editor has open, or git has otherwise, that are in
        the workspace: also those that the ignore rules leave out. Blocking."""
        context = editor or EditorContext()
        names: dict[str, None] = {}
        for path in dict.fromkeys((*context.recent_files, *used[:MAX_USED], *context.open_files, *self._changed)):
            with contextlib.suppress(ToolError):
                if Path(path).is_absolute() and (inside := self._workspace.resolve(path)).is_file():
                    names[self._workspace.display_path(inside)] = None
        return list(names)

    async def _of_server(self, query: str) -> list[MentionItem]:
        """The resources of the server that is named before the colon."""
        try:
            async with asyncio.timeout(RESOURCE_SECONDS):
                found = await self._resources(query.partition(":")[0])
        except (ToolError, TimeoutError):
            return []
        return [item for item in found if query.lower() in item.text.lower()]

    async def _current_index(self) -> PathIndex | None:
        """The index of the files and the folders they are in; None while they are read for the first time."""
        loop = asyncio.get_running_loop()
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = loop.call_later(KEPT, self._forget)
        if self._updating is None and (self._index is None or time.monotonic() >= self._next_update):
            self._updating = asyncio.create_task(self._update())
        updating = self._updating
        if updating is not None:
            await asyncio.wait([updating], timeout=FIRST_WAIT if self._index is None else WAIT)
            if updating.done():
                updating.result()
        return self._index

    async def _nearest_index(self) -> PathIndex:
        if self._nearest is None:
            lists = [await self._search.nearest(root, MAX_NEAREST) for root in self._workspace.roots]
            self._nearest = self._indexed(lists)
        return self._nearest

    def _forget(self) -> None:
        self._lists, self._index, self._changed = (), None, ()

    async def _update(self) -> None:
        began = time.monotonic()
        try:
            lists: list[Sequence[str]] = []
            for root in self._workspace.roots:
                try:
                    lists.append(await self._search.files(root))
                except ToolError:
                    lists.append(())
            self._changed = await asyncio.to_thread(self._changed_in, lists)
            if self._index is None or not await asyncio.to_thread(_are_same, lists, self._lists):
                index = await asyncio.to_thread(self._indexed, lists)
                if not index.is_prepared:
                    preparing = asyncio.get_running_loop().run_in_executor(None, index.prepare)
                    if self._index is not None:  # keys are answered from that one meanwhile
                        await preparing
                self._index, self._lists, self._nearest = index, lists, None
        finally:
            self._next_update = time.monotonic() + REST * (time.monotonic() - began)
            self._updating = None

    def _changed_in(self, lists: Sequence[Sequence[str]]) -> list[str]:
        return [
            f"{root}/{name}"
            for root, names in zip(self._workspace.roots, lists, strict=True)
            for name in changed_files(root, names, MAX_CHANGED)
        ]

    def _indexed(self, lists: Sequence[Sequence[str]]) -> PathIndex:
        roots = self._workspace.roots
        names, folders = list[str](), set[str]()
        for root, listed in zip(roots, lists, strict=True):
            files = listed[:MAX_FILES]
            if len(roots) == 1:
                names, folders = [*files], folders_of(files)
            else:
                names += [f"{root}/{name}" for name in files]
                folders |= {f"{root}/{folder}" for folder in folders_of(files)} | {str(root)}
        shown_roots = [str(root) for root in roots] if len(roots) > 1 else []
        return PathIndex(chain(names, (f"{folder}/" for folder in folders)), shown_roots)

    async def _symbols(self, query: str) -> list[MentionItem]:
        if not query:
            return []
        try:
            async with asyncio.timeout(SYMBOL_SECONDS):
                answer = await ask(
                    self._workspace.overlay,
                    "symbols",
                    self._workspace.roots,
                    lambda language: language.symbols(EditorSymbolsParams(query=query)),
                )
            symbols = [(symbol.name, symbol.kind) for symbol in answer.symbols]
        except (ToolError, TimeoutError):
            symbols = await self._definitions(query)
        names = [(name, kind) for name, kind in dict(symbols).items() if re.fullmatch(r"[\w$.:#]+", name)]
        return [MentionItem(text=f"@{SYMBOL}{name}", detail=one_line(kind), kind="symbol") for name, kind in names]

    async def _definitions(self, query: str) -> list[tuple[str, str]]:
        """Names that begin with `query`, in lines that look like a definition, and the files they are in."""
        beginning = re.escape(query)
        pattern = definition_pattern(rf"{beginning}\w*")
        line_start = re.compile(pattern)
        definitions: list[tuple[str, str]] = []
        for root in self._workspace.roots:
            try:
                async with asyncio.timeout(SYMBOL_SECONDS):
                    result = await self._search.grep(SearchQuery(pattern), root, limit=100)
            except (ToolError, TimeoutError):
                continue
            for file in result.files:
                starts = [line_start.search(line.text) for line in file.lines if line.matches]
                definitions += [(re.findall(r"\w+", start[0])[-1], file.path) for start in starts if start is not None]
        return definitions


def _are_same(lists: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> bool:
    return all(one is other or one == other for one, other in zip(lists, others, strict=True))


def folders_of(names: Iterable[str]) -> set[str]:
    """In which those are."""
    folders = set[str]()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _file(path: str) -> MentionItem:
    return MentionItem(text=mention(path), kind="folder" if path.endswith("/") else "file")


def mention(path: str) -> str:
    """As it goes into a prompt."""
    return f'@"{path}"' if _SPECIAL.search(path) else f"@{path}"
