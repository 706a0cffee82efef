"""What a command changed in its layer is brought home, and a real daemon is killed at the n-th change that it makes to
files meanwhile, or finds the disk full from there on.

Then a daemon is started again and the session resumed. What was decided on is whole then: the text of the proposal,
git's repository, and each change that is no text, are as before or as after; nothing else is in the workspace, no lock
and no layer are left, and the session goes on. What was on record is whole, too: all that is still open can be
accepted. Of what was not, it is said that it was interrupted.
"""

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from amanu_protocol.items import Row, ToolCall
from amanu_protocol.state import SessionState
from e2e.test_prompt_to_edit import Editor, create, editor
from support.running_daemon import daemon_pid

Mode = Literal["ask", "acceptEdits", "draft"]
FAULTS = Path(__file__).with_name("file_faults")
_TEXTS = (
    "sed -i 's/^two$/TWO/' a.txt && rm old.txt dead/x.txt && rmdir dead && mkdir -p d/sub && echo new > d/sub/new.txt"
)
_NEW = (
    "printf 'new\\0' > new.bin && printf '\\211PNG\\r\\n\\032\\n\\0' > new.png && ln -s a.txt link "
    "&& chmod +x run.sh also.sh && mkdir out fresh && rmdir hollow && echo built > out/x"
)
_REPLACED = "printf 'pic\\0two' > pic.bin && rm gone.bin"
_COMMIT = "git add -A && git commit -qm second"
COMMANDS: dict[Mode, str] = {
    "ask": f"{_TEXTS} && {_NEW} && {_REPLACED} && {_COMMIT}",
    "acceptEdits": f"{_TEXTS} && {_NEW} && {_REPLACED}",
    "draft": f"{_TEXTS} && {_NEW} && {_REPLACED}",
}
"""Text changed, made and deleted; files that are no text: made, a picture, a link, changed, deleted; executable bits;
folders made and deleted; what git ignores; a commit of all that. As much of it as a mode takes without a question, or
with one at the end."""
_BEFORE: dict[str, bytes] = {
    "a.txt": b"one\ntwo\n",
    "old.txt": b"old\n",
    "pic.bin": b"pic\0one",
    "gone.bin": b"gone\0",
    "run.sh": b"#!/bin/sh\n",
    "also.sh": b"#!/bin/sh\n",
    "dead/x.txt": b"x\n",
    ".gitignore": b"out/\n",
}
_TEXT: dict[str, tuple[bytes | None, bytes | None]] = {
    "a.txt": (b"one\ntwo\n", b"one\nTWO\n"),
    "old.txt": (b"old\n", None),
    "dead/x.txt": (b"x\n", None),
    "d/sub/new.txt": (None, b"new\n"),
}
"""Path → before, after: decided on as one."""
_HELD: dict[str, tuple[bytes | None, bytes | None]] = {
    "pic.bin": (b"pic\0one", b"pic\0two"),
    "new.bin": (None, b"new\0"),
    "gone.bin": (b"gone\0", None),
    "new.png": (None, b"\x89PNG\r\n\x1a\n\0"),
    "link": (None, b"-> a.txt"),
    "fresh": (None, b"/"),
    "hollow": (b"/", None),
    "dead": (b"/", None),
    "out/x": (None, b"built\n"),
}
"""Each by itself."""
_FOLDERS = {"d", "d/sub", "dead", "fresh", "hollow", "out"}

FULL = "disk is full"
_OPEN = ("pending", "conflicted")

Moment = Literal["decision", "command"]


@dataclass(frozen=True)
class FileFault:
    """At the n-th change of files since the moment, or at the first one that matches `at`; neither: never. "kill": the
    daemon is. "full": the disk is. See `FileFaults`."""

    how: Literal["kill", "full"]
    nth: int = 0
    at: str = ""
    since: Moment = "decision"
    """The user's yes, or the prompt."""
    mode: Mode = "ask"
    elsewhere: bool = False
    """Layers are on another file system than the workspace."""

    def __str__(self) -> str:
        place = ", on another file system" if self.elsewhere else ""
        return f"in {self.mode}, {self.how} at {self.at or self.nth} since the {self.since}{place}"


PLANS = (
    FileFault("kill"),
    FileFault("kill", elsewhere=True),
    FileFault("kill", since="command"),
    FileFault("kill", mode="acceptEdits", since="command"),
    FileFault("kill", mode="draft", since="command"),
    FileFault("kill", mode="draft"),
    FileFault("kill", mode="draft", elsewhere=True),
    FileFault("full", since="command"),
    FileFault("full", elsewhere=True),
    FileFault("full", mode="acceptEdits", since="command"),
    FileFault("full", mode="draft"),
)
"""To be tried at each step."""


async def faults(plan: FileFault) -> list[FileFault]:
    """One for each change, by a run in which nothing happens."""
    return [replace(plan, nth=nth) for nth in range(1, len((await survive(plan)).steps) + 1)]


@dataclass(frozen=True)
class Outcome:
    """What stands after recovery: each unit "before" or "after". `bits` are the executable ones."""

    text: str
    bits: str
    held: tuple[str, ...]
    git: str
    happened: bool
    """The fault was reached."""
    steps: tuple[str, ...]
    """The changes that were made until then."""
    told: str
    """What the model was told of the command; "" when its daemon was killed."""
    kept: bool
    """The changes were on record when the session was opened again."""


async def survive(fault: FileFault) -> Outcome:
    """Raises `AssertionError` when a promise is broken."""
    with contextlib.ExitStack() as stack:
        base = Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-"))))
        state = base
        if fault.elsewhere:
            state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-", dir="/dev/shm")))
        return await _Run(fault, base, state).survive()


class _Run:
    def __init__(self, fault: FileFault, base: Path, state: Path) -> None:
        self._fault = fault
        self._root, self._home = base / "work", state / "amanu"
        self._armed, self._log = base / "armed", base / "steps"
        self._model = _scripted(base, COMMANDS[fault.mode])

    async def survive(self) -> Outcome:
        _lay_out(self._root)
        async with self._daemon(with_fault=True) as client:
            told = await self._play(client)
        steps = self._steps()
        happened = self._reached()
        try:
            async with self._daemon() as client:
                await client.attach("s1")
                await self._leaves_nothing()
                text = self._text(client.state)
                held = tuple(self._one_of(name, *versions) for name, versions in _HELD.items())
                bits, git = self._bits(), self._git()
                self._has_nothing_else()
                if happened and self._fault.how == "full" and {text, bits, *held, git} != {"after"}:
                    assert FULL in told, f"what the model and the user are told: {told}"
                kept = client.state is not None and bool(client.state.proposals)
                if happened and self._fault.how == "kill":
                    self._is_told(client.state, text, dict(zip(_HELD, held, strict=True)))
                    await self._accepts_the_rest(client)
                await self._goes_on(client)
        except AssertionError as error:
            raise AssertionError(f"{self._fault}: {error}\n" + "\n".join(steps[-3:])) from error
        return Outcome(text, bits, held, git, happened, tuple(steps), told, kept)

    async def _play(self, client: Editor) -> str:
        """Run the command and say yes to its changes. Returns what the model was told."""
        await create(client, self._root, self._model, mode=self._fault.mode)
        if self._fault.since == "command":
            self._armed.touch()
        try:
            await client.ask("prompt/send", sessionId="s1", promptId="p1", text="go")
            state = await client.until(lambda state: state.approvals or state.last_turn)
        except AssertionError:  # the server left
            state = None
        killed = not state
        if state is not None and state.approvals:
            await asyncio.sleep(0.55)  # an answer this soon would not be taken
            asked = state.approvals[0]
            assert not asked.blocked, f"it is asked about because {asked.blocked}"
            self._armed.touch()
            answer: dict[str, Any] = {"sessionId": "s1", "toolCallId": asked.tool_call_id, "decision": "allow"}
            answer["digest"] = asked.digest
            try:
                await client.ask("approval/resolve", **answer)
                await client.until(lambda state: state.last_turn is not None)
            except AssertionError:  # the server left
                killed = True
        self._armed.unlink()
        is_reached = self._fault.how == "kill" and self._reached()  # perhaps only after the turn
        assert is_reached or not killed, f"{self._fault}: the daemon is gone"
        if is_reached or client.state is None:
            return ""
        calls = [text for call in _calls(client.state) for text in (call.output, call.error or "")]
        return "\n".join([*calls, *_notices(client.state)])

    def _steps(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def _reached(self) -> bool:
        steps = self._steps()
        if self._fault.at:
            return any(re.search(self._fault.at, step.replace("'", "")) for step in steps)
        return 0 < self._fault.nth <= len(steps)

    @asynccontextmanager
    async def _daemon(self, *, with_fault: bool = False) -> AsyncGenerator[Editor]:
        environment = {"AMANU_HOME": str(self._home), "AMANU_SANDBOX_LAYERS": "true"}
        if with_fault:
            session = self._home / "state" / "sessions" / "s1"
            kept = session if self._fault.how == "kill" else session / "files"
            places = [str(self._root), str(self._home / "state" / "layers"), str(kept)]
            plan = {
                "how": self._fault.how,
                "nth": self._fault.nth,
                "at": self._fault.at,
                "armed": str(self._armed),
                "log": str(self._log),
            }
            environment["AMANU_FILE_FAULT"] = json.dumps({**plan, "folders": places})
            environment["PYTHONPATH"] = os.pathsep.join([str(FAULTS), *filter(None, sys.path)])
        try:
            async with editor(environment) as client:
                yield client
        finally:
            if (pid := daemon_pid({"AMANU_HOME": str(self._home)})) is not None:
                await _ended(pid)

    # What must hold ----------------------------------------------------------------------------------

    async def _leaves_nothing(self) -> None:
        layers = self._home / "state" / "layers"
        async with asyncio.timeout(50):
            while left := [path.name for path in layers.glob("*") if path.is_dir()]:
                await asyncio.sleep(0.02)
        assert not left

    def _text(self, state: SessionState | None) -> str:
        now = {name: self._read(name) for name in _TEXT}
        assert now in [{name: versions[at] for name, versions in _TEXT.items()} for at in (0, 1)], f"a mix: {now}"
        standing = "before" if now["a.txt"] == _TEXT["a.txt"][0] else "after"
        assert state is not None
        hunks = {hunk.state for proposal in state.proposals for file in proposal.files for hunk in file.hunks}
        open_states = ({"pending"}, {"conflicted"}, {"pending", "conflicted"}, set[str]())
        known = {"before": open_states, "after": ({"applied"},)}
        assert hunks in known[standing], f"the text is as {standing}, but its hunks are {hunks}"
        return standing

    def _bits(self) -> str:
        now = {os.access(self._root / name, os.X_OK) for name in ("run.sh", "also.sh")}
        assert len(now) == 1, "some files are executable, others not"
        return "after" if now == {True} else "before"

    def _is_told(self, state: SessionState | None, text: str, held: dict[str, str]) -> None:
        """Assert that it is said why something is not there: at each such row of accepted changes; in the error of the
        command, too, unless it had ended."""
        assert state is not None
        calls = _calls(state)
        open_calls = [call.title for call in calls if call.state not in ("succeeded", "failed", "cancelled")]
        assert not open_calls, f"still running: {open_calls}"
        missing = [name for name, standing in held.items() if standing == "before" and not name.startswith("out/")]
        rows = _rows(state)
        said = [row.path for row in rows if row.state in ("pending", "conflicted") and row.reason]
        untold = [name for name in missing if text == "after" and str(self._root / name) not in said]
        assert not untold, f"nothing is said of {untold}: {said}"
        ended = calls and calls[0].state == "succeeded"
        if state.items and not (ended and state.proposals):
            assert state.last_turn is not None and state.last_turn.reason == "interrupted", state.last_turn
            assert not calls or "Interrupted" in (calls[0].error or ""), f"the command: {calls}"

    async def _accepts_the_rest(self, client: Editor) -> None:
        """Accept what is open. All that was ever on record is in the workspace then, but for a commit, which says that
        it is gone; what was not on record is not there."""
        assert client.state is not None
        for proposal in list(client.state.proposals):
            hunks = [hunk for file in proposal.files for hunk in file.hunks if hunk.state in _OPEN]
            rows = [row for row in proposal.rows if row.state in _OPEN and not row.undecidable]
            accepted: dict[str, Any] = {
                "hunks": [{"hunkId": hunk.hunk_id, "decision": "accept"} for hunk in hunks],
                "rows": [{"rowId": row.row_id, "decision": "accept"} for row in rows],
            }
            named = {"sessionId": "s1", "proposalId": proposal.proposal_id, "version": proposal.version}
            await client.ask("proposal/resolve", **named, **accepted)
        await client.until(
            lambda state: not any(row.state == "accepted" for each in state.proposals for row in each.rows)
        )
        left = [f"{row.path}: {row.state}, {row.reason}" for row in _rows(client.state) if not _is_settled(row)]
        assert not left, f"not accepted: {left}"
        standing = "after" if client.state.proposals else "before"
        held = {self._one_of(name, *versions) for name, versions in _HELD.items() if not name.startswith("out/")}
        found = self._text(client.state), self._bits(), *held
        assert set(found) == {standing}, f"what was accepted is {found}, not as {standing}"

    def _one_of(self, name: str, before: bytes | None, after: bytes | None) -> str:
        now = self._read(name)
        assert now in (before, after), f"{name} is neither what it was nor what it became: {now!r}"
        return "before" if now == before else "after"

    def _git(self) -> str:
        assert not list((self._root / ".git").rglob("*.lock")), "a lock is left"
        _git(self._root, "fsck", "--strict")
        history = _git(self._root, "log", "--format=%s").splitlines()
        assert history in (["first"], ["second", "first"]), history
        assert _git(self._root, "diff", "--cached", "--name-only") == "", "the index is another commit's"
        assert len(_git(self._root, "reflog").splitlines()) == len(history), "the log is another commit's"
        return "before" if history == ["first"] else "after"

    def _has_nothing_else(self) -> None:
        known = {*_BEFORE, *_TEXT, *_HELD}
        found = {
            path.relative_to(self._root).as_posix()
            for path in self._root.rglob("*")
            if (path.is_symlink() or not path.is_dir()) and ".git" not in path.relative_to(self._root).parts
        }
        assert found <= known, f"nobody decided on {found - known}"
        folders = {path.relative_to(self._root).as_posix() for path in self._root.rglob("*") if path.is_dir()}
        odd = {name for name in folders - _FOLDERS if not f"{name}/".startswith(".git/")}
        assert not odd, f"nobody decided on the folders {odd}"
        odd = [path.name for path in (self._root / ".git").rglob("*") if path.name.startswith(".")]
        assert not odd, f"in the repository are {odd}"

    async def _goes_on(self, client: Editor) -> None:
        """The next command works. After a kill, the script still has its answer to the first one to give."""
        for prompt in ("p2", "p3"):
            sent = await client.ask("prompt/send", sessionId="s1", promptId=prompt, text="go on")
            is_over = partial(_is_over, sent["turnId"])
            state = await client.until(lambda state: state.approvals or is_over(state))  # noqa: B023
            if state.approvals:  # a draft that is still open is asked about again
                await asyncio.sleep(0.55)
                asked = state.approvals[0]
                answer = {"toolCallId": asked.tool_call_id, "decision": "finish", "digest": asked.digest}
                await client.ask("approval/resolve", sessionId="s1", **answer)
                state = await client.until(is_over)
            call = next(call for call in reversed(_calls(state)) if call.tool == "run_shell_command")
            if "seen.txt" in call.title:
                assert call.state == "succeeded" and "seen" in call.output, f"{call.state}: {call.output}"
                return
        raise AssertionError("the next command was not run")

    def _read(self, name: str) -> bytes | None:
        path = self._root / name
        if path.is_symlink():
            return f"-> {path.readlink()}".encode()
        if path.is_dir():
            return b"/"
        return path.read_bytes() if path.exists() else None


def _scripted(base: Path, command: str) -> str:
    call = {"tool": "run_shell_command", "arguments": {"command": command}}
    later = {"tool": "run_shell_command", "arguments": {"command": "touch seen.txt; ls seen.txt; rm seen.txt"}}
    steps = [{"calls": [call]}, {"text": "Done."}, {"calls": [later]}, {"text": "Done."}]
    (base / "script.json").write_text(json.dumps(steps))
    return f"scripted:{base / 'script.json'}"


def _lay_out(root: Path) -> None:
    for name, data in _BEFORE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "hollow").mkdir()
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        _git(root, *line.split())


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


async def _ended(pid: int) -> None:
    """End the daemon, and wait until it is gone."""
    handle = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(select.select, [handle], [], [], 10)
    finally:
        os.close(handle)


def _is_over(turn_id: str, state: SessionState) -> bool:
    return state.last_turn is not None and state.last_turn.turn_id == turn_id


def _notices(state: SessionState) -> list[str]:
    return [item.text for item in state.items if item.kind == "notice"]


def _rows(state: SessionState) -> list[Row]:
    return [row for proposal in state.proposals for row in proposal.rows]


def _is_settled(row: Row) -> bool:
    """It is applied; or it is a commit, and says that it is gone."""
    return row.state == "applied" or (row.kind == "git" and bool(row.undecidable or row.reason))


def _calls(state: SessionState) -> list[ToolCall]:
    return [item for item in state.items if item.kind == "toolCall"]
