"""An editor that knows LSP and nothing of Amanu: documents, code actions by title, what it was shown. By pytest-lsp."""

import ast
import asyncio
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from cattrs import Converter
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import ClientServerConfig, LanguageClient
from pytest_lsp.client import register_lsp_features

from amanu.frontends.lsp.document_text import DocumentText, Position
from support.warm_process import warm

WAIT = 50.0
"""Seconds for what must happen; a machine under load is slow."""


class WarmServer(ClientServerConfig):
    """For `pytest_lsp.fixture`: the server is a warm process."""

    async def start(self, devtools: str | None = None) -> LanguageClient:
        assert devtools is None
        client = LanguageClient(converter_factory=_converter)
        register_lsp_features(client)
        await client.start_io(*warm(self.server_command))
        return client


@functools.cache
def _converter() -> Converter:
    """One for all clients: to make it takes a fifth of a second."""
    return default_converter()


class PlainEditor:
    """Made around a client before it is initialized. `answers` are what the user chooses of questions, in order."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.texts: dict[str, DocumentText] = {}
        self.versions: dict[str, int] = {}
        self.said: list[str] = []
        self.asked: list[types.ShowMessageRequestParams] = []
        self.answers: asyncio.Queue[str | None] = asyncio.Queue()
        self.shows = True
        self.shown: list[Path] = []
        self.progress: list[Any] = []
        self.pulled: dict[str, list[types.Diagnostic]] = {}
        """Diagnostics of documents that this editor has asked for itself."""
        self.refreshed = 0
        """How often the lenses were to be asked for again."""
        self.encoding: Any = "utf-16"
        self.refusing = False
        """It drops edits, says that it applied them, and the user saves the file."""
        self.answers_edits = True
        self._listen()

    def _listen(self) -> None:
        features = cast("dict[str, Any]", self.client.protocol.fm.features)  # pyright: ignore[reportUnknownMemberType]

        def on(method: str) -> Any:
            features.pop(method, None)  # pytest-lsp has its own for some
            return self.client.feature(method)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

        @on(types.WINDOW_SHOW_MESSAGE_REQUEST)
        async def ask(p: types.ShowMessageRequestParams) -> types.MessageActionItem | None:  # pyright: ignore[reportUnusedFunction]
            self.asked.append(p)
            answer = await self.answers.get()
            return None if answer is None else types.MessageActionItem(answer)

        @on(types.WINDOW_SHOW_DOCUMENT)
        def show(p: types.ShowDocumentParams) -> types.ShowDocumentResult:  # pyright: ignore[reportUnusedFunction]
            if not self.shows:
                return types.ShowDocumentResult(success=False)
            path = Path(unquote(urlsplit(p.uri).path))
            self.open(path)
            self.shown.append(path)
            return types.ShowDocumentResult(success=True)

        @on(types.WORKSPACE_APPLY_EDIT)
        async def edit(p: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:  # pyright: ignore[reportUnusedFunction]
            changes = dict(p.edit.changes or {})
            for change in p.edit.document_changes or ():
                assert isinstance(change, types.TextDocumentEdit)
                changes[change.text_document.uri] = [e for e in change.edits if isinstance(e, types.TextEdit)]
            for uri, edits in changes.items():
                if not self.refusing:
                    self._edit(uri, edits)
                else:
                    document = types.TextDocumentIdentifier(uri)
                    self.client.text_document_did_save(types.DidSaveTextDocumentParams(document))
            if not self.answers_edits:
                await asyncio.Event().wait()
            return types.ApplyWorkspaceEditResult(applied=True)

        @on(types.WORKSPACE_DIAGNOSTIC_REFRESH)
        async def pull(p: Any) -> None:  # pyright: ignore[reportUnusedFunction]
            for uri in list(self.texts):
                params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
                report = await self.client.text_document_diagnostic_async(params)
                assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
                self.pulled[uri] = list(report.items)

        @on(types.WORKSPACE_CODE_LENS_REFRESH)
        def refresh(p: Any) -> None:  # pyright: ignore[reportUnusedFunction]
            self.refreshed += 1

        @on(types.WINDOW_SHOW_MESSAGE)
        def say(p: types.ShowMessageParams) -> None:  # pyright: ignore[reportUnusedFunction]
            self.said.append(p.message)

        @on(types.PROGRESS)
        def progress(p: types.ProgressParams) -> None:  # pyright: ignore[reportUnusedFunction]
            self.progress.append((p.token, p.value))

    def _edit(self, uri: str, edits: Sequence[types.TextEdit]) -> None:
        for each in sorted(edits, key=lambda each: -each.range.start.line):
            start, end = each.range.start, each.range.end
            self.texts[uri].change(
                Position(start.line, start.character), Position(end.line, end.character), each.new_text
            )
        self._changed(uri)

    def open(self, path: Path) -> None:
        """Open a file that is there; opened again, nothing happens."""
        uri = path.as_uri()
        if uri in self.texts:
            return
        self.texts[uri] = DocumentText(path.read_bytes().decode(), self.encoding)
        self.versions[uri] = 1
        item = types.TextDocumentItem(uri, "text", 1, self.texts[uri].text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def close(self, path: Path) -> None:
        del self.texts[path.as_uri()]
        document = types.TextDocumentIdentifier(path.as_uri())
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    def text(self, path: Path) -> str:
        return self.texts[path.as_uri()].text

    def type(self, path: Path, text: str) -> None:
        """The user's own change: the whole text."""
        self.texts[path.as_uri()].replace(text)
        self._changed(path.as_uri())

    def _changed(self, uri: str) -> None:
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        whole = types.TextDocumentContentChangeWholeDocument(self.texts[uri].text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    async def command(self, name: str, *arguments: Any, token: str | int | None = None) -> None:
        params = types.ExecuteCommandParams(name, arguments=list(arguments), work_done_token=token)
        await self.client.workspace_execute_command_async(params)

    async def actions(
        self, path: Path, start: int = 0, end: int | None = None, only: Sequence[str] | None = None
    ) -> list[types.CodeAction | types.Command]:
        """What is offered for these lines, 0-based; `end` given: they are selected."""
        range_ = types.Range(types.Position(start, 0), types.Position(start if end is None else end, 0))
        around = [
            each
            for each in self.diagnostics(path)
            if each.range.start.line <= range_.end.line and start <= each.range.end.line
        ]
        about = types.CodeActionContext(around, only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(path.as_uri()), range_, about)
        return list(await self.client.text_document_code_action_async(params) or ())

    async def titles(
        self, path: Path, start: int = 0, end: int | None = None, only: Sequence[str] | None = None
    ) -> list[str]:
        return [each.title for each in await self.actions(path, start, end, only)]

    async def lenses(self, path: Path) -> list[tuple[int, str]]:
        params = types.CodeLensParams(types.TextDocumentIdentifier(path.as_uri()))
        found = await self.client.text_document_code_lens_async(params) or ()
        return [(each.range.start.line, each.command.title) for each in found if each.command is not None]

    async def act(self, title: str, path: Path, start: int = 0, end: int | None = None) -> None:
        """Choose the first code action whose title begins so; asked for until it is offered."""
        action: Any = None
        seen: list[str] = []
        try:
            async with asyncio.timeout(WAIT):
                while action is None:
                    found = await self.actions(path, start, end)
                    seen = [each.title for each in found]
                    action = next((each for each in found if each.title.startswith(title)), None)
                    if action is None:
                        await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"no action {title!r} among {seen}") from None
        # lsprotocol takes a code action that has a command for a bare command, and makes that command a string.
        order = ast.literal_eval(str(action.command))
        await self.command(order["command"], *(order.get("arguments") or ()))

    async def hover(self, path: Path, line: int) -> str:
        place = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(line, 0))
        found = await self.client.text_document_hover_async(place)
        return "" if found is None else found.contents.value  # pyright: ignore

    def diagnostics(self, path: Path) -> list[types.Diagnostic]:
        pulled = self.pulled.get(path.as_uri(), []) if path.as_uri() in self.texts else []
        return [*self.client.diagnostics.get(path.as_uri(), ()), *pulled]

    def messages(self, path: Path) -> list[str]:
        return [each.message for each in self.diagnostics(path)]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until it is true; its value."""
        try:
            async with asyncio.timeout(WAIT):
                while not (found := condition()):
                    await asyncio.sleep(0.01)
                return found
        except TimeoutError:
            raise AssertionError(
                f"never\nsaid: {self.said}\nasked: {self.asked}\nprogress: {self.progress}\n"
                f"{[each.text for each in self.texts.values()]}\n{self.client.diagnostics}"
            ) from None
