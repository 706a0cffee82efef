"""A scripted session whose command changes what no hunk shows, and what the user does with that."""

import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from amanu_protocol.items import Mode, Row
from amanu_protocol.requests import EditScope, ProposalDecideParams, ProposalUndoParams, SeenProposal, UndoneFile
from support.draft_session import DONE, finish
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step

Tree = dict[str, str]
"""Relative path → content, "-> target" of a link, "/" of an empty folder; a file whose permission bits are not 644 has
them first: "755: echo"."""


def look(root: Path) -> Tree:
    """The tree below that folder, without git's own files."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        name, mode = path.relative_to(root).as_posix(), path.lstat().st_mode & 0o777
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and not name.startswith(".git/"):
            found[name] = f"{'' if mode == 0o644 else f'{mode:o}: '}{path.read_bytes().decode('latin-1')}"
        elif path.is_dir() and not name.startswith(".git/") and not any(path.iterdir()):
            found[name] = "/"
    return found


def changed(before: Tree, changes: Mapping[str, str | None]) -> Tree:
    """The tree with these changes; None stands for what is gone."""
    return {name: text for name, text in {**before, **changes}.items() if text is not None}


def files(root: Path) -> None:
    """Make the workspace as it is at the start."""
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "sub" / "a.txt").write_text("a\n")
    (root / "sub" / "deep" / "b.bin").write_bytes(b"b\0")
    (root / "pic.bin").write_bytes(b"old\0")
    (root / "tool.sh").write_text("echo\n")
    (root / "run.sh").write_text("echo\n")
    (root / "run.sh").chmod(0o755)
    (root / "own.bin").write_bytes(b"own\0")
    (root / "own.bin").chmod(0o600)
    (root / "link").symlink_to("notes.txt")


def rows(d: ScriptedSession) -> list[Row]:
    return [row for proposal in d.session.state.proposals for row in proposal.rows]


def states(d: ScriptedSession) -> list[str]:
    return [row.state for row in rows(d)]


def kinds(d: ScriptedSession) -> list[str]:
    return [row.kind for row in rows(d)]


def all_states(d: ScriptedSession) -> set[str]:
    """The states of all rows and hunks."""
    proposals = d.session.state.proposals
    return {hunk.state for each in proposals for file in each.files for hunk in file.hunks} | {*states(d)}


@asynccontextmanager
async def changed_by(tmp_path: Path, mode: Mode, line: str, *more: str) -> AsyncGenerator[ScriptedSession]:
    """A session whose commands have changed the workspace of `files`, as far as the mode lets them."""
    steps = [step("", call("run_shell_command", command=each)) for each in (line, *more)]
    async with scripted_session(tmp_path, *steps, DONE, mode=mode) as d:
        files(d.root)
        await d.prompt("go")
        if mode == "draft":
            await finish(d)
        elif mode == "ask":
            await d.until(lambda state: state.approvals or state.last_turn)
        else:
            await d.over("p1")
        yield d


async def over(d: ScriptedSession) -> None:
    """Wait until the turn has ended."""
    if d.session.state.last_turn is None:
        await d.over("p1")


async def decide(d: ScriptedSession, decision: Literal["keep", "redo"]) -> None:
    seen = [SeenProposal(proposal_id=each.proposal_id, version=each.version) for each in d.session.state.proposals]
    params = ProposalDecideParams(session_id="s", scope=EditScope(), decision=decision, seen=seen)
    assert (await d.session.edits.decide(params)).status == "resolved"


async def undo(d: ScriptedSession, **scope: str | list[str]) -> list[UndoneFile]:
    params = ProposalUndoParams(session_id="s", scope=EditScope.model_validate(scope))
    return (await d.session.edits.undo(params)).files


def fresh(tmp_path: Path) -> Path:
    """Make another workspace, as it is at the start."""
    root = tmp_path / "fresh"
    root.mkdir()
    files(root)
    (root / "notes.txt").write_text(TWELVE)
    return root


def name(d: ScriptedSession, row: Row) -> str:
    return Path(row.path).relative_to(d.root).as_posix()


def by_user(root: Path, line: str) -> None:
    subprocess.run(["sh", "-c", line], cwd=root, check=True)
