"""Completes the mention at the end of what is typed: files, folders, symbols, and the words there are."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import PurePosixPath

from amanu.context.mentions import BEGINS, SYMBOL, WORDS, Word
from amanu.core.tool import ToolError
from amanu.session.mention_lookup import definition_pattern
from amanu.text.display import one_line
from amanu.workspace.editor_queries import ask
from amanu.workspace.search import Search, SearchQuery
from amanu.workspace.workspace import Workspace
from amanu_protocol.requests import EditorSymbolsParams, MentionCompleteResult, MentionItem

MAX_ITEMS = 20
MAX_QUERY = 200
"""Characters that are compared."""
MAX_FILES = 50_000
BELIEVED = 5.0
"""Seconds for which the list of files is used again."""
SYMBOL_SECONDS = 2.0
"""How long an editor may take to name symbols."""
RESOURCE_SECONDS = 5.0
"""How long an MCP server may take to name resources."""

_TYPED = re.compile(BEGINS + r"(?:\"([^\"\n]*)|([^\s@\"]*))$")
_SPECIAL = re.compile(r"[\s\"'`,;:!?()]")
_DETAILS: dict[Word, str] = {
    "problems": "what the editor or the checkers find",
    "diff": "what changed since the last commit",
    "terminal": "what is selected in the terminal",
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
        self._paths: Sequence[str] = ()
        self._listed = -BELIEVED

    async def complete(self, text: str, *, terminal: bool = False) -> MentionCompleteResult:
        """What fits the end of `text`, best first. `terminal`: the client can send `@terminal`."""
        typed = _TYPED.search(text)
        if typed is None:
            return MentionCompleteResult(typed="", items=[])
        query = (typed[1] or typed[2] or "")[:MAX_QUERY]
        if query.startswith(SYMBOL):
            items = await self._symbols(query.removeprefix(SYMBOL))
        elif ":" in query and (found := await self._of_server(query)):
            items = found
        else:
            words: list[Word] = [word for word in WORDS if terminal or word != "terminal"]
            items = [MentionItem(text=f"@{word}", detail=_DETAILS[word]) for word in words if word.startswith(query)]
            if SYMBOL.startswith(query):
                items.append(MentionItem(text=f"@{SYMBOL}", detail="where something is defined"))
            items += [item for item in await self._resources("") if item.text.startswith(f"@{query}")]
            if typed[1] is not None:
                items = []
            paths = await asyncio.to_thread(rank, await self._list(), query)
            items += [MentionItem(text=mention(path)) for path in paths[: MAX_ITEMS - len(items)]]
        return MentionCompleteResult(typed=typed[0], items=items[:MAX_ITEMS])

    async def _of_server(self, query: str) -> list[MentionItem]:
        """The resources of the server that is named before the colon."""
        try:
            async with asyncio.timeout(RESOURCE_SECONDS):
                found = await self._resources(query.partition(":")[0])
        except (ToolError, TimeoutError):
            return []
        return [item for item in found if query.lower() in item.text.lower()]

    async def _list(self) -> Sequence[str]:
        """The files, and the folders they are in."""
        if time.monotonic() - self._listed > BELIEVED:
            shown, roots = self._workspace.display_path, self._workspace.roots
            names: list[str] = []
            folders = {f"{root}/" for root in roots} if len(roots) > 1 else set[str]()
            for root in roots:
                try:
                    files = (await self._search.files(root))[:MAX_FILES]
                except ToolError:
                    continue
                names += [shown(root / name) for name in files]
                parents = {parent for name in files for parent in PurePosixPath(name).parents if parent.name}
                folders |= {f"{shown(root / parent)}/" for parent in parents}
            self._paths, self._listed = [*sorted(folders), *names], time.monotonic()
        return self._paths

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
        return [MentionItem(text=f"@{SYMBOL}{name}", detail=one_line(kind)) for name, kind in names]

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


def rank(paths: Sequence[str], query: str) -> list[str]:
    """Those that contain the letters of `query` in order: by name before by path, together before apart, short before
    long. Blocking for many."""
    query = query.lower()
    return [path for _, _, path in sorted(_scored(paths, query))]


def _scored(paths: Sequence[str], query: str) -> Iterator[tuple[int, int, str]]:
    for path in paths:
        lower = path.lower()
        name = lower.rstrip("/").rpartition("/")[2] + "/" * lower.endswith("/")
        if name.startswith(query):
            yield 0, len(path), path
        elif query in name:
            yield 1, len(path), path
        elif query in lower:
            yield 2, len(path), path
        elif _in_order(lower, query):
            yield 3, len(path), path


def _in_order(text: str, letters: str) -> bool:
    """Not by a regular expression: a name can be made such that matching takes for ever."""
    at = 0
    for letter in letters:
        at = text.find(letter, at) + 1
        if at == 0:
            return False
    return True


def mention(path: str) -> str:
    """As it goes into a prompt."""
    return f'@"{path}"' if _SPECIAL.search(path) else f"@{path}"
