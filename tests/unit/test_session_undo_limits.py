"""Undo and rewind over what hooks and MCP servers changed in the workspace: it stays, and is named or told."""

import os
from pathlib import Path

import pytest

from amanu.permissions import approvals
from amanu_protocol.requests import (
    CheckpointPreviewParams,
    CheckpointRestoreParams,
    EditScope,
    ProposalUndoParams,
)
from support.hook_files import configure_user, handler
from support.scripted_session import TWELVE, call, scripted_session, step
from unit.test_session_mcp_servers import agreed, configured

__all__ = ["configured"]

EDIT = step("", call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n"))
DONE = step("Done.")
TURN = EditScope(turn_id="turn-p1")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", 0.0)


@pytest.mark.parametrize("rewinds", [True, False])
@pytest.mark.parametrize(
    ("command", "left", "kept"),
    [
        ("sed -i 's/line two/LINE TWO/' $n.txt", TWELVE.replace("line 2\n", "LINE TWO\n"), "These lines were changed"),
        ("sed -i 's/line 9/LINE 9/' $n.txt", TWELVE.replace("line 9\n", "LINE 9\n"), ""),
        ("(echo new; cat $n.txt) > t; mv t $n.txt", f"new\n{TWELVE}", ""),
        ("touch made.txt", TWELVE, ""),
    ],
    ids=["in the edit's lines", "elsewhere in the file", "above", "in another file"],
)
async def test_what_a_formatter_hook_changed_stays_and_an_edit_in_whose_lines_it_is_says_so(
    tmp_path: Path, command: str, left: str, kept: str, rewinds: bool
) -> None:
    async with scripted_session(tmp_path, EDIT, DONE, mode="acceptEdits") as d:
        configure_user(PostToolUse=[handler(f"n=notes; {command}", matcher="Edit", outside=True)])
        await d.prompt("edit")
        await d.over("p1")
        formatted = d.file.read_text()
        undo = ProposalUndoParams(session_id="s", scope=TURN, dry_run=True)
        promised = (await d.session.edits.undo(undo)).files
        if rewinds:
            preview = CheckpointPreviewParams(session_id="s", turn_id="turn-p1")
            assert (await d.session.checkpoints.preview(preview)).files == promised
            restore = CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
            done = (await d.session.checkpoints.restore(restore)).files
            assert d.session.state.proposals[0].files[0].hunks[0].state == ("applied" if kept else "reverted")
        else:
            done = (await d.session.edits.undo(undo.model_copy(update={"dry_run": False}))).files
        assert done == promised, "what is promised happens"
        assert d.file.read_text() == left
        assert [skipped.reason[: len(kept)] for skipped in done[0].skipped] == ([kept] if kept else [])
        assert (left == formatted) == bool(kept)
        assert (d.root / "made.txt").exists() == ("made.txt" in command)


@pytest.mark.parametrize("may", ["writes = true\n", "sandbox = false\n", ""])
async def test_what_an_mcp_server_may_have_changed_is_named(tmp_path: Path, configured: None, may: str) -> None:
    servers = Path(os.environ["AMANU_HOME"], "config", "mcp.toml")
    servers.write_text(servers.read_text() + may)
    made = tmp_path / "work" / "made.txt"
    writes = step("", call("mcp__sample__write", path=str(made)))
    async with scripted_session(tmp_path, EDIT, writes, DONE, mode="acceptEdits") as d:
        await agreed(d)
        await d.prompt("write")
        await d.answer("allow")
        await d.over("p1")
        assert made.exists() == bool(may)
        preview = await d.session.checkpoints.preview(CheckpointPreviewParams(session_id="s", turn_id="turn-p1"))
        assert preview.commands == (["sample: write"] if may else [])
        undo = ProposalUndoParams(session_id="s", scope=TURN, dry_run=False)
        assert (await d.session.edits.undo(undo)).note == (
            "Amanu cannot undo these: what `sample: write` changed." if may else ""
        )
        restore = CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
        await d.session.checkpoints.restore(restore)
        assert made.exists() == bool(may) and d.file.read_text() == TWELVE
