"""A client of the daemon that is an editor: it has documents open, changes them when it is asked, and saves them. They
outlive the daemon, as in an editor whose server has crashed."""

import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from e2e.test_prompt_to_edit import SERVE, Editor
from support.range_edits import apply_wire_edits
from support.raw_client import RawClient
from support.warm_process import warm

Moment = Literal["asked", "saved"]
"""The editor has read the request to change a document; the document is changed and saved, but that is not said yet."""
_CAPABILITIES = {"experimental": {"amanu": {"protocol": [4], "editor": ["apply"]}}}


@dataclass
class OpenDocuments:
    texts: dict[Path, str] = field(default_factory=dict[Path, str])
    saves: bool = True
    """Whether it saves a changed document when it is asked to."""
    goes_on: Callable[[Moment], bool] = lambda moment: True
    """Called at each moment; False: the editor drops the request."""

    def open(self, path: Path) -> None:
        self.texts[path] = path.read_text()

    def save(self) -> None:
        """Save what differs from the disk, as the user would."""
        for path, text in self.texts.items():
            if not path.exists() or path.read_text() != text:
                _save(path, text)

    def apply(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to `amanu/editor/apply`."""
        path = Path(params["path"])
        if path not in self.texts:
            return {"status": "notOpen"}
        text = self.texts[path]
        if _sha256(text) != params["expectedSha256"]:
            return {"status": "conflict"}
        self.texts[path] = text = apply_wire_edits(text, params["edits"])
        is_saved = self.saves and params["save"]
        if is_saved:
            _save(path, text)
        return {"status": "success", "sha256": _sha256(text), "saved": is_saved}


class _DocumentClient(RawClient):
    """Answers requests to change documents while it reads."""

    documents: OpenDocuments
    _version = 1

    async def read(self, seconds: float = 50.0) -> dict[str, Any] | None:
        while (message := await super().read(seconds)) is not None:
            if message.get("method") != "amanu/editor/apply":
                return message
            if self.documents.goes_on("asked"):
                self._answer(message["id"], message["params"])
        return None

    def show_documents(self) -> None:
        for path, text in self.documents.texts.items():
            document = {"uri": path.as_uri(), "languageId": "plaintext", "version": self._version, "text": text}
            self.notify("textDocument/didOpen", {"textDocument": document})

    def _answer(self, id: Any, params: Mapping[str, Any]) -> None:
        result, path = self.documents.apply(params), Path(params["path"])
        if not self.documents.goes_on("saved"):
            return
        if result["status"] == "success":
            self._version += 1
            document, text = {"uri": path.as_uri(), "version": self._version}, self.documents.texts[path]
            self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
            if result["saved"]:
                self.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
        self.send({"jsonrpc": "2.0", "id": id, "result": result})


@asynccontextmanager
async def editor_with(documents: OpenDocuments, environment: Mapping[str, str]) -> AsyncGenerator[Editor]:
    """A client that has these documents open."""
    raw = await _DocumentClient.spawn(warm(SERVE), {**os.environ, **environment})
    assert isinstance(raw, _DocumentClient)
    raw.documents = documents
    try:
        await raw.initialize(_CAPABILITIES)
        raw.show_documents()
        yield Editor(raw)
    finally:
        await raw.stop()


def _save(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.saving")
    temporary.write_text(text)
    temporary.chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o644)
    temporary.rename(path)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
