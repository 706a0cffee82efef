"""What a language server answers to a rename, by file."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from amanu.checks.process import CheckFailed
from amanu.workspace.text_file import sha256
from amanu_protocol.requests import RenamedFile, TextEdit


def renamed_files(answer: Any, shown_texts: Mapping[Path, str]) -> list[RenamedFile]:
    """The files of an LSP WorkspaceEdit; of those the server was shown, with the hash of that text. Raises
    `CheckFailed` for one that is malformed or does something else to files."""
    files: dict[str, list[TextEdit]] = {}
    try:
        for uri, edits in _text_edits(answer or {}):
            parts = urlsplit(uri)
            path = unquote(parts.path) if parts.scheme == "file" else uri
            files.setdefault(path, []).extend(map(TextEdit.model_validate, edits))
    except (KeyError, TypeError, ValueError, AttributeError, ValidationError):
        raise CheckFailed("Its edits cannot be read.") from None
    hashes = {str(path): sha256(text.encode("utf-8", "surrogatepass")) for path, text in shown_texts.items()}
    return [RenamedFile(path=path, sha256=hashes.get(path), edits=edits) for path, edits in files.items()]


def _text_edits(answer: Mapping[str, Any]) -> Iterator[tuple[str, Iterable[Any]]]:
    changes = answer.get("documentChanges")
    if changes is None:
        yield from cast("dict[str, list[Any]]", answer.get("changes") or {}).items()
        return
    for change in changes:
        if "kind" in change:
            raise CheckFailed("The rename would also create, move or delete files.")
        yield change["textDocument"]["uri"], change["edits"]
