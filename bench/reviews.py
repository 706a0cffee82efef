"""The cost of a review of 400 changes in 40 files in the daemon and in VS Code. Part of `bench.faces`.

The daemon is asked for a preview of everything, and the user types in a file with changes: quickly, and with a pause
after each key, in which the changes move to where their lines are now.
"""

import asyncio
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amanu.proposals.tracking import QUIET
from amanu_protocol.methods import PROTOCOL_VERSION
from bench.process import Tree
from bench.rpc import Rpc
from bench.subjects.amanu import COMMAND
from bench.subjects.environment import environment

FILES, HUNKS, LINES = 40, 10, 300
KEYS, PAUSED_KEYS = 200, 20
KEY_SECONDS = 0.05
REPEATS = 5
SETTLING = 3.0
"""Seconds until nothing follows any more from the question."""
SHAPES = {"ask": "a proposal for each file", "draft": "one proposal"}
"""Mode → its figure."""
PREVIEW_GOAL, KEY_GOAL = 100.0, 5.0


def text(number: int, *, changed: bool) -> str:
    """A file; `changed`: with as many lines of it changed as `HUNKS`, far from each other."""
    apart = LINES // HUNKS
    lines = [f"def part_{number}_{line}(): return {line}" for line in range(LINES)]
    for line in range(5, LINES, apart) if changed else ():
        lines[line] += "  # changed"
    return "\n".join(lines) + "\n"


def fill(folder: Path) -> list[Path]:
    """Lay the files into that folder."""
    files = [folder / f"part_{number:02}.py" for number in range(FILES)]
    for number, file in enumerate(files):
        file.write_text(text(number, changed=False))
    return files


def edits() -> list[tuple[str, str]]:
    """Path and new text of each file."""
    return [(f"part_{number:02}.py", text(number, changed=True)) for number in range(FILES)]


@dataclass(frozen=True)
class Figure:
    what: str
    found: float
    """Milliseconds."""
    goal: float | None = None
    """None where it is not ours to reach."""


def daemon() -> list[Figure]:
    return asyncio.run(_daemon())


async def _daemon() -> list[Figure]:
    figures: list[Figure] = []
    for mode, shape in SHAPES.items():
        with tempfile.TemporaryDirectory(prefix="amanu-bench-") as folder:
            async with waiting(Path(folder), mode) as review:
                previews = [await review.preview() for _ in range(REPEATS)]
                quick = await review.type(KEYS, KEY_SECONDS)
                paused = await review.type(PAUSED_KEYS, 2 * QUIET)
        figures += [
            Figure(f"daemon, {shape}: preview of everything, ms", 1000 * statistics.median(previews), PREVIEW_GOAL),
            Figure(f"daemon, {shape}: a key, ms of processor", 1000 * quick, KEY_GOAL),
            Figure(f"daemon, {shape}: a key and a pause, ms of processor", 1000 * paused, KEY_GOAL),
        ]
    return figures


class Review:
    """A session whose changes wait, and an editor that shows one of their files."""

    def __init__(self, rpc: Rpc, tree: Tree, session: str, file: Path) -> None:
        self._rpc = rpc
        self._tree = tree
        self._session = session
        self._uri = file.as_uri()
        self._version = 1
        document = {"uri": self._uri, "languageId": "python", "version": 1, "text": file.read_text()}
        rpc.notify("textDocument/didOpen", {"textDocument": document})

    async def preview(self) -> float:
        """Seconds until all changes are shown."""
        began = time.monotonic()
        params = {"sessionId": self._session, "texts": True}
        shown = await self._rpc.call("amanu/proposal/preview", params)
        spent = time.monotonic() - began
        assert sum(len(file["hunks"]) for file in shown["files"]) == FILES * HUNKS
        return spent

    async def type(self, keys: int, seconds: float) -> float:
        """Type that many characters, so many seconds apart. Seconds of the daemon's processor for each; what follows
        the last pause counts, what it does when nobody types does not."""
        idle = await self._spent_in(keys * seconds)
        typed = await self._spent_in(keys * seconds, keys)
        return max(0.0, typed - idle) / keys

    async def _spent_in(self, seconds: float, keys: int = 0) -> float:
        await asyncio.sleep(3 * QUIET)
        before = self._tree.own_cpu()
        for _ in range(keys):
            self._version += 1
            at = {"line": 100, "character": 0}
            change = {"range": {"start": at, "end": at}, "text": "x"}
            document = {"uri": self._uri, "version": self._version}
            self._rpc.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
            await asyncio.sleep(seconds / keys)
        await asyncio.sleep(3 * QUIET + (0 if keys else seconds))
        return self._tree.own_cpu() - before


@asynccontextmanager
async def waiting(folder: Path, mode: str) -> AsyncGenerator[Review]:
    """A daemon with a session in which all changes wait for the user."""
    work, home = folder / "work", folder / "home"
    work.mkdir()
    (home / "amanu" / "config").mkdir(parents=True)
    files = fill(work)
    script = folder / "script.json"
    calls = [{"tool": "write_file", "arguments": {"path": path, "content": new}} for path, new in edits()]
    script.write_text(json.dumps([{"calls": calls}, {"text": "Done."}]))
    tree, asked, all_asked = Tree(), set[str](), asyncio.Event()

    def notified(method: str, params: Any) -> None:
        if method != "amanu/event":
            return
        rpc.notify("amanu/event/ack", {"sessionId": params["sessionId"], "seq": params["seq"]})
        if params["event"]["kind"] == "approvalRequested":
            asked.add(params["event"]["approval"]["toolCallId"])
            if len(asked) == (1 if mode == "draft" else FILES):
                all_asked.set()

    command = [str(COMMAND), "serve", "--alone"]
    variables = environment(home, AMANU_HOME=str(home / "amanu"), AMANU_CATALOGUE_REFRESH="false")
    process = await tree.spawn(command, variables, work, folder / "errors")
    rpc = Rpc(process, "headers", notified, lambda method, params: None)
    try:
        session = uuid.uuid4().hex
        amanu = {"protocol": [PROTOCOL_VERSION], "trustedRoots": [str(work)]}
        folders = [{"uri": work.as_uri(), "name": "bench"}]
        await rpc.call(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": None,
                "workspaceFolders": folders,
                "capabilities": {"experimental": {"amanu": amanu}},
            },
        )
        rpc.notify("initialized", {})
        settings = {"roots": [str(work)], "modelId": f"scripted:{script}", "mode": mode}
        await rpc.call("amanu/session/create", {"sessionId": session, **settings})
        await rpc.call("amanu/prompt/send", {"sessionId": session, "promptId": uuid.uuid4().hex, "text": "Go."})
        async with asyncio.timeout(60):
            await all_asked.wait()
        await asyncio.sleep(SETTLING)
        yield Review(rpc, tree, session, files[0])
    finally:
        rpc.close()
        await tree.end()


def table(figures: Sequence[Figure]) -> str:
    head = f"{FILES} files with {HUNKS} changes each wait for the user. {os.cpu_count()} cores, load "
    return f"{head}{os.getloadavg()[0]:.1f}.\n\n| what | is | goal |\n|---|---|---|\n" + "".join(map(_row, figures))


def _row(figure: Figure) -> str:
    if figure.goal is None:
        return f"| {figure.what} | {figure.found:.1f} |  |\n"
    what = figure.what if figure.found <= figure.goal else f"**{figure.what}: missed**"
    return f"| {what} | {figure.found:.1f} | ≤ {figure.goal:.0f} |\n"


if __name__ == "__main__":
    print(table(daemon()))
