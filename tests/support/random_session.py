"""One session driven at random: prompts, steering, cancels, decisions, clients that come and go, restarts, kills.

`play(folder, seed)` raises `AssertionError` when a promise is broken. The same seed makes the same choices; how they
meet the session's own steps is up to the clock.
"""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from amanu.core.conversation import ENTRY, Assistant, Conversation, Results
from amanu.session.session import Session
from amanu.session.sessions import Sessions, open_sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage
from amanu_protocol.items import Proposal
from amanu_protocol.requests import (
    ApprovalResolveParams,
    HunkDecision,
    PromptSendParams,
    PromptSteerParams,
    ProposalResolveParams,
    SessionAttachParams,
    SessionCreateParams,
)
from amanu_protocol.state import fold
from support.scripted_session import without_status
from support.session_client import Client

BASE = "".join(f"line {n}\n" for n in range(1, 13))
EXPECTED = {"staleTurn", "proposalConflict", "approvalNotFound", "sessionNotFound", "storageError", "proposalNotFound"}
"""Refusals a user can meet here."""


async def play(folder: Path, seed: int, actions: int = 50) -> None:
    """Make that many random moves in a session over `folder`, let it come to rest, and look at what is left."""
    player = Player(folder, random.Random(seed))
    await player.begin()
    try:
        for _ in range(actions):
            await player.move()
        await player.rest()
        await player.check()
    finally:
        await player.sessions.shutdown()


class Watcher(Client):
    """A client that folds what it is sent, and minds the numbers."""

    def __init__(self, name: str, session_id: str = "s") -> None:
        super().__init__(os.environ, name)
        self.session_id = session_id
        self.epoch: int | None = None
        self.seq: int | None = None
        self.attached = False

    def send(self, message: EventMessage) -> None:
        assert self.attached and self.state is not None, "an event before its attach, or after a detach"
        assert self.seq is not None and (message.epoch, message.seq) == (self.epoch, self.seq + 1), "a gap"
        self.seq = message.seq
        fold(self.state, message.event)

    async def attach(self, sessions: Sessions) -> None:
        given = SessionAttachParams(session_id=self.session_id, epoch=self.epoch, since_seq=self.seq)
        result = await sessions.attach(given, self)
        if result.state is not None:
            self.state = result.state
        else:
            assert self.state is not None
            for message in result.events or ():
                fold(self.state, message.event)
        self.epoch, self.seq, self.attached = result.epoch, result.from_seq - 1, True


class Player:
    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.root = folder / "work"
        self.script = folder / "script.json"
        self.chance = chance
        self.sessions = open_sessions()
        self.session: Session
        self.watchers = [Watcher("one"), Watcher("two")]
        self.tasks: set[asyncio.Task[None]] = set()
        self.number = 0
        self.prompts: list[int] = []
        self.safe: dict[str, str] = {}
        """Prompts and steering that were acknowledged: id → text."""
        self.taken_back: set[str] = set()
        self.allowed = set(BASE.splitlines())
        self.commands: Counter[str] = Counter()

    async def begin(self) -> None:
        self.root.mkdir()
        (self.root / "notes.txt").write_text(BASE)
        self.script.write_text(json.dumps([self._step(at) for at in range(200)]))
        model_id = f"scripted:{self.script}"
        await self.sessions.create(
            SessionCreateParams(session_id="s", roots=[str(self.root)], model_id=model_id), Client(os.environ)
        )
        self.session = await self.sessions.get("s")
        await self.watchers[0].attach(self.sessions)

    def _step(self, at: int) -> dict[str, Any]:
        lines = BASE.splitlines(keepends=True)
        lines[self.chance.randrange(4)] = f"early {at}\n"
        lines[self.chance.randrange(8, 12)] = f"late {at}\n"
        calls: list[dict[str, Any]] = [
            {"tool": "write_file", "arguments": {"path": "notes.txt", "content": "".join(lines)}},
            {"tool": "write_file", "arguments": {"path": f"new{at}.txt", "content": f"new {at}\n"}},
            {
                "tool": "edit_file",
                "arguments": {"path": "notes.txt", "old_text": "line 6\n", "new_text": f"six {at}\n"},
            },
            {"tool": "read_file", "arguments": {"path": "notes.txt"}},
            {"tool": "run_shell_command", "arguments": {"command": f"echo {at} >> log"}},
        ]
        chosen = self.chance.sample(calls, self.chance.choice([0, 1, 1, 2, 3]))
        return {"thought": "Hm.", "text": f"Step {at}.", "chunk": 3, "calls": chosen}

    async def move(self) -> None:
        moves: list[tuple[int, Any]] = [
            (5, self.prompt),
            (2, self.steer),
            (1, self.unqueue),
            (2, self.cancel),
            (6, self.answer),
            (5, self.decide),
            (2, self.come_and_go),
            (1, self.reopen),
            (1, self.kill),
        ]
        make = self.chance.choices([move for _, move in moves], [weight for weight, _ in moves])[0]
        if make in (self.reopen, self.kill):
            await make()
        else:
            self._go(make())
        await asyncio.sleep(self.chance.choice([0, 0, 0.001, 0.005, 0.02]))

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        async def tolerant() -> None:
            try:
                await work
            except AmanuError as error:
                assert error.kind in EXPECTED, error

        task = asyncio.create_task(tolerant())
        self.tasks.add(task)

    async def prompt(self, final: bool = False) -> None:
        if not final and self.prompts and self.chance.random() < 0.2:
            number = self.chance.choice(self.prompts)  # sent again
        else:
            number, self.number = self.number, self.number + 1
            self.prompts.append(number)
        text = f"prompt number {number}."
        for _ in range(2 if self.chance.random() < 0.2 else 1):
            params = PromptSendParams(session_id="s", prompt_id=f"p{number}", text=text)
            await self.session.prompts.send(params, self.watchers[0])
        self.safe[f"p{number}"] = text

    async def steer(self) -> None:
        turn = self.session.state.turn
        if turn is None:
            return
        number, self.number = self.number, self.number + 1
        text = f"steering number {number}."
        params = PromptSteerParams(session_id="s", prompt_id=f"p{number}", turn_id=turn.turn_id, text=text)
        await self.session.prompts.steer(params, self.watchers[0])
        self.safe[f"p{number}"] = text

    async def unqueue(self) -> None:
        if self.session.state.queue:
            prompt_id = self.chance.choice(self.session.state.queue).prompt_id
            self.taken_back.add(prompt_id)
            await self.session.prompts.unqueue(prompt_id)

    async def cancel(self) -> None:
        turn = self.session.state.turn
        if turn is not None:
            assert (await self.session.prompts.cancel(turn.turn_id)).status in ("cancelled", "alreadyEnded")

    async def answer(self, decision: str | None = None) -> None:
        if not self.session.state.approvals:
            return
        question = self.chance.choice(self.session.state.approvals)
        decision = decision or self.chance.choice(["allow", "allow", "allow", "reject", "finish"])
        if decision == "allow":
            for proposal in self.session.state.proposals:
                if proposal.proposal_id == question.proposal_id:
                    self._allow(proposal)
            if question.proposal_id is None:
                self.commands[question.title.rsplit("echo ", 1)[1].split()[0]] += 1
        params = ApprovalResolveParams(
            session_id="s", tool_call_id=question.tool_call_id, decision=decision, digest=question.digest
        )
        await self.session.resolve_approval(params, self.chance.choice(self.watchers))

    async def decide(self) -> None:
        open_ones = [each for each in self.session.state.proposals if each.state == "pending"]
        if not open_ones:
            return
        proposal = self.chance.choice(open_ones)
        hunks = [hunk for file in proposal.files for hunk in file.hunks]
        decisions: list[HunkDecision] = []
        for hunk in self.chance.sample(hunks, self.chance.randint(1, len(hunks))):
            word = self.chance.choice(["accept", "accept", "reject"])
            decisions.append(HunkDecision(hunk_id=hunk.hunk_id, decision=word))
            if word == "accept":
                self.allowed |= set(hunk.new_text.splitlines())
        params = ProposalResolveParams(
            session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=decisions
        )
        await self.session.edits.resolve(params)

    def _allow(self, proposal: Proposal) -> None:
        for file in proposal.files:
            for hunk in file.hunks:
                self.allowed |= set(hunk.new_text.splitlines())

    async def come_and_go(self) -> None:
        watcher = self.watchers[1]
        if watcher.attached:
            self.session.detach(watcher)
            watcher.attached = False
        else:
            await watcher.attach(self.sessions)

    async def reopen(self) -> None:
        """Close in an orderly way."""
        await self.sessions.close("s")
        await self._open()

    async def kill(self) -> None:
        """As kill −9: what is not on the disk is lost, and nobody is told anything more."""
        for watcher in self.watchers:
            self.session.detach(watcher)
        lose_what_is_not_on_disk(self.session)
        for task in self.tasks:  # nobody is there to answer
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()
        self.sessions._open.pop("s")  # pyright: ignore[reportPrivateUsage]
        await self.session.close(anyway=True)
        await self._open()

    async def _open(self) -> None:
        self.session = await self.sessions.get("s")
        for watcher in self.watchers:
            watcher.attached = False
        await self.watchers[0].attach(self.sessions)

    async def rest(self) -> None:
        """Answer what is asked until nothing runs and nothing waits."""
        async with asyncio.timeout(50):
            while True:
                await asyncio.sleep(0.002)
                for task in [task for task in self.tasks if task.done()]:
                    self.tasks.discard(task)
                    task.result()
                if self.session.state.approvals:
                    self._go(self.answer(self.chance.choice(["allow", "reject"])))
                elif not self.session.running and not self.tasks:
                    await asyncio.sleep(0.05)  # a queued prompt may just be starting
                    if not self.session.running and not self.session.state.queue:
                        return
                    if not self.session.running:
                        await self.prompt(final=True)

    async def check(self) -> None:
        await self.prompt(final=True)  # whatever waited for a request goes with this one
        await self.rest()
        await self.session.emit.durable()
        journal = self.session.core.journal
        records = await journal.records()
        conversation = self.session.core.conversation
        self._one_end_for_each_turn([json.loads(record.event) for record in records])
        again = Conversation.load(ENTRY.validate_json(each.private) for each in records if each.private is not None)
        assert list(again) == list(conversation)
        check_calls(conversation)
        for watcher in self.watchers:
            if not watcher.attached:
                await watcher.attach(self.sessions)
            assert watcher.state is not None
            view = self.session.view()
            assert watcher.state.last(len(view.items)).model_dump() == view.model_dump()
        self._prompts_once(conversation)
        self._files()

    def _one_end_for_each_turn(self, events: list[dict[str, Any]]) -> None:
        """On record it may stand twice: before and after the clients were told."""
        running = ended = ""
        seen: set[str] = set()
        for event in events:
            match event:
                case {"kind": "turnStarted", "turnId": turn_id}:
                    assert not running and turn_id not in seen
                    running = turn_id
                    seen.add(turn_id)
                case {"kind": "turnEnded", "turnId": turn_id}:
                    assert turn_id == (running or ended)
                    running, ended = "", turn_id
                case _:
                    pass
        assert not running

    def _prompts_once(self, conversation: Conversation) -> None:
        said = [
            without_status(message.text).split("\n\n<files_changed>")[0]
            for message in conversation
            if message.role == "user"
        ]
        said += [note for message in conversation if message.role == "results" for note in message.notes]
        count = Counter(said)
        for prompt_id, text in self.safe.items():
            assert count[text] <= 1, f"{text} was said twice"
            assert count[text] == 1 or prompt_id in self.taken_back, f"{text} was lost"

    def _files(self) -> None:
        for file in self.root.iterdir():
            lines = file.read_text().splitlines()
            if file.name == "log":
                assert not Counter(lines) - self.commands, "a command ran that nobody allowed, or twice"
            else:
                assert set(lines) <= self.allowed, f"{file.name} holds text nobody allowed"
        for proposal in self.session.state.proposals:
            assert all(hunk.state != "accepted" for file in proposal.files for hunk in file.hunks)


def lose_what_is_not_on_disk(session: Session) -> None:
    """Lose what a kill −9 would lose; closing the session then tells nobody anything more."""
    journal = session.core.journal
    commits = journal._commits  # pyright: ignore[reportPrivateUsage]
    commits._pending.clear()  # pyright: ignore[reportPrivateUsage]
    commits._written = commits._added  # pyright: ignore[reportPrivateUsage]  nobody waits for it any more
    journal.append = lambda record, texts=None: 0

    async def dead() -> None:
        raise AmanuError("storageError", "The daemon is dead.")

    journal.durable = dead


def check_calls(conversation: Conversation) -> None:
    """Every call has one result, in order, in the message after it."""
    messages = list(conversation)
    for at, message in enumerate(messages):
        if isinstance(message, Assistant) and message.calls:
            answers = messages[at + 1]
            assert isinstance(answers, Results)
            assert [call.call_id for call in message.calls] == [result.call_id for result in answers.results]
        if isinstance(message, Results):
            before = messages[at - 1]
            assert isinstance(before, Assistant) and before.calls
