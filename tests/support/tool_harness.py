"""A workspace with everything the tools need: real files, fake editors, and proposals whose versions are kept."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from amanu.checks.applied_checks import Check, no_check
from amanu.checks.editor_feedback import EditorFeedback
from amanu.config import Settings
from amanu.core.tool import CallContext, Outcome, Preview, Tool
from amanu.proposals.proposals import Proposals
from amanu.sandbox.sandbox import Sandbox
from amanu.text.span_edits import SpanEdit
from amanu.tools.environment import ToolEnvironment
from amanu.tools.registry import make_tools
from amanu.workspace.overlay import Buffer, LanguageQueries, Overlay
from amanu.workspace.text_file import sha256
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import BlobRef, Hunk, HunkState, Proposal
from amanu_protocol.requests import EditorApplyResult, HunkDecision, RowDecision


class FakeEditor:
    """Holds open documents; applies edits as a careful client does, saving when asked if `saves`."""

    name = "Fake"
    must_be_asked = False
    client: tuple[str, int] | None = None

    def __init__(self, *, saves: bool = True) -> None:
        self.saves = saves
        self.language: LanguageQueries | None = None
        self.open: dict[Path, Buffer] = {}
        self.refuses: EditorApplyResult | None = None
        self.applied: list[tuple[Path, Sequence[SpanEdit], bool]] = []

    def put(self, path: Path, text: str) -> None:
        version = self.open[path].version + 1 if path in self.open else 1
        self.open[path] = Buffer(path, text, version)

    def buffer(self, path: Path) -> Buffer | None:
        return self.open.get(path)

    def buffers(self) -> Iterable[Buffer]:
        return list(self.open.values())

    def serves(self, session_id: str) -> bool:
        return False

    async def refresh(self, path: Path, *, to_edit: bool = False) -> bool:
        return True

    async def apply(
        self, path: Path, expected_sha256: str, edits: Sequence[SpanEdit], new_text: str, save: bool
    ) -> EditorApplyResult:
        self.applied.append((path, edits, save))
        if self.refuses is not None:
            return self.refuses
        text = self.open[path].text
        if sha256(text.encode()) != expected_sha256:
            return EditorApplyResult(status="conflict")
        for edit in reversed(edits):
            text = text[: edit.start] + edit.new_text + text[edit.end :]
        assert text == new_text, "the edits do not make the text they promise"
        self.put(path, text)
        saved = save and self.saves
        if saved:
            path.write_bytes(text.encode())
        return EditorApplyResult(
            status="success", sha256=sha256(text.encode()), version=self.open[path].version, saved=saved
        )


class ToolHarness:
    def __init__(
        self,
        root: Path,
        files: Mapping[str, str | bytes] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        ripgrep: str | None = None,
        sandbox: Sandbox | None = None,
        trusted: bool = False,
        check: Check = no_check,
        wait: float = 3,
        memory: Path | None = None,
    ) -> None:
        """`check`: Amanu's checkers; the result of an edit waits so many seconds for them."""
        self.root = root.resolve()
        self.overlay = Overlay()
        self.editor = FakeEditor()
        self.overlay.add(self.editor)
        private = [] if memory is None else [memory.parent]
        self.workspace = Workspace([self.root], self.overlay, ripgrep=ripgrep, private=private, memory=memory)
        self.versions: list[Proposal] = []
        self.preimages: list[tuple[Path, bytes | None, int | None]] = []
        self.blobs: list[bytes] = []
        self.live: list[str] = []
        # Calls are run here one after the other: one that waited for those it shares a hunk with would wait in vain.
        self.proposals = Proposals(self.workspace, self._changed, self._save, shared_hunk_seconds=0)
        self.aftermath = EditorFeedback(self.workspace, self.proposals.note_checks, wait, check)
        self.environment = ToolEnvironment(
            self.workspace,
            self.proposals,
            self,
            {"PATH": "/usr/local/bin:/usr/bin:/bin"} if environment is None else environment,
            settings or Settings(),
            sandbox=sandbox,
            trusted=lambda: trusted,
            feedback=self.aftermath,
        )
        self.jobs = self.environment.jobs
        self.tools: dict[str, Tool[Any]] = make_tools(self.environment)
        self._ids = itertools.count(1)
        for name, data in (files or {}).items():
            self.put(name, data)

    def put(self, name: str, data: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def on_disk(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def context(self, step: int = 1) -> CallContext:
        return CallContext(f"c{next(self._ids)}", "t1", step, output=self.live.append)

    async def preview(self, name: str, arguments: Mapping[str, Any], *, call: CallContext | None = None) -> Preview:
        tool = self.tools[name]
        return await tool.preview(tool.params.model_validate(arguments), call or self.context())

    async def run(self, name: str, arguments: Mapping[str, Any], *, call: CallContext | None = None) -> Outcome:
        """Preview and run, as when policy allows it."""
        tool, call = self.tools[name], call or self.context()
        params = tool.params.model_validate(arguments)
        call.preview = await tool.preview(params, call)
        return await tool.run(params, call)

    def _changed(self, proposal: Proposal) -> None:
        self.versions.append(proposal)
        self.aftermath.on_proposal(proposal)

    async def _save(self, turn_id: str, path: Path, data: bytes | None, mode: int | None) -> None:
        self.preimages.append((path, data, mode))

    async def find_blob(self, beginning: str) -> bytes:
        for data in self.blobs:
            if sha256(data).startswith(beginning):
                return data
        raise AmanuError("blobNotFound", "There is none.")

    async def put_blob(self, data: bytes) -> BlobRef:
        self.blobs.append(data)
        return BlobRef(blob_id=sha256(data), size=len(data))


async def redo(
    proposals: Proposals, proposal_id: str, hunk_ids: Collection[str], row_ids: Collection[str] = ()
) -> None:
    """Apply again what was rejected or undone; all of it or nothing."""
    hunks = [HunkDecision(hunk_id=hunk_id, decision="redo") for hunk_id in hunk_ids]
    await proposals.resolve(proposal_id, hunks, [RowDecision(row_id=row_id, decision="redo") for row_id in row_ids])


def hunks(proposal: Proposal) -> list[Hunk]:
    return [hunk for file in proposal.files for hunk in file.hunks]


def states(proposal: Proposal) -> list[HunkState]:
    return [hunk.state for hunk in hunks(proposal)]
