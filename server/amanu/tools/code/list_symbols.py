"""List the symbols of a file, or find symbols in the workspace, by asking the user's editor."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.tools.environment import SessionTool
from amanu.tools.locations import MAX_LINE, NEEDS_APPROVAL, display_path, reasons_not_to_quote, resolve_paths
from amanu.workspace.editor_queries import ask
from amanu_protocol.requests import EditorSymbolsParams, Symbol


class ListSymbolsParams(Params):
    path: str | None = Field(default=None, description="File to outline.")
    query: str | None = Field(default=None, description="Part of a symbol's name.")


class ListSymbols(SessionTool[ListSymbolsParams]):
    name = "list_symbols"
    effect = "read"
    description = (
        "Lists the symbols of a file with their line ranges, or finds symbols of the workspace by name, by asking the "
        "user's editor. Give path or query, not both."
    )
    params = ListSymbolsParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"List symbols {arguments.get('query') or arguments.get('path') or ''}".rstrip()

    async def preview(self, params: ListSymbolsParams, call: CallContext) -> Preview:
        if bool(params.path) == bool(params.query):
            raise ToolError("Give either path or query.")
        path = self._workspace.resolve(params.path) if params.path else self._workspace.roots[0]
        relative = self._workspace.relative(path)
        scope = f"of {relative}" if params.path else f"like {params.query}"
        return Preview(
            title=f"List symbols {scope}",
            subject=Subject(self.name, self.effect, relative),
            detail=scope,
            reads=frozenset(map(str, [path] if params.path else self._workspace.roots)),
        )

    async def run(self, params: ListSymbolsParams, call: CallContext) -> Outcome:
        if params.path:
            path = self._workspace.resolve(params.path)
            call.require_reviewed(path)
            await self._workspace.read(path)  # a missing file: the error names similar ones
            folders_or_file, request = [path], EditorSymbolsParams(path=str(path))
        else:
            folders_or_file, request = self._workspace.roots, EditorSymbolsParams(query=params.query)
        answer = await ask(
            self._workspace.overlay, "symbols", folders_or_file, lambda language: language.symbols(request)
        )
        symbols = answer.symbols[: self._limits.symbols]
        left_out = len(answer.symbols) - len(symbols)
        if params.path:
            lines = [f"{_range(symbol)}: {_description(symbol)}" for symbol in symbols]
        else:
            lines = await self._of_workspace(symbols, call)
        if not lines:
            return Outcome("The editor's language server knows no such symbols.", "none")
        count = len(lines) + left_out
        if left_out:
            lines.append(f"[{left_out} more symbols left out]")
        return Outcome("\n".join(lines) + "\n", f"{count} symbol{'s' * (count != 1)}")

    async def _of_workspace(self, symbols: list[Symbol], call: CallContext) -> list[str]:
        """One line per symbol. Symbols in files that need the user's approval are left out: their names are content."""
        inside = await resolve_paths(self._workspace, (symbol.path for symbol in symbols))
        hidden = reasons_not_to_quote(self._workspace, call, self.name, inside)
        lines: list[str] = []
        for symbol in symbols:
            reason = hidden.get(symbol.path)
            if reason != NEEDS_APPROVAL:
                location = f"{display_path(self._workspace, symbol.path, inside)}:{symbol.lines.first}"
                lines.append(f"{location}: {_description(symbol)}" + (f" ({reason})" if reason else ""))
        return lines


def _range(symbol: Symbol) -> str:
    first, last = symbol.lines.first, symbol.lines.last
    return f"{first}-{last}" if last > first else f"{first}"


def _description(symbol: Symbol) -> str:
    text = f"{symbol.kind} {symbol.name}" + (f" (in {symbol.container})" if symbol.container else "")
    return " ".join(text.split())[:MAX_LINE]
