"""The client's files, for the daemon: what the user sees of them, and edits that go through the editor."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from amanu.frontends.acp.handshake import mapping
from amanu.frontends.acp.peer import ClientDisconnected, Peer, RpcError
from amanu.frontends.acp.schema import ClientFeatures
from amanu.text.span_edits import edited
from amanu.workspace.range_edits import MisplacedEdit, placed_edits
from amanu.workspace.text_file import sha256
from amanu_protocol import requests as r

READS_FROM_DISK = frozenset({"CodeCompanion.nvim"})
"""Clients whose `fs/read_text_file` gives what is on disk though the buffer has unsaved changes, and whose
`fs/write_text_file` writes to that buffer: what the user typed would be lost (codecompanion.nvim
lua/codecompanion/interactions/chat/acp/fs.lua)."""


def editor_requests(features: ClientFeatures) -> list[Literal["read", "apply"]]:
    """The `amanu/editor/*` requests that can be answered with what this client offers."""
    if not features.reads or features.name in READS_FROM_DISK:
        return []
    return ["read", "apply"] if features.writes else ["read"]


DISCONNECTED = {"status": "error", "message": "The editor has disconnected."}


class ClientFiles:
    """Of one session's client."""

    def __init__(self, peer: Peer, session_id: str) -> None:
        self._peer = peer
        self._session_id = session_id

    async def answer(self, method: str, params: Any) -> Any:
        """A `DaemonClient.on_request`."""
        match method:
            case "amanu/editor/read":
                return {"text": await self._read(mapping(params).get("path"))}
            case "amanu/editor/apply":
                return await self._apply(r.EditorApplyParams.model_validate(params))
            case _:
                raise LookupError(method)

    async def _read(self, path: Any) -> str | None:
        text = await self._read_raw(path)
        return None if text is None else await asyncio.to_thread(_with_line_ends, text, Path(path))

    async def _read_raw(self, path: Any) -> str | None:
        """None where the client cannot open the file, which then has no unsaved text there. Raises
        `ClientDisconnected`, in which case that is unknown."""
        try:
            result = await self._peer.request("fs/read_text_file", {"sessionId": self._session_id, "path": path})
        except RpcError:
            return None
        text = mapping(result).get("content")
        return text if isinstance(text, str) else None

    async def _apply(self, params: r.EditorApplyParams) -> Mapping[str, Any]:
        """ACP has no document versions: the text is read again just before writing, so that no change is
        overwritten."""
        name = Path(params.path).name
        try:
            raw = await self._read_raw(params.path)
        except ClientDisconnected:
            return DISCONNECTED
        if raw is None:
            return {"status": "notOpen", "message": f"The editor cannot read {name}."}
        text = await asyncio.to_thread(_with_line_ends, raw, Path(params.path))
        if _sha256(text) != params.expected_sha256:
            return {"status": "conflict", "message": f"{name} was changed in the meantime."}
        try:
            new_text = edited(text, placed_edits(text, params.edits, "utf-16"))
        except MisplacedEdit as error:
            return {"status": "error", "message": f"The edits {error}."}
        content = new_text if raw == text else new_text.replace("\r\n", "\n")
        written = {"sessionId": self._session_id, "path": params.path, "content": content}
        try:
            await self._peer.request("fs/write_text_file", written)
        except ClientDisconnected:
            return DISCONNECTED
        except RpcError as error:
            return {"status": "error", "message": str(error)}
        return {"status": "success", "sha256": _sha256(new_text), "saved": True}


def _with_line_ends(text: str, path: Path) -> str:
    """The text with the line ends of the file: some editors have lines end in LF in their buffers, whatever the file
    has, and give the file its own again when they save it. Blocking."""
    if "\r" in text:
        return text
    try:
        data = path.read_bytes()
    except OSError:
        return text
    return text.replace("\n", "\r\n") if b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n") else text


def _sha256(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass"))
