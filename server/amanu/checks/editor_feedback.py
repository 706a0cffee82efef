"""What an applied edit did to the findings of the user's own editor and of Amanu's checkers: only what is new, and how
many are gone.

An editor does not say which text its findings are about. So they are asked for again and again after the change, and
count when they stay the same for a while; one that finds the same as before gets longer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amanu.checks.applied_checks import AppliedChecks, no_check
from amanu.checks.applied_checks import Check as CheckText
from amanu.core.tool import ToolError
from amanu.proposals.model import STATES_BEFORE
from amanu.workspace.diagnostics import FindingsChange, compare_findings, format_finding, with_summary
from amanu.workspace.diff import compose, first_line
from amanu.workspace.overlay import LanguageQueries
from amanu.workspace.text_file import split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Check, Finding, HunkState, Proposal, ProposedFile
from amanu_protocol.requests import EditorDiagnosticsParams

PAUSE = 0.25
"""Seconds between two questions."""
STABLE = 0.5
"""Seconds without a change after which other findings than before count."""
UNCHANGED = 1.0
"""The same for the same findings as before: most language servers have looked at a change by then."""
PATIENCE = 8.0
"""Seconds after which nobody is asked any more. Later findings are no news of this edit."""
HEAD_START = 0.5
"""Seconds in which an editor must say what it finds before the edit."""
TOLD = 10
"""Findings told to the model; all are one `get_diagnostics` away."""

About = Literal["proposed", "applied"]
Note = Callable[[str, Path, About, Sequence[Check]], Awaitable[None]]
"""`Proposals.note_checks`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seen:
    """What the editor found in a text."""

    text: str
    findings: tuple[Finding, ...]


class _Watch:
    """One file after an edit."""

    def __init__(self, original: _Seen) -> None:
        self.before = original
        self.after: _Seen | None = None
        self.answered = asyncio.Event()
        """The editor has found something else, or nothing else for long enough; or nobody can say."""
        self.difference = FindingsChange()
        self.told = False
        self.task: asyncio.Task[None] | None = None

    @property
    def untold(self) -> bool:
        return bool(self.difference) and not self.told and self.after is not None


class EditorFeedback:
    """Of one session. `wait` is how many seconds the result of an edit may wait for it; `check` has Amanu's checkers
    look."""

    def __init__(self, workspace: Workspace, note: Note, wait: float, check: CheckText = no_check) -> None:
        self._workspace = workspace
        self._note = note
        self._wait = wait
        self._applied: dict[tuple[str, str], tuple[str, ...]] = {}
        """Proposal and path → the hunks that are applied."""
        self._before: dict[Path, tuple[str, asyncio.Task[_Seen | None]]] = {}
        """With the hash of the base that was looked at."""
        self._watches: dict[Path, _Watch] = {}
        self._checked = AppliedChecks(check)

    def see(self, proposal: Proposal) -> None:
        """A proposal is now this. Before its edits are applied the editor is asked what it finds, afterwards what is
        new."""
        for file in proposal.files:
            path, key = Path(file.path), (proposal.proposal_id, file.path)
            states = {hunk.state for hunk in file.hunks}
            applied = tuple(hunk.hunk_id for hunk in file.hunks if hunk.state in STATES_BEFORE)
            was = self._applied.setdefault(key, applied)
            self._applied[key] = applied
            if applied != was:
                self._start(proposal.proposal_id, path, _place(file, was), _place(file, applied))
                self._have_checked(file, was, applied)
            elif states & _OPEN:
                self._look(path, file.base_sha256)

    async def ready(self, paths: Sequence[Path]) -> None:
        """Return when it is known what the editor finds in these files, or half a second is over."""
        looking = [self._before[path][1] for path in paths if path in self._before]
        if looking:
            await asyncio.wait(looking, timeout=HEAD_START)

    async def news(self, paths: Sequence[Path]) -> str:
        """For the model: what the last edits of these files did to their findings; "" when nothing, when nobody says
        so in time, or when it was told already."""
        waiting: list[asyncio.Future[Any]] = [check for path in paths if (check := self._checked.pending(path))]
        events = [asyncio.ensure_future(self._watches[path].answered.wait()) for path in paths if path in self._watches]
        try:
            if waiting or events:
                await asyncio.wait([*waiting, *events], timeout=self._wait)
        finally:
            for event in events:
                event.cancel()
        return "\n\n".join(filter(None, [self._news_of(path, lambda text: True) for path in paths]))

    async def late(self, readable: Callable[[Path], bool]) -> tuple[str, str] | None:
        """What became known after `news` had to be given, in the files that may be quoted: for the model, and what the
        user is told of that. Each once; nothing of a file that is another by now."""
        reports: list[str] = []
        names: list[str] = []
        untold = [path for path, watch in self._watches.items() if watch.untold]
        for path in dict.fromkeys([*untold, *self._checked.done]):
            current = await self._text(path) if readable(path) else None
            if text := self._news_of(path, lambda text, now=current: text == now):
                names.append(self._workspace.display_path(path))
                reports.append(text)
        if not reports:
            return None
        user_text = f"The model was told of findings that came later than its edits: {', '.join(names)}."
        return "\n\n".join(reports), user_text

    async def close(self) -> None:
        """Ask nobody any more."""
        tasks: list[asyncio.Task[Any]] = [task for _, task in self._before.values()]
        tasks += [watch.task for watch in self._watches.values() if watch.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._checked.close()

    # ------------------------------------------------------------------------------------------------

    def _news_of(self, path: Path, counts: Callable[[str], bool]) -> str:
        """What is known of that file by now, of a text that `counts`; "" for nothing. It is told with that."""
        differences: list[FindingsChange] = []
        watch = self._watches.get(path)
        if watch is not None and watch.untold and watch.after is not None:
            watch.told = True
            differences += [watch.difference] if counts(watch.after.text) else []
        if (checked := self._checked.take(path)) is not None and counts(checked[0]):
            reported = () if watch is None else watch.difference.added  # the editor may have the same checker
            differences.append(_but(checked[1], reported))
        fixed = max((part.fixed for part in differences), default=0)
        combined = FindingsChange(tuple(finding for part in differences for finding in part.added), fixed)
        return _told(self._workspace.display_path(path), combined) if combined else ""

    def _have_checked(self, file: ProposedFile, was: Sequence[str], applied: Sequence[str]) -> None:
        """By Amanu's own checkers, what was applied just now; not what was taken back."""
        path = _place(file, was)
        if not set(applied) - set(was) or file.change not in ("edit", "create") or file.base_text is None:
            self._checked.forget(path)
            return
        lines = split_lines(file.base_text)

        def having(hunk_ids: Sequence[str]) -> str:
            used = [hunk for hunk in file.hunks if hunk.hunk_id in hunk_ids]
            return compose(lines, [(first_line(hunk), hunk.old_lines, hunk.new_text) for hunk in used])

        old_text = None if file.change == "create" and not was else having(was)
        self._checked.see(path, old_text, having(applied))

    def _look(self, path: Path, base: str) -> None:
        """What the editor finds before an edit; again when the user changed the file."""
        watch, looked = self._watches.get(path), self._before.get(path)
        if watch is not None and watch.task is not None and not watch.task.done():
            return
        if looked is not None:
            if looked[0] == base:
                return
            looked[1].cancel()
        if self._languages(path):
            self._before[path] = (base, asyncio.create_task(self._first(path)))

    async def _first(self, path: Path) -> _Seen | None:
        try:
            return await self._seen(path)
        except ToolError:
            return None

    async def _text(self, path: Path) -> str | None:
        try:
            file = await self._workspace.read_if_exists(path)
        except ToolError:
            return None
        return None if file is None else file.text

    def _start(self, proposal_id: str, path: Path, was_at: Path, is_at: Path) -> None:
        """The file that the proposal knows as `path` was changed, and moved perhaps. What an earlier edit of it did may
        be not known yet: then that is compared with, too."""
        earlier, looked = self._watches.pop(was_at, None), self._before.pop(was_at, None)
        original: _Seen | None = None
        if looked is not None:
            original = looked[1].result() if looked[1].done() and not looked[1].cancelled() else None
            looked[1].cancel()  # an answer from now on may be about the new text
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
            pass  # the file is gone, or no text any more
        except Exception:
            log.exception("the findings after an edit could not be compared")
        finally:
            watch.answered.set()
            if self._watches.get(path) is watch and not watch.difference:
                del self._watches[path]

    async def _ask_until_over(self, watch: _Watch, proposal_id: str, noted_at: Path, path: Path) -> None:
        loop = asyncio.get_running_loop()
        began = since = loop.time()
        last: _Seen | None = None
        noted = FindingsChange()
        text: str | None = None
        while loop.time() - began < PATIENCE:
            started_at = loop.time()
            state = await self._seen(path)
            if state is None or (text is not None and state.text != text):
                return  # nobody can say, or the user goes on typing: what is new now is not this edit's
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

    async def _seen(self, path: Path) -> _Seen | None:
        """What the first editor that can say finds in the file as it is now."""
        file = await self._workspace.read_if_exists(path)
        for language in self._languages(path):
            answer = await language.diagnostics(EditorDiagnosticsParams(paths=[str(path)]))
            if answer.status == "success":
                findings = [finding for some in answer.files for finding in some.findings]
                return _Seen("" if file is None else file.text, tuple(findings))
        return None

    def _languages(self, path: Path) -> list[LanguageQueries]:
        return self._workspace.overlay.languages("diagnostics", [path])

    def _check(self, path: Path, current: FindingsChange) -> Check:
        names = [language.name for language in self._languages(path)]
        return with_summary(
            Check(
                checker=(names[0] if names else "") or "the editor",
                about="applied",
                state="done",
                added=list(current.added),
                fixed=current.fixed,
            )
        )


_OPEN: frozenset[HunkState] = frozenset(("pending", "accepted", "conflicted", "undoing"))


def _place(file: ProposedFile, applied: Sequence[str]) -> Path:
    """Where the file is with these hunks applied."""
    moved = file.change == "rename" and applied and file.new_path is not None
    return Path(file.new_path if moved and file.new_path is not None else file.path)


def _but(current: FindingsChange, reported: Sequence[Finding]) -> FindingsChange:
    """Without those that are known."""
    keys = {(finding.start_line, finding.message) for finding in reported}
    return FindingsChange(
        tuple(finding for finding in current.added if (finding.start_line, finding.message) not in keys), current.fixed
    )


def _told(path: str, current: FindingsChange) -> str:
    fixed = f"{current.fixed} finding{'s are' if current.fixed > 1 else ' is'} gone" if current.fixed else ""
    if not current.added:
        return f"Findings in {path} after this change: {fixed}, nothing new."
    lines = [f"- {format_finding(finding)}" for finding in current.added[:TOLD]]
    if len(current.added) > TOLD:
        lines.append(f"- {len(current.added) - TOLD} more; see get_diagnostics")
    lines += [f"{fixed}."] if fixed else []
    return "\n".join([f"New findings in {path} after this change (line: severity: message):", *lines])
