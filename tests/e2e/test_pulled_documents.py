"""An editor that sends no documents, and answers for them, through a real daemon process."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from amanu.frontends.lsp.connection import connect_in_process
from amanu.session.sessions import open_sessions
from support.range_edits import apply_wire_edits
from support.raw_client import RawClient
from support.warm_process import warm

SERVE = [sys.executable, "-P", "-m", "amanu", "serve"]
GUARD = 0.55
"""Seconds in which a decision would be too soon."""


class PullingEditor:
    """Prompts, accepts every edit, and answers the daemon with the texts it shows. Saves what it edits if `saves`."""

    def __init__(self, raw: RawClient, file: Path) -> None:
        self.raw = raw
        self.file = file
        self.text = file.read_text()
        self.saves = False
        self.session_id = ""
        self.asked: list[str] = []
        self.proposal: dict[str, Any] = {}

    async def begin(self, *steps: dict[str, Any], editor: list[str], session_id: str = "s") -> None:
        self.session_id = session_id
        script = self.file.parent.parent / f"{session_id}.json"
        script.write_text(json.dumps(steps))
        capabilities = {"experimental": {"amanu": {"protocol": [4], "editor": editor}}}
        await self.raw.initialize(capabilities, processId=os.getpid())
        made = {"sessionId": session_id, "roots": [str(self.file.parent)], "modelId": f"scripted:{script}"}
        assert "result" in await self.raw.request("amanu/session/create", made)

    async def turn(self) -> str:
        """The model's last words."""
        self._send("prompt", "amanu/prompt/send", {"sessionId": self.session_id, "promptId": "p", "text": "go on"})
        said, accepting = "", None
        while True:
            message = self.raw.heard.pop(0) if self.raw.heard else await self.raw.read()
            assert message is not None, "the server left"
            params = message.get("params")
            match message:
                case {"method": "amanu/editor/read" | "amanu/editor/apply" as method, "id": id}:
                    self.asked.append(method.rpartition("/")[2])
                    answer = self._read(params) if method.endswith("read") else self._apply(params)
                    self.raw.send({"jsonrpc": "2.0", "id": id, "result": answer})
                case {"params": {"event": {"kind": "proposalChanged", "proposal": proposal}}}:
                    self.proposal = proposal
                case {"params": {"event": {"kind": "approvalRequested"}}}:  # anew when a check has something to say
                    if accepting is not None:
                        accepting.cancel()
                    accepting = asyncio.create_task(self._accept())
                case {"params": {"event": {"kind": "itemCompleted", "item": {"kind": "answer", "text": text}}}}:
                    said = text
                case {"params": {"event": {"kind": "turnEnded"}}}:
                    return said
                case _:
                    pass

    @property
    def hunk_states(self) -> list[str]:
        return [hunk["state"] for hunk in self.proposal["files"][0]["hunks"]]

    async def _accept(self) -> None:
        await asyncio.sleep(GUARD)
        seen = {"proposalId": self.proposal["proposalId"], "version": self.proposal["version"]}
        hunks = [{"hunkId": hunk["hunkId"], "decision": "accept"} for hunk in self.proposal["files"][0]["hunks"]]
        self._send("accept", "amanu/proposal/resolve", {"sessionId": self.session_id, **seen, "hunks": hunks})

    def _send(self, id: str, method: str, params: Any) -> None:
        self.raw.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def _read(self, params: Any) -> Any:
        return {"text": self.text if params["path"] == str(self.file) else None}

    def _apply(self, params: Any) -> Any:
        assert params["path"] == str(self.file)
        if params["expectedSha256"] != sha256(self.text):
            return {"status": "conflict"}
        self.text = apply_wire_edits(self.text, params["edits"])
        if self.saves:
            self.file.write_text(self.text)
        return {"status": "success", "sha256": sha256(self.text), "saved": self.saves}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[PullingEditor]:
    (tmp_path / "work").mkdir()
    file = tmp_path / "work" / "cart.py"
    file.write_text("saved = 1\n")
    raw = await RawClient.spawn(warm([*SERVE, "--alone"]), {**os.environ})
    yield PullingEditor(raw, file)
    await raw.stop()


def steps(shown: str) -> list[dict[str, Any]]:
    """Read the file, see that text, and change its number."""
    edit = {"path": "cart.py", "old_text": "= 1", "new_text": "= 2"}
    return [
        {"calls": [{"tool": "read_file", "arguments": {"path": "cart.py"}}]},
        {"expect": shown, "calls": [{"tool": "edit_file", "arguments": edit}]},
        {"text": "Done."},
    ]


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("unsaved", [False, True])
async def test_an_accepted_edit_goes_through_the_client(client: PullingEditor, unsaved: bool, saves: bool) -> None:
    """One front's client saves whatever it writes, another does not."""
    client.saves = saves
    client.text = "unsaved = 1\n" if unsaved else client.text
    before = client.file.read_text()
    await client.begin(*steps(client.text), editor=["read", "apply"])
    assert await client.turn() == "Done."
    assert client.text == ("unsaved = 2\n" if unsaved else "saved = 2\n")
    assert client.file.read_text() == (client.text if saves else before)
    assert client.asked.count("apply") == 1 and client.hunk_states == ["applied"]


@pytest.mark.parametrize("unsaved", [False, True])
async def test_a_client_that_takes_no_edits(client: PullingEditor, unsaved: bool) -> None:
    client.text = "unsaved = 1\n" if unsaved else client.text
    await client.begin(*steps(client.text), editor=["read"])
    assert await client.turn() == "Done."
    assert client.file.read_text() == ("saved = 1\n" if unsaved else "saved = 2\n")
    assert client.text == ("unsaved = 1\n" if unsaved else "saved = 1\n")
    assert "apply" not in client.asked and client.hunk_states == ["conflicted" if unsaved else "applied"]


async def test_each_of_two_sessions_of_a_client_uses_its_own_connection(tmp_path: Path) -> None:
    """As `amanu acp` has one for each."""
    (tmp_path / "work").mkdir()
    file = tmp_path / "work" / "cart.py"
    file.write_text("saved = 1\n")
    sessions = open_sessions()
    connections = [RawClient(*await connect_in_process(sessions, os.environ)) for _ in "ab"]
    first, second = (PullingEditor(raw, file) for raw in connections)
    try:
        for each, session_id in ((first, "a"), (second, "b")):
            each.text = f"unsaved{session_id} = 1\n"
            await each.begin(*steps(each.text), editor=["read", "apply"], session_id=session_id)
        for each, other in ((first, second), (second, first)):
            other.asked.clear()
            assert await each.turn() == "Done."
            assert each.text.endswith("= 2\n") and each.hunk_states == ["applied"]
            assert each.asked.count("apply") == 1 and other.asked == []
            assert not any(message.get("method", "").startswith("amanu/editor/") for message in other.raw.heard)
    finally:
        for raw in connections:
            raw.writer.close()
        await sessions.shutdown()
