"""Hunks move along with what the user types: per hunk, by the difference to the last text in which all fitted."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.proposals import tracking as module
from amanu.proposals.model import LINES_CHANGED, FileEdit, LiveFile, LiveProposal
from amanu.proposals.reanchor import reanchor
from amanu.workspace.text_file import FileText, sha256, split_lines
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, HunkState, Proposal
from amanu_protocol.requests import EditorApplyResult, HunkDecision
from support.sweeps import examples
from support.tool_harness import ToolHarness, hunks, states

PATH = Path("/w/f.txt")
BASE = "".join(f"line {n}\n" for n in range(1, 13))
EDITED = BASE.replace("line 3\n", "line three\n").replace("line 8\n", "")
"""Line 3 is replaced, line 8 goes."""


def text_of(text: str, **more: object) -> FileText:
    return FileText(PATH, text, sha256(text.encode()), **more)  # pyright: ignore[reportArgumentType]


def drafted(base: str, new: str, *decided: HunkState) -> LiveFile:
    file = LiveFile(text_of(base), base)
    file.propose(new, "c1", itertools.count(1), "p")
    for hunk, state in zip(list(file.hunks), decided, strict=False):
        file.update_hunk(hunk.hunk_id, state=state)
    return file


def places(file: LiveFile) -> list[tuple[int, int]]:
    """As in unified diffs: a hunk without old lines names the line it comes after."""
    return [(hunk.base_lines.start + (hunk.base_lines.count > 0), hunk.base_lines.count) for hunk in file.hunks]


def states_of(file: LiveFile) -> list[HunkState]:
    return [hunk.state for hunk in file.hunks]


def move(file: LiveFile, now: str, *, by_user: bool = True) -> None:
    found = reanchor(file, text_of(now), by_user=by_user)
    assert found is not None
    found.write_to(file)
    assert file.text_with("applied") == now
    assert file.base.sha256 == sha256(file.base.text.encode())


P, C, A, R, T = "pending", "conflicted", "applied", "rejected", "reverted"
INSERTED = BASE.replace("line 6\n", "line 6\nnew\n")
ENDS = BASE.replace("line 1\n", "line one\n").replace("line 12\n", "line twelve\n")


@pytest.mark.parametrize(
    ("proposed", "before", "after", "now", "at"),
    [
        # far away: they move
        (EDITED, "line 1\n", "mine\nline 1\n", [P, P], [(4, 1), (9, 1)]),
        (EDITED, "line 1\n", "", [P, P], [(2, 1), (7, 1)]),
        (EDITED, "line 5\nline 6\n", "five\nand\nsix\n", [P, P], [(3, 1), (9, 1)]),
        (EDITED, "line 12\n", "line 12\nmine", [P, P], [(3, 1), (8, 1)]),
        # in the lines, or next to them
        (EDITED, "line 3\n", "LINE 3\n", [C, P], [(3, 1), (8, 1)]),
        (EDITED, "line 3\n", "", [C, P], [(2, 0), (7, 1)]),
        (EDITED, "line 2\n", "LINE 2\n", [C, P], [(3, 1), (8, 1)]),
        (EDITED, "line 4\n", "", [C, P], [(3, 1), (7, 1)]),
        (EDITED, "line 3\n", "mine\nline 3\n", [C, P], [(4, 1), (9, 1)]),
        (EDITED, "line 3\n", "line 3\nmine\n", [C, P], [(3, 1), (9, 1)]),
        (EDITED, "line 3\nline 4\nline 5\nline 6\nline 7\nline 8\n", "all\n", [C, C], [(3, 1), (3, 0)]),
        (EDITED, "line 2\n", "mine\nline 2\n", [P, P], [(4, 1), (9, 1)]),  # behind an unchanged one
        # a pure insertion has nothing but its neighbours
        (INSERTED, "line 1\n", "", [P], [(5, 0)]),
        (INSERTED, "line 5\n", "FIVE\nAND\n", [P], [(7, 0)]),
        (INSERTED, "line 6\n", "SIX\n", [C], [(6, 0)]),
        (INSERTED, "line 7\n", "", [C], [(6, 0)]),
        (INSERTED, "line 7\n", "mine\nline 7\n", [C], [(7, 0)]),
        # the file's edges are neighbours
        (ENDS, "line 6\n", "", [P, P], [(1, 1), (11, 1)]),
        (ENDS, "line 1\n", "mine\nline 1\n", [C, P], [(2, 1), (13, 1)]),
        (ENDS, "line 12\n", "line 12\nmine\n", [P, C], [(1, 1), (12, 1)]),
    ],
)
def test_open_hunks(proposed: str, before: str, after: str, now: list[str], at: list[tuple[int, int]]) -> None:
    file = drafted(BASE, proposed)
    typed = BASE.replace(before, after)
    move(file, typed)
    assert file.base.text == typed
    assert (states_of(file), places(file)) == (now, at)
    assert [hunk.reason for hunk in file.hunks] == [LINES_CHANGED if state == C else None for state in now]
    assert file.conflicting == {hunk.hunk_id for hunk in file.hunks if hunk.state == C}
    move(file, BASE.replace("line 10\n", "ten\n"))  # they undo it, and type elsewhere
    assert set(states_of(file)) == {P} and file.anchor is None
    assert places(file) == places(drafted(BASE, proposed))


UNDONE = BASE.replace("line 8\n", "")


@pytest.mark.parametrize(
    ("decided", "typed", "now", "texts", "base"),
    [
        ([A, P], BASE.replace("line 3\n", "line three\n").replace("line 11", "eleven"), [A, P], ["line three\n", ""],
         BASE.replace("line 11", "eleven")),
        ([A, P], "mine\n" + BASE.replace("line 3\n", "line three\n"), [A, P], ["line three\n", ""], "mine\n" + BASE),
        ([A, P], BASE, [T, P], ["line three\n", ""], BASE),
        ([A, A], UNDONE, [T, A], ["line three\n", ""], BASE),
        ([A, A], BASE.replace("line 3\n", "line three\n"), [A, T], ["line three\n", ""], BASE),
        ([A, P], BASE.replace("line 3\n", "line 3!\n"), [A, P], ["line 3!\n", ""], BASE),
        ([A, P], BASE.replace("line 3\n", ""), [A, P], ["", ""], BASE),
        ([A, P], BASE.replace("line 3\nline 4\n", "both\n"), [A, P], ["both\n", ""], BASE.replace("line 4\n", "")),
        ([R, P], "mine\n" + BASE, [R, P], ["line three\n", ""], "mine\n" + BASE),
        ([R, P], BASE.replace("line 3\n", "a\nb\n"), [R, P], ["line three\n", ""], BASE.replace("line 3\n", "a\nb\n")),
    ],
)  # fmt: skip
def test_decided_hunks(decided: list[HunkState], typed: str, now: list[HunkState], texts: list[str], base: str) -> None:
    file = drafted(BASE, EDITED, *decided)
    before = file.text_with("applied")
    move(file, typed)
    assert states_of(file) == now
    assert [hunk.new_text for hunk in file.hunks] == texts
    edited = [
        hunk.state == A and hunk.new_text != new for hunk, new in zip(file.hunks, ["line three\n", ""], strict=True)
    ]
    assert [hunk.edited_by_user for hunk in file.hunks] == edited
    assert file.base.text == base
    move(file, before + "more\n")  # as it was, but for something elsewhere
    assert states_of(file) == decided
    assert [hunk.new_text for hunk in file.hunks] == ["line three\n", ""]
    assert not any(hunk.edited_by_user for hunk in file.hunks)


def test_equal_lines_leave_no_doubt() -> None:
    base = "a\nb\na\nb\na\nb\nend\n" + BASE
    file = drafted(base, base.replace("b\na\nb\na\n", "b\nX\nb\na\n", 1).replace("line 9", "nine"))
    assert places(file)[0] == (3, 1)
    move(file, "a\nb\n" + base)  # put in above or below: nobody can tell
    assert states_of(file) == [C, P]
    file = drafted("x\nb\ny\nz\n" + BASE, "x\nb\nb\ny\nz\n" + BASE.replace("line 9", "nine"), A)
    assert file.hunks[0].base_lines.count == 0
    move(file, "x\nb\ny\nz\n" + BASE)  # which of the equal lines is gone, a difference cannot say: it was ours
    assert states_of(file) == [T, P]
    move(file, "x\nb\nb\ny\nz\n" + BASE)
    assert states_of(file) == [A, P]


@pytest.mark.parametrize(
    ("base", "new", "typed"),
    [
        ("a\nb\nc", "a\nb\nX", "a\nb\nX\nmore"),
        ("a\nb\nc", "a\nb\nX\n", "a\nb\nX\nmore\n"),
        ("a\nb\nc", "a\n", "a\nmore\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nX\r\nc\r\n", "a\r\nX\r\nc\r\nmore\r\n"),
        ("a\rb\rc\r", "a\rX\rc\r", "mine\ra\rX\rc\r"),
    ],
)
def test_line_ends(base: str, new: str, typed: str) -> None:
    file = drafted(base, new, A)
    move(file, typed)
    assert states_of(file) == [A]
    assert all(hunk.old_text in file.base.text and hunk.new_text in typed for hunk in file.hunks)


def test_what_cannot_be_moved() -> None:
    file = drafted(BASE, EDITED)
    assert reanchor(file, text_of(BASE)) is None
    assert reanchor(file, text_of("x" + BASE, lossy=True)) is None
    assert reanchor(file, text_of("x" + BASE, encoding="latin-1")) is None
    assert reanchor(drafted(BASE, ""), text_of("x" + BASE)) is not None
    file = LiveFile(text_of(BASE), BASE)
    file.propose(None, "c1", itertools.count(1), "p")
    assert reanchor(file, text_of("x" + BASE)) is None
    file = LiveFile(text_of("", exists=False), "")
    file.propose("new\n", "c1", itertools.count(1), "p")
    assert reanchor(file, text_of("theirs\n")) is None


def test_what_another_proposal_does_is_not_the_users() -> None:
    file = drafted(BASE, EDITED, A)
    move(file, BASE.replace("line 3\n", "line 3, better\n"), by_user=False)
    assert states_of(file) == [A, P] and not file.hunks[0].edited_by_user
    assert file.anchor is None
    move(file, BASE.replace("line 3\n", "line 3, better\n") + "typed\n")
    assert not file.hunks[0].edited_by_user


def test_an_edit_that_an_editor_denied_and_did() -> None:
    file = drafted(BASE, EDITED, C)
    move(file, BASE.replace("line 3\n", "line three\n"))
    assert states_of(file) == [A, P]
    move(file, BASE.replace("line 3\n", "line three\n") + "more\n")
    assert states_of(file) == [A, P] and file.anchor is None
    file = drafted(BASE, EDITED, P)  # nobody accepted it: the user wrote the same
    move(file, BASE.replace("line 3\n", "line three\n"))
    assert states_of(file) == [C, P]


@pytest.mark.parametrize("proposed", [EDITED, INSERTED])
def test_after_a_restart(proposed: str) -> None:
    file = drafted(BASE, proposed)
    typed = BASE.replace("line 3\n", "typed\n").replace("line 7\n", "")
    move(file, typed)
    assert set(states_of(file)) == {C}
    loaded = LiveProposal.load(LiveProposal("p", "t", 1, ["c1"], [file]).wire()).files[0]
    assert loaded.conflicting == {each.hunk_id for each in loaded.hunks if each.old_text != "line 8\n"}
    move(loaded, typed + "more\n")
    assert states_of(loaded)[0] == C
    move(loaded, BASE)
    assert states_of(loaded)[0] == (P if proposed == EDITED else C), "an insertion has lost its neighbours"


# The proposals of a session ---------------------------------------------------------------------------------------


async def propose(harness: ToolHarness, new: str, name: str = "f.txt", step: int = 1) -> tuple[str, Proposal]:
    call = harness.context(step)
    base = await harness.proposals.text(call, harness.root / name)
    return call.call_id, await harness.proposals.propose(call, [FileEdit(base, new)])


def take(proposal: Proposal, *decisions: str | None) -> list[HunkDecision]:
    found = zip(hunks(proposal), decisions, strict=False)
    return [HunkDecision(hunk_id=hunk.hunk_id, decision=each) for hunk, each in found if each is not None]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET", 0.01)


def type_in(harness: ToolHarness, text: str, name: str = "f.txt") -> None:
    harness.editor.put(harness.root / name, text)
    harness.overlay.notify_changed(harness.root / name)


async def last(harness: ToolHarness, version: int = 0) -> Proposal:
    async with asyncio.timeout(50):
        while not harness.versions or harness.versions[-1].version < version:
            await asyncio.sleep(0.005)
    return harness.versions[-1]


@pytest.mark.parametrize("where", ["disk", "buffer"])
async def test_deciding_moves_first(tmp_path: Path, where: str) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    call, proposal = await propose(harness, EDITED)
    typed = "mine\n" + BASE.replace("line 8", "eight")
    if where == "disk":
        harness.put("f.txt", typed)
    else:
        harness.editor.put(harness.root / "f.txt", typed)
    done = await harness.proposals.resolve(proposal.proposal_id, take(proposal, "accept", "accept"))
    assert states(done) == ["applied", "conflicted"] and done.state == "settled"
    assert done.files[0].base_text == typed and done.version > proposal.version
    wanted = typed.replace("line 3\n", "line three\n")
    shown = harness.on_disk("f.txt").decode() if where == "disk" else harness.editor.open[harness.root / "f.txt"].text
    assert shown == wanted
    report = harness.proposals.report(call)
    assert "line 4: applied" in report and "in these lines or next to them" in report
    again = await harness.proposals.resolve(proposal.proposal_id, take(proposal, None, "accept"))
    assert states(again) == ["applied", "conflicted"], "trying again changes nothing"
    shown = wanted.replace("eight", "line 8")
    harness.put("f.txt", shown)
    harness.editor.put(harness.root / "f.txt", shown)
    done = await harness.proposals.resolve(proposal.proposal_id, take(proposal, None, "accept"))
    assert states(done) == ["applied", "applied"]
    assert harness.editor.open[harness.root / "f.txt"].text == shown.replace("line 8\n", "")


async def test_typing_moves_the_hunks_along(tmp_path: Path, quick: None) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    harness.editor.put(harness.root / "f.txt", BASE)
    call, first = await propose(harness, EDITED)
    for n in range(3):  # one new version, when the typing stops
        type_in(harness, f"{'m' * n}\n{BASE}")
    moved = await last(harness, 2)
    assert (moved.version, states(moved), moved.files[0].base_text) == (2, ["pending", "pending"], f"mm\n{BASE}")
    assert [hunk.hunk_id for hunk in hunks(moved)] == [hunk.hunk_id for hunk in hunks(first)]
    type_in(harness, BASE.replace("line 3", "three"))
    touched = await last(harness, 3)
    assert states(touched) == ["conflicted", "pending"] and touched.state == "pending"
    done = await harness.proposals.resolve(first.proposal_id, take(first, None, "accept"))
    assert done.state == "pending", "the user has not decided the other one"
    type_in(harness, BASE.replace("line 8\n", ""))
    back = await last(harness, done.version + 1)
    assert states(back) == ["pending", "applied"]
    harness.editor.put(harness.root / "f.txt", BASE)  # they undo it, and decide at once
    done = await harness.proposals.resolve(first.proposal_id, take(first, "accept"))
    assert states(done) == ["applied", "reverted"]
    assert "Its lines in the file are as they were before it" in harness.proposals.report(call)
    harness.overlay.notify_changed(harness.root / "f.txt")
    type_in(harness, BASE)  # an applied hunk is followed too, and they take this one back
    assert states(await last(harness, done.version + 1)) == ["reverted", "reverted"]
    watched = [*harness.overlay._watchers]  # pyright: ignore[reportPrivateUsage]
    assert watched == [harness.root / "f.txt"], "what they took back may come back"
    type_in(harness, BASE.replace("line 3\n", ""))  # an applied hunk is followed too, and they take this one back
    type_in(harness, BASE)
    assert states(await last(harness, done.version + 1)) == ["reverted", "reverted"]
    watched = [*harness.overlay._watchers]  # pyright: ignore[reportPrivateUsage]
    assert watched == [harness.root / "f.txt"], "what they took back may come back"


async def test_a_call_refused_or_allowed_whole_while_a_hunk_is_in_conflict(tmp_path: Path, quick: None) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE, "g.txt": BASE})
    call, proposal = await propose(harness, EDITED)
    harness.put("f.txt", BASE.replace("line 3", "three"))
    done = await harness.proposals.accept_all(proposal.proposal_id, call)
    assert (states(done), done.state) == (["conflicted", "applied"], "settled")
    call, proposal = await propose(harness, BASE.replace("line 5", "five"), "g.txt", step=2)
    harness.versions.clear()
    type_in(harness, BASE.replace("line 5", "5"), "g.txt")
    assert states(await last(harness)) == ["conflicted"]
    done = await harness.proposals.reject_all(proposal.proposal_id, "no", call)
    assert (states(done), done.state) == (["rejected"], "settled")


async def test_edits_of_one_step_around_typing(tmp_path: Path, quick: None) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    one, first = await propose(harness, BASE.replace("line 3", "three"))
    type_in(harness, "mine\n" + BASE)
    await last(harness, 2)
    two, second = await propose(harness, "mine\n" + BASE.replace("line 3", "three").replace("line 8", "eight"))
    assert first.proposal_id == second.proposal_id
    done = await harness.proposals.accept_all(second.proposal_id, two)
    assert states(done) == ["pending", "applied"]
    done = await harness.proposals.accept_all(second.proposal_id, one)
    assert states(done) == ["applied", "applied"]


async def test_another_proposal_moves_the_hunks_too(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    call, first = await propose(harness, EDITED)
    await harness.proposals.resolve(first.proposal_id, take(first, "accept"))
    now = harness.on_disk("f.txt").decode()
    _, second = await propose(harness, "top\n" + now.replace("line three", "line 3, better"), step=2)
    await harness.proposals.accept_all(second.proposal_id)
    moved = harness.proposals.get(first.proposal_id)
    assert states(moved) == ["applied", "pending"] and hunks(moved)[1].lines.first == 9
    assert not hunks(moved)[0].edited_by_user
    assert "changed your text" not in harness.proposals.report(call)
    await harness.proposals.accept_all(first.proposal_id)
    assert "line 8" not in harness.on_disk("f.txt").decode()


async def test_a_restored_proposal(tmp_path: Path, quick: None) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    _, proposal = await propose(harness, EDITED)
    again = ToolHarness(tmp_path)
    await again.proposals.restore([proposal])
    type_in(again, "mine\n" + BASE)
    moved = await last(again)
    assert states(moved) == ["pending", "pending"] and moved.version == proposal.version + 1
    again = ToolHarness(tmp_path)
    await again.proposals.restore([proposal])
    harness.put("f.txt", "mine\n" + BASE)
    done = await again.proposals.resolve(proposal.proposal_id, take(proposal, "accept", "accept"))
    assert states(done) == ["applied", "applied"]
    assert again.on_disk("f.txt") == ("mine\n" + EDITED).encode()


async def test_closing_ends_it(tmp_path: Path, quick: None) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    await propose(harness, EDITED)
    type_in(harness, "mine\n" + BASE)
    await harness.proposals.close()
    await asyncio.sleep(0.05)
    assert len(harness.versions) == 1
    assert harness.overlay._watchers == {}  # pyright: ignore[reportPrivateUsage]


async def test_an_editor_that_has_not_told_yet(tmp_path: Path, quick: None) -> None:
    """The edit meets a text the daemon has not seen; when it has, the hunk fits again."""
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    harness.editor.put(harness.root / "f.txt", BASE)
    _, proposal = await propose(harness, EDITED)
    harness.editor.refuses = EditorApplyResult(status="conflict")
    done = await harness.proposals.accept_all(proposal.proposal_id)
    assert (states(done), done.state) == (["conflicted", "conflicted"], "settled")
    harness.editor.refuses = None
    type_in(harness, "mine\n" + BASE)
    moved = await last(harness, done.version + 1)
    assert (states(moved), moved.state) == (["pending", "pending"], "pending")
    await harness.proposals.accept_all(proposal.proposal_id)
    assert harness.editor.open[harness.root / "f.txt"].text == "mine\n" + EDITED


async def test_a_big_file_stalls_nobody(tmp_path: Path, quick: None) -> None:
    base = "".join(f"this is line {n} of a big file\n" for n in range(32_000))
    assert len(base) > 1_000_000
    harness = ToolHarness(tmp_path, {"f.txt": base})
    harness.editor.put(harness.root / "f.txt", base)
    await propose(harness, base.replace("line 16000 ", "line sixteen thousand "))
    stalls: list[float] = []

    async def clock() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            stalls.append(time.thread_time() - before)

    ticking = asyncio.create_task(clock())
    type_in(harness, base.replace("line 100 ", "mine\n100 ").replace("line 20000 ", "typed "))
    moved = await last(harness, 2)
    ticking.cancel()
    assert states(moved) == ["pending"] and hunks(moved)[0].lines.first == 16_002
    assert max(stalls) < 0.05, "of the event loop's own work; a machine under load is slow"


# What always holds ------------------------------------------------------------------------------------------------

_typed = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(0, 3)), max_size=4)


def _user(lines: Sequence[str], typed: Sequence[tuple[int, int, int]], fresh: "itertools.count[int]") -> list[str]:
    now = list(lines)
    for at, gone, new in typed:
        at %= len(now) + 1
        now[at : at + gone] = [f"typed {next(fresh)}\n" for _ in range(new)]
    return now


@settings(max_examples=examples(150, 50), deadline=None)
@given(st.integers(1, 20), st.data())
def test_nothing_but_the_accepted_lines_changes(
    tmp_path_factory: pytest.TempPathFactory, size: int, data: st.DataObject
) -> None:
    """Of lines that are all different, so that it is known which is which."""

    async def check() -> None:
        fresh = itertools.count(1)
        base = [f"line {n}\n" for n in range(size)]
        kept = [data.draw(st.sampled_from(["same", "same", "new", "gone", "more"])) for _ in base]
        changed: dict[str, Callable[[str], str]] = {
            "same": lambda line: line,
            "new": lambda line: f"new {line}",
            "gone": lambda line: "",
            "more": lambda line: line + f"more {line}",
        }
        new = "".join(changed[kind](line) for kind, line in zip(kept, base, strict=True))
        if new == "".join(base):
            return
        harness = ToolHarness(tmp_path_factory.mktemp("moved"), {"f": "".join(base)})
        _, proposal = await propose(harness, new, "f")
        path, now = harness.root / "f", base
        harness.editor.put(path, "".join(now))
        first = {hunk.hunk_id: hunk for hunk in hunks(proposal)}
        for _ in range(data.draw(st.integers(1, 3))):
            now = _user(split_lines(harness.editor.open[path].text), data.draw(_typed), fresh)
            harness.editor.put(path, "".join(now))
            open_now = [hunk for hunk in hunks(proposal) if hunk.state in ("pending", "conflicted")]
            if not open_now:
                break
            chosen = {hunk.hunk_id: data.draw(st.sampled_from(["accept", "reject", None])) for hunk in open_now}
            decisions = [HunkDecision(hunk_id=key, decision=word) for key, word in chosen.items() if word]
            try:
                proposal = await harness.proposals.resolve(proposal.proposal_id, decisions)
            except AmanuError:
                proposal = harness.proposals.get(proposal.proposal_id)
                assert harness.editor.open[path].text == "".join(now)
                continue
            after = {hunk.hunk_id: hunk for hunk in hunks(proposal)}
            expected = "".join(now)
            for key, word in chosen.items():
                if word == "accept" and after[key].state == "applied":
                    expected = _replaced(expected, first[key], base)
                elif word == "accept":
                    assert after[key].state == "conflicted", "refused only with a reason"
                    assert not _untouched(first[key], base, now)
            assert harness.editor.open[path].text == expected
            assert "accept" not in chosen.values() or _consistent(proposal, expected)

    asyncio.run(check())


def _context(hunk: Hunk, base: Sequence[str]) -> tuple[str, str]:
    start, end = hunk.lines.start, hunk.lines.end
    return base[start - 1] if start else "", base[end] if end < len(base) else ""


def _replaced(text: str, hunk: Hunk, base: Sequence[str]) -> str:
    """The hunk done by hand: its old lines, known by what they say, or its neighbours."""
    before, after = _context(hunk, base)
    old = hunk.old_text
    if old:
        assert text.count(old) == 1
        return text.replace(old, hunk.new_text)
    at = text.index(before) + len(before) if before else 0
    assert text[at:].startswith(after)
    return text[:at] + hunk.new_text + text[at:]


def _untouched(hunk: Hunk, base: Sequence[str], now: Sequence[str]) -> bool:
    before, after = _context(hunk, base)
    whole = before + hunk.old_text + after
    text = "".join(now)
    return whole in text and (bool(before) or text.startswith(whole)) and (bool(after) or text.endswith(whole))


def _consistent(proposal: Proposal, text: str) -> bool:
    """The base with what is applied is the text, and open hunks stand where they say."""
    file = proposal.files[0]
    draft = LiveProposal.load(proposal).files[0]
    lines = split_lines(text)
    for hunk in file.hunks:
        if hunk.state == "pending":
            assert "".join(lines[hunk.lines.start : hunk.lines.end]) == hunk.old_text
    return draft.text_with("applied") == text


_few = st.lists(st.sampled_from(["a\n", "b\n", "}\n", "\n"]), min_size=1, max_size=14)


@settings(max_examples=examples(300, 100), deadline=None)
@given(_few, _few, _few, st.lists(st.sampled_from([P, A, R]), min_size=14, max_size=14))
def test_it_holds_together_whatever_the_lines_are(
    base: list[str], new: list[str], typed: list[str], decided: list[HunkState]
) -> None:
    """Equal lines everywhere: what the hunks say is so, and what the user undoes is as it was."""
    if base == new:
        return
    file = drafted("".join(base), "".join(new), *decided)
    before, hunks_before = file.text_with("applied"), list(file.hunks)
    found = reanchor(file, text_of("".join(typed)))
    if found is None:
        assert before == "".join(typed)
        return
    found.write_to(file)
    lines = split_lines(file.base.text)
    assert file.text_with("applied") == "".join(typed)
    for hunk in file.hunks:
        if hunk.state == "pending":
            assert "".join(lines[hunk.base_lines.start : hunk.base_lines.end]) == hunk.old_text
    if (back := reanchor(file, text_of(before))) is not None and file.anchor is not None:
        back.write_to(file)
        assert file.hunks == hunks_before and file.text_with("applied") == before


async def test_typing_in_a_big_file_is_told_only_when_it_moves_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUIET", 0.001)
    monkeypatch.setattr(module, "SMALL_TEXT", 50)
    harness = ToolHarness(tmp_path, {"f.txt": BASE})
    path = harness.root / "f.txt"
    harness.editor.put(path, BASE)
    call = harness.context()
    proposal = await harness.proposals.propose(call, [FileEdit(await harness.proposals.text(call, path), INSERTED)])
    for text, told in ((BASE + "end\n", 1), (BASE + "the end\n", 1), ("top\n" + BASE, 2), ("the top\n" + BASE, 2)):
        harness.editor.put(path, text)
        harness.overlay.notify_changed(path)
        await asyncio.sleep(0.05)
        assert len(harness.versions) == told
    latest = harness.versions[-1]
    assert hunks(latest)[0].lines.first == 8 and latest.files[0].base_text == "top\n" + BASE
    await harness.proposals.close()
    reopened = ToolHarness(tmp_path)
    reopened.overlay.add(harness.editor)
    await reopened.proposals.restore([latest])
    await reopened.proposals.accept_all(proposal.proposal_id)
    assert harness.editor.open[path].text == "the top\n" + INSERTED


@pytest.mark.parametrize(
    ("base", "at", "new", "now"),
    [("babaa", 1, "", "aababa"), ("bbabbaaab", 2, "", "bbababaab")],
)
def test_of_equal_lines_none_is_chosen(base: str, at: int, new: str, now: str) -> None:
    """Read from the beginning or from the end, the difference says of other lines that they stayed."""

    def lines(text: str) -> str:
        return "".join(f"{each}\n" for each in text)

    file = drafted(lines(base), lines(base[:at] + new + base[at + 1 :]))
    move(file, lines(now))
    assert states_of(file) == [C]
