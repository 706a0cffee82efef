"""A tiny language server for the tests of editors: words are symbols. How it behaves is said by its arguments.

`late SECONDS`: answers `initialize` only then; `mute`: never answers questions; `broken`: answers with an error;
`busy`: finds nothing, and says that it is at work; `strict PATH`: answers late, and writes to PATH what was opened and
closed, and `TWICE` for what was open already, `NOT OPEN` for a question about what is not.

About what is opened or changed: `crash` ends with a word about it; `garbage` says what is no LSP; `flood` never stops
talking; `silent` says nothing; `halves` says that it finds nothing, and a little later what it does; `older` says it
again of the version before; `pull` says it only when asked, and first that it cannot yet.

Plain Python: it starts ten times as fast as one that imports all of LSP.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HOW, *MORE = [*sys.argv[1:], "well"]
METHOD_NOT_FOUND, FAILED, CANCELLED, CANCELLED_BY_SERVER = -32601, -32603, -32800, -32802
FUNCTION, CLASS, METHOD = 12, 5, 6
"""Kinds of symbols."""
Params = dict[str, Any]


class Refused(Exception):
    """A request is answered with an error of this code."""


class Text:
    """A document as it is shown, in the units of characters that were agreed on."""

    encoding = "utf-16"
    shown: dict[str, "Text"] = {}

    def __init__(self, uri: str, version: int, text: str) -> None:
        self.uri, self.version, self.text = uri, version, text

    def change(self, version: int, changes: list[Params]) -> None:
        for change in changes:
            text, self.version = change["text"], version
            if "range" in change:
                start, end = (self._offset(change["range"][side]) for side in ("start", "end"))
                text = self.text[:start] + text + self.text[end:]
            self.text = text

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    def word_at(self, position: Params) -> str:
        at = self._offset(position)
        return re.findall(r"\w*$", self.text[:at])[0] + re.findall(r"^\w*", self.text[at:])[0]

    def places(self, word: str) -> Iterator[Params]:
        for number, line in enumerate(self.lines):
            for each in re.finditer(rf"\b{word}\b", line):
                start, end = (self._units(line[:at]) for at in each.span())
                yield {"uri": self.uri, "range": span(number, start, number, end)}

    def _offset(self, position: Params) -> int:
        number: int = position["line"]
        before, line = self.lines[:number], [*self.lines, "", ""][number]
        at = next((at for at in range(len(line)) if self._units(line[:at]) >= position["character"]), len(line))
        return sum(map(len, before)) + at

    def _units(self, text: str) -> int:
        width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[self.encoding]
        return len(text.encode({1: "utf-8", 2: "utf-16-le", 4: "utf-32-le"}[width])) // width


def span(line: int, character: int, end_line: int, end_character: int) -> Params:
    return {"start": {"line": line, "character": character}, "end": {"line": end_line, "character": end_character}}


# What is asked ---------------------------------------------------------------------------------------


def places(word: str) -> list[Params]:
    return [place for text in Text.shown.values() for place in text.places(word)]


def word_at(params: Params) -> str:
    text = Text.shown.get(params["textDocument"]["uri"]) or Text("", 0, "")
    return "nothing_has_this_name" if HOW == "busy" else text.word_at(params["position"])


def definition(params: Params) -> list[Params]:
    return [
        {"targetUri": each["uri"], "targetRange": each["range"], "targetSelectionRange": each["range"]}
        for each in places(word_at(params))[:1]
    ]


def prepare_calls(params: Params) -> list[Params]:
    return [item("called", each) for each in places(word_at(params))[:1]]


def item(name: str, place: Params) -> Params:
    return {"name": name, "kind": FUNCTION, "selectionRange": place["range"], **place}


def incoming(params: Params) -> list[Params]:
    given = params["item"]
    caller = item("caller", {"uri": given["uri"], "range": given["range"]})
    return [{"from": caller, "fromRanges": [given["range"], given["range"]]}]


def rename(params: Params) -> Params:
    """All places of the word. Of a new name in capital letters the file is named after it, too; `New` makes one."""
    name, here = params["newName"], params["textDocument"]["uri"]
    edits: dict[str, list[Params]] = {}
    for place in places(word_at(params)):
        edits.setdefault(place["uri"], []).append({"range": place["range"], "newText": name})
    if name.islower():
        return {"changes": edits}
    there = f"{here.rpartition('/')[0]}/{name}.py"
    moved = {"kind": "rename", "oldUri": here, "newUri": there}
    changes: list[Params] = [{"kind": "create", "uri": there} if name == "New" else moved]
    for uri, each in edits.items():
        changes.append({"textDocument": {"uri": there if uri == here else uri, "version": None}, "edits": each})
    return {"documentChanges": changes}


def outline(params: Params) -> list[Params]:
    whole, start = span(0, 0, 3, 0), span(0, 0, 0, 0)
    inner = {"name": "price", "kind": METHOD, "range": start, "selectionRange": whole}
    return [{"name": "Cart", "kind": CLASS, "range": whole, "selectionRange": whole, "children": [inner]}]


def everywhere(params: Params) -> list[Params]:
    return [{"name": params["query"], "kind": FUNCTION, "location": place} for place in places(params["query"])]


ABOUT_A_PLACE: dict[str, Callable[[Params], Any]] = {
    "textDocument/definition": definition,
    "textDocument/references": lambda params: places(word_at(params)),
    "textDocument/hover": lambda params: {"contents": {"kind": "markdown", "value": f"**{word_at(params)}**"}},
    "textDocument/prepareCallHierarchy": prepare_calls,
    "textDocument/rename": rename,
}
QUESTIONS: dict[str, Callable[[Params], Any]] = {
    "callHierarchy/incomingCalls": incoming,
    "callHierarchy/outgoingCalls": lambda params: [],
    "textDocument/documentSymbol": outline,
    "workspace/symbol": everywhere,
    "shutdown": lambda params: None,
}
PROVIDERS = ("definition", "references", "hover", "callHierarchy", "rename", "documentSymbol", "workspaceSymbol")


def initialize(params: Params) -> Params:
    offered = params["capabilities"].get("general", {}).get("positionEncodings") or [Text.encoding]
    Text.encoding = offered[0]
    capabilities: Params = {f"{name}Provider": True for name in PROVIDERS}
    capabilities["positionEncoding"] = Text.encoding
    capabilities["textDocumentSync"] = {"openClose": True, "change": 2}
    if HOW == "pull":
        capabilities["diagnosticProvider"] = {"interFileDependencies": False, "workspaceDiagnostics": False}
    return {"capabilities": capabilities, "serverInfo": {"name": "toy", "version": "1"}}


asked: list[Params] = []


def pulled(params: Params) -> Params:
    asked.append(params)
    if len(asked) % 2:
        raise Refused(CANCELLED_BY_SERVER, "not yet")
    return {"kind": "full", "items": found(Text.shown[params["textDocument"]["uri"]])}


# What is shown ---------------------------------------------------------------------------------------


def noted(what: str, uri: str) -> None:
    if HOW == "strict" and what:
        with Path(MORE[0]).open("a") as log:
            log.write(f"{what} {uri.rsplit('/', 1)[-1]}\n")


def opened(params: Params) -> None:
    document = params["textDocument"]
    noted("TWICE" if document["uri"] in Text.shown else "open", document["uri"])
    Text.shown[document["uri"]] = Text(document["uri"], document["version"], document["text"])
    look(document["uri"])


def changed(params: Params) -> None:
    document = params["textDocument"]
    Text.shown[document["uri"]].change(document["version"], params["contentChanges"])
    look(document["uri"])


def closed(params: Params) -> None:
    noted("close", params["textDocument"]["uri"])
    Text.shown.pop(params["textDocument"]["uri"], None)


def look(uri: str) -> None:
    """Every line with `wrong` in it is an error."""
    misbehave()
    text = Text.shown[uri]
    findings, version = found(text), text.version
    if HOW in ("silent", "pull"):
        return
    if HOW == "halves":
        publish(uri, [])
        later(0.05, lambda: publish(uri, findings, version))
        return
    publish(uri, findings, version)
    if HOW == "older":
        publish(uri, [], version - 1)


def found(text: Text) -> list[Params]:
    about = {"message": "this is wrong", "severity": 1, "code": "W1", "source": "toy"}
    wrong = [number for number, line in enumerate(text.lines) if "wrong" in line]
    return [{"range": span(number, 0, number, 1), **about} for number in wrong]


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


def publish(uri: str, findings: list[Params], version: int | None = None) -> None:
    known = {} if version is None else {"version": version}
    send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": findings, **known})


# The wire --------------------------------------------------------------------------------------------

writing = threading.Lock()
waiting: set[int | str] = set()
"""Requests that have no answer yet."""


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with writing:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


def later(seconds: float, act: Callable[[], object]) -> None:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()


def answer(number: int | str, make: Callable[[Params], Any], params: Params) -> None:
    if number not in waiting:
        return
    waiting.discard(number)
    try:
        send(id=number, result=make(params))
    except Refused as refusal:
        send(id=number, error={"code": refusal.args[0], "message": refusal.args[1]})


def about_a_place(number: int | str, make: Callable[[Params], Any], params: Params) -> None:
    uri = params["textDocument"]["uri"]
    match HOW:
        case "mute":
            pass
        case "broken":
            send(id=number, error={"code": FAILED, "message": "no such luck"})
        case "strict":  # the first line's answer comes first

            def noting(params: Params) -> Any:
                noted("" if uri in Text.shown else "NOT OPEN", uri)
                return make(params)

            later(0.1 * (params["position"]["line"] + 1), lambda: answer(number, noting, params))
        case _:
            answer(number, make, params)


def request(number: int | str, method: str, params: Params) -> None:
    waiting.add(number)
    if method in ABOUT_A_PLACE:
        about_a_place(number, ABOUT_A_PLACE[method], params)
    elif method in QUESTIONS:
        answer(number, QUESTIONS[method], params)
    else:
        send(id=number, error={"code": METHOD_NOT_FOUND, "message": f"unknown method {method}"})


def notification(method: str, params: Params) -> None:
    match method:
        case "initialized" if HOW == "busy":
            send(id="t", method="window/workDoneProgress/create", params={"token": "t"})
        case "textDocument/didOpen":
            opened(params)
        case "textDocument/didChange":
            changed(params)
        case "textDocument/didClose":
            closed(params)
        case "$/cancelRequest" if params["id"] in waiting:
            waiting.discard(params["id"])
            send(id=params["id"], error={"code": CANCELLED, "message": "cancelled"})
        case "exit":
            os._exit(0)
        case _:
            pass


def messages() -> Iterator[Params]:
    size = 0
    while header := sys.stdin.buffer.readline():
        if header.lower().startswith(b"content-length"):
            size = int(header.partition(b":")[2])
        elif not header.strip():
            yield json.loads(sys.stdin.buffer.read(size))


def main() -> None:
    QUESTIONS["initialize"] = initialize
    if HOW == "pull":
        QUESTIONS["textDocument/diagnostic"] = pulled
    if HOW == "late":
        time.sleep(float(MORE[0]))
    for message in messages():
        params: Params = message.get("params") or {}
        if "method" not in message:  # the answer about progress
            send(method="$/progress", params={"token": "t", "value": {"kind": "begin", "title": "reading"}})
        elif "id" in message:
            request(message["id"], message["method"], params)
        else:
            notification(message["method"], params)


if __name__ == "__main__":
    main()
