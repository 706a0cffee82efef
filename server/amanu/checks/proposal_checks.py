"""Checks proposals before they are decided: the question is shown at once, and the results are added to it.

Only proposals that the user is asked about are checked, and only in trusted workspaces: a checker reads the workspace's
settings and may load its plugins. A proposal that changes is checked again, a decided one no longer.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from amanu.checks.catalog import has_checker
from amanu.checks.editor_feedback import Note
from amanu.checks.process import CheckFailed
from amanu.checks.runner import Checkers, ReadyChecker, TextChange
from amanu.core.tool import ToolError
from amanu.workspace.diagnostics import FindingsChange, combine, with_summary
from amanu.workspace.hunks import text_with
from amanu.workspace.overlay import CodePlace, Renaming
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Check, Finding, HunkState, Proposal, ProposedFile

PAUSE = 0.2
"""Seconds to wait after a change of the proposal: hunks are often decided one after the other."""
AGAIN = 5
"""Times that pause after a change of what was checked before: the user decides, or types in the file."""
SHOWN = 0.5
"""Seconds after which a running checker is shown; most need less."""
MOST_FILES = 20
"""Files of one proposal; the results for a bigger one would come too late."""
MOST_FOUND = 50
"""Findings reported for one checker and file."""
MOST_BESIDE = 20
"""Unsaved files that checkers see as they are in the editor."""

log = logging.getLogger(__name__)

MOST_KNOWN = 50
"""Results remembered until their edit is applied."""

Texts = Mapping[Path, TextChange]


class ProposalChecks:
    """The checks of one session's proposals. `environment` is that of commands; `trusted` returns whether the session's
    roots are trusted; `note` records results at the proposal."""

    def __init__(
        self,
        workspace: Workspace,
        checkers: Checkers,
        note: Note,
        environment: Mapping[str, str],
        trusted: Callable[[], bool],
    ) -> None:
        self._workspace = workspace
        self._checkers = checkers
        self._note = note
        self._environment = environment
        self._trusted = trusted
        self._latest: dict[str, Proposal] = {}
        """Undecided proposals, by id."""
        self._asked: set[str] = set()
        self._checked: dict[str, Texts] = {}
        """Proposal → the texts that are or were checked."""
        self._results: dict[tuple[str, Path], tuple[TextChange, FindingsChange]] = {}
        """(Checker, file) → the last result for a proposed change."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._all: set[asyncio.Task[None]] = set()
        """Including those that a newer one has replaced."""

    def on_question(self, proposal_id: str) -> None:
        """The user is being asked about that proposal."""
        self._asked.add(proposal_id)
        if proposal_id in self._latest:
            self.on_proposal(self._latest[proposal_id])

    def on_proposal(self, proposal: Proposal) -> None:
        """A proposal has changed."""
        proposal_id = proposal.proposal_id
        if proposal.state == "settled":
            self._latest.pop(proposal_id, None)
            self._asked.discard(proposal_id)
            if self._checked.pop(proposal_id, None):
                self._start(proposal, {})
            return
        self._latest[proposal_id] = proposal
        if proposal_id not in self._asked or not self._checkers.enabled or not self._trusted():
            return
        files = list(filter(_is_checked, proposal.files))
        texts = {Path(file.path): _change(file) for file in files} if len(files) <= MOST_FILES else {}
        known = self._checked.get(proposal_id, {})
        if texts != known:
            self._checked[proposal_id] = texts
            self._start(proposal, texts, AGAIN * PAUSE if known else PAUSE)

    async def check_applied(self, path: Path, old_text: str | None, new_text: str) -> AsyncGenerator[FindingsChange]:
        """What each checker finds in an applied edit, the quickest first. Never raises: a checker that fails has found
        nothing."""
        if not self._checkers.enabled or not self._trusted() or not await self._checkers.sandboxed():
            return
        roots, others = self._workspace.roots, await self._unsaved()
        root = self._workspace.root_of(path)
        change = TextChange(path, old_text, new_text)
        checks = [
            asyncio.create_task(self._check_applied_with(ready, change, others))
            for ready in await asyncio.to_thread(self._checkers.ready, [path], root, roots, self._environment)
        ]
        try:
            for check in asyncio.as_completed(checks):
                yield await check
        finally:
            for check in checks:
                check.cancel()
            await asyncio.gather(*checks, return_exceptions=True)

    async def find(self, path: Path) -> Sequence[Finding]:
        """What all checkers find in a file as it is. Never raises: what cannot be checked has no findings."""
        try:
            file = await self._workspace.read_if_exists(path)
        except ToolError:
            return ()
        if file is None:
            return ()
        async with contextlib.aclosing(self.check_applied(path, None, file.text)) as changes:
            return combine([change async for change in changes]).added

    async def rename(self, place: CodePlace, new_name: str) -> Renaming | None:
        """What a language server that still runs since a check would change to rename a symbol. None: none does."""
        if not self._checkers.enabled or not self._trusted():
            return None
        texts = {**await self._unsaved(), place.path: (await self._workspace.read(place.path)).text}
        try:
            files = await self._checkers.rename(self._workspace.root_of(place.path), place, new_name, texts)
        except CheckFailed as error:
            return Renaming("error", "utf-16", message=str(error))
        return None if files is None else Renaming("success", "utf-16", files)

    async def stop(self) -> None:
        """Trust was taken back: check nothing in the workspace any more."""
        await self.close()
        for proposal_id in [checked_id for checked_id in self._checked if checked_id in self._latest]:
            self._start(self._latest[proposal_id], {})
        self._checked.clear()
        await self._checkers.end(self._workspace.roots)

    async def close(self) -> None:
        """Cancel all checks."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._all, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------

    def _start(self, proposal: Proposal, texts: Texts, pause: float = 0) -> None:
        previous = self._tasks.get(proposal.proposal_id)
        if previous is not None:
            previous.cancel()
        task = self._tasks[proposal.proposal_id] = asyncio.create_task(self._run(proposal, texts, pause))
        self._all.add(task)
        task.add_done_callback(self._all.discard)
        task.add_done_callback(lambda task: self._forget(proposal.proposal_id, task))

    def _forget(self, proposal_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(proposal_id) is task:
            del self._tasks[proposal_id]

    async def _run(self, proposal: Proposal, texts: Texts, pause: float) -> None:
        try:
            await self._clear(proposal, texts)
            if texts and await self._checkers.sandboxed():
                await asyncio.sleep(pause)
                await self._check(proposal.proposal_id, texts)
        except AmanuError:
            pass  # the proposal no longer exists
        except Exception:
            log.exception("a proposal could not be checked")

    async def _clear(self, proposal: Proposal, texts: Texts) -> None:
        """Remove results for earlier texts. A decided file keeps its results, but gets no further ones."""
        for file in proposal.files:
            finished = [] if Path(file.path) in texts else [check for check in file.checks if check.state != "running"]
            await self._note(
                proposal.proposal_id,
                Path(file.path),
                "proposed",
                [check for check in finished if check.about == "proposed"],
            )

    async def _check(self, proposal_id: str, texts: Texts) -> None:
        """Run each checker on all files, root by root."""
        results: dict[Path, dict[str, Check]] = {path: {} for path in texts}
        others = await self._unsaved()
        roots = self._workspace.roots
        tasks: list[asyncio.Task[None]] = []
        try:
            for root in roots:
                within = [path for path in texts if self._workspace.root_of(path) == root]
                for ready in await asyncio.to_thread(self._checkers.ready, within, root, roots, self._environment):
                    fitting = [path for path in within if path.suffix.lower() in ready.checker.languages]
                    for path in fitting:
                        results[path][ready.checker.name] = _unfinished(ready, "running")
                    changes = [texts[path] for path in fitting]
                    tasks.append(asyncio.create_task(self._run_checker(ready, proposal_id, changes, others, results)))
            if tasks:
                _, slow = await asyncio.wait(tasks, timeout=SHOWN)
                if slow:
                    await self._publish(proposal_id, results, results)
                await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _check_applied_with(
        self, ready: ReadyChecker, change: TextChange, others: Mapping[Path, str]
    ) -> FindingsChange:
        cached = self._results.get((ready.checker.name, change.path))
        if cached is not None and cached[0] == change:
            return cached[1]  # checked when the user was asked about it
        try:
            return (await self._checkers.check(ready, [change], others))[change.path]
        except CheckFailed:
            return FindingsChange()

    async def _run_checker(
        self,
        ready: ReadyChecker,
        proposal_id: str,
        changes: list[TextChange],
        others: Mapping[Path, str],
        results: dict[Path, dict[str, Check]],
    ) -> None:
        try:
            differences = await self._checkers.check(ready, changes, others)
            self._results |= {
                (ready.checker.name, change.path): (change, differences[change.path]) for change in changes
            }
            while len(self._results) > MOST_KNOWN:
                del self._results[next(iter(self._results))]
            verdicts = {change.path: _done(ready, differences[change.path]) for change in changes}
        except CheckFailed as error:
            verdicts = {change.path: _unfinished(ready, "failed", str(error)) for change in changes}
        for path, verdict in verdicts.items():
            results[path][ready.checker.name] = verdict
        await self._publish(proposal_id, results, list(verdicts))

    async def _publish(
        self, proposal_id: str, results: Mapping[Path, Mapping[str, Check]], paths: "list[Path] | Mapping[Path, object]"
    ) -> None:
        for path in paths:
            await self._note(proposal_id, path, "proposed", list(results[path].values()))

    async def _unsaved(self) -> dict[Path, str]:
        """And drafted, but for what is gone in the draft."""
        files = [file for file in await self._workspace.unsaved() if file.exists or file.from_buffer]
        return {file.path: file.text for file in files[:MOST_BESIDE]}


def _is_checked(file: ProposedFile) -> bool:
    """Whether some of its hunks are undecided, and a checker may look at what they would make of it."""
    is_text = file.change in ("edit", "create") and file.base_text is not None and has_checker(Path(file.path))
    return is_text and any(hunk.state in ("pending", "accepted") for hunk in file.hunks)


def _change(file: ProposedFile) -> TextChange:
    """The file as its undecided hunks would make it."""

    def having(*states: HunkState) -> str:
        return text_with(file, lambda hunk: hunk.state in states)

    old_text = None if file.change == "create" else having("applied", "undoing")
    return TextChange(Path(file.path), old_text, having("applied", "undoing", "pending", "accepted"))


def _done(ready: ReadyChecker, difference: FindingsChange) -> Check:
    return with_summary(
        Check(
            checker=ready.checker.name,
            about="proposed",
            state="done",
            added=list(difference.added[:MOST_FOUND]),
            fixed=difference.fixed,
        )
    )


def _unfinished(ready: ReadyChecker, state: Literal["running", "failed"], message: str | None = None) -> Check:
    return with_summary(
        Check(
            checker=ready.checker.name,
            about="proposed",
            state=state,
            message=message,
        )
    )
