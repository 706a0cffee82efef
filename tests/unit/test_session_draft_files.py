"""What a draft has besides text (binary files, links, deletions, executable bits, folders) is applied with all of it
or not at all."""

import os
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.tools.shell import session_layer
from amanu_protocol.items import Mode, ToolCall
from amanu_protocol.requests import (
    CheckpointRestoreParams,
    EditScope,
    HunkDecision,
    ProposalResolveParams,
    ProposalUndoParams,
)
from support.draft_session import (
    DONE,
    decide_all,
    deny,
    edit,
    end_daemon,
    finish,
    open_drafts,
    results,
    settled,
    turn,
    write,
)
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from unit.test_session_layer import shell, tree

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_binary_files_are_part_of_the_draft(tmp_path: Path, decision: Literal["accept", "reject"]) -> None:
    """Later commands see them, and they come with the rest or not at all."""
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("printf 'a\\0b' > pic.bin; printf 'new\\0' > old.bin; ln -s notes.txt link; rm gone.bin")),
        step("", shell("cat pic.bin old.bin | tr '\\0' ' '; readlink link; ls gone.bin; printf 'c\\0d' > pic.bin")),
        step("", shell("git init -q . ; tr '\\0' ' ' < pic.bin")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        for name in ("old.bin", "gone.bin"):
            (d.root / name).write_bytes(b"old\0")
        before = tree(d.root)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        shown = results(d)
        assert "a bnew " in shown[2] and "notes.txt" in shown[2] and "No such file" in shown[2]
        if state.approvals and "git" in state.approvals[0].title:  # it makes settings of git
            await d.answer("reject")
        await finish(d)
        assert tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        after = tree(d.root)
        if decision == "reject":
            assert after == before
        else:
            assert (after["pic.bin"], after["old.bin"], after["link"]) == ("c\0d", "new\0", "-> notes.txt")
            assert "gone.bin" not in after and "line two" in after["notes.txt"]
            undo = ProposalUndoParams(session_id="s", scope=EditScope())
            assert (await d.session.edits.undo(undo)).note == ""
            assert tree(d.root) == before


async def test_executable_bits_are_part_of_the_draft(tmp_path: Path) -> None:
    steps = [
        step("", write("made.sh", "#!/bin/sh\necho ran\n")),
        step("", shell("chmod +x made.sh old.sh; chmod -x tool.sh")),
        step("", shell("./made.sh; test -x old.sh && test ! -x tool.sh && echo kept")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        for name, mode in (("old.sh", 0o644), ("tool.sh", 0o755)):
            (d.root / name).write_text("echo\n")
            (d.root / name).chmod(mode)
        await turn(d)
        assert "ran" in results(d)[2] and "kept" in results(d)[2]
        assert oct((d.root / "old.sh").stat().st_mode)[-3:] == "644"
        await decide_all(d, "accept")
        await settled(d)
        modes = {name: oct((d.root / name).stat().st_mode)[-3:] for name in ("made.sh", "old.sh", "tool.sh")}
        assert modes == {"made.sh": "755", "old.sh": "755", "tool.sh": "644"}


async def keep_first(d: ScriptedSession) -> None:
    """The user keeps what they accepted of the first draft once more; so its proposal is heard of again."""
    first = d.session.state.proposals[0]
    hunks = [HunkDecision(hunk_id=first.files[0].hunks[0].hunk_id, decision="keep")]
    params = ProposalResolveParams(session_id="s", proposal_id=first.proposal_id, version=first.version, hunks=hunks)
    assert (await d.session.edits.resolve(params)).status == "resolved"


PICTURE = step("", shell("printf 'a\\0b' > pic.bin"))


async def test_a_yes_to_an_earlier_draft_is_none_to_this_one(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        DONE,
        step("", edit("line 5\n", "line five\n")),
        PICTURE,
        DONE,
        step("", edit("line five\n", "line 5\n")),  # nothing is left of it
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await decide_all(d, "accept")
        await turn(d, "p2")
        await keep_first(d)
        await turn(d, "p3")
        await settled(d)
        (left,) = open_drafts(d)
        assert not left.files and [row.title for row in left.rows] == ["new binary file, 3 bytes"]
        assert not (d.root / "pic.bin").exists()


async def test_a_no_to_an_earlier_draft_is_none_to_this_one(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), edit("line 11\n", "line eleven\n")),
        DONE,
        step("", edit("line 5\n", "line five\n")),
        PICTURE,
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.decide("accept", "reject no")
        await turn(d, "p2")
        await keep_first(d)
        await decide_all(d, "accept")
        await settled(d)
        assert (d.root / "pic.bin").exists()


async def test_what_a_rule_denied_keeps_nothing_else_back(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), step("", write("closed/x.txt", "x\n")), PICTURE, DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        deny(d, "@write(closed/**)")
        await turn(d)
        await decide_all(d, "accept")
        await settled(d)
        assert (d.root / "pic.bin").exists()


@pytest.mark.parametrize("ignored", [False, True])
async def test_what_a_rule_denies_is_not_part_of_a_draft(tmp_path: Path, ignored: bool) -> None:
    """Also where no proposal shows it."""
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("mkdir closed; printf 'a\\0' > closed/a.bin")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        subprocess.run(["git", "init", "-q", "."], cwd=d.root, check=True)
        (d.root / ".gitignore").write_text("closed/\n" if ignored else "")
        deny(d, "@write(closed/**)")
        await turn(d)
        assert ignored or "not accepted" in results(d)[1]
        await decide_all(d, "accept")
        await settled(d)
        assert not (d.root / "closed" / "a.bin").exists()


async def test_what_a_blocked_command_changed_is_not_drafted(tmp_path: Path) -> None:
    line = "printf 'a\\0' > pic.bin; chmod +x notes.txt; touch /usr/x"
    steps = [step("", edit("line 2\n", "line two\n")), step("", shell(line)), step("", shell("ls pic.bin")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.blocked
        await d.answer("reject")
        await finish(d)
        assert "No such file" in results(d)[2]
        await decide_all(d, "accept")
        await settled(d)
        assert set(tree(d.root)) == {"notes.txt"} and not d.file.stat().st_mode & 0o100


@pytest.mark.parametrize("another", [True, False])
async def test_a_command_that_changes_too_much_does_not_lose_what_was_drafted(tmp_path: Path, another: bool) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin; rm gone.bin")),
        step("", shell("for i in $(seq 300); do echo $i > f$i; done")),
        *([step("", shell("ls pic.bin gone.bin"))] if another else []),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "gone.bin").write_bytes(b"old\0")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "more than 200 files" in asked.blocked
        await d.answer("reject")
        await finish(d)
        if another:
            assert "pic.bin\n" in results(d)[3] and "'gone.bin': No such file" in results(d)[3]
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "line two\n"), "pic.bin": "a\0b"}


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_an_empty_folder_is_part_of_the_draft(tmp_path: Path, decision: Literal["accept", "reject"]) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("mkdir -p a/b")),
        step("", shell("ls -d a/b")),
        DONE,
        step("", shell("ls")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        before = tree(d.root)
        await turn(d)
        assert results(d)[2].startswith("a/b\n") and tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        assert (d.root / "a" / "b").is_dir() == (decision == "accept")
        if decision == "reject":
            await turn(d, "p2")
            assert tree(d.root) == before and results(d)[-1].startswith("notes.txt\n")


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_a_deleted_folder_stays_deleted_in_the_draft(
    tmp_path: Path, decision: Literal["accept", "reject"]
) -> None:
    steps = [
        step("", shell("rm -r sub empty")),
        step("", shell("ls; git status --short")),
        step("", shell("ls; mkdir empty")),
        step("", shell("ls")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "sub" / "deep").mkdir(parents=True)
        (d.root / "empty").mkdir()
        (d.root / "sub" / "a.txt").write_text("a\n")
        (d.root / "sub" / "deep" / "b.bin").write_bytes(b"b\0")
        subprocess.run(["git", "init", "-q", str(d.root)], check=True)
        before = tree(d.root)
        await turn(d)
        assert [result.split("\n")[:2] for result in results(d)[2:4]] == [["notes.txt", ""], ["empty", "notes.txt"]]
        assert tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        gone = [] if decision == "reject" else ["sub/a.txt", "sub/deep/b.bin"]
        assert tree(d.root) == {name: text for name, text in before.items() if name not in gone}
        assert (d.root / "sub").exists() == (decision == "reject")


async def test_a_mode_alone_reaches_the_workspace_with_the_next_draft(tmp_path: Path) -> None:
    steps = [step("", shell("chmod +x notes.txt")), step("", shell("test -x notes.txt && echo kept")), DONE]
    more = [step("", edit("line 2\n", "line two\n")), DONE]
    async with scripted_session(tmp_path, *steps, *more, mode="draft") as d:
        await turn(d)
        assert "kept" in results(d)[1] and not d.file.stat().st_mode & 0o111
        await turn(d, "p2")
        await decide_all(d, "accept")
        await settled(d)
        assert d.file.stat().st_mode & 0o111


async def test_a_restart_keeps_a_draft_whole(tmp_path: Path) -> None:
    line = "printf 'a\\0' > pic.bin; chmod +x notes.txt; ln -s pic.bin link; rm old.bin; mkdir new"
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell(line)),
        DONE,
        step("", edit("line 3\n", "3\n")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "old.bin").write_bytes(b"o\0")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "pic.bin: new binary file, 2 bytes" in asked.detail and "link: link to pic.bin" in asked.detail
        await d.session.prompts.cancel("turn-p1")
        await d.over("p1", "cancelled")
        await end_daemon(d)
        await turn(d, "p2")
        await decide_all(d, "accept")
        await settled(d)
        text = TWELVE.replace("line 2\n", "line two\n").replace("line 3\n", "3\n")
        assert tree(d.root) == {"notes.txt": text, "pic.bin": "a\0", "link": "-> pic.bin", "new": "/"}
        assert os.access(d.file, os.X_OK)


async def test_what_is_drafted_besides_text_outlives_a_turn_that_takes_the_text_over(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin")),
        DONE,
        step("", edit("line two\n", "line 2!\n"), shell("wc -c pic.bin")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await turn(d, "p2")
        assert results(d)[-1].startswith("3 pic.bin")
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "line 2!\n"), "pic.bin": "a\0b"}


WAITS = "echo waiting; until grep -q yes go; do sleep 0.05; done"


@pytest.mark.parametrize("first", ["accept", "reject"])
@pytest.mark.parametrize("then", ["accept", "reject"])
async def test_what_a_command_drafts_after_a_decision_is_another_draft(
    tmp_path: Path, first: Literal["accept", "reject"], then: Literal["accept", "reject"]
) -> None:
    late = f"{WAITS}; printf 'late\\0' > late.bin; chmod +x tool.sh; mkdir out; echo x > out/x; echo text > late.txt"
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin")),
        step("", shell(late)),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "tool.sh").write_text("echo\n")
        (d.root / ".gitignore").write_text("out/\ngo\n")
        (d.root / "go").write_text("not yet")
        await d.prompt("go")
        await d.until(lambda state: any("waiting" in i.output for i in state.items if isinstance(i, ToolCall)))
        await decide_all(d, first)
        (d.root / "go").write_text("yes")
        await finish(d)
        await settled(d)
        after = tree(d.root)
        assert ("pic.bin" in after) == ("line two" in after["notes.txt"]) == (first == "accept")
        assert not {"late.bin", "late.txt", "out/x"} & set(after) and not os.access(d.root / "tool.sh", os.X_OK)
        await decide_all(d, then)
        await settled(d)
        after, applied = tree(d.root), then == "accept"
        assert ("late.bin" in after) == ("late.txt" in after) == os.access(d.root / "tool.sh", os.X_OK) == applied


async def test_what_a_cancelled_command_has_changed_is_not_drafted(tmp_path: Path) -> None:
    late = "printf 'half\\0' > half.bin; rm gone.bin; chmod +x tool.sh; mkdir new; echo waiting; sleep 60"
    steps = [step("", edit("line 2\n", "line two\n")), step("", shell(late)), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "tool.sh").write_text("echo\n")
        (d.root / "gone.bin").write_bytes(b"b\0")
        before = tree(d.root)
        await d.prompt("go")
        await d.until(lambda state: any("waiting" in i.output for i in state.items if isinstance(i, ToolCall)))
        await d.session.prompts.cancel("turn-p1")
        await d.over("p1", "cancelled")
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == before | {"notes.txt": TWELVE.replace("line 2\n", "line two\n")}
        assert not os.access(d.root / "tool.sh", os.X_OK) and not (d.root / "new").exists()


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto", "draft"])
async def test_an_executable_bit_that_a_rule_denies_is_not_changed(tmp_path: Path, mode: Mode) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), step("", shell("chmod +x tool.sh other.sh; true")), DONE]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        deny(d, "write_file(tool.sh)")
        for name in ("tool.sh", "other.sh"):
            (d.root / name).write_text("echo\n")
        await d.prompt("go")
        while (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            await d.answer("allow")
            await d.until(lambda state: not state.approvals)
        await d.over("p1")
        await settled(d)
        assert [os.access(d.root / name, os.X_OK) for name in ("tool.sh", "other.sh")] == [False, True]
        assert "because a rule denies" in d.told()


@pytest.mark.parametrize("fails", [["_lay_in"], ["_lay_in", "put_version"]])
async def test_a_failed_command_does_not_take_the_draft_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: list[str]
) -> None:
    """Nor does the failure to make a new layer for the next one."""
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin; chmod +x tool.sh; mkdir new")),
        *(step("", shell("echo fails")) for _ in fails),
        step("", shell("ls")),
        DONE,
    ]
    for name in fails:
        real, calls = getattr(session_layer, name), [0]

        def fail_once(*arguments: Any, real: Any = real, calls: list[int] = calls) -> Any:
            calls[0] += 1
            if calls[0] == 2:
                raise OSError(28, "No space left on device")
            return real(*arguments)

        monkeypatch.setattr(session_layer, name, fail_once)
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "tool.sh").write_text("echo\n")
        await turn(d)
        shown = results(d)[2:]
        assert all("The disk is full" in each for each in shown[:-1]) and len(shown) == len(fails) + 1
        assert shown[-1].startswith("new\nnotes.txt\npic.bin\n")
        await decide_all(d, "accept")
        await settled(d)
        assert (tree(d.root)["pic.bin"], tree(d.root)["new"]) == ("a\0b", "/")
        assert os.access(d.root / "tool.sh", os.X_OK)


async def test_a_rewound_turn_takes_back_what_its_commands_drafted_besides_text(tmp_path: Path) -> None:
    """And nothing that earlier turns drafted."""
    first = "printf 'a\\0b' > pic.bin; cp pic.bin both.bin; chmod +x tool.sh; mkdir new"
    later = "printf 'c\\0' > late.bin; cp late.bin both.bin; chmod +x late.sh; mkdir later; rm -r old"
    steps = [
        step("", edit("line 2\n", "line two\n"), shell(first)),
        DONE,
        step("", edit("line 5\n", "5\n"), shell(later)),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        for name in ("tool.sh", "late.sh"):
            (d.root / name).write_text("echo\n")
        (d.root / "old").mkdir()
        (d.root / "old" / "old.bin").write_bytes(b"o\0")
        before = tree(d.root)
        await turn(d)
        await turn(d, "p2")
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p2", conversation=True)
        await d.session.checkpoints.restore(params)
        await decide_all(d, "accept")
        await settled(d)
        text = TWELVE.replace("line 2\n", "line two\n")
        assert tree(d.root) == before | {"notes.txt": text, "pic.bin": "a\0b", "both.bin": "a\0b", "new": "/"}
        assert [os.access(d.root / name, os.X_OK) for name in ("tool.sh", "late.sh")] == [True, False]


async def test_a_first_command_is_drafted_though_it_changes_no_text(tmp_path: Path) -> None:
    steps = [step("", shell("mkdir -p a/b; chmod +x notes.txt; echo > x.log")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("*.log\n")
        await turn(d)
        assert "Drafted: notes.txt (becomes executable), a/b (new folder)." in d.told()
        (draft,) = open_drafts(d)
        assert not draft.files and [row.kind for row in draft.rows] == ["mode", "folder"]
        await decide_all(d, "accept")
        await settled(d)
        assert os.access(d.file, os.X_OK) and (d.root / "a" / "b").is_dir() and (d.root / "x.log").exists()


async def test_a_conflict_does_not_take_the_rest_of_the_draft_with_it(tmp_path: Path) -> None:
    """It is resolved, and accepted after all: then the binary file comes, too."""
    steps = [step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        d.file.write_text(TWELVE.replace("line 2\n", "mine\n"))
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "mine\n")}
        (draft,) = open_drafts(d)
        assert "notes.txt is in conflict, so nothing was applied" in (draft.rows[0].reason or "")
        d.file.write_text(TWELVE)
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "line two\n"), "pic.bin": "a\0b"}


async def test_what_is_no_text_is_decided_by_itself(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), edit("line 9\n", "nine\n"), shell("printf 'a\\0b' > pic.bin")),
        step("", shell("echo more >> notes.txt; exit 3")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "pic.bin: new binary file, 3 bytes" in asked.detail and "exit 3" in asked.detail
        (draft,) = open_drafts(d)
        hunk = draft.files[0].hunks[0]
        await d.session.core.proposals.resolve(
            draft.proposal_id, [HunkDecision(hunk_id=hunk.hunk_id, decision="reject")]
        )
        await d.answer("finish")
        await d.over("p1")
        await d.prompt("on", "p2")
        await d.over("p2")
        await decide_all(d, "accept")
        await settled(d)
        assert "pic.bin" in tree(d.root)
        undo = ProposalUndoParams(session_id="s", scope=EditScope())
        assert (await d.session.edits.undo(undo)).note == ""
        assert tree(d.root) == {"notes.txt": TWELVE}


async def test_a_turn_that_changes_an_earlier_row_asks_about_it_again(tmp_path: Path) -> None:
    steps = [PICTURE, DONE, step("", shell("printf 'c\\0d' > pic.bin")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.prompt("on", "p2")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.title == "Apply the draft: 1 file"
        await d.answer("allow")
        await d.over("p2")
        assert tree(d.root)["pic.bin"] == "c\0d"
