"""The exchanges on docs/protocol.md, played with the real daemon; and the client that stands beside the page."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from support.raw_client import RawClient
from support.running_daemon import signal_daemon

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "protocol.md").read_text("utf-8")
MORE = "…"
"""On the page: further fields, further elements of a list, or a long text's end, left out."""
MINTED = {
    "epoch", "seq", "fromSeq", "sinceSeq", "at", "askedAt",
    "digest", "proposalId", "hunkId", "toolCallId", "toolCallIds",
}  # fmt: skip
"""Fields whose values differ from run to run; the page's value stands for the same one wherever it comes."""
SCRIPT, TILL = (re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0] for language in ("json", "python"))
"""The script of the model that the page uses, and the file it edits."""


class Names:
    """The page's values of minted fields, and what they are in this run."""

    def __init__(self, folder: Path, script: Path) -> None:
        self._minted: dict[Any, Any] = {}
        self._texts = {"/home/you/shop": str(folder), "/home/you/demo.json": str(script)}

    def fits(self, page: Any, actual: Any) -> bool:
        """Whether the daemon's message is the page's; then what is minted in it is known from now on."""
        before = dict(self._minted)
        if not self._fits(page, actual):
            self._minted = before
            return False
        return True

    def _fits(self, page: Any, actual: Any, key: str = "") -> bool:
        if isinstance(page, dict) and isinstance(actual, dict):
            page, actual = cast("Json", page), cast("Json", actual)
            shown = {name for name in page if name != MORE}
            same = shown <= actual.keys() and (MORE in page or len(shown) == len(actual))
            return same and all(self._fits(page[name], actual[name], name) for name in shown)
        if isinstance(page, list) and isinstance(actual, list):
            page, actual = cast("list[Any]", page), cast("list[Any]", actual)
            cut = page[-1:] == [MORE]
            shown = page[:-1] if cut else page
            same = len(actual) >= len(shown) if cut else len(actual) == len(shown)
            return same and all(self._fits(one, other, key) for one, other in zip(shown, actual, strict=False))
        if key in MINTED and page is not None and actual is not None:
            return self._minted.setdefault(page, actual) == actual
        if isinstance(page, str) and isinstance(actual, str):
            whole = self.said(page.removesuffix(MORE))
            return actual.startswith(whole) if page.endswith(MORE) else actual == whole
        return page == actual

    def said(self, page: Any, key: str = "") -> Any:
        """A value of the page as the client sends it in this run."""
        if isinstance(page, dict):
            page = cast("Json", page)
            return {name: self.said(value, name) for name, value in page.items()}
        if isinstance(page, list):
            page = cast("list[Any]", page)
            return [self.said(value, key) for value in page]
        if key in MINTED:
            return self._minted.get(page, page)
        if isinstance(page, str):
            for shown, actual in self._texts.items():
                page = page.replace(shown, actual)
        return page


def exchanges(page: str) -> Iterator[tuple[str, Any]]:
    """The messages of the page in order: who speaks, "→" for the client, and the message."""
    for block in re.findall(r"```text\n([→←].*?)```", page, re.DOTALL):
        for arrow, text in re.findall(r"^([→←]) (.*?)(?=^[→←]|\Z)", block, re.DOTALL | re.MULTILINE):
            yield arrow, json.loads(text)


async def test_the_daemon_says_what_the_page_says(tmp_path: Path) -> None:
    folder, script = tmp_path / "shop", tmp_path / "demo.json"
    folder.mkdir()
    (folder / "till.py").write_text(TILL)
    script.write_text(SCRIPT)
    names = Names(folder, script)
    daemon = await RawClient.spawn([sys.executable, "-P", "-m", "amanu", "serve", "--alone"], dict(os.environ))
    played = 0
    for arrow, message in exchanges(PAGE):
        played += 1
        if arrow == "→":
            if "decision" in json.dumps(message):
                await asyncio.sleep(0.55)  # the daemon takes no answer before the question can have been read
            daemon.send(names.said(message))
            continue
        passed: list[Any] = []
        while (heard := await daemon.read()) is not None and not names.fits(message, heard):
            passed.append(heard)
            assert heard.get("id") is None or heard["id"] != message.get("id"), (message, heard)
        assert heard is not None, (message, passed)
    assert played >= 20
    assert (folder / "till.py").read_text() == TILL.replace("0.17", "0.19")
    await daemon.stop()


REVIEW = ("which? ", "Review hunk by hunk")
CUT = "cut, then "
CLIENTS: dict[str, tuple[str, list[tuple[str, str]], str]] = {
    "minimal_client.py": (
        sys.executable,
        [REVIEW, ("accept? [y/n] ", "n"), ("accept? [y/n] ", "y")],
        TILL.replace("0.17", "0.19"),
    ),
    "minimal_client.mjs": (
        "node",
        [REVIEW, ("accept? [y/n] ", "n"), ("accept? [y/n] ", CUT + "y"), ("undo? [y/n] ", CUT + "y")],
        TILL,
    ),
}
"""Client → what runs it, what it asks and what the user answers, and what becomes of the file. `CUT`: its connection
ends before the answer. A choice is answered with the number before it."""


@pytest.fixture
def shared_daemon() -> Iterator[None]:
    """A client may start one, which outlives it."""
    yield
    signal_daemon()


@pytest.mark.usefixtures("shared_daemon")
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_minimal_client_reviews_hunk_by_hunk(tmp_path: Path, name: str) -> None:
    runner, dialogue, left = CLIENTS[name]
    (tmp_path / "bin").mkdir()
    program, pid = tmp_path / "bin" / "amanu", tmp_path / "pid"
    program.write_text(f'#!/bin/sh\necho $$ > {pid}\nexec {sys.executable} -P -m amanu "$@"\n')
    program.chmod(0o755)
    script = tmp_path / "demo.json"
    script.write_text(SCRIPT)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "till.py").write_text(TILL)
    path = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    client = await asyncio.create_subprocess_exec(
        shutil.which(runner, path=path) or runner,
        ROOT / "docs" / "examples" / name,
        "Mend the till.",
        cwd=folder,
        env={**os.environ, "PATH": path, "AMANU_MODEL": f"scripted:{script}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert client.stdin is not None and client.stdout is not None
    seen = ""
    for question, answer in dialogue:
        part = ""
        async with asyncio.timeout(50):
            while not part.endswith(question):
                part += (await client.stdout.read(1)).decode("utf-8", "replace")
        seen += part
        await asyncio.sleep(0.55)  # nobody has read it before
        if answer.startswith(CUT):
            os.kill(int(pid.read_text()), signal.SIGKILL)
        choice = re.search(rf"^(\d+)\. {answer}$", part, re.MULTILINE)
        client.stdin.write(f"{choice[1] if choice else answer.removeprefix(CUT)}\n".encode())
        await client.stdin.drain()
    rest, _ = await client.communicate()
    seen += rest.decode()
    assert [seen.count(text) for text in ("Quantities are ignored.", "Quantities count now.")] == [1, 1], seen
    assert "till.py, line 6\n" in seen and "-    return amount * 0.17\n+    return amount * 0.19\n" in seen
    assert ((folder / "till.py").read_text(), client.returncode) == (left, 0)
