"""Any sequence of what model, user and crashes do to a file, against a reference that only knows lines.

All lines differ, so where something stands is never in doubt: what an accepted hunk does, what an undone one does, and
whose line it was can be said without any difference or merge. The promises (I1, I2, I4 of the faults, `SECURITY.md`):
nothing changes but by a decision, a decision does exactly what it shows, and no line a user typed goes by undo.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from amanu.proposals.model import FileEdit, LiveProposal
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, Proposal
from amanu_protocol.requests import HunkDecision
from support.tool_harness import ToolHarness, hunks

MOVES = 25
STACKED = 5
NAME = "f.txt"


class Game:
    """One file, open in an editor or not."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self._numbers = itertools.count(1)
        text = "".join(f"b{n}\n" for n in range(1, self.random.choice([10, 40]) + self.random.randint(-6, 4)))
        self.harness = ToolHarness(folder, {NAME: text})
        self.path = self.harness.root / NAME
        self.base = text.splitlines(keepends=True)
        self.deleted: set[str] = set()
        """Lines the user removed."""
        self.approved: set[str] = set()
        """Lines that went by a hunk the user or a rule accepted."""
        self.known: dict[str, Proposal] = {}
        self.step = 0
        self.log: list[str] = []

    @property
    def text(self) -> str:
        buffer = self.harness.editor.open.get(self.path)
        return buffer.text if buffer else self.harness.on_disk(NAME).decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    def fresh(self, author: str, count: int) -> list[str]:
        return [f"{author}{next(self._numbers)}\n" for _ in range(count)]

    def changed(self, lines: list[str], author: str) -> list[str]:
        """Some lines replaced, inserted or removed, at one place or two."""
        lines = list(lines)
        for _ in range(self.random.choice([1, 1, 2])):
            at = self.random.randint(0, len(lines))
            gone = self.random.choice([0, 1, 1, 2])
            put = self.fresh(author, self.random.choice([0, 1, 1, 2]) if gone else 1)
            lines[at : at + gone] = put
        return lines

    def latest(self) -> list[Proposal]:
        for proposal in self.harness.versions:
            self.known[proposal.proposal_id] = proposal
        return list(self.known.values())

    def some(self, fits: Callable[[Hunk], bool]) -> tuple[Proposal, Hunk] | None:
        found = [(each, hunk) for each in self.latest() for hunk in hunks(each) if fits(hunk)]
        return self.random.choice(found) if found else None

    # Moves ------------------------------------------------------------------------------------------

    async def model_edits(self) -> None:
        self.step += 1
        call = self.harness.context(self.step)
        base = await self.harness.proposals.text(call, self.path)
        lines = self.changed(base.text.splitlines(keepends=True), "m")
        if "".join(lines) == base.text:
            return
        before = self.text
        proposal = await self.harness.proposals.propose(call, [FileEdit(base, "".join(lines))])
        assert self.text == before, "a proposal changes nothing"
        if self.random.random() < 0.4:
            result = await self.harness.proposals.accept_all(proposal.proposal_id, by_user=False)
            self.follow(before, [(h, True) for h in hunks(result) if h.state == "applied"])

    async def user_types(self) -> None:
        before = self.lines
        after = self.changed(before, "p")
        self.deleted |= set(before) - set(after)
        self.write("".join(after))

    def write(self, text: str) -> None:
        if self.path in self.harness.editor.open:
            self.harness.editor.put(self.path, text)
        else:
            self.harness.put(NAME, text)
        self.harness.overlay.notify_changed(self.path)

    async def decide(self) -> None:
        found = self.some(lambda hunk: hunk.state in ("pending", "conflicted"))
        if found is None:
            return
        proposal, hunk = found
        word = self.random.choice(["accept", "accept", "reject", "own"])
        own = "".join(self.fresh("o", 1)) if word == "own" else None
        decision = HunkDecision(
            hunk_id=hunk.hunk_id, decision="accept" if own else word, new_text=own, reason="no" if not own else None
        )
        await self.carried_out(proposal.proposal_id, decision)

    async def undo_or_redo(self) -> None:
        word, state = self.random.choice([("undo", "applied"), ("redo", "reverted")])
        found = self.some(lambda hunk: hunk.state == state)
        if found is not None:
            await self.carried_out(found[0].proposal_id, HunkDecision(hunk_id=found[1].hunk_id, decision=word))

    async def carried_out(self, proposal_id: str, decision: HunkDecision) -> None:
        before = self.text
        was = next(h.state for h in hunks(self.harness.proposals.get(proposal_id)) if h.hunk_id == decision.hunk_id)
        try:
            result = await self.harness.proposals.resolve(proposal_id, [decision])
        except AmanuError as error:  # it was seen in another state than it is in by now
            assert error.kind == "proposalConflict"
            assert self.text == before
            return
        hunk = next(each for each in hunks(result) if each.hunk_id == decision.hunk_id)
        match decision.decision, was, hunk.state:
            case ("accept" | "redo", _, "applied") if was != "applied" and self.text != before:
                self.follow(before, [(hunk, True)])
            case ("undo", "applied", "reverted") if self.text == before:
                assert not hunk.new_text or hunk.new_text not in before, "the user had taken it back themselves"
            case ("undo", "applied", "reverted"):
                self.follow(before, [(hunk, False)])
            case _:
                assert self.text == before, f"{decision.decision}: {was} → {hunk.state}, and the text changed"

    def follow(self, before: str, done: Sequence[tuple[Hunk, bool]]) -> None:
        """The text is what it was with these hunks put in (or taken out), and nothing else."""
        text = before
        for hunk, forth in done:
            there, then = (hunk.old_text, hunk.new_text) if forth else (hunk.new_text, hunk.old_text)
            if forth:
                self.approved |= set(there.splitlines(keepends=True)) - set(then.splitlines(keepends=True))
            if there:
                assert text.count(there) == 1, f"{there!r} is not what stood there"
                text = text.replace(there, then)
            elif then:
                assert self.text.count(then) == 1, "what was put in is not there once"
        for hunk, forth in done:
            there, then = (hunk.old_text, hunk.new_text) if forth else (hunk.new_text, hunk.old_text)
            if not there and then:
                at = self.text.index(then)
                rest = self.text[:at] + self.text[at + len(then) :]
                others = [(h, f) for h, f in done if h is not hunk and not (h.old_text if f else h.new_text)]
                if not others:
                    assert rest == text, "something else changed too"
                return
        assert self.text == text, "something else changed too"

    async def save(self) -> None:
        buffer = self.harness.editor.open.get(self.path)
        if buffer is not None:
            self.harness.put(NAME, buffer.text)

    async def open_or_close(self) -> None:
        await self.save()
        if self.harness.editor.open.pop(self.path, None) is None:
            self.harness.editor.put(self.path, self.harness.on_disk(NAME).decode())
        self.harness.overlay.notify_changed(self.path)

    async def restart(self) -> None:
        """The daemon dies between two moves; the editor and its text live on."""
        proposals = self.latest()
        await self.harness.proposals.close()
        editor = self.harness.editor
        self.harness = ToolHarness(self.path.parent)
        self.harness.overlay.remove(self.harness.editor)
        self.harness.editor = editor
        self.harness.overlay.add(editor)
        for proposal in proposals:  # as they come back from the journal
            assert LiveProposal.load(proposal).wire().model_copy(update={"version": 0}) is not None
        await self.harness.proposals.restore(proposals)

    async def pause(self) -> None:
        """Typing is followed when it has been quiet for a moment."""
        await asyncio.sleep(0.004)

    # ------------------------------------------------------------------------------------------------

    async def play(self) -> None:
        moves = [
            *(self.model_edits, self.user_types, self.decide, self.undo_or_redo) * 3,
            *(self.save, self.open_or_close, self.restart, self.pause, self.pause),
        ]
        for _ in range(MOVES):
            move = self.random.choice(moves)
            self.log.append(move.__name__)
            before = self.lines
            await move()
            if move != self.user_types:
                lost = {each for each in set(before) - set(self.lines) if each[0] == "p"} - self.approved
                assert not lost, f"the user's {lost} went by {move.__name__}"
                new = {each for each in set(self.lines) - set(before) if each[0] == "p"}
                assert new <= self.approved, "what they had removed came back by itself"
        await self.undo_all()
        await self.harness.proposals.close()

    async def undo_all(self) -> None:
        left = 0
        for proposal in reversed(self.latest()):
            ids = [hunk.hunk_id for hunk in hunks(self.harness.proposals.get(proposal.proposal_id))]
            left += len(
                [e for e in await self.harness.proposals.undo(proposal.proposal_id, ids) if "changed" in e.reason]
            )
        there = set(self.lines)
        if not left:
            assert not {each for each in there if each[0] in "mo"}, "all is undone, and something of ours is left"
        kept = [each for each in self.base if each not in self.deleted]
        if not left and not self.deleted:
            assert [each for each in self.lines if each in set(kept)] == kept


async def stack(folder: Path, seed: int) -> None:
    """What the model did in a row is taken back in a row, to the byte: whatever it took out, put in or changed again,
    however alike the lines are. The user wrote above or below meanwhile, or nothing; the daemon lived on, or not."""
    chance = random.Random(seed)
    numbers = itertools.count(1)
    alike = chance.random() < 0.5

    def fresh(count: int) -> list[str]:
        return [f"{chance.choice('abc') if alike else next(numbers)}\n" for _ in range(count)]

    lines = ["top\n", "brim\n", *fresh(chance.randint(2, 8)), "foot\n", "ground\n"]
    harness = ToolHarness(folder, {NAME: "".join(lines)})
    texts, made = [lines], list[Proposal]()
    for step in range(STACKED):
        call = harness.context(step + 1)
        base = await harness.proposals.text(call, harness.root / NAME)
        after = texts[-1].copy()
        for _ in range(chance.choice([1, 1, 2])):
            at = chance.randint(2, len(after) - 2)
            gone = min(chance.choice([0, 1, 2]), len(after) - 2 - at)
            after[at : at + gone] = fresh(chance.choice([0, 1, 2]) if gone else 1)
        if after != texts[-1]:
            proposal = await harness.proposals.propose(call, [FileEdit(base, "".join(after))])
            made.append(await harness.proposals.accept_all(proposal.proposal_id))
            texts.append(after)
    above, below = chance.choice([("", ""), ("mine\n", ""), ("", "mine\n")])
    harness.put(NAME, above + "".join(texts[-1]) + below)
    if chance.random() < 0.3:
        versions = {each.proposal_id: each for each in harness.versions}
        await harness.proposals.close()
        harness = ToolHarness(folder)
        await harness.proposals.restore(versions.values())
    for proposal, text in zip(reversed(made), reversed(texts[:-1]), strict=True):
        left = await harness.proposals.undo(proposal.proposal_id, [hunk.hunk_id for hunk in hunks(proposal)])
        assert not left, left
        now = harness.on_disk(NAME).decode()
        assert now == above + "".join(text) + below, f"{''.join(text).split()} is now {now.split()}"
    await harness.proposals.close()
