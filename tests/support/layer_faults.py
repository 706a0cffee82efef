"""The changes that a command made in its layer are brought home, and a real daemon is killed at the n-th change that it
makes to files meanwhile, or finds the disk full from there on.

Then a daemon is started again and the session resumed; where the disk was full, the daemon lives on. There is never a
mix on disk: all that one decision is about is as before, or all is as after (`WHOLE`). Nothing else is in the
workspace, no lock and no layer are left. All that is still open can be accepted, all that was applied can be undone,
and the session goes on. The user is told what was not done.

`python -m support.layer_faults` tries all faults and counts what comes of them.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from amanu.tools.shell.row_changes import NO_UNDO
from amanu_protocol.items import Proposal, Row, ToolCall
from amanu_protocol.state import SessionState
from e2e.test_prompt_to_edit import Editor, create
from support.layer_scenario import COMMANDS, COMMIT, OPEN, Mode, lay_out, of_kind, standings, tree
from support.open_documents import Moment, OpenDocuments, editor_with
from support.running_daemon import daemon_pid

WHOLE = True
"""All that one decision is about is as before, or all is as after. If False, text, executable bits, each other change
and the commit stand for themselves."""
COMMITS_ARE_UNDONE = True
"""Undo takes commits back. If False, it must leave them and say so."""

FAULTS = Path(__file__).with_name("file_faults")
FULL = re.compile("disk is full")
_OPEN = ("pending", "conflicted")

Since = Literal["decision", "command", "undo"]


@dataclass(frozen=True)
class FileFault:
    """A fault at the n-th change of files since the moment, or at the first one that matches `at`; never if neither is
    given. "kill": the daemon is killed. "full": the disk is full. See `FileFaults`."""

    how: Literal["kill", "full"]
    nth: int = 0
    at: str = ""
    since: Since = "decision"
    """The moment: the user's yes, the prompt, or the user's undo of everything."""
    mode: Mode = "ask"
    elsewhere: bool = False
    """All that Amanu keeps is on another file system than the workspace."""
    everywhere: bool = False
    """The disk that the session's journal is on is full, too."""
    editor: Literal["none", "saves", "leaves unsaved"] = "saves"
    """The editor that has a text open, and what it does with the change."""
    editor_at: Moment | None = None
    """The moment of its editor at which the daemon is killed, instead of at a change of files."""
    editor_too: bool = False
    """The editor is killed with it."""

    def __str__(self) -> str:
        place = ", on another file system" if self.elsewhere else ""
        place += ", with the journal" if self.everywhere else ""
        editor = "" if self.editor == "saves" else f", editor: {self.editor}"
        editor += ", with the editor" if self.editor_too else ""
        at = self.at or (f'"{self.editor_at}" of the editor' if self.editor_at else self.nth)
        return f"in {self.mode}, {self.how} at {at} since the {self.since}{place}{editor}"


PLANS = (
    FileFault("kill"),
    FileFault("kill", elsewhere=True),
    FileFault("kill", since="command"),
    FileFault("kill", mode="acceptEdits", since="command"),
    FileFault("kill", mode="acceptEdits", since="command", elsewhere=True),
    FileFault("kill", mode="auto", since="command"),
    FileFault("kill", mode="auto", since="command", elsewhere=True),
    FileFault("kill", mode="draft", since="command"),
    FileFault("kill", mode="draft"),
    FileFault("kill", mode="draft", elsewhere=True),
    FileFault("kill", mode="draft", editor="none"),
    FileFault("kill", mode="draft", editor="leaves unsaved"),
    FileFault("kill", mode="ask", since="undo"),
    FileFault("kill", mode="draft", since="undo", elsewhere=True),
    FileFault("full", since="command"),
    FileFault("full", elsewhere=True),
    FileFault("full", mode="acceptEdits", since="command"),
    FileFault("full", mode="auto", since="command"),
    FileFault("full", mode="draft"),
    FileFault("full", mode="draft", elsewhere=True),
    FileFault("full", mode="draft", everywhere=True),
    FileFault("full", mode="auto", since="command", everywhere=True),
    FileFault("full", mode="acceptEdits", since="undo"),
)
"""Faults to be tried at each change of files."""
_AT_EDITOR = (
    FileFault("kill", editor_at="asked"),
    FileFault("kill", editor_at="asked", editor_too=True),
    FileFault("kill", editor_at="saved"),
)
EDITOR_FAULTS = tuple(
    [replace(fault, mode=mode) for fault in _AT_EDITOR for mode in ("ask", "draft")]
    + [replace(fault, mode=mode, since="command") for fault in _AT_EDITOR for mode in ("acceptEdits", "auto")]
    + [replace(fault, mode=mode, since="undo") for fault in _AT_EDITOR for mode in ("ask", "acceptEdits")]
)


async def faults(plan: FileFault) -> list[FileFault]:
    """The plan at each change of files, which a run without a fault counts."""
    return [replace(plan, nth=nth) for nth in range(1, len((await survive(plan)).steps) + 1)]


class Mix(AssertionError):
    """A part of what was decided on is on disk."""


@dataclass(frozen=True)
class Outcome:
    """The standing after recovery."""

    units: Mapping[str, str]
    """Unit → "before" or "after"."""
    decided: Mapping[str, str]
    """The units that the decision was about, without those that the user is told were left out."""
    happened: bool
    """The fault was reached."""
    steps: tuple[str, ...]
    """The changes that were made until then."""
    told: str
    """The words to the model and the user about the command; "" when its daemon was killed."""
    kept: bool
    """The changes were on record after that."""

    @property
    def standing(self) -> str:
        """ "before", "after", or "mix"."""
        found = {*self.decided.values()}
        return found.pop() if len(found) == 1 else "mix"


async def survive(fault: FileFault, *, whole: bool = WHOLE) -> Outcome:
    """Raises `AssertionError` when a promise is broken."""
    with contextlib.ExitStack() as stack:
        base = Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-"))))
        state = base
        if fault.elsewhere:
            state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-", dir="/dev/shm")))
        return await _Run(fault, base, state, whole=whole).survive()


class _Run:
    def __init__(self, fault: FileFault, base: Path, state: Path, *, whole: bool) -> None:
        self._fault = fault
        self._whole = whole
        self._root, self._home = base / "work", state / "amanu"
        self._armed, self._log = base / "armed", base / "steps"
        self._model = _scripted(base, COMMANDS[fault.mode])
        self._documents = OpenDocuments(saves=fault.editor == "saves", goes_on=self._editor_goes_on)
        self._is_killed_by_editor = False

    async def survive(self) -> Outcome:
        lay_out(self._root)
        if self._fault.editor != "none":
            self._documents.open(self._root / OPEN)
        before = tree(self._root)
        outcome: Outcome | None = None
        try:
            async with self._daemon(with_fault=True) as client:
                told = await self._play(client)
                if told is not None:
                    outcome = await self._look(client, told, before)
            async with self._daemon() as client:
                await client.attach("s1")
                await self._leaves_nothing()
                if outcome is None:
                    outcome = await self._look(client, "", before)
                await self._goes_on(client)
        except AssertionError as error:
            raise type(error)(f"{self._fault}: {error}\n" + "\n".join(self._steps()[-3:])) from error
        return outcome

    async def _look(self, client: Editor, told: str, before: Mapping[str, Any]) -> Outcome:
        """Check the standing after the fault, then accept what is open, and undo all."""
        assert client.state is not None
        steps, happened = tuple(self._steps()), self._reached()
        units = standings(self._root)
        neither = {name: standing for name, standing in units.items() if standing not in ("before", "after")}
        assert not neither, f"neither as before nor as after: {neither}"
        decided = self._decided(client.state, units)
        outcome = Outcome(units, decided, happened, steps, told, bool(client.state.proposals))
        self._is_no_mix(decided)
        self._is_recorded(client.state, units)
        if happened and self._fault.how == "full" and self._missing(units):
            assert FULL.search(told), f"what the model and the user are told: {told}"
        if happened and self._fault.how == "kill":
            self._is_told(client.state, units)
        self._documents.save()
        if self._fault.since != "undo":
            await self._accepts_the_rest(client, units)
        await self._undoes_all(client, before)
        return outcome

    # The way to the fault ----------------------------------------------------------------------------

    async def _play(self, client: Editor) -> str | None:
        """Run the command, say yes to its changes, and undo them if that is to fail. Returns what the model and the
        user were told; None: the daemon was killed."""
        told = ""
        try:
            await create(client, self._root, self._model, mode=self._fault.mode)
            self._arm("command")
            told += await self._ask(client, "prompt/send", promptId="p1", text="go")
            state = await client.until(lambda state: state.approvals or state.last_turn)
            if state.approvals:
                await asyncio.sleep(0.55)  # an answer this soon would not be taken
                asked = state.approvals[0]
                assert not asked.blocked, f"it is asked about because {asked.blocked}"
                self._arm("decision")
                answer = {"toolCallId": asked.tool_call_id, "decision": "allow", "digest": asked.digest}
                told += await self._ask(client, "approval/resolve", **answer)
                await client.until(lambda state: state.last_turn is not None)
            if self._fault.since == "undo":
                self._arm("undo")
                told += await self._ask(client, "proposal/undo", scope={})
        except AssertionError:  # the server left
            if not (self._fault.how == "kill" and self._reached()):
                raise
            return None
        finally:
            self._armed.unlink(missing_ok=True)
        if self._fault.how == "kill" and self._reached():  # perhaps only after the turn
            return None
        assert client.state is not None
        return "\n".join([told, *_told(client.state)])

    async def _ask(self, client: Editor, method: str, **params: Any) -> str:
        """Send a request, and once more with room on the disk if it is refused for the lack of that. Returns what the
        user is told."""
        try:
            return json.dumps(await client.ask(method, sessionId="s1", **params))
        except AssertionError as refusal:
            if self._fault.how != "full" or not FULL.search(str(refusal)):
                raise
            self._armed.unlink()
            return f"{refusal}{json.dumps(await client.ask(method, sessionId='s1', **params))}"

    def _arm(self, since: Since) -> None:
        if self._fault.since == since:
            self._armed.touch()

    def _editor_goes_on(self, moment: Moment) -> bool:
        if not self._armed.exists() or moment != self._fault.editor_at:
            return True
        if not self._is_killed_by_editor and (pid := daemon_pid(self._environment)) is not None:
            self._is_killed_by_editor = True
            os.kill(pid, signal.SIGKILL)
        return not self._fault.editor_too

    def _steps(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def _reached(self) -> bool:
        if self._fault.editor_at:
            return self._is_killed_by_editor
        steps = self._steps()
        if self._fault.at:
            return any(re.search(self._fault.at, step.replace("'", "")) for step in steps)
        return any(step.startswith(f"{self._fault.nth} ") for step in steps)

    @property
    def _environment(self) -> dict[str, str]:
        return {"AMANU_HOME": str(self._home), "AMANU_SANDBOX_LAYERS": "true"}

    @asynccontextmanager
    async def _daemon(self, *, with_fault: bool = False) -> AsyncGenerator[Editor]:
        environment = self._environment
        if with_fault:
            session = self._home / "state" / "sessions" / "s1"
            kept = session if self._fault.how == "kill" or self._fault.everywhere else session / "files"
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
        async with editor_with(self._documents, environment) as client:
            async with asyncio.timeout(50):
                while (pid := daemon_pid(self._environment)) is None:  # its relay answers before it is there
                    await asyncio.sleep(0.01)
            try:
                yield client
            finally:
                await _ended(pid)

    # What must hold ----------------------------------------------------------------------------------

    async def _leaves_nothing(self) -> None:
        layers = self._home / "state" / "layers"
        async with asyncio.timeout(50):
            while any(path.is_dir() for path in layers.glob("*")):
                await asyncio.sleep(0.02)

    def _decided(self, state: SessionState, units: Mapping[str, str]) -> dict[str, str]:
        """The units of the decision, without the open document if the user is told that it was left behind."""
        is_kept = self._fault.since == "undo" and not COMMITS_ARE_UNDONE
        decided = _decided(units, with_commit="commit" in COMMANDS[self._fault.mode] and not is_kept)
        left_behind = "after" if self._fault.since == "undo" else "before"
        if units[OPEN] == left_behind and _names_document(state):
            del decided[OPEN]
        return decided

    def _is_no_mix(self, decided: Mapping[str, str]) -> None:
        groups = [decided] if self._whole else [of_kind(decided, "text"), of_kind(decided, "bits")]
        for group in groups:
            if len({*group.values()}) > 1:
                missing = [name for name, standing in group.items() if standing == "before"]
                raise Mix(f"a mix: {missing} are as before, {sorted(group.keys() - missing)} as after")

    def _is_recorded(self, state: SessionState, units: Mapping[str, str]) -> None:
        """Assert that the changes are in the state that the files are in."""
        files = [file for each in state.proposals for file in each.files]
        found = {hunk.state for file in files for hunk in file.hunks if Path(file.path).name != OPEN}
        found |= {row.state for row in _rows(state) if row.kind != "git"} if self._whole else set()
        standing = units["b.txt"]
        not_applied = {"pending", "conflicted", "rejected", "reverted"}
        fits = found == {"applied"} if standing == "after" else found <= not_applied
        assert fits, f"the files are as {standing}, but what was decided is {found}"

    def _missing(self, units: Mapping[str, str]) -> list[str]:
        """The units that are not as the user wanted: after a decision as before, after an undo as after."""
        wanted = "before" if self._fault.since == "undo" else "after"
        decided = _decided(units, with_commit=self._fault.mode in ("ask", "auto") and wanted == "after")
        return [name for name, standing in decided.items() if standing != wanted]

    def _is_told(self, state: SessionState, units: Mapping[str, str]) -> None:
        """Assert that it is said why something is not there: at each such row of accepted changes; in the error of the
        command, too, unless it had ended."""
        calls = _calls(state)
        open_calls = [call.title for call in calls if call.state not in ("succeeded", "failed", "cancelled")]
        assert not open_calls, f"still running: {open_calls}"
        said = [Path(row.path).relative_to(self._root).as_posix() for row in _rows(state) if row.reason]
        rows = of_kind(units, "row")
        untold = [name for name, at in rows.items() if at == "before" and name.partition(" → ")[0] not in said]
        is_applied = self._fault.since != "undo" and units["b.txt"] == "after"
        assert not (is_applied and untold), f"nothing is said of {untold}: {said}"
        ended = calls and calls[0].state == "succeeded"
        if state.items and not (ended and state.proposals):
            assert state.last_turn is not None and state.last_turn.reason == "interrupted", state.last_turn
            assert not calls or "Interrupted" in (calls[0].error or ""), f"the command: {calls}"

    async def _accepts_the_rest(self, client: Editor, units: Mapping[str, str]) -> None:
        """Accept what is open. All that was ever on record is in the workspace then; a commit may instead say why it is
        not. What was not on record is not there."""
        assert client.state is not None
        for proposal in list(client.state.proposals):
            await _resolve(client, proposal, _OPEN, "accept")
            await _resolve(client, _latest(client, proposal), ("rejected",), "redo")
        await client.until(lambda state: not any(row.state == "accepted" for row in _rows(state)))
        self._documents.save()
        left = [f"{row.path}: {row.state}, {row.reason}" for row in _rows(client.state) if not _is_settled(row)]
        assert not left, f"not accepted: {left}"
        standing = "after" if client.state.proposals else "before"
        self._stands(standing, "what was accepted")

    async def _undoes_all(self, client: Editor, before: Mapping[str, Any]) -> None:
        """Undo everything. The files are then as at the start, byte for byte, and so is the commit
        (`COMMITS_ARE_UNDONE`)."""
        undone = await client.ask("proposal/undo", sessionId="s1", scope={})
        self._documents.save()
        skipped = [(Path(file["path"]).name, each["reason"]) for file in undone["files"] for each in file["skipped"]]
        commits = [] if COMMITS_ARE_UNDONE else ["work"]
        lost = {name for name, why in skipped if self._fault.how == "full" and why == NO_UNDO}  # its disk kept no copy
        assert all(name in {*commits, *lost} for name, _ in skipped), f"not undone: {skipped}"
        self._stands("before", "after undo, the workspace", but=lost)
        now = tree(self._root)
        odd = {name: (before.get(name), now.get(name)) for name in (before.keys() | now.keys()) - lost}
        odd = {name: sides for name, sides in odd.items() if sides[0] != sides[1]}
        assert not odd, f"undo left {odd}"

    def _stands(self, standing: str, what: str, but: Collection[str] = ()) -> None:
        found = _decided(standings(self._root)).items()
        odd = {name: at for name, at in found if at != standing and name not in but}
        assert not odd, f"{what} is not as {standing}: {odd}"

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


def _decided(units: Mapping[str, str], *, with_commit: bool = False) -> dict[str, str]:
    """All that is decided on together."""
    found = of_kind(units, "text", "bits", "row")
    return found | {COMMIT: units[COMMIT]} if with_commit else found


def _names_document(state: SessionState) -> bool:
    """Whether the user is told that the open document was not brought along."""
    files = [file for each in state.proposals for file in each.files if Path(file.path).name == OPEN]
    is_named = any(file.unsaved or any(hunk.reason for hunk in file.hunks) for file in files)
    return is_named or any(OPEN in text for text in _notices(state))


async def _resolve(client: Editor, proposal: Proposal, states: Sequence[str], decision: str) -> None:
    hunks = [hunk for file in proposal.files for hunk in file.hunks if hunk.state in states]
    rows = [row for row in proposal.rows if row.state in states and not row.undecidable]
    if hunks or rows:
        decisions: dict[str, Any] = {
            "hunks": [{"hunkId": hunk.hunk_id, "decision": decision} for hunk in hunks],
            "rows": [{"rowId": row.row_id, "decision": decision} for row in rows],
        }
        named = {"sessionId": "s1", "proposalId": proposal.proposal_id, "version": proposal.version}
        await client.ask("proposal/resolve", **named, **decisions)


def _latest(client: Editor, proposal: Proposal) -> Proposal:
    assert client.state is not None
    return next(each for each in client.state.proposals if each.proposal_id == proposal.proposal_id)


def _scripted(base: Path, command: str) -> str:
    call = {"tool": "run_shell_command", "arguments": {"command": command}}
    later = {"tool": "run_shell_command", "arguments": {"command": "touch seen.txt; ls seen.txt; rm seen.txt"}}
    steps = [{"calls": [call]}, {"text": "Done."}, {"calls": [later]}, {"text": "Done."}]
    (base / "script.json").write_text(json.dumps(steps))
    return f"scripted:{base / 'script.json'}"


async def _ended(pid: int) -> None:
    """End the daemon unless it has ended, and wait until it is gone: as long as it is not, clients reach its socket."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(select.select, [handle], [], [], 10)
    finally:
        os.close(handle)


def _is_over(turn_id: str, state: SessionState) -> bool:
    return state.last_turn is not None and state.last_turn.turn_id == turn_id


def _told(state: SessionState) -> list[str]:
    """The words to the model and the user about the calls and their changes."""
    calls = [text for call in _calls(state) for text in (call.output, call.error or "")]
    changes = [change.reason or "" for each in state.proposals for change in each.changes]
    return [*calls, *changes, *_notices(state)]


def _notices(state: SessionState) -> list[str]:
    return [item.text for item in state.items if item.kind == "notice"]


def _rows(state: SessionState) -> list[Row]:
    return [row for proposal in state.proposals for row in proposal.rows]


def _is_settled(row: Row) -> bool:
    """Whether it is applied, or is a commit and says why it is not."""
    return row.state == "applied" or (row.kind == "git" and bool(row.undecidable or row.reason))


def _calls(state: SessionState) -> list[ToolCall]:
    return [item for item in state.items if item.kind == "toolCall"]


# The whole sweep -------------------------------------------------------------------------------------

Count = Counter[tuple[str, str, str]]
"""(mode, fault, outcome) → number. Outcomes: before, after, a mix, or another broken promise ("fault")."""


async def sweep(
    *,
    every: int = 1,
    seconds: float = float("inf"),
    whole: bool = WHOLE,
    modes: Sequence[str] = (),
    report: Callable[[str], None] = print,
) -> tuple[Count, int]:
    """Try one fault in `every`, each with a daemon of its own, two at a time for each processor, for at most `seconds`.
    `report` hears of each broken promise. Returns counts, and how many there were to be tried."""
    plans = [plan for plan in PLANS if not modes or plan.mode in modes]
    todo = [fault for fault in EDITOR_FAULTS if not modes or fault.mode in modes]
    at_once = 2 * (os.cpu_count() or 1)
    limit = asyncio.Semaphore(at_once)

    async def found(plan: FileFault) -> list[FileFault]:
        async with limit:
            steps = await faults(plan)
        return steps[random.Random(len(steps)).randrange(every) :: every]

    for steps in await asyncio.gather(*map(found, plans)):
        todo += steps
    random.Random(0).shuffle(todo)
    planned, counts, begun = len(todo), Count(), time.monotonic()

    async def work() -> None:
        while todo and time.monotonic() - begun < seconds:
            fault = todo.pop()
            outcome = await _outcome(fault, report, whole=whole)
            counts[fault.mode, f"{fault.how} since the {fault.since}", outcome] += 1

    await asyncio.gather(*(work() for _ in range(at_once)))
    return counts, planned


async def _outcome(fault: FileFault, report: Callable[[str], None], *, whole: bool) -> str:
    try:
        return (await survive(fault, whole=whole)).standing
    except Mix as error:
        report(str(error))
        return "mix"
    except (AssertionError, TimeoutError) as error:
        report(f"{fault}: {type(error).__name__} {error}")
        return "fault"


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a daemon, or fill its disk, at each change of files.")
    parser.add_argument("--whole", action="store_true", default=WHOLE, help="nothing of a decision, or all of it")
    parser.add_argument("--every", type=int, default=1, help="only each n-th change of files")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--mode", action="append", choices=COMMANDS, default=[])
    chosen = parser.parse_args()
    running = sweep(every=chosen.every, seconds=chosen.seconds, whole=chosen.whole, modes=chosen.mode)
    counts, planned = asyncio.run(running)
    for (mode, how, outcome), count in sorted(counts.items()):
        print(f"{mode:12} {how:24} {outcome:8} {count:5}")
    print(f"{counts.total()} of {planned}")
    return 1 if any(outcome in ("mix", "fault") for _, _, outcome in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
