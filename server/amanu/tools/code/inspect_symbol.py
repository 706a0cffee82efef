"""Show what the editor's language servers say about a symbol, and what calls it or is called by it."""

from typing import Literal

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Preview, Subject
from amanu.text.display import one_line
from amanu.tools.code.find_definition import SymbolParams, symbol_place
from amanu.tools.environment import SessionTool
from amanu.tools.locations import MAX_LINE, display_path, reasons_not_to_quote, resolve_paths
from amanu.workspace.editor_queries import ask
from amanu.workspace.overlay import CodePlace
from amanu_protocol.requests import Call

MAX_HOVER = 2000
"""Characters; documentation can be pages long."""
_LINES = 10  # lines named of one caller

_TITLES = {"hover": "Look up", "incoming_calls": "Find callers of", "outgoing_calls": "Find calls in"}


class InspectSymbolParams(SymbolParams):
    show: Literal["hover", "incoming_calls", "outgoing_calls"] = Field(description="What to show.")


class InspectSymbol(SessionTool[InspectSymbolParams]):
    name = "inspect_symbol"
    effect = "read"
    description = (
        "Shows what the editor's language servers know about a symbol: type and documentation (hover), or one "
        "level of its call hierarchy."
    )
    params = InspectSymbolParams

    async def preview(self, params: InspectSymbolParams, call: CallContext) -> Preview:
        path = self._workspace.resolve(params.path)
        relative = self._workspace.relative(path)
        return Preview(
            title=f"{_TITLES[params.show]} {params.symbol}",
            subject=Subject(self.name, self.effect, relative),
            detail=f"{params.show} of {params.symbol} at {relative}:{params.line}",
            reads=frozenset([str(path)]),
        )

    async def run(self, params: InspectSymbolParams, call: CallContext) -> Outcome:
        path = self._workspace.resolve(params.path)
        call.require_reviewed(path)
        place = symbol_place(path, (await self._workspace.read(path)).text, params)
        match params.show:
            case "hover":
                return await self._hover(params.symbol, place)
            case "incoming_calls":
                return await self._calls(place, "incoming", call)
            case "outgoing_calls":
                return await self._calls(place, "outgoing", call)

    async def _hover(self, symbol: str, place: CodePlace) -> Outcome:
        overlay, paths = self._workspace.overlay, [place.path]
        answer = await ask(overlay, "hover", paths, lambda language: language.hover(place))
        text = answer.text.strip()
        if not text:
            return Outcome(f"The editor's language server says nothing about {symbol}.", "nothing")
        if len(text) > MAX_HOVER:
            text = f"{text[:MAX_HOVER]}\n[{len(text) - MAX_HOVER} more characters left out]"
        shown = (line for line in text.splitlines() if line.strip() and not line.startswith("```"))
        return Outcome(f"{text}\n", one_line(next(shown, "shown")))

    async def _calls(self, place: CodePlace, direction: Literal["incoming", "outgoing"], call: CallContext) -> Outcome:
        overlay, paths = self._workspace.overlay, [place.path]
        answer = await ask(overlay, "callHierarchy", paths, lambda language: language.call_hierarchy(place, direction))
        calls = answer.calls[: self._limits.locations]
        if not calls:
            return Outcome(f"The editor's language server knows no {direction} calls.", "none")
        inside = await resolve_paths(self._workspace, (each.symbol.path for each in calls))
        hidden = reasons_not_to_quote(self._workspace, call, self.name, inside)
        lines: list[str] = []
        for each in calls:
            location = f"{display_path(self._workspace, each.symbol.path, inside)}:{each.symbol.lines.first}"
            reason = hidden.get(each.symbol.path)
            lines.append(f"{location} ({reason})" if reason else f"{location}: {_description(each)}")
        if len(answer.calls) > len(calls):
            lines.append(f"[{len(answer.calls) - len(calls)} more left out]")
        count = len(answer.calls)
        return Outcome("\n".join(lines) + "\n", f"{count} function{'s' * (count != 1)}")


def _description(call: Call) -> str:
    symbol = call.symbol
    container = f" (in {symbol.container})" if symbol.container else ""
    name = " ".join(f"{symbol.kind} {symbol.name}{container}".split())[:MAX_LINE]
    if not call.lines:
        return name
    numbers = ", ".join(str(line + 1) for line in call.lines[:_LINES]) + (" …" if len(call.lines) > _LINES else "")
    return f"{name}, called on line{'s' * (len(call.lines) != 1)} {numbers}"
