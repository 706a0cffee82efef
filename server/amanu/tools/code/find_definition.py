"""Find where a symbol is defined or used, by asking the language servers of the user's editor."""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.tools.environment import SessionTool
from amanu.tools.locations import quote_locations
from amanu.workspace.editor_queries import ask
from amanu.workspace.overlay import CodePlace, LanguageQueries, Question
from amanu.workspace.text_file import split_lines
from amanu_protocol.requests import EditorLocationsResult

NEAR = 5
"""Lines with the symbol that are named when the given line does not contain it."""

_LAST_NAME = re.compile(r"(?<![\w$])[\w$]++(?=\W*$)")


class SymbolParams(Params):
    path: str = Field(description="A file in which the symbol occurs.")
    line: int = Field(ge=1, description="A line on which it occurs, 1-based.")
    symbol: str = Field(min_length=1, description="The symbol as written on that line.")


class _SymbolTool(SessionTool[SymbolParams]):
    """Finds a symbol in the text of a file and asks the editor about it; the result is locations."""

    effect = "read"
    params = SymbolParams
    question: Question
    title: str
    none_found: str

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"{self.title} {arguments.get('symbol', '')}".rstrip()

    async def preview(self, params: SymbolParams, call: CallContext) -> Preview:
        path = self._workspace.resolve(params.path)
        relative = self._workspace.relative(path)
        return Preview(
            title=f"{self.title} {params.symbol}",
            subject=Subject(self.name, self.effect, relative),
            detail=f"{params.symbol} at {relative}:{params.line}",
            reads=frozenset([str(path)]),
        )

    async def run(self, params: SymbolParams, call: CallContext) -> Outcome:
        path = self._workspace.resolve(params.path)
        call.require_reviewed(path)
        place = symbol_place(path, (await self._workspace.read(path)).text, params)
        answer = await ask(self._workspace.overlay, self.question, [path], lambda language: self._ask(language, place))
        unique = list({(location.path, location.lines.start): location for location in answer.locations}.values())
        if not unique:
            return Outcome(f"{self.none_found} {params.symbol}.", "none")
        limit = self._limits.locations
        lines = await quote_locations(self._workspace, call, self.name, unique[:limit])
        if len(unique) > limit:
            lines.append(f"[{len(unique) - limit} more locations left out]")
        return Outcome("\n".join(lines) + "\n", f"{len(unique)} location{'s' * (len(unique) != 1)}")

    @abstractmethod
    async def _ask(self, language: LanguageQueries, place: CodePlace) -> EditorLocationsResult: ...


class FindDefinition(_SymbolTool):
    name = "find_definition"
    description = (
        "Finds where a symbol is defined, by asking the user's editor: exact where grep guesses. Definitions outside "
        "the workspace (libraries) are named, not quoted."
    )
    question = "definition"
    title = "Find the definition of"
    none_found = "The editor's language server knows no definition of"

    async def _ask(self, language: LanguageQueries, place: CodePlace) -> EditorLocationsResult:
        return await language.definition(place)


class FindReferences(_SymbolTool):
    name = "find_references"
    description = (
        "Finds where a symbol is used, at most 100 places, by asking the user's editor: unlike grep it tells symbols "
        "of the same name apart. Use it before you change what others call."
    )
    question = "references"
    title = "Find uses of"
    none_found = "The editor's language server knows no use of"

    async def _ask(self, language: LanguageQueries, place: CodePlace) -> EditorLocationsResult:
        return await language.references(place)


def symbol_place(path: Path, text: str, params: SymbolParams) -> CodePlace:
    """The place of the last name of the symbol (`total` of `cart.total`) in that text of the file. Raises `ToolError`,
    naming lines that contain the symbol, when the given one does not."""
    lines, line = split_lines(text), params.line
    index = _find(lines[line - 1], params.symbol) if line <= len(lines) else None
    if index is None:
        raise ToolError(_wrong_line_message(lines, line, params.symbol))
    last = _LAST_NAME.search(params.symbol)
    column = index + (last.start() if last else 0)
    return CodePlace(path, line - 1, lines[line - 1][:column])


def _find(text: str, symbol: str) -> int | None:
    """Where the symbol begins, preferably as a separate word."""
    word = re.search(rf"(?<![\w$]){re.escape(symbol)}(?![\w$])", text)
    index = word.start() if word else text.find(symbol)
    return None if index < 0 else index


def _wrong_line_message(lines: Sequence[str], line: int, symbol: str) -> str:
    problem = f"Line {line} does not contain {symbol!r}" if line <= len(lines) else f"The file has {len(lines)} lines"
    holding = [number for number, text in enumerate(lines, 1) if symbol in text]
    if not holding:
        return f"{problem}, and {symbol!r} is nowhere in this file. Use grep to find where it occurs."
    near = sorted(sorted(holding, key=lambda number: abs(number - line))[:NEAR])
    return f"{problem}; {symbol!r} is on line{'s' * (len(near) != 1)} {', '.join(map(str, near))}."
