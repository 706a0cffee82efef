"""Questions to one connection's client about code (`amanu/editor/*`). The `LanguageQueries` of the overlay.

A client is a program of somebody else: it may answer nonsense, an error or nothing, or go away. Each of these is a
status, so whoever asks can go on to the next editor.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from amanu.frontends.lsp.buffers import EditorClient
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.text.code_units import Encoding, units
from amanu.workspace.overlay import CodePlace, Editor, Question, Renaming
from amanu_protocol import requests as r
from amanu_protocol.base import Position, Wire

ANSWER = 10.0
"""Seconds in which a client must answer. It says `starting` when its language server needs longer."""

W = TypeVar("W", bound=Wire)


class EditorLanguage:
    """`offers` are the questions it answers (its capabilities), `editor` its open documents, `places` the folders it
    has before it."""

    def __init__(
        self, client: EditorClient, offers: Collection[str], editor: Editor, places: Callable[[], Iterable[Path]]
    ) -> None:
        self.name = client.name
        self._ask = client.ask
        self._encoding: Encoding = client.encoding
        self._offers = offers
        self._editor = editor
        self._places = places

    def answers(self, question: Question, path: Path) -> bool:
        """See `workspace.overlay.LanguageQueries`. Without this a window of another project would guess."""
        if question not in self._offers:
            return False
        if self._editor.buffer(path) is not None:
            return True
        places = {Path(spelling) for root in self._places() for spelling in (root, os.path.realpath(root))}
        return any(path.is_relative_to(root) or root.is_relative_to(path) for root in places)

    async def diagnostics(self, params: r.EditorDiagnosticsParams) -> r.EditorDiagnosticsResult:
        resolved = params.model_copy(update={"paths": [self._client_path(path) for path in params.paths]})
        return await self._answer("diagnostics", resolved, r.EditorDiagnosticsResult)

    async def definition(self, place: CodePlace) -> r.EditorLocationsResult:
        return await self._answer("definition", self._position(place), r.EditorLocationsResult)

    async def references(self, place: CodePlace) -> r.EditorLocationsResult:
        return await self._answer("references", self._position(place), r.EditorLocationsResult)

    async def symbols(self, params: r.EditorSymbolsParams) -> r.EditorSymbolsResult:
        resolved = params.model_copy(update={"path": self._client_path(params.path) if params.path else None})
        return await self._answer("symbols", resolved, r.EditorSymbolsResult)

    async def hover(self, place: CodePlace) -> r.EditorHoverResult:
        return await self._answer("hover", self._position(place), r.EditorHoverResult)

    async def call_hierarchy(
        self, place: CodePlace, direction: Literal["incoming", "outgoing"]
    ) -> r.EditorCallHierarchyResult:
        at = self._position(place)
        params = r.EditorCallHierarchyParams(path=at.path, position=at.position, direction=direction)
        return await self._answer("callHierarchy", params, r.EditorCallHierarchyResult)

    async def rename(self, place: CodePlace, new_name: str) -> Renaming:
        at = self._position(place)
        params = r.EditorRenameParams(path=at.path, position=at.position, new_name=new_name)
        answer = await self._answer("rename", params, r.EditorRenameResult)
        return Renaming(answer.status, self._encoding, answer.files, answer.message)

    def _position(self, place: CodePlace) -> r.EditorPositionParams:
        position = Position(line=place.line, character=units(place.before, self._encoding))
        return r.EditorPositionParams(path=self._client_path(str(place.path)), position=position)

    def _client_path(self, path: str) -> str:
        """The path as the client spelt it when it opened the file."""
        buffer = self._editor.buffer(Path(path))
        return path if buffer is None else str(buffer.path)

    async def _answer(self, question: Question, params: Wire, result: type[W]) -> W:
        try:
            async with asyncio.timeout(ANSWER):
                answer: Any = await self._ask(f"amanu/editor/{question}", params)
            return result.model_validate(answer, by_alias=True, by_name=False)
        except TimeoutError:
            why = f"no answer within {ANSWER:g} seconds"
        except ValidationError:
            why = "its answer is invalid"
        except ClientError as error:
            why = str(error)
        return result.model_validate({"status": "error", "message": why})
