"""What one plain client can do, and saying things to it."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from amanu.frontends.lsp.buffers import Buffers, EditorClient
from amanu.frontends.lsp.handshake import pulls_diagnostics
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.text.code_units import Encoding
from amanu.text.display import visible

ERROR, WARNING, INFO, LOG = 1, 2, 3, 4
"""LSP MessageType."""
MESSAGE = 1000
"""Characters of a message; more makes no dialog a user can read."""
SHOW = 5.0
"""Seconds in which a client must say whether it shows a document."""

Notify = Callable[[str, Any], None]
ProgressToken = str | int


@dataclass(frozen=True)
class ClientQuirks:
    """What capabilities do not tell of a client."""

    preselects: bool = False
    """It offers the first choice of a question as what Enter means."""
    line: int = 300
    """Characters of an unasked message that disturb nobody."""


QUIRKS: Mapping[str, ClientQuirks] = {
    "Neovim": ClientQuirks(line=60),  # a message longer than the command line is one to be dismissed by Enter
    "Emacs": ClientQuirks(preselects=True),
    "Eglot": ClientQuirks(preselects=True),
    "": ClientQuirks(preselects=True),  # Eglot 1.9 does not say its name
}
"""By clientInfo.name."""


class PlainEditor:
    """`client` is who has `buffers` open, with the capabilities of its `initialize`; `notify` sends a notification."""

    def __init__(self, client: EditorClient, buffers: Buffers, capabilities: Mapping[str, Any], notify: Notify) -> None:
        self.name = client.name
        self.encoding: Encoding = client.encoding
        self.buffers = buffers
        self.quirks = QUIRKS.get(client.name, ClientQuirks())
        self._ask = client.ask
        self._notify = notify
        text, window = _part(capabilities, "textDocument"), _part(capabilities, "window")
        self.shows_progress = window.get("workDoneProgress") is True
        self.shows_lenses = isinstance(text.get("codeLens"), dict)
        self.takes_literals = isinstance(_part(text, "codeAction").get("codeActionLiteralSupport"), dict)
        self.hover: Literal["markdown", "plaintext"] = (
            "markdown" if "markdown" in (_part(text, "hover").get("contentFormat") or ()) else "plaintext"
        )
        self.pulls_diagnostics = pulls_diagnostics(capabilities)
        self._refreshes_lenses = _part(_part(capabilities, "workspace"), "codeLens").get("refreshSupport") is True
        self._shows_documents = _part(window, "showDocument").get("support") is True

    def say(self, text: str, kind: int = INFO) -> None:
        """One line to the user, unasked."""
        text = " ".join(visible(text).split())
        limit = MESSAGE if kind == ERROR else self.quirks.line
        self._notify(
            "window/showMessage", {"type": kind, "message": text if len(text) <= limit else text[: limit - 1] + "…"}
        )

    def log(self, text: str) -> None:
        """To the editor's log of us, which a user may look at."""
        self._notify("window/logMessage", {"type": LOG, "message": visible(text)})

    async def choose(self, text: str, titles: Sequence[str]) -> str | None:
        """Ask the user; None when they decided nothing. Waits as long as it takes. Raises `ClientError` when the
        client cannot ask."""
        actions = [{"title": title} for title in titles]
        answer: Any = await self._ask(
            "window/showMessageRequest", {"type": WARNING, "message": text, "actions": actions}
        )
        title: Any = cast("dict[str, Any]", answer).get("title") if isinstance(answer, dict) else None
        return title if title in titles else None

    async def show(self, path: Path, *, focus: bool, line: int = 0) -> None:
        """Open a file before the user; where the client cannot, say where it is."""
        position = {"line": line, "character": 0}
        params = {"uri": path.as_uri(), "takeFocus": focus, "selection": {"start": position, "end": position}}
        if self._shows_documents:
            try:
                async with asyncio.timeout(SHOW):
                    answer: Any = await self._ask("window/showDocument", params)
                if isinstance(answer, dict) and cast("dict[str, Any]", answer).get("success") is True:
                    return
            except (ClientError, TimeoutError):
                pass
        self._notify("window/showMessage", {"type": INFO, "message": f"Amanu: open {path}"})

    def uri(self, path: Path) -> str:
        """How the client names that file, or would."""
        return self.buffers.uri(path)

    def publish(self, uri: str, diagnostics: Sequence[Any]) -> None:
        """Our diagnostics of a document, all of them; other servers' are their own."""
        self._notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": list(diagnostics)})

    async def refresh_lenses(self) -> None:
        if self._refreshes_lenses:
            try:
                await self._ask("workspace/codeLens/refresh", None)
            except ClientError:
                self._refreshes_lenses = False

    async def refresh_diagnostics(self) -> None:
        with contextlib.suppress(ClientError):
            await self._ask("workspace/diagnostic/refresh", None)

    async def create_progress(self, token: ProgressToken) -> bool:
        """Whether the client will show progress under that token."""
        try:
            async with asyncio.timeout(SHOW):
                await self._ask("window/workDoneProgress/create", {"token": token})
        except (ClientError, TimeoutError):
            return False
        return True

    def progress(self, token: ProgressToken, value: Mapping[str, Any]) -> None:
        self._notify("$/progress", {"token": token, "value": value})


def _part(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = tree.get(key)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
