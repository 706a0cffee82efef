"""The way of an edit: proposed, decided hunk by hunk, applied to exactly the text it was computed from, reported."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.proposals import apply as applying
from amanu.proposals import model as living
from amanu.proposals import proposals as proposing
from amanu.proposals import undo as undoing
from amanu.proposals.proposals import FileEdit, Proposals
from amanu.workspace.text_file import decode, split_lines
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, Proposal
from amanu_protocol.requests import EditorApplyResult, HunkDecision
from broken_off import broken_off
from desk import Desk, hunks, states

BASE = "one\ntwo\nthree\nfour\nfive\nsix\n"
EDITED = "ONE\ntwo\nthree\nfour\nfive\nSIX\n"


async def propose(desk: Desk, text: str | None = EDITED, name: str = "f.txt", step: int = 1) -> tuple[str, Proposal]:
    """(call id, proposal)"""
    call = desk.context(step)
    base = await desk.proposals.text(call, desk.root / name)
    return call.call_id, await desk.proposals.propose(call, [FileEdit(base, text)])


def take(proposal: Proposal, *decisions: str | None, **more: str) -> list[HunkDecision]:
    return [
        HunkDecision(hunk_id=hunk.hunk_id, decision=decision, **more)
        for hunk, decision in zip(hunks(proposal), decisions, strict=False)
        if decision is not None
    ]


async def test_who_is_cancelled_while_it_proposes_leaves_nothing_that_nobody_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposing, "SMALL", 0)  # computed in a thread, like what is big
    for steps in range(1, 6):
        desk = Desk(tmp_path, {"f.txt": BASE})
        _, proposal = await propose(desk, BASE.replace("one", "ONE"))
        await broken_off(asyncio.create_task(propose(desk, EDITED)), steps)
        for _ in range(3):
            assert desk.proposals.get(proposal.proposal_id) == desk.versions[-1]
            await asyncio.sleep(0.01)


async def test_hunks_are_decided_one_by_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    call, proposal = await propose(desk)
    assert [(h.old_start, h.old_text, h.new_text) for h in hunks(proposal)] == [
        (1, "one\n", "ONE\n"),
        (6, "six\n", "SIX\n"),
    ]
    assert desk.on_disk("f.txt") == BASE.encode()
    proposal = await desk.proposals.resolve(proposal.proposal_id, take(proposal, "accept"))
    assert states(proposal) == ["applied", "pending"] and proposal.state == "pending"
    assert desk.on_disk("f.txt") == BASE.replace("one", "ONE").encode()
    assert "open, not applied" in desk.proposals.report(call)
    proposal = await desk.proposals.resolve(proposal.proposal_id, take(proposal, None, "reject", reason="keep six"))
    assert states(proposal) == ["applied", "rejected"] and proposal.state == "settled"
    report = desk.proposals.report(call)
    assert "1 of 2 changes applied" in report and "rejected by the user: keep six" in report
    versions = [each.version for each in desk.versions]
    assert versions == sorted(set(versions))
    assert desk.preimages == [(desk.root / "f.txt", BASE.encode(), 0o644)]


@pytest.mark.parametrize("word", ["reject", "Accept", "yes", ""])
async def test_an_unknown_decision_is_a_refusal(tmp_path: Path, word: str) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(desk)
    proposal = await desk.proposals.resolve(proposal.proposal_id, take(proposal, word, word))
    assert states(proposal) == ["rejected", "rejected"]
    assert desk.on_disk("f.txt") == BASE.encode()


async def test_the_users_own_text(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE.replace("\n", "\r\n")})
    call, proposal = await propose(desk, EDITED.replace("\n", "\r\n"))
    proposal = await desk.proposals.resolve(proposal.proposal_id, take(proposal, "accept", new_text="mine\nand mine\n"))
    proposal = await desk.proposals.accept_all(proposal.proposal_id)
    assert desk.on_disk("f.txt") == b"mine\r\nand mine\r\ntwo\r\nthree\r\nfour\r\nfive\r\nSIX\r\n"
    assert [hunk.edited_by_user for hunk in hunks(proposal)] == [True, False]
    assert hunks(proposal)[1].new_start == 7
    report = desk.proposals.report(call)
    assert "the user changed your text" in report and "and mine" in report and "line 7: applied" in report


async def test_deciding_twice(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(desk)
    for _ in range(2):
        proposal = await desk.proposals.resolve(proposal.proposal_id, take(proposal, "accept", "reject"))
    for wrong in (take(proposal, "reject"), take(proposal, None, "accept")):
        with pytest.raises(AmanuError) as caught:
            await desk.proposals.resolve(proposal.proposal_id, wrong)
        assert caught.value.kind == "proposalConflict"
    with pytest.raises(AmanuError):
        await desk.proposals.resolve(proposal.proposal_id, [HunkDecision(hunk_id="no", decision="accept")])
    with pytest.raises(AmanuError):
        desk.proposals.get("p-none")
    assert len(desk.preimages) == 1


@pytest.mark.parametrize("who", ["disk", "buffer"])
async def test_what_moved_is_conflicted_and_not_overwritten(tmp_path: Path, who: str) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    path = desk.root / "f.txt"
    call, proposal = await propose(desk)
    theirs = f"mine\n{BASE}theirs\n"
    if who == "disk":
        desk.put("f.txt", theirs)
    else:
        desk.editor.put(path, theirs)
    proposal = await desk.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["conflicted", "conflicted"]
    assert desk.on_disk("f.txt") == (theirs if who == "disk" else BASE).encode()
    assert desk.editor.applied == [] and desk.preimages == []
    assert "Read it again" in desk.proposals.report(call)
    if who == "disk":  # the file is as it was again: the user may still say yes
        desk.put("f.txt", BASE)
        await desk.proposals.resolve(proposal.proposal_id, take(proposal, "accept", "accept"))
        assert desk.on_disk("f.txt") == EDITED.encode()


async def test_a_text_that_came_between_looking_and_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too late to move the hunks."""
    desk = Desk(tmp_path, {"f.txt": BASE})
    call, proposal = await propose(desk)
    real = proposing.apply

    async def late(*arguments: object) -> None:
        desk.put("f.txt", BASE.replace("three", "theirs"))
        await real(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(proposing, "apply", late)
    proposal = await desk.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["conflicted", "conflicted"] and proposal.state == "settled"
    assert desk.on_disk("f.txt") == BASE.replace("three", "theirs").encode()
    assert "The file changed after" in desk.proposals.report(call)


@pytest.mark.parametrize(
    ("shown", "saves", "expected_disk", "unsaved", "asked_to_save"),
    [
        (BASE, True, EDITED, False, True),
        (BASE, False, BASE, True, True),
        (BASE.replace("two", "2"), True, BASE, True, False),
    ],
)
async def test_an_open_file_is_edited_in_its_editor(
    tmp_path: Path, shown: str, saves: bool, expected_disk: str, unsaved: bool, asked_to_save: bool
) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    path = desk.root / "f.txt"
    desk.editor.saves = saves
    desk.editor.put(path, shown)
    new = shown.replace("one", "ONE").replace("six", "SIX")
    call, proposal = await propose(desk, new)
    assert proposal.files[0].base_version == 1
    await desk.proposals.resolve(proposal.proposal_id, take(proposal, None, "accept"))
    proposal = await desk.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["applied", "applied"]
    assert desk.editor.open[path].text == new
    assert desk.on_disk("f.txt") == expected_disk.encode()
    assert proposal.files[0].unsaved == unsaved
    assert ("not saved" in desk.proposals.report(call)) == unsaved
    assert desk.editor.applied[0][2] == asked_to_save


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [("conflict", None, "changed after"), ("error", "no such view", "no such view"), ("notOpen", None, "closed")],
)
async def test_an_editor_that_refuses(tmp_path: Path, status: str, message: str | None, told: str) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    desk.editor.put(desk.root / "f.txt", BASE)
    desk.editor.refuses = EditorApplyResult.model_validate({"status": status, "message": message})
    call, proposal = await propose(desk)
    proposal = await desk.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["conflicted", "conflicted"] and len(desk.editor.applied) == 1
    assert told in desk.proposals.report(call)
    assert desk.on_disk("f.txt") == BASE.encode()


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"one\r\ntwo\nthree\n", "one\ntwo\nthree\n"),
        (b"one\r\ntwo\nthree\n", "one\r\ntwo\r\nthree\r\n"),
        (b"caf\xe9\none\n", "caf\ufffd\none\n"),
        (b"one\rtwo\n", "one\ntwo\n"),
    ],
)
async def test_bytes_that_no_editor_keeps_go_to_disk_if_it_is_clean(tmp_path: Path, data: bytes, shown: str) -> None:
    desk = Desk(tmp_path, {"f.txt": data})
    path = desk.root / "f.txt"
    desk.editor.put(path, shown)
    text = decode(data, path)[0]
    await propose(desk, text.replace("one", "ONE"))
    await desk.proposals.accept_all(desk.versions[-1].proposal_id)
    assert desk.on_disk("f.txt") == data.replace(b"one", b"ONE")
    assert desk.editor.applied == []
    desk.put("f.txt", data)
    desk.editor.put(path, shown + "typed")
    with pytest.raises(ToolError, match="save it first"):
        await propose(desk, "other", step=2)


async def test_edits_of_one_step_are_one_proposal(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    one, first = await propose(desk, EDITED.replace("SIX", "six"))
    kept = hunks(first)[0].hunk_id
    two, second = await propose(desk, EDITED)
    assert second.proposal_id == first.proposal_id and second.tool_call_ids == [one, two]
    assert hunks(second)[0].hunk_id == kept
    done = await desk.proposals.accept_all(second.proposal_id, one)
    assert states(done) == ["applied", "pending"], "what was not allowed is not applied"
    done = await desk.proposals.reject_all(second.proposal_id, "no", two)
    assert states(done) == ["applied", "rejected"]
    assert desk.on_disk("f.txt") == BASE.replace("one", "ONE").encode()
    assert desk.proposals.report(one) == "Applied to f.txt: line 1."
    assert "rejected by the user: no" in desk.proposals.report(two)


async def test_lines_two_calls_wrote_need_both(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    one, _ = await propose(desk, BASE.replace("two", "2"))
    two, proposal = await propose(desk, BASE.replace("two", "zwei"))
    assert len(hunks(proposal)) == 1
    proposal = await desk.proposals.accept_all(proposal.proposal_id, one)
    assert states(proposal) == ["pending"] and "waits" in desk.proposals.report(one)
    proposal = await desk.proposals.accept_all(proposal.proposal_id, two)
    assert states(proposal) == ["applied"] and desk.on_disk("f.txt") == BASE.replace("two", "zwei").encode()


async def test_a_later_step_starts_without_open_hunks(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    _, first = await propose(desk)
    await desk.proposals.resolve(first.proposal_id, take(first, "accept"))
    base = await desk.proposals.text(desk.context(2), desk.root / "f.txt")
    assert base.text == BASE.replace("one", "ONE")
    _, second = await propose(desk, base.text.replace("three", "3"), step=2)
    assert second.proposal_id != first.proposal_id
    await desk.proposals.accept_all(second.proposal_id)
    late = await desk.proposals.accept_all(first.proposal_id)
    assert states(late) == ["applied", "applied"]
    assert desk.on_disk("f.txt") == EDITED.replace("three", "3").encode()


async def test_create_and_delete(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    call, made = await propose(desk, "new\n", "a/b/new.txt")
    assert made.files[0].change == "create" and not (tmp_path / "a").exists()
    await desk.proposals.accept_all(made.proposal_id)
    assert desk.on_disk("a/b/new.txt") == b"new\n" and desk.preimages[0] == (desk.root / "a/b/new.txt", None, None)
    assert desk.proposals.report(call) == "Created a/b/new.txt."
    _, empty = await propose(desk, "", "empty")
    await desk.proposals.accept_all(empty.proposal_id)
    assert desk.on_disk("empty") == b""
    call, gone = await propose(desk, None)
    assert gone.files[0].change == "delete" and desk.on_disk("f.txt") == BASE.encode()
    await desk.proposals.accept_all(gone.proposal_id)
    assert not (tmp_path / "f.txt").exists() and desk.proposals.report(call) == "Deleted f.txt."


async def test_a_file_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    _, made = await propose(desk, "new\n", "f")
    desk.put("f", "theirs")
    assert states(await desk.proposals.accept_all(made.proposal_id)) == ["conflicted"]
    assert desk.on_disk("f") == b"theirs"


async def test_nothing_to_change(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    with pytest.raises(ToolError, match="exactly this content"):
        await propose(desk, BASE)


async def test_the_preimage_comes_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})

    async def fails(*_: object) -> None:
        assert desk.on_disk("f.txt") == BASE.encode()
        raise AmanuError("storageError", "The disk is full.")

    proposals = Proposals(desk.workspace, desk.versions.append, fails)
    desk.proposals = proposals
    _, proposal = await propose(desk)
    with pytest.raises(AmanuError):
        await proposals.accept_all(proposal.proposal_id)
    assert desk.on_disk("f.txt") == BASE.encode()
    assert states(proposals.get(proposal.proposal_id)) == ["conflicted", "conflicted"]


async def test_a_cancelled_commit_still_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(desk)
    entered, go = asyncio.Event(), asyncio.Event()
    real = applying._write  # pyright: ignore[reportPrivateUsage]

    async def slow(*arguments: object) -> None:
        entered.set()
        await go.wait()
        await real(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(applying, "_write", slow)
    task = asyncio.create_task(desk.proposals.accept_all(proposal.proposal_id))
    await entered.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.on_disk("f.txt") == EDITED.encode()
    assert states(desk.versions[-1]) == ["applied", "applied"]


@pytest.mark.parametrize(
    ("now", "expected"),
    [(EDITED, "applied"), (BASE, "pending"), (BASE + "theirs", "conflicted"), (None, "conflicted")],
)
async def test_after_a_crash_the_file_tells(tmp_path: Path, now: str | None, expected: str) -> None:
    desk = Desk(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(desk)
    await desk.proposals.accept_all(proposal.proposal_id)
    died = next(each for each in desk.versions if states(each) == ["accepted", "accepted"])
    (tmp_path / "f.txt").unlink()
    if now is not None:
        desk.put("f.txt", now)
    desk.put(".f.txt.77.amanu-tmp", "half")
    again = Desk(tmp_path)
    await again.proposals.restore([died])
    restored = again.proposals.get(died.proposal_id)
    assert states(restored) == [expected] * 2 and restored.version > died.version
    assert again.versions == [restored]
    assert not (tmp_path / ".f.txt.77.amanu-tmp").exists()
    if expected == "pending":
        await again.proposals.accept_all(died.proposal_id)
        assert again.on_disk("f.txt") == EDITED.encode()


_lines = st.lists(st.sampled_from(["a", "b", "é", "", "  x", "}"]), min_size=1, max_size=12)
_ends = st.sampled_from(["\n", "\r\n", "\r"])
_codecs = st.sampled_from([("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("latin-1", b"")])


@settings(max_examples=60, deadline=None)
@given(_lines, st.lists(_ends, min_size=12, max_size=12), _codecs, st.data())
def test_every_byte_outside_the_hunks_stays(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    ends: list[str],
    codec: tuple[str, bytes],
    data: st.DataObject,
) -> None:
    """Any subset of hunks of any change to a file of any encoding and mix of line ends."""
    whole = [line + end for line, end in zip(lines, ends, strict=False)]
    if data.draw(st.booleans()):
        whole[-1] = whole[-1].rstrip("\r\n")
    raw = codec[1] + "".join(whole).encode(codec[0])
    changed = [data.draw(st.sampled_from([line, line, "new\n", ""])) for line in whole]

    async def check() -> None:
        desk = Desk(tmp_path_factory.mktemp("bytes"), {"f": raw})
        base = await desk.proposals.text(desk.context(), desk.root / "f")
        if "".join(changed) == base.text:
            return
        _, proposal = await propose(desk, "".join(changed), "f")
        wanted = [data.draw(st.sampled_from(["accept", "reject"])) for _ in hunks(proposal)]
        done = await desk.proposals.resolve(proposal.proposal_id, take(proposal, *wanted))
        expected, at = "", 0
        text_lines = base.text
        position = _offsets(text_lines)
        for hunk, word in zip(hunks(done), wanted, strict=True):
            start = position[hunk.old_start - 1 if hunk.old_lines else hunk.old_start]
            expected += text_lines[at:start] + (hunk.new_text if word == "accept" else hunk.old_text)
            at = start + len(hunk.old_text)
        expected += text_lines[at:]
        mark, encoding = codec[1], base.encoding.removesuffix("-bom")
        assert desk.on_disk("f") == (mark + expected.encode(encoding) if "accept" in wanted else raw)

    asyncio.run(check())


def _offsets(text: str) -> list[int]:
    offsets = [0]
    for line in split_lines(text):
        offsets.append(offsets[-1] + len(line))
    return offsets


async def test_deciding_costs_what_the_hunks_are_not_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three thousand hunks once held the daemon for two minutes: all were numbered anew after each was decided."""
    counted = 0
    numbered = living.numbered

    def counting(found: Iterable[Hunk]) -> list[Hunk]:
        nonlocal counted
        counted += 1
        return numbered(found)

    monkeypatch.setattr(living, "numbered", counting)
    monkeypatch.setattr(undoing, "numbered", counting)
    before = "".join(f"line {each}\nsame\n" for each in range(100))
    desk = Desk(tmp_path, {"f.txt": before})
    _, proposal = await propose(desk, before.replace("line", "LINE"))
    ids = [hunk.hunk_id for hunk in hunks(proposal)]
    assert len(ids) == 100
    proposal = await desk.proposals.resolve(proposal.proposal_id, take(proposal, *["accept"] * 100))
    assert desk.on_disk("f.txt") == before.replace("line", "LINE").encode()
    assert await desk.proposals.undo(proposal.proposal_id, ids) == []
    assert desk.on_disk("f.txt") == before.encode()
    assert await desk.proposals.redo(proposal.proposal_id, ids) == []
    assert set(states(desk.proposals.get(proposal.proposal_id))) == {"applied"}
    assert counted < 10
