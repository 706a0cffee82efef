"""A tiny language server for the tests of editors: words are symbols. How it behaves is said by its arguments.

`late SECONDS`: answers `initialize` only then; `mute`: never answers questions; `broken`: answers with an error;
`busy`: finds nothing, and says that it is at work; `strict PATH`: answers late, and writes to PATH what was opened and
closed, and `TWICE` for what was open already, `NOT OPEN` for a question about what is not.

About what is opened or changed: `crash` ends with a word about it; `garbage` says what is no LSP; `flood` never stops
talking; `silent` says nothing; `halves` says that it finds nothing, and a little later what it does; `older` says it
again of the version before; `pull` says it only when asked, and first that it cannot yet.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer

HOW, *MORE = [*sys.argv[1:], "well"]
OPEN: set[str] = set()
ASKED: list[str] = []
server = LanguageServer("toy", "1")


def places(word: str) -> Iterator[types.Location]:
    for uri, document in server.workspace.text_documents.items():
        for number, line in enumerate(document.lines):
            for found in re.finditer(rf"\b{word}\b", line):
                at = server.workspace.position_codec.client_num_units
                start = types.Position(number, at(line[: found.start()]))
                yield types.Location(uri, types.Range(start, types.Position(number, at(line[: found.end()]))))


class Question(Protocol):
    text_document: types.TextDocumentIdentifier
    position: types.Position


async def word_at(params: Question) -> str:
    if HOW == "mute":
        await asyncio.Event().wait()
    if HOW == "broken":
        raise JsonRpcInternalError("no such luck")
    if HOW == "strict":
        await asyncio.sleep(0.1 * (params.position.line + 1))  # the first line's answer comes first
        noted("" if params.text_document.uri in OPEN else "NOT OPEN", params.text_document.uri)
    document = server.workspace.get_text_document(params.text_document.uri)
    return "nothing_has_this_name" if HOW == "busy" else document.word_at_position(params.position)


def noted(what: str, uri: str) -> None:
    if HOW == "strict" and what:
        with Path(MORE[0]).open("a") as log:
            log.write(f"{what} {uri.rsplit('/', 1)[-1]}\n")


@server.feature(types.INITIALIZED)
async def initialized(params: types.InitializedParams) -> None:
    if HOW == "busy":
        await server.work_done_progress.create_async("t")
        server.work_done_progress.begin("t", types.WorkDoneProgressBegin(title="reading"))


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
async def definition(params: types.DefinitionParams) -> list[types.LocationLink]:
    first = next(places(await word_at(params)), None)
    return [] if first is None else [types.LocationLink(first.uri, first.range, first.range)]


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
async def references(params: types.ReferenceParams) -> list[types.Location]:
    return list(places(await word_at(params)))


@server.feature(types.TEXT_DOCUMENT_HOVER)
async def hover(params: types.HoverParams) -> types.Hover:
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, f"**{await word_at(params)}**"))


@server.feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
async def prepare_calls(params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem]:
    first = next(places(await word_at(params)), None)
    return [] if first is None else [item("called", first)]


def item(name: str, place: types.Location) -> types.CallHierarchyItem:
    return types.CallHierarchyItem(name, types.SymbolKind.Function, place.uri, place.range, place.range)


@server.feature(types.CALL_HIERARCHY_INCOMING_CALLS)
def incoming(params: types.CallHierarchyIncomingCallsParams) -> list[types.CallHierarchyIncomingCall]:
    given = params.item.range
    caller = item("caller", types.Location(params.item.uri, given))
    return [types.CallHierarchyIncomingCall(caller, [given, given])]


@server.feature(types.CALL_HIERARCHY_OUTGOING_CALLS)
def outgoing(params: types.CallHierarchyOutgoingCallsParams) -> list[types.CallHierarchyOutgoingCall]:
    return []


@server.feature(types.TEXT_DOCUMENT_RENAME)
async def rename(params: types.RenameParams) -> types.WorkspaceEdit:
    """All places of the word. Of a new name in capital letters the file is named after it, too; `New` makes one."""
    edits: dict[str, list[types.TextEdit]] = {}
    for place in places(await word_at(params)):
        edits.setdefault(place.uri, []).append(types.TextEdit(place.range, params.new_name))
    if params.new_name.islower():
        return types.WorkspaceEdit(changes=edits)
    here = params.text_document.uri
    there = f"{here.rpartition('/')[0]}/{params.new_name}.py"
    operation = types.CreateFile(there) if params.new_name == "New" else types.RenameFile(here, there)
    return types.WorkspaceEdit(
        document_changes=[
            operation,
            *(
                types.TextDocumentEdit(
                    types.OptionalVersionedTextDocumentIdentifier(there if uri == here else uri, None), each
                )
                for uri, each in edits.items()
            ),
        ]
    )


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def outline(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    whole = types.Range(types.Position(0, 0), types.Position(3, 0))
    inner = types.DocumentSymbol("price", types.SymbolKind.Method, types.Range(whole.start, whole.start), whole)
    return [types.DocumentSymbol("Cart", types.SymbolKind.Class, whole, whole, children=[inner])]


@server.feature(types.WORKSPACE_SYMBOL)
def everywhere(params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
    return [types.SymbolInformation(each, params.query, types.SymbolKind.Function) for each in places(params.query)]


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def look(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    """Every line with `wrong` in it is an error."""
    if isinstance(params, types.DidOpenTextDocumentParams):
        noted("TWICE" if params.text_document.uri in OPEN else "open", params.text_document.uri)
        OPEN.add(params.text_document.uri)
    misbehave()
    document = server.workspace.get_text_document(params.text_document.uri)
    findings = found(document.uri)
    if HOW in ("silent", "pull"):
        return
    if HOW == "halves":
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, []))
        asyncio.get_running_loop().call_later(
            0.05,
            server.text_document_publish_diagnostics,
            types.PublishDiagnosticsParams(document.uri, findings, document.version),
        )
        return
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, findings, document.version))
    if HOW == "older":
        old = types.PublishDiagnosticsParams(document.uri, [], (document.version or 0) - 1)
        server.text_document_publish_diagnostics(old)


def misbehave() -> None:
    match HOW:
        case "crash":
            sys.stderr.write("Error: it was too much for me\n")
            sys.stderr.flush()
            os._exit(3)
        case "garbage":
            os.write(1, b"Traceback (most recent call last):\n" * 100)
        case "flood":
            body = b'{"jsonrpc":"2.0","method":"window/logMessage","params":{"type":4,"message":"%b"}}' % (b"x" * 8000)
            message = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            while True:
                os.write(1, message)
        case _:
            pass


def found(uri: str) -> list[types.Diagnostic]:
    document = server.workspace.get_text_document(uri)
    wrong = [number for number, line in enumerate(document.lines) if "wrong" in line]
    return [
        types.Diagnostic(
            types.Range(types.Position(number, 0), types.Position(number, 1)),
            "this is wrong",
            types.DiagnosticSeverity.Error,
            "W1",
            source="toy",
        )
        for number in wrong
    ]


if HOW == "pull":

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
    def pulled(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
        ASKED.append(params.text_document.uri)
        if len(ASKED) % 2:
            raise JsonRpcException("not yet", code=types.LSPErrorCodes.ServerCancelled)
        return types.RelatedFullDocumentDiagnosticReport(found(params.text_document.uri))


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def closed(params: types.DidCloseTextDocumentParams) -> None:
    noted("close", params.text_document.uri)
    OPEN.discard(params.text_document.uri)


if __name__ == "__main__":
    if HOW == "late":
        time.sleep(float(MORE[0]))
    server.start_io()
