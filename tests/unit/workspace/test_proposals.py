"""The way of an edit: proposed, decided hunk by hunk, applied to exactly the text it was computed from, reported."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.proposals import model as living
from amanu.proposals.model import FileEdit
from amanu.proposals.places import LiveHunk, live_hunks
from amanu.proposals.proposals import Proposals
from amanu.proposals.transaction import Transactions
from amanu.workspace.encodings import decode
from amanu.workspace.text_file import split_lines
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, Proposal
from amanu_protocol.requests import EditorApplyResult, HunkDecision
from support.cancellation_points import cancelled_after
from support.sweeps import examples
from support.tool_harness import ToolHarness, hunks, redo, states

BASE = "one\ntwo\nthree\nfour\nfive\nsix\n"
EDITED = "ONE\ntwo\nthree\nfour\nfive\nSIX\n"


async def propose(
    harness: ToolHarness, text: str | None = EDITED, name: str = "f.txt", step: int = 1
) -> tuple[str, Proposal]:
    """(call id, proposal)"""
    call = harness.context(step)
    base = await harness.proposals.text(call, harness.root / name)
    return call.call_id, await harness.proposals.propose(call, [FileEdit(base, text)])


def take(proposal: Proposal, *decisions: str | None, **more: str) -> list[HunkDecision]:
    return [
        HunkDecision(hunk_id=hunk.hunk_id, decision=decision, **more)
        for hunk, decision in zip(hunks(proposal), decisions, strict=False)
        if decision is not None
    ]


async def test_who_is_cancelled_while_it_proposes_leaves_nothing_that_nobody_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(living, "SMALL_TEXT", 0)  # computed in a thread, like what is big
    for steps in range(1, 6):
        harness = ToolHarness(tmp_path, {"f.txt": BASE})
        _, proposal = await propose(harness, BASE.replace("one", "ONE"))
        await cancelled_after(asyncio.create_task(propose(harness, EDITED)), steps)
        for _ in range(3):
            assert harness.proposals.get(proposal.proposal_id) == harness.versions[-1]
            await asyncio.sleep(0.01)


async def test_hunks_are_decided_one_by_one(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    call, proposal = await propose(harness)
    assert [(h.lines.first, h.old_text, h.new_text) for h in hunks(proposal)] == [
        (1, "one\n", "ONE\n"),
        (6, "six\n", "SIX\n"),
    ]
    assert harness.on_disk("f.txt") == BASE.encode()
    proposal = await harness.proposals.resolve(proposal.proposal_id, take(proposal, "accept"))
    assert states(proposal) == ["applied", "pending"] and proposal.state == "pending"
    assert harness.on_disk("f.txt") == BASE.replace("one", "ONE").encode()
    assert "open, not applied" in harness.proposals.report(call)
    proposal = await harness.proposals.resolve(proposal.proposal_id, take(proposal, None, "reject", reason="keep six"))
    assert states(proposal) == ["applied", "rejected"] and proposal.state == "settled"
    report = harness.proposals.report(call)
    assert "1 of 2 changes applied" in report and "rejected by the user: keep six" in report
    versions = [each.version for each in harness.versions]
    assert versions == sorted(set(versions))
    assert harness.preimages == [(harness.root / "f.txt", BASE.encode(), 0o644)]


@pytest.mark.parametrize("word", ["reject", "Accept", "yes", ""])
async def test_an_unknown_decision_is_a_refusal(tmp_path: Path, word: str) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(harness)
    proposal = await harness.proposals.resolve(proposal.proposal_id, take(proposal, word, word))
    assert states(proposal) == ["rejected", "rejected"]
    assert harness.on_disk("f.txt") == BASE.encode()


async def test_the_users_own_text(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE.replace("\n", "\r\n")})
    call, proposal = await propose(harness, EDITED.replace("\n", "\r\n"))
    proposal = await harness.proposals.resolve(
        proposal.proposal_id, take(proposal, "accept", new_text="mine\nand mine\n")
    )
    proposal = await harness.proposals.accept_all(proposal.proposal_id)
    assert harness.on_disk("f.txt") == b"mine\r\nand mine\r\ntwo\r\nthree\r\nfour\r\nfive\r\nSIX\r\n"
    assert [hunk.edited_by_user for hunk in hunks(proposal)] == [True, False]
    assert hunks(proposal)[1].proposed_lines.first == 7
    report = harness.proposals.report(call)
    assert "the user changed your text" in report and "and mine" in report and "line 7: applied" in report


async def test_deciding_twice(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(harness)
    for _ in range(2):
        proposal = await harness.proposals.resolve(proposal.proposal_id, take(proposal, "accept", "reject"))
    for wrong in (take(proposal, "reject"), take(proposal, None, "accept")):
        with pytest.raises(AmanuError) as caught:
            await harness.proposals.resolve(proposal.proposal_id, wrong)
        assert caught.value.kind == "proposalConflict"
    with pytest.raises(AmanuError):
        await harness.proposals.resolve(proposal.proposal_id, [HunkDecision(hunk_id="no", decision="accept")])
    with pytest.raises(AmanuError):
        harness.proposals.get("p-none")
    assert len(harness.preimages) == 1


@pytest.mark.parametrize("who", ["disk", "buffer"])
async def test_what_moved_is_conflicted_and_not_overwritten(tmp_path: Path, who: str) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    path = harness.root / "f.txt"
    call, proposal = await propose(harness)
    theirs = f"mine\n{BASE}theirs\n"
    if who == "disk":
        harness.put("f.txt", theirs)
    else:
        harness.editor.put(path, theirs)
    proposal = await harness.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["conflicted", "conflicted"]
    assert harness.on_disk("f.txt") == (theirs if who == "disk" else BASE).encode()
    assert harness.editor.applied == [] and harness.preimages == []
    assert "Read it again" in harness.proposals.report(call)
    if who == "disk":  # the file is as it was again: the user may still say yes
        harness.put("f.txt", BASE)
        await harness.proposals.resolve(proposal.proposal_id, take(proposal, "accept", "accept"))
        assert harness.on_disk("f.txt") == EDITED.encode()


async def test_a_text_that_came_between_looking_and_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too late to move the hunks."""
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    call, proposal = await propose(harness)
    real = Transactions.carry_out

    async def late(*arguments: Any) -> Sequence[Path]:
        harness.put("f.txt", BASE.replace("three", "theirs"))
        return await real(*arguments)

    monkeypatch.setattr(Transactions, "carry_out", late)
    proposal = await harness.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["conflicted", "conflicted"] and proposal.state == "settled"
    assert harness.on_disk("f.txt") == BASE.replace("three", "theirs").encode()
    assert "The file changed after" in harness.proposals.report(call)


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
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    path = harness.root / "f.txt"
    harness.editor.saves = saves
    harness.editor.put(path, shown)
    new = shown.replace("one", "ONE").replace("six", "SIX")
    call, proposal = await propose(harness, new)
    assert proposal.files[0].base_version == 1
    await harness.proposals.resolve(proposal.proposal_id, take(proposal, None, "accept"))
    proposal = await harness.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["applied", "applied"]
    assert harness.editor.open[path].text == new
    assert harness.on_disk("f.txt") == expected_disk.encode()
    assert proposal.files[0].unsaved == unsaved
    assert ("not saved" in harness.proposals.report(call)) == unsaved
    assert harness.editor.applied[0][2] == asked_to_save


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [("conflict", None, "changed after"), ("error", "no such view", "no such view"), ("notOpen", None, "closed")],
)
async def test_an_editor_that_refuses(tmp_path: Path, status: str, message: str | None, told: str) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    harness.editor.put(harness.root / "f.txt", BASE)
    harness.editor.refuses = EditorApplyResult.model_validate({"status": status, "message": message})
    call, proposal = await propose(harness)
    proposal = await harness.proposals.accept_all(proposal.proposal_id)
    assert states(proposal) == ["conflicted", "conflicted"] and len(harness.editor.applied) == 1
    assert told in harness.proposals.report(call)
    assert harness.on_disk("f.txt") == BASE.encode()


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
    harness = ToolHarness(tmp_path, {"f.txt": data})
    path = harness.root / "f.txt"
    harness.editor.put(path, shown)
    text = decode(data, path)[0]
    await propose(harness, text.replace("one", "ONE"))
    await harness.proposals.accept_all(harness.versions[-1].proposal_id)
    assert harness.on_disk("f.txt") == data.replace(b"one", b"ONE")
    assert harness.editor.applied == []
    harness.put("f.txt", data)
    harness.editor.put(path, shown + "typed")
    with pytest.raises(ToolError, match="save it first"):
        await propose(harness, "other", step=2)


async def test_edits_of_one_step_are_one_proposal(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    one, first = await propose(harness, EDITED.replace("SIX", "six"))
    kept = hunks(first)[0].hunk_id
    two, second = await propose(harness, EDITED)
    assert second.proposal_id == first.proposal_id and second.tool_call_ids == [one, two]
    assert hunks(second)[0].hunk_id == kept
    done = await harness.proposals.accept_all(second.proposal_id, one)
    assert states(done) == ["applied", "pending"], "what was not allowed is not applied"
    done = await harness.proposals.reject_all(second.proposal_id, "no", two)
    assert states(done) == ["applied", "rejected"]
    assert harness.on_disk("f.txt") == BASE.replace("one", "ONE").encode()
    assert harness.proposals.report(one) == "Applied to f.txt: line 1."
    assert "rejected by the user: no" in harness.proposals.report(two)


async def test_lines_two_calls_wrote_need_both(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    one, _ = await propose(harness, BASE.replace("two", "2"))
    two, proposal = await propose(harness, BASE.replace("two", "zwei"))
    assert len(hunks(proposal)) == 1
    proposal = await harness.proposals.accept_all(proposal.proposal_id, one)
    assert states(proposal) == ["pending"] and "waits" in harness.proposals.report(one)
    proposal = await harness.proposals.accept_all(proposal.proposal_id, two)
    assert states(proposal) == ["applied"] and harness.on_disk("f.txt") == BASE.replace("two", "zwei").encode()


async def test_a_later_step_starts_without_open_hunks(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    _, first = await propose(harness)
    await harness.proposals.resolve(first.proposal_id, take(first, "accept"))
    base = await harness.proposals.text(harness.context(2), harness.root / "f.txt")
    assert base.text == BASE.replace("one", "ONE")
    _, second = await propose(harness, base.text.replace("three", "3"), step=2)
    assert second.proposal_id != first.proposal_id
    await harness.proposals.accept_all(second.proposal_id)
    late = await harness.proposals.accept_all(first.proposal_id)
    assert states(late) == ["applied", "applied"]
    assert harness.on_disk("f.txt") == EDITED.replace("three", "3").encode()


async def test_create_and_delete(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    call, made = await propose(harness, "new\n", "a/b/new.txt")
    assert made.files[0].change == "create" and not (tmp_path / "a").exists()
    await harness.proposals.accept_all(made.proposal_id)
    assert harness.on_disk("a/b/new.txt") == b"new\n" and harness.preimages[0] == (
        harness.root / "a/b/new.txt",
        None,
        None,
    )
    assert harness.proposals.report(call) == "Created a/b/new.txt."
    _, empty = await propose(harness, "", "empty")
    await harness.proposals.accept_all(empty.proposal_id)
    assert harness.on_disk("empty") == b""
    call, gone = await propose(harness, None)
    assert gone.files[0].change == "delete" and harness.on_disk("f.txt") == BASE.encode()
    await harness.proposals.accept_all(gone.proposal_id)
    assert not (tmp_path / "f.txt").exists() and harness.proposals.report(call) == "Deleted f.txt."


async def test_a_file_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path)
    _, made = await propose(harness, "new\n", "f")
    harness.put("f", "theirs")
    assert states(await harness.proposals.accept_all(made.proposal_id)) == ["conflicted"]
    assert harness.on_disk("f") == b"theirs"


async def test_nothing_to_change(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    with pytest.raises(ToolError, match="exactly this content"):
        await propose(harness, BASE)


async def test_the_preimage_comes_first(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})

    async def fails(*_: object) -> None:
        assert harness.on_disk("f.txt") == BASE.encode()
        raise AmanuError("storageError", "The disk is full.")

    proposals = Proposals(harness.workspace, harness.versions.append, fails)
    harness.proposals = proposals
    _, proposal = await propose(harness)
    with pytest.raises(AmanuError):
        await proposals.accept_all(proposal.proposal_id)
    assert harness.on_disk("f.txt") == BASE.encode()
    assert states(proposals.get(proposal.proposal_id)) == ["pending", "pending"]


async def test_a_cancelled_commit_still_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(harness)
    entered, go = asyncio.Event(), asyncio.Event()
    real = Transactions._change_files  # pyright: ignore[reportPrivateUsage]

    async def slow(*arguments: Any) -> None:
        entered.set()
        await go.wait()
        await real(*arguments)

    monkeypatch.setattr(Transactions, "_change_files", slow)
    task = asyncio.create_task(harness.proposals.accept_all(proposal.proposal_id))
    await entered.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert harness.on_disk("f.txt") == EDITED.encode()
    assert states(harness.versions[-1]) == ["applied", "applied"]


@pytest.mark.parametrize(
    ("now", "expected"),
    [(EDITED, "applied"), (BASE, "pending"), (BASE + "theirs", "conflicted"), (None, "conflicted")],
)
async def test_after_a_crash_the_file_tells(tmp_path: Path, now: str | None, expected: str) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(harness)
    await harness.proposals.accept_all(proposal.proposal_id)
    died = next(each for each in harness.versions if states(each) == ["accepted", "accepted"])
    (tmp_path / "f.txt").unlink()
    if now is not None:
        harness.put("f.txt", now)
    harness.put(".f.txt.77.amanu-tmp", "half")
    again = ToolHarness(tmp_path)
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


@settings(max_examples=examples(60, 25), deadline=None)
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
        harness = ToolHarness(tmp_path_factory.mktemp("bytes"), {"f": raw})
        base = await harness.proposals.text(harness.context(), harness.root / "f")
        if "".join(changed) == base.text:
            return
        _, proposal = await propose(harness, "".join(changed), "f")
        wanted = [data.draw(st.sampled_from(["accept", "reject"])) for _ in hunks(proposal)]
        done = await harness.proposals.resolve(proposal.proposal_id, take(proposal, *wanted))
        expected, at = "", 0
        text_lines = base.text
        position = _offsets(text_lines)
        for hunk, word in zip(live_hunks(hunks(done)), wanted, strict=True):
            start = position[hunk.base_lines.start]
            expected += text_lines[at:start] + (hunk.new_text if word == "accept" else hunk.old_text)
            at = start + len(hunk.old_text)
        expected += text_lines[at:]
        mark, encoding = codec[1], base.encoding.removesuffix("-bom")
        assert harness.on_disk("f") == (mark + expected.encode(encoding) if "accept" in wanted else raw)

    asyncio.run(check())


def _offsets(text: str) -> list[int]:
    offsets = [0]
    for line in split_lines(text):
        offsets.append(offsets[-1] + len(line))
    return offsets


async def test_deciding_costs_what_the_hunks_are_not_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three thousand hunks once held the daemon for two minutes: all were looked at anew after each was decided."""
    counted = 0
    placed = living.placed

    def counting(found: Iterable[LiveHunk], starts: Sequence[int] | None = None) -> list[Hunk]:
        nonlocal counted
        counted += 1
        return placed(found, starts)

    monkeypatch.setattr(living, "placed", counting)
    before = "".join(f"line {each}\nsame\n" for each in range(100))
    harness = ToolHarness(tmp_path, {"f.txt": before})
    _, proposal = await propose(harness, before.replace("line", "LINE"))
    ids = [hunk.hunk_id for hunk in hunks(proposal)]
    assert len(ids) == 100
    proposal = await harness.proposals.resolve(proposal.proposal_id, take(proposal, *["accept"] * 100))
    assert harness.on_disk("f.txt") == before.replace("line", "LINE").encode()
    assert await harness.proposals.undo(proposal.proposal_id, ids) == []
    assert harness.on_disk("f.txt") == before.encode()
    await redo(harness.proposals, proposal.proposal_id, ids)
    assert set(states(harness.proposals.get(proposal.proposal_id))) == {"applied"}
    assert counted < 10
