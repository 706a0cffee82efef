"""Applied hunks are taken back, and applied again: ours and only ours, in any order, byte for byte."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from amanu.proposals.merge import merge
from amanu.proposals.model import FileEdit
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.requests import HunkDecision
from support.tool_harness import ToolHarness, hunks, redo, states

BASE = "".join(f"line {n}\n" for n in range(1, 13))


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("abc", "abc", "abc", "abc"),
        ("abc", "Abc", "abC", "AbC"),
        ("abc", "Abc", "aBc", "ABc"),
        ("abc", "Abc", "Xbc", None),
        ("abc", "xabc", "abcy", "xabcy"),
        ("abc", "axbc", "aybc", None),
        ("abc", "axbc", "axbc", "axbc"),
        ("abc", "bc", "aBc", "Bc"),
        ("abc", "", "aBc", None),
        ("", "x", "", "x"),
        ("", "x", "y", None),
        ("abcd", "AbcD", "aXYcd", "AXYcD"),
        ("abcd", "ad", "axbcd", "axd"),
    ],
)
def test_merge(base: str, ours: str, theirs: str, merged: str | None) -> None:
    def lines(text: str | None) -> str | None:
        return None if text is None else "".join(f"{each}\n" for each in text)

    assert merge(lines(base) or "", lines(ours) or "", lines(theirs) or "") == lines(merged)


async def applied(harness: ToolHarness, text: str | None, name: str = "f.txt", new: str | None = None) -> Proposal:
    call = harness.context(step=len(harness.versions) + 1)
    base = await harness.proposals.text(call, harness.root / name)
    proposal = await harness.proposals.propose(
        call, [FileEdit(base, text, None if new is None else harness.root / new)]
    )
    return await harness.proposals.accept_all(proposal.proposal_id)


def change(text: str, **lines: str) -> str:
    """`line 3` of the text is `line3="…"` then."""
    for key, value in lines.items():
        text = text.replace(f"line {key.removeprefix('line')}\n", value)
    return text


ONE = change(BASE, line3="drei\n", line9="neun\n")


@pytest.mark.parametrize(
    ("undone", "typed", "expected", "left"),
    [
        ([0, 1], ONE, BASE, 0),
        ([0], ONE, change(BASE, line9="neun\n"), 0),
        ([1], "mine\n" + ONE + "end\n", "mine\n" + change(BASE, line3="drei\n") + "end\n", 0),
        ([0, 1], ONE.replace("line 6\n", "six\n"), BASE.replace("line 6\n", "six\n"), 0),
        ([0, 1], ONE.replace("drei\n", "drei, by me\n"), change(BASE, line3="drei, by me\n"), 1),
        ([0], BASE, BASE, 0),
        ([0, 1], change(BASE, line9="neun\n"), BASE, 0),
    ],
    ids=["all", "one", "around", "between", "their line stays", "done already", "one done already"],
)
@pytest.mark.parametrize("where", ["disk", "editor", "after a restart"])
async def test_hunks_go_back(
    tmp_path: Path, undone: Sequence[int], typed: str, expected: str, left: int, where: str
) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    if where == "editor":
        harness.editor.put(harness.root / "f.txt", BASE)
    proposal = await applied(harness, ONE)
    ids = [hunk.hunk_id for hunk in hunks(proposal)]
    if where == "editor":
        harness.editor.put(harness.root / "f.txt", typed)
    else:
        harness.put("f.txt", typed)
    if where == "after a restart":
        harness = ToolHarness(tmp_path)
        await harness.proposals.restore([proposal])
    kept = await harness.proposals.undo(proposal.proposal_id, [ids[at] for at in undone])
    now = harness.editor.open[harness.root / "f.txt"].text if where == "editor" else harness.on_disk("f.txt").decode()
    assert now == expected and len(kept) == left and all(each.reason for each in kept)
    await redo(harness.proposals, proposal.proposal_id, [ids[at] for at in undone])
    now = harness.editor.open[harness.root / "f.txt"].text if where == "editor" else harness.on_disk("f.txt").decode()
    if typed.replace("drei", "line 3") != typed or "by me" not in typed:
        assert ("drei" in now or 0 not in undone) and ("neun" in now or 1 not in undone)


async def test_any_order(tmp_path: Path) -> None:
    """Three proposals for one file; each can go and come back at any time."""
    texts = [change(BASE, line2="two\n")]
    texts.append(change(texts[-1], line6="six\nand more\n"))
    texts.append(change(texts[-1], line10=""))
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]):
        harness = ToolHarness(tmp_path, {"f.txt": BASE})
        made = [await applied(harness, text) for text in texts]
        for at in order:
            assert await harness.proposals.undo(made[at].proposal_id, [hunks(made[at])[0].hunk_id]) == []
        assert harness.on_disk("f.txt").decode() == BASE
        for at in order:
            await redo(harness.proposals, made[at].proposal_id, [hunks(made[at])[0].hunk_id])
        assert harness.on_disk("f.txt").decode() == texts[-1]


async def test_lines_a_later_proposal_changed_stay(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    first = await applied(harness, change(BASE, line3="drei\n"))
    second = await applied(harness, change(BASE, line3="trois\n"))
    left = await harness.proposals.undo(first.proposal_id, [hunks(first)[0].hunk_id])
    assert len(left) == 1 and harness.on_disk("f.txt").decode() == change(BASE, line3="trois\n")
    assert states(harness.proposals.get(first.proposal_id)) == ["applied"]
    assert await harness.proposals.undo(second.proposal_id, [hunks(second)[0].hunk_id]) == []
    assert await harness.proposals.undo(first.proposal_id, [hunks(first)[0].hunk_id]) == []
    assert harness.on_disk("f.txt").decode() == BASE


async def test_what_a_later_proposal_took_out_is_not_undone_by_itself(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    first = await applied(harness, BASE.replace("line 5\n", "line 5\nput in\n"))
    second = await applied(harness, BASE)
    left = await harness.proposals.undo(first.proposal_id, [hunks(first)[0].hunk_id])
    assert [each.reason for each in left] == ["A later edit took these lines out. Take that one back first."]
    assert await harness.proposals.undo(second.proposal_id, [hunks(second)[0].hunk_id]) == []
    assert await harness.proposals.undo(first.proposal_id, [hunks(first)[0].hunk_id]) == []
    assert harness.on_disk("f.txt").decode() == BASE


@pytest.mark.parametrize(
    ("kind", "meddle", "works"),
    [
        ("create", None, True),
        ("create", "more", False),
        ("delete", None, True),
        ("delete", "again", False),
        ("delete", "still open", True),
        ("delete", "typed in", False),
        ("rename", None, True),
        ("rename", "edited", True),
        ("rename", "taken", False),
    ],
)
async def test_whole_files(tmp_path: Path, kind: str, meddle: str | None, works: bool) -> None:
    harness = ToolHarness(tmp_path, {"f.sh": BASE})
    (tmp_path / "f.sh").chmod(0o750)
    match kind:
        case "create":
            proposal, there = await applied(harness, "new\n", "new.txt"), "new.txt"
        case "delete":
            proposal, there = await applied(harness, None, "f.sh"), "f.sh"
        case _:
            proposal, there = await applied(harness, BASE, "f.sh", "a/g.sh"), "a/g.sh"
            assert harness.on_disk("a/g.sh").decode() == BASE and not (tmp_path / "f.sh").exists()
            assert (tmp_path / "a/g.sh").stat().st_mode & 0o777 == 0o750
    assert proposal.files[0].change == kind and states(proposal) == ["applied"]
    match meddle:
        case "more" | "again":
            harness.put(there, "theirs\n")
        case "still open":  # the editor shows what is on no disk any more
            harness.editor.put(harness.root / there, BASE)
        case "typed in":
            harness.editor.put(harness.root / there, BASE + "mine\n")
        case "edited":
            harness.put(there, change(BASE, line5="five\n"))
        case "taken":
            harness.put("f.sh", "theirs\n")
        case _:
            pass
    left = await harness.proposals.undo(proposal.proposal_id, [hunks(proposal)[0].hunk_id])
    assert (left == []) == works
    if not works:
        assert states(harness.proposals.get(proposal.proposal_id)) == ["applied"]
    elif kind == "create":
        assert not (tmp_path / "new.txt").exists()
    else:
        expected = change(BASE, line5="five\n") if meddle == "edited" else BASE
        assert harness.on_disk("f.sh").decode() == expected and not (tmp_path / "a/g.sh").exists()
        assert (tmp_path / "f.sh").stat().st_mode & 0o777 == 0o750
        harness.editor.open.clear()
        await redo(harness.proposals, proposal.proposal_id, [hunks(proposal)[0].hunk_id])
        assert (tmp_path / "f.sh").exists() == (kind == "create")


async def test_reviewed_after_and_before(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    call = harness.context()
    base = await harness.proposals.text(call, harness.root / "f.txt")
    proposal = await harness.proposals.propose(call, [FileEdit(base, ONE, explanation="German")])
    assert [hunk.explanation for hunk in hunks(proposal)] == ["German", "German"]
    proposal = await harness.proposals.review_after(proposal.proposal_id)
    assert states(proposal) == ["applied", "applied"] and not any(hunk.reviewed for hunk in hunks(proposal))
    ids = [hunk.hunk_id for hunk in hunks(proposal)]
    proposal = await harness.proposals.resolve(proposal.proposal_id, [HunkDecision(hunk_id=ids[0], decision="keep")])
    proposal = await harness.proposals.review_before(proposal.proposal_id)
    assert states(proposal) == ["applied", "pending"]
    assert harness.on_disk("f.txt").decode() == change(BASE, line3="drei\n")
    proposal = await harness.proposals.revise(proposal.proposal_id, ids[1], "neuf\n")
    proposal = await harness.proposals.resolve(proposal.proposal_id, [HunkDecision(hunk_id=ids[1], decision="accept")])
    assert harness.on_disk("f.txt").decode() == change(BASE, line3="drei\n", line9="neuf\n")
    assert [(hunk.reviewed, hunk.edited_by_user) for hunk in hunks(proposal)] == [(True, False), (True, True)]
    words = [("undo", "reverted"), ("redo", "applied"), ("undo", "reverted")]
    for word, state in words:
        decision = HunkDecision(hunk_id=ids[0], decision=word)
        proposal = await harness.proposals.resolve(proposal.proposal_id, [decision])
        assert states(proposal) == [state, "applied"]
    assert harness.on_disk("f.txt").decode() == change(BASE, line9="neuf\n")


async def test_all_files_or_none(tmp_path: Path) -> None:
    """One of three cannot be written: the two others are as they were, on disk and in their editor."""
    harness = ToolHarness(tmp_path, {name: BASE for name in ("a", "b", "c")})
    harness.editor.put(harness.root / "b", BASE)
    call = harness.context()
    edits = [FileEdit(await harness.proposals.text(call, harness.root / name), ONE) for name in ("a", "b", "c")]
    proposal = await harness.proposals.propose(call, edits)
    (tmp_path / "c").chmod(0o444)
    proposal = await harness.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["pending"] * 4 + ["conflicted"] * 2
    assert all("read-only" in (hunk.reason or "") for hunk in hunks(proposal))
    assert {harness.on_disk(name) for name in ("a", "b", "c")} == {BASE.encode()}
    assert harness.editor.open[harness.root / "b"].text == BASE
    (tmp_path / "c").chmod(0o644)
    proposal = await harness.proposals.accept_all(proposal.proposal_id)
    again = [HunkDecision(hunk_id=hunk.hunk_id, decision="accept") for hunk in hunks(proposal)]
    proposal = await harness.proposals.resolve(proposal.proposal_id, again)
    assert states(proposal) == ["applied"] * 6 and harness.editor.open[harness.root / "b"].text == ONE


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (change(BASE, line3="line 3\nnew\n"), BASE),
        (change(BASE, line3="drei\n"), change(BASE, line3="")),
        (change(BASE, line3="drei\nvier\n"), change(BASE, line3="drei\n")),
    ],
    ids=["put in, taken out", "changed, taken out", "half of it taken out"],
)
async def test_what_a_later_edit_took_out_is_undone_too(tmp_path: Path, first: str, second: str) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    made = [await applied(harness, first), await applied(harness, second)]
    for each in reversed(made):
        assert not await harness.proposals.undo(each.proposal_id, [hunk.hunk_id for hunk in hunks(each)])
    assert harness.on_disk("f.txt").decode() == BASE


async def test_a_cancelled_decision_is_carried_out_or_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE, "g.txt": BASE})
    call = harness.context()
    new = change(BASE, line2="zwei\n", line11="elf\n")
    edits = [FileEdit(await harness.proposals.text(call, harness.root / name), new) for name in ("f.txt", "g.txt")]
    proposal = await harness.proposals.propose(call, edits)
    await harness.proposals.accept_all(proposal.proposal_id)
    first, second, third, fourth = (hunk.hunk_id for hunk in hunks(proposal))
    await harness.proposals.undo(proposal.proposal_id, [second])
    reached, go_on, look = asyncio.Event(), asyncio.Event(), harness.workspace.read_if_exists

    async def slow(path: Path) -> object:
        if path.name == "g.txt":
            reached.set()
            await go_on.wait()
        return await look(path)

    monkeypatch.setattr(harness.workspace, "read_if_exists", slow)
    words = {first: "undo", second: "redo", third: "undo"}
    decisions = [HunkDecision(hunk_id=hunk_id, decision=word) for hunk_id, word in words.items()]
    task = asyncio.create_task(harness.proposals.resolve(proposal.proposal_id, decisions))
    await reached.wait()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    text, then = harness.on_disk("f.txt"), states(harness.proposals.get(proposal.proposal_id))
    assert then == ["reverted", "applied", "reverted", "applied"]
    assert text.decode() == change(BASE, line11="elf\n")
    await harness.proposals.resolve(proposal.proposal_id, [HunkDecision(hunk_id=fourth, decision="keep")])
    assert (harness.on_disk("f.txt"), states(harness.proposals.get(proposal.proposal_id))) == (text, then)


@pytest.mark.parametrize("way", ["revise", "accept"])
async def test_a_deletion_has_no_text_of_the_users(tmp_path: Path, way: str) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    call = harness.context()
    proposal = await harness.proposals.propose(
        call, [FileEdit(await harness.proposals.text(call, harness.root / "f.txt"), None)]
    )
    hunk = hunks(proposal)[0]
    decision = HunkDecision(hunk_id=hunk.hunk_id, decision="accept", new_text="keep this\n")
    with pytest.raises(AmanuError, match="deletes the file"):
        if way == "revise":
            await harness.proposals.revise(proposal.proposal_id, hunk.hunk_id, "keep this\n")
        else:
            await harness.proposals.resolve(proposal.proposal_id, [decision])
    assert harness.on_disk("f.txt").decode() == BASE
    assert states(harness.proposals.get(proposal.proposal_id)) == ["pending"]


async def test_text_that_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path)
    call = harness.context()
    base = await harness.proposals.text(call, harness.root / "new.txt")
    proposal = await harness.proposals.propose(call, [FileEdit(base, "text\n")])
    decision = HunkDecision(hunk_id=hunks(proposal)[0].hunk_id, decision="accept", new_text="half \ud800\n")
    result = await harness.proposals.resolve(proposal.proposal_id, [decision])
    assert states(result) == ["conflicted"] and "cannot hold the character" in (hunks(result)[0].reason or "")
    assert not (harness.root / "new.txt").exists()
