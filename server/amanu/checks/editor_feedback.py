"""What an applied edit did to the findings of the user's editor and of Amanu's checkers: the new ones, and how many are
gone. Of a drafted edit no editor knows: the checkers alone are asked.

An editor does not say which text its findings are about. So it is asked repeatedly after the change, and its findings
count once they have stayed the same for a while: longer when they are the same as before the edit.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from amanu.checks.applied_checks import AppliedChecks, no_check
from amanu.checks.applied_checks import Check as CheckText
from amanu.checks.catalog import has_checker
from amanu.core.tool import ToolError
from amanu.proposals.model import DRAFT_STATES, SMALL_TEXT, STATES_BEFORE
from amanu.workspace.diagnostics import (
    FindingsChange,
    combine,
    compare_findings,
    format_finding,
    message_line,
    verdict,
    with_summary,
)
from amanu.workspace.hunks import text_with
from amanu.workspace.overlay import LanguageQueries
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Check, Finding, HunkState, Proposal, ProposedFile
from amanu_protocol.requests import EditorDiagnosticsParams

PAUSE = 0.25
"""Seconds between two requests to the editor."""
STABLE = 0.5
"""Seconds without a change after which findings that differ from those before the edit count."""
UNCHANGED = 1.0
"""The same for findings that do not differ: most language servers have checked a change by then."""
PATIENCE = 8.0
"""Seconds after which the editor is no longer asked. Later findings are not attributed to this edit."""
HEAD_START = 0.5
"""Seconds an editor has to report its findings before the edit is applied."""
MAX_FINDINGS = 10
"""Findings quoted to the model."""
MAX_NOTED = 50
"""Findings noted at the proposal for the user."""

About = Literal["proposed", "applied"]
Note = Callable[[str, Path, About, Sequence[Check]], Awaitable[None]]
"""`Proposals.note_checks`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Report:
    """The editor's findings in a text."""

    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class _Drafted:
    """A file as a draft has it."""

    proposal_id: str
    file: ProposedFile
    hunks: tuple[tuple[str, str], ...]
    """Id and new text of each."""

    @cached_property
    def text(self) -> str:
        return text_with(self.file, lambda hunk: hunk.state in DRAFT_STATES)

    @cached_property
    def applied_text(self) -> str | None:
        """The same without what is only drafted; None for a file that does not exist yet."""
        is_new = self.file.change == "create" and not any(hunk.state in STATES_BEFORE for hunk in self.file.hunks)
        return None if is_new else text_with(self.file, lambda hunk: hunk.state in STATES_BEFORE)

    @property
    def is_small(self) -> bool:
        return len(self.file.base_text or "") + sum(len(text) for _, text in self.hunks) < SMALL_TEXT


class _Watch:
    """Follows the findings in one file after an edit."""

    def __init__(self, original: _Report) -> None:
        self.before = original
        self.after: _Report | None = None
        self.answered = asyncio.Event()
        """Set when the result is known, or no editor can give one."""
        self.difference = FindingsChange()
        self.told = False
        self.task: asyncio.Task[None] | None = None

    @property
    def untold(self) -> bool:
        return bool(self.difference) and not self.told and self.after is not None


class EditorFeedback:
    """Follows the findings of one session's edits. `note` records them at the proposal; the result of an edit waits for
    them at most `wait` seconds; `check` runs Amanu's checkers."""

    def __init__(self, workspace: Workspace, note: Note, wait: float, check: CheckText = no_check) -> None:
        self._workspace = workspace
        self._note = note
        self._wait = wait
        self._applied: dict[tuple[str, str], tuple[str, ...]] = {}
        """(Proposal, path) → the hunks that are applied."""
        self._drafted: dict[Path, _Drafted] = {}
        """Path → the file as the newest draft with open changes in it has it."""
        self._before: dict[Path, tuple[str, asyncio.Task[_Report | None]]] = {}
        """Path → (SHA-256 of the text, the request for the findings in it before the edit)."""
        self._watches: dict[Path, _Watch] = {}
        self._check_text = check
        self._checked = AppliedChecks()

    def on_proposal(self, proposal: Proposal) -> None:
        """A proposal has changed. Before its edits are applied the editor is asked for its findings, afterwards for
        the new ones."""
        for file in proposal.files:
            if proposal.draft:
                self._have_draft_checked(proposal.proposal_id, file)
                continue
            path, key = Path(file.path), (proposal.proposal_id, file.path)
            states = {hunk.state for hunk in file.hunks}
            applied = tuple(hunk.hunk_id for hunk in file.hunks if hunk.state in STATES_BEFORE)
            was = self._applied.setdefault(key, applied)
            self._applied[key] = applied
            if applied != was:
                before = _place(path, file, was)
                self._start(proposal.proposal_id, path, before, _place(path, file, applied))
                self._have_checked(proposal.proposal_id, before, file, was, applied)
            elif states & _OPEN:
                self._look(path, file.base_sha256)

    async def ready(self, paths: Sequence[Path]) -> None:
        """Return when the editor's findings in these files are known, or after `HEAD_START` seconds."""
        looking = [self._before[path][1] for path in paths if path in self._before]
        if looking:
            await asyncio.wait(looking, timeout=HEAD_START)

    async def collect(self, paths: Sequence[Path]) -> str:
        """What the last edits of these files did to their findings, for the model, as far as it is known in time; ""
        when that is nothing, or was told already."""
        waiting: list[asyncio.Future[Any]] = [check for path in paths if (check := self._checked.pending(path))]
        events = [asyncio.ensure_future(self._watches[path].answered.wait()) for path in paths if path in self._watches]
        try:
            if waiting or events:
                await asyncio.wait([*waiting, *events], timeout=self._wait)
        finally:
            for event in events:
                event.cancel()
        return "\n\n".join(filter(None, [self._report(path, lambda text: True) for path in paths]))

    async def collect_late(self, readable: Callable[[Path], bool]) -> tuple[str, str] | None:
        """(Note for the model, notice for the user about it) on findings that came too late for `collect`, in files
        that may be quoted. Each is told once; none in a file that has changed since."""
        reports: list[str] = []
        names: list[str] = []
        untold = [path for path, watch in self._watches.items() if watch.untold]
        for path in dict.fromkeys([*untold, *self._checked.known]):
            current = await self._known(path) if readable(path) else None
            if text := self._report(path, lambda text, current=current: text == current):
                names.append(self._workspace.display_path(path))
                reports.append(text)
        if not reports:
            return None
        user_text = f"The model was told about findings that arrived after its edits: {', '.join(names)}."
        return "\n\n".join(reports), user_text

    async def close(self) -> None:
        """Cancel all requests and checks."""
        tasks: list[asyncio.Task[Any]] = [task for _, task in self._before.values()]
        tasks += [watch.task for watch in self._watches.values() if watch.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._checked.close()

    # ------------------------------------------------------------------------------------------------

    def _report(self, path: Path, counts: Callable[[str], bool]) -> str:
        """What is known about that file, if it is about a text that `counts`; "" for nothing. It then counts as
        told."""
        differences: list[FindingsChange] = []
        watch = self._watches.get(path)
        if watch is not None and watch.untold and watch.after is not None:
            watch.told = True
            differences += [watch.difference] if counts(watch.after.text) else []
        if (checked := self._checked.take(path)) is not None and counts(checked[0]):
            reported = () if watch is None else watch.difference.added  # the editor may have the same checker
            differences.append(_without(checked[1], reported))
        fixed = max((part.fixed for part in differences), default=0)
        combined = FindingsChange(tuple(finding for part in differences for finding in part.added), fixed)
        if not combined:
            return ""
        running = self._checked.pending(path) is not None or (watch is not None and not watch.answered.is_set())
        return _worded(self._workspace.display_path(path), combined, running=running)

    def _have_draft_checked(self, proposal_id: str, file: ProposedFile) -> None:
        """Have Amanu's own checkers look at what a draft makes of the file, if a call has changed that: the user's
        typing only moves it. Cheap while nothing has changed: each version of a draft comes with all its files."""
        path = Path(file.path)
        before = self._drafted.get(path)
        if before is not None and before.file is file:
            return
        is_checked = file.change in ("edit", "create") and file.base_text is not None and has_checker(path)
        if not is_checked or not any(hunk.state == "pending" for hunk in file.hunks):
            if before is not None and before.proposal_id == proposal_id:
                del self._drafted[path]
                self._checked.forget(path)
            return
        hunks = tuple((hunk.hunk_id, hunk.new_text) for hunk in file.hunks if hunk.state in DRAFT_STATES)
        drafted = self._drafted[path] = _Drafted(proposal_id, file, hunks)
        if before is None or before.hunks != hunks:
            self._checked.start(path, lambda: drafted.text, self._check_drafted(path, before, drafted))

    async def _check_drafted(
        self, path: Path, before: _Drafted | None, drafted: _Drafted
    ) -> AsyncGenerator[FindingsChange]:
        """`before`: as it was drafted before; None where nothing was."""

        def texts() -> tuple[str | None, str]:
            return drafted.applied_text if before is None else before.text, drafted.text

        is_small = drafted.is_small and (before is None or before.is_small)
        old_text, new_text = texts() if is_small else await asyncio.to_thread(texts)
        async with aclosing(self._check_applied(path, old_text, new_text, None)) as changes:
            async for change in changes:
                yield change

    def _have_checked(
        self, proposal_id: str, path: Path, file: ProposedFile, was: Sequence[str], applied: Sequence[str]
    ) -> None:
        """Have Amanu's own checkers look at what was just applied; not at what was taken back."""
        if (
            not set(applied) - set(was)
            or file.change not in ("edit", "create")
            or file.base_text is None
            or not has_checker(path)
        ):
            self._checked.forget(path)
            return
        was_checked = any(check.about == "proposed" and check.state == "done" for check in file.checks)
        noted_at = None if was_checked or self._languages(path) else (proposal_id, Path(file.path))

        def new_text() -> str:
            return text_with(file, lambda hunk: hunk.hunk_id in applied)

        async def check() -> AsyncGenerator[FindingsChange]:  # of a change of many files, each in its own time
            old_text = (
                None if file.change == "create" and not was else text_with(file, lambda hunk: hunk.hunk_id in was)
            )
            async with aclosing(self._check_applied(path, old_text, new_text(), noted_at)) as changes:
                async for change in changes:
                    yield change

        self._checked.start(path, new_text, check())

    async def _check_applied(
        self, path: Path, old_text: str | None, new_text: str, noted_at: tuple[str, Path] | None
    ) -> AsyncGenerator[FindingsChange]:
        """What the checkers find, noted for the user unless they have seen it already: at the proposal, or in an
        editor that shows it."""
        found: list[FindingsChange] = []
        async with aclosing(self._check_text(path, old_text, new_text)) as changes:
            async for change in changes:
                found.append(change)
                if change and noted_at is not None:
                    findings = combine(found)
                    sources = dict.fromkeys(finding.source for finding in findings.added if finding.source)
                    check = _finished_check(", ".join(sources) or "checkers", findings)
                    with suppress(AmanuError):  # the proposal no longer exists
                        await self._note(*noted_at, "applied", [check])
                yield change

    def _look(self, path: Path, base: str) -> None:
        """Ask for the findings before an edit; again when the user has changed the file."""
        watch, looked = self._watches.get(path), self._before.get(path)
        if watch is not None and watch.task is not None and not watch.task.done():
            return
        if looked is not None:
            if looked[0] == base:
                return
            looked[1].cancel()
        if self._languages(path):
            self._before[path] = (base, asyncio.create_task(self._first(path)))

    async def _first(self, path: Path) -> _Report | None:
        try:
            return await self._request_findings(path)
        except ToolError:
            return None

    async def _known(self, path: Path) -> str | None:
        """The text that the model knows: as it is drafted, else the file's."""
        drafted = self._drafted.get(path)
        return await (self._text(path) if drafted is None else asyncio.to_thread(lambda: drafted.text))

    async def _text(self, path: Path) -> str | None:
        try:
            file = await self._workspace.read_if_exists(path)
        except ToolError:
            return None
        return None if file is None else file.text

    def _start(self, proposal_id: str, path: Path, was_at: Path, is_at: Path) -> None:
        """Follow the file that the proposal knows as `path`, which was changed and perhaps moved. While the result of
        an earlier edit is not known, the findings before that edit are compared with."""
        earlier, looked = self._watches.pop(was_at, None), self._before.pop(was_at, None)
        original: _Report | None = None
        if looked is not None:
            original = looked[1].result() if looked[1].done() and not looked[1].cancelled() else None
            looked[1].cancel()  # an answer that comes later may be about the new text
        elif earlier is not None:
            original = earlier.after or earlier.before
        if earlier is not None and earlier.task is not None:
            earlier.task.cancel()
        if original is not None:
            watch = self._watches[is_at] = _Watch(original)
            watch.task = asyncio.create_task(self._follow(watch, proposal_id, path, is_at))

    async def _follow(self, watch: _Watch, proposal_id: str, noted_at: Path, path: Path) -> None:
        try:
            await self._ask_until_over(watch, proposal_id, noted_at, path)
        except ToolError:
            pass  # the file is gone, or is no longer text
        except Exception:
            log.exception("the findings after an edit could not be compared")
        finally:
            watch.answered.set()
            if self._watches.get(path) is watch and not watch.difference:
                del self._watches[path]

    async def _ask_until_over(self, watch: _Watch, proposal_id: str, noted_at: Path, path: Path) -> None:
        loop = asyncio.get_running_loop()
        began = since = loop.time()
        last: _Report | None = None
        noted = FindingsChange()
        text: str | None = None
        while loop.time() - began < PATIENCE:
            started_at = loop.time()
            state = await self._request_findings(path)
            if state is None or (text is not None and state.text != text):
                return  # no editor can say, or the user goes on typing: what is new now is not due to this edit
            text = state.text
            if last is None or state.findings != last.findings:
                last, since = state, started_at
            changed = last.findings != watch.before.findings
            is_open = self._workspace.find_open(path) is not None
            enough = STABLE if changed else UNCHANGED if is_open or last.findings else 0.0
            if loop.time() - since >= enough:
                original = watch.before
                introduced = await asyncio.to_thread(
                    compare_findings, original.text, original.findings, last.text, last.findings
                )
                watch.difference, watch.after = introduced, last
                watch.answered.set()
                if introduced != noted:
                    noted = introduced
                    await self._note(proposal_id, noted_at, "applied", [self._check(path, introduced)])
                if not is_open:
                    return
            await asyncio.sleep(PAUSE)

    async def _request_findings(self, path: Path) -> _Report | None:
        """The findings of the first editor that can give them, in the file as it is now."""
        file = await self._workspace.read_if_exists(path)
        for language in self._languages(path):
            answer = await language.diagnostics(EditorDiagnosticsParams(paths=[str(path)]))
            if answer.status == "success":
                findings = [finding for some in answer.files for finding in some.findings]
                return _Report("" if file is None else file.text, tuple(findings))
        return None

    def _languages(self, path: Path) -> list[LanguageQueries]:
        return self._workspace.overlay.languages("diagnostics", [path])

    def _check(self, path: Path, current: FindingsChange) -> Check:
        names = [language.name for language in self._languages(path)]
        return _finished_check((names[0] if names else "") or "the editor", current)


_OPEN: frozenset[HunkState] = frozenset(("pending", "accepted", "conflicted", "undoing"))


def _finished_check(checker: str, findings: FindingsChange) -> Check:
    return with_summary(
        Check(
            checker=checker, about="applied", state="done", added=list(findings.added[:MAX_NOTED]), fixed=findings.fixed
        )
    )


def _place(path: Path, file: ProposedFile, applied: Sequence[str]) -> Path:
    """The path of that file with these hunks applied."""
    return Path(file.new_path) if file.change == "rename" and applied and file.new_path is not None else path


def _without(current: FindingsChange, reported: Sequence[Finding]) -> FindingsChange:
    """The change without findings that were reported already."""

    def key(finding: Finding) -> tuple[int, str]:
        return finding.lines.start, message_line(finding.message)

    known = set(map(key, reported))
    return FindingsChange(tuple(finding for finding in current.added if key(finding) not in known), current.fixed)


def _worded(path: str, current: FindingsChange, *, running: bool) -> str:
    """`running`: somebody still looks, and may find something."""
    sentence = f"Checked {path}: this change {verdict(current.added, current.fixed)}"
    if not current.added:
        return f"{sentence}." if running else f"{sentence} and adds nothing new."
    lines = [f"- {format_finding(finding)}" for finding in current.added[:MAX_FINDINGS]]
    if len(current.added) > MAX_FINDINGS:
        lines.append(f"- {len(current.added) - MAX_FINDINGS} more")
    return "\n".join([f"{sentence} (line: severity: message):", *lines])
