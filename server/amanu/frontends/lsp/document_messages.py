"""LSP's notifications about documents and folders, as far as we read them; every client sends them.

Own models, because lsprotocol's types take longer to import than all else of a daemon: a client that speaks `amanu/*`
needs no other message of LSP's.
"""

from typing import Annotated

from pydantic import Field

from amanu_protocol.base import Message

UInteger = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""LSP's `uinteger`."""


class Position(Message):
    line: UInteger
    character: UInteger


class Range(Message):
    start: Position
    end: Position


class ContentChange(Message):
    """Without a range the text is the whole document."""

    text: str
    range: Range | None = None


class Identifier(Message):
    uri: str


class VersionedIdentifier(Identifier):
    version: int


class TextDocumentItem(VersionedIdentifier):
    text: str


class DidOpenParams(Message):
    text_document: TextDocumentItem


class DidChangeParams(Message):
    text_document: VersionedIdentifier
    content_changes: list[ContentChange]


class DidCloseParams(Message):
    text_document: Identifier


class DidSaveParams(Message):
    text_document: Identifier


class FoldersChange(Message):
    added: list[Identifier]
    removed: list[Identifier]


class DidChangeWorkspaceFoldersParams(Message):
    event: FoldersChange
