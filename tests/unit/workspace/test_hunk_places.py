"""Places of hunks on the wire: in the file as it was last seen, and in the proposed text.

`Oracle` is how clients found them before the daemon told them: from the base, and where the text had moved on, by a
search for the hunk's lines."""

import asyncio
import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.proposals import tracking
from amanu.proposals.deferred_edits import DeferredEdits
from amanu.proposals.model import FileEdit, LiveFile, LiveProposal
from amanu.proposals.places import LiveHunk, live_hunks
from amanu.proposals.reanchor import line_edits, reanchor
from amanu.workspace.text_file import FileText, sha256, split_lines
from amanu_protocol.base import LineRange
from amanu_protocol.items import Hunk, HunkState, Proposal
from amanu_protocol.requests import HunkDecision
from support.random_edits import NAME, Game
from support.sweeps import examples
from support.tool_harness import ToolHarness, hunks

PRESENT: Collection[HunkState] = ("accepted", "applied", "undoing")
PROPOSED: Collection[HunkState] = ("pending", "conflicted", "accepted", "applied", "undoing")
STATES: Sequence[HunkState] = ("pending", "conflicted", "accepted", "applied", "undoing", "rejected", "reverted")
RESTING: Sequence[HunkState] = ("pending", "applied", "rejected", "reverted")
TEXT = "".join(f"line {n}\n" for n in range(1, 13))
PATH = Path("/w/f.txt")


@dataclass
class Oracle:
    """The hunks of a file, placed as clients did it themselves."""

    hunks: Sequence[LiveHunk]

    def places(self, states: Collection[HunkState]) -> list[tuple[int, int]]:
        """Line and count of each hunk in the base with those in one of the states."""
        shift, found = 0, list[tuple[int, int]]()
        for hunk in sorted(self.hunks, key=_begin):
            count = len(split_lines(hunk.new_text)) if hunk.state in states else hunk.base_lines.count
            found.append((_begin(hunk) + shift, count))
            shift += count - hunk.base_lines.count
        return found

    def text(self, base: str, states: Collection[HunkState]) -> str:
        lines, made, at = split_lines(base), list[str](), 0
        for hunk in sorted(self.hunks, key=_begin):
            made += lines[at : _begin(hunk)]
            at = hunk.base_lines.end
            made += split_lines(hunk.new_text) if hunk.state in states else lines[_begin(hunk) : at]
        return "".join([*made, *lines[at:]])

    def search(self, text: str, base: str) -> list[tuple[int, int] | None]:
        """The same in the present text: where the file is not as it was last seen, the nearest place with the lines
        of the hunk; None where it has no lines, or they are gone."""
        places, lines = self.places(PRESENT), list(map(_bare, split_lines(text)))
        if list(map(_bare, split_lines(self.text(base, PRESENT)))) == lines:
            return [*places]
        found: list[tuple[int, int] | None] = []
        for hunk, (start, count) in zip(sorted(self.hunks, key=_begin), places, strict=True):
            wanted = list(map(_bare, split_lines(hunk.new_text if hunk.state in PRESENT else hunk.old_text)))
            starts = sorted(range(len(lines) + 1), key=lambda line, start=start: (abs(line - start), line))
            at = next((each for each in starts if wanted and lines[each : each + len(wanted)] == wanted), None)
            found.append(None if at is None else (at, count))
        return found


def _begin(hunk: LiveHunk) -> int:
    return hunk.base_lines.start


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def told(hunks: Sequence[Hunk], of: Callable[[Hunk], LineRange] = lambda hunk: hunk.lines) -> list[tuple[int, int]]:
    return [(of(hunk).start, of(hunk).end - of(hunk).start) for hunk in hunks]


def check(live: LiveFile) -> None:
    """Both places are what clients found, and name the lines there; they say where it is in the base, too."""
    file = live.wire()
    oracle, base = Oracle(live.hunks), file.base_text or ""
    assert [hunk.base_lines for hunk in live_hunks(file.hunks)] == [hunk.base_lines for hunk in live.hunks]
    assert told(file.hunks, lambda hunk: hunk.proposed_lines) == oracle.places(PROPOSED)
    proposed = split_lines(oracle.text(base, PROPOSED))
    for hunk in file.hunks:
        if hunk.state in PROPOSED:
            place = hunk.proposed_lines
            assert "".join(proposed[place.start : place.end]) == hunk.new_text


def live_file(base: str, new: str, states: Sequence[HunkState] = ()) -> LiveFile:
    file = LiveFile(FileText(PATH, base, sha256(base.encode())), base)
    file.propose(new, "c1", itertools.count(1), "p")
    for hunk, state in zip(list(file.hunks), states, strict=False):
        file.update_hunk(hunk.hunk_id, state=state)
    return file


def test_moved_places_are_of_the_version_in_which_they_moved() -> None:
    """Another proposal puts three lines above the hunk, which is not anchored anew before somebody asks."""
    buffer = FileText(PATH, TEXT, sha256(TEXT.encode()), from_buffer=True, version=2)
    file = LiveFile(buffer, TEXT)
    file.propose(TEXT.replace("line 9\n", "LINE 9\n"), "c1", itertools.count(1), "p")
    file.update_hunk(file.hunks[0].hunk_id, state="applied")
    file.deferred = DeferredEdits(buffer.sha256, file.applied_ranges(), buffer.version)
    assert (told(file.wire().hunks), file.wire().base_version) == ([(8, 1)], 2)
    before, after = split_lines(TEXT), split_lines("a\nb\nc\n" + TEXT)
    file.deferred.add(line_edits(before, after), replace(buffer, text="".join(after), version=3))
    assert (told(file.wire().hunks), file.wire().base_version) == ([(11, 1)], 3)


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "(\n", "e\r\n"]), max_size=12)


@settings(max_examples=examples(2000, 300), deadline=None)
@given(LINES, LINES, st.lists(st.sampled_from(STATES), min_size=13, max_size=13), st.sampled_from(["", "last"]))
def test_any_states_of_any_difference(old: list[str], new: list[str], states: list[HunkState], last: str) -> None:
    file = live_file("".join(old) + last, "".join(new), states)
    check(file)
    hunks = file.wire().hunks
    assert told(hunks) == Oracle(file.hunks).places(PRESENT)
    present = split_lines(Oracle(file.hunks).text(file.base.text, PRESENT))
    for hunk in hunks:
        there = hunk.new_text if hunk.state in PRESENT else hunk.old_text
        assert "".join(present[hunk.lines.start : hunk.lines.end]) == there


@settings(max_examples=examples(1500, 200), deadline=None)
@given(st.data())
def test_typing_moves_them_where_a_search_finds_them(data: st.DataObject) -> None:
    """Lines of the text are all different, so a search is never in doubt."""

    def changed(lines: Sequence[str], mark: str) -> list[str]:
        made = list(lines)
        for number in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(made)))
            put = [f"{mark}{number}.{n}\n" for n in range(data.draw(st.integers(0, 2)))]
            made[at : at + data.draw(st.integers(0, 2))] = put
        return made

    base = split_lines(TEXT)
    states: list[HunkState] = data.draw(st.lists(st.sampled_from(RESTING), min_size=5, max_size=5))
    file = live_file(TEXT, "".join(changed(base, "new")), states)
    before, hunks_before = file.wire(), list(file.hunks)
    text = "".join(changed(split_lines(file.text_with("applied")), "typed"))
    moved = reanchor(file, FileText(PATH, text, sha256(text.encode())))
    if moved is not None:
        moved.write_to(file)
    after = file.wire()
    check(file)
    assert told(after.hunks) == Oracle(file.hunks).places(PRESENT)
    searched = Oracle(hunks_before).search(text, before.base_text or "")
    for hunk, known, found in zip(after.hunks, before.hunks, searched, strict=True):
        there = "".join(split_lines(text)[hunk.lines.start : hunk.lines.end])
        is_same = (hunk.state, hunk.old_text, hunk.new_text) == (known.state, known.old_text, known.new_text)
        if found is not None and there and is_same and hunk.state in ("pending", "applied"):
            assert told([hunk]) == [found]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "QUIET", 0.001)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("part", range(2))
async def test_any_game_of_model_user_and_crashes(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version that is told has the places that clients found; what is asked for after a move, those of the file
    at that moment."""
    counted = Counter[str]()
    wire = LiveProposal.wire

    def told(self: LiveProposal) -> Proposal:
        for file in self.files:
            check(file)
            counted["versions"] += 1
        return wire(self)

    monkeypatch.setattr(LiveProposal, "wire", told)
    games = examples(80, 24)
    for seed in range(part * games // 2, (part + 1) * games // 2):
        with tempfile.TemporaryDirectory() as folder:
            game = Watched(Path(folder), seed, counted)
            try:
                await game.play()
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {game.log}\n{error}") from error
    assert counted["versions"] > games and counted["seen"] > games
    assert counted["followed"] > games / 4


class Watched(Game):
    """A game in which the places are looked at after each move."""

    def __init__(self, folder: Path, seed: int, counted: Counter[str]) -> None:
        super().__init__(folder, seed)
        self.counted = counted

    @property
    def lines(self) -> list[str]:
        self.look()
        return super().lines

    def look(self) -> None:
        digest = sha256(self.text.encode())
        for known in self.known.values():
            proposal = self.harness.proposals.get(known.proposal_id)
            for file, live in zip(proposal.files, self.harness.proposals.files(known.proposal_id), strict=True):
                check(live)
                is_seen = Oracle(live.hunks).text(file.base_text or "", PRESENT) == self.text
                is_followed = live.deferred is not None and live.deferred.sha256 == digest
                places = Oracle(live.hunks).search(self.text, file.base_text or "")
                for hunk, found in zip(file.hunks, places, strict=True):
                    if found is not None and (is_seen or (is_followed and hunk.state == "applied")):
                        assert told([hunk]) == [found]
                        self.counted["seen" if is_seen else "followed"] += 1


async def proposed(harness: ToolHarness, before: str, after: str) -> Proposal:
    call = harness.context()
    base = await harness.proposals.text(call, harness.root / NAME)
    return await harness.proposals.propose(call, [FileEdit(base, base.text.replace(before, after))])


@pytest.mark.parametrize("saves", [True, False])
async def test_the_version_is_the_one_the_places_are_of(tmp_path: Path, saves: bool) -> None:
    """Our own edit of the document is in the places, and in the version."""
    harness = ToolHarness(tmp_path, {NAME: TEXT})
    harness.editor.saves = saves
    harness.editor.put(harness.root / NAME, TEXT)
    proposal = await proposed(harness, "line 3\n", "3\nand\n")
    for decision, places in [("accept", [(2, 2)]), ("undo", [(2, 1)]), ("redo", [(2, 2)])]:
        decisions = [HunkDecision(hunk_id=hunks(proposal)[0].hunk_id, decision=decision)]
        done = await harness.proposals.resolve(proposal.proposal_id, decisions)
        version = harness.editor.open[harness.root / NAME].version
        assert (done.files[0].base_version, told(hunks(done))) == (version, places)
        assert harness.versions[-1].files == done.files


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("text", ["", "typed meanwhile\n"])
async def test_who_opens_a_file_is_told_the_places_in_it(tmp_path: Path, restarted: bool, text: str) -> None:
    """Each edit of a rule moves the ones before it, which is told when somebody can see it."""
    harness = ToolHarness(tmp_path, {NAME: TEXT})
    made: list[Proposal] = []
    for before, after in [("line 9\n", "nine\n"), ("line 5\n", "5\nfive\n"), ("line 2\n", "")]:
        proposal = await proposed(harness, before, after)
        made.append(await harness.proposals.accept_all(proposal.proposal_id, by_user=False))
    assert [told(hunks(each)) for each in made] == [[(8, 1)], [(4, 2)], [(1, 0)]]
    if restarted:
        latest = {each.proposal_id: each for each in harness.versions}
        await harness.proposals.close()
        harness = ToolHarness(tmp_path)
        await harness.proposals.restore(latest.values())
    shown = text + harness.on_disk(NAME).decode()
    harness.editor.put(harness.root / NAME, shown)
    harness.overlay.notify_changed(harness.root / NAME)
    latest = {each.proposal_id: each for each in made}
    async with asyncio.timeout(50):
        while any(each.files[0].base_version != 1 for each in latest.values()):
            await asyncio.sleep(0.001)
            latest |= {each.proposal_id: each for each in harness.versions}
    above = 1 if text else 0
    assert [told(hunks(each)) for each in latest.values()] == [[(8 + above, 1)], [(3 + above, 2)], [(1 + above, 0)]]
    assert not any(hunk.edited_by_user for each in latest.values() for hunk in hunks(each))
