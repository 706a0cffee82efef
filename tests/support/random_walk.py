"""Two sessions on one folder, each with sub-agents and background commands, and two clients, driven at random.

`walk(folder, seed)` makes the moves one after another, and looks at what must always hold after each. It raises
`AssertionError`, naming the moves made so far. The same seed makes the same choices; how they meet the sessions' own
steps is up to the clock.
"""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

from amanu.core.conversation import Assistant
from amanu.session.session import Session
from amanu.session.sessions import open_sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode, ToolCall, UserMessage
from amanu_protocol.requests import (
    AgentParams,
    ApprovalResolveParams,
    CheckpointRestoreParams,
    EditScope,
    HunkDecision,
    PromptSendParams,
    PromptSteerParams,
    ProposalResolveParams,
    ProposalUndoParams,
    QuestionAnswerParams,
    SessionCreateParams,
)
from support.agent_session import ask_agent, complete, user_agent
from support.random_session import EXPECTED, Watcher, check_calls, lose_what_is_not_on_disk
from support.scripted_session import call, step
from support.session_agents import agents_of

MOVES = 20
_STEPS = 16  # replies of a session's model before it only answers
_BASE = "".join(f"line {n}\n" for n in range(1, 13))
_REFUSALS = EXPECTED | {"agentNotFound", "invalidParams", "turnInProgress", "questionNotFound"}
"""Refusals a user can meet here."""
_LAX: tuple[Mode, ...] = ("acceptEdits", "auto")
"""Modes in which edits are applied without a question."""
_PAUSES = (0, 0.001, 0.01, 0.05, 0.1)
_WHERE = call("ask_user", questions=[{"header": "Where", "question": "Where to?"}])
_WRITES = re.compile(r"echo (\S+) >>|s/\^line (\d+)\$/(\S+ ran)")
_REPORT = "The worker is through."


async def walk(folder: Path, seed: int) -> None:
    walker = Walker(folder, random.Random(seed))
    await walker.begin()
    try:
        for _ in range(MOVES):
            await walker.move()
            await asyncio.sleep(walker.chance.choice(_PAUSES))
            walker.look()
        await walker.rest()
        await walker.look_back()
    except (AssertionError, TimeoutError) as error:
        raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(walker.made)) from error
    finally:
        await walker.sessions.shutdown()


class Side:
    """One of the two sessions, with the clients that look at it, and what its user did."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.session: Session
        self.watchers = [Watcher(f"{session_id}-one", session_id), Watcher(f"{session_id}-two", session_id)]
        self.mode: Mode = "ask"
        self.said: dict[str, str] = {}
        """Prompts and steering that were taken: id → text."""
        self.turns: dict[str, str] = {}
        """Id of a steering message → the turn it was said into."""
        self.is_rewound = False
        """Some of the conversation was taken back."""
        self.jobs: set[str] = set()
        """Background commands that were seen running, and that nobody stopped."""
        self.asked: set[str] = set()
        """Questions of sub-agents that are open."""


class Walker:
    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.root = folder / "work"
        self.chance = chance
        self.sessions = open_sessions()
        self.sides = [Side("a"), Side("b")]
        self.allowed = {*_BASE.splitlines()}
        """Lines that may be in files."""
        self.number = 0
        self.made: list[str] = []

    async def begin(self) -> None:
        self.root.mkdir()
        (self.root / "notes.txt").write_text(_BASE)
        worker = [step("", call("read_file", path="notes.txt")), *(self._step("worker", at) for at in range(3))]
        user_agent(self.folder, "worker", [*worker, step("", complete(_REPORT))])
        user_agent(self.folder, "looker", [step("", call("list_files", path=".")), step("", complete("Seen."))])
        for side in self.sides:
            script = self.folder / f"{side.session_id}.json"
            script.write_text(json.dumps([self._step(side.session_id, at) for at in range(_STEPS)]))
            await self.sessions.create(
                SessionCreateParams(
                    session_id=side.session_id, roots=[str(self.root)], model_id=f"scripted:{script}", mode="ask"
                ),
                side.watchers[0],
            )
            await self._open(side)

    def _step(self, who: str, at: int) -> dict[str, Any]:
        line = self.chance.randrange(1, 13)
        other = self.chance.randrange(1, 13)
        calls = [
            call("edit_file", path="notes.txt", old_text=f"line {line}\n", new_text=f"{who}{at} was {line}\n"),
            call("write_file", path=f"{who}{at}.txt", content=f"new of {who}{at}\n"),
            call("run_shell_command", command=f"echo {who}{at} >> {who}.log"),
            call("run_shell_command", command=f"sed -i 's/^line {other}$/{who}{at} ran {other}/' notes.txt"),
            call("read_file", path="notes.txt"),
            _WHERE,
        ]
        if who != "worker":
            agent = self.chance.choice(["worker", "worker", "looker"])
            calls += [
                ask_agent(agent, background=self.chance.random() < 0.6),
                call("run_shell_command", command="sleep 600", background=True),
            ]
        count = self.chance.choice([1, 1, 2] if who == "worker" else [0, 1, 1, 1, 2, 3])
        return step(f"{who}{at}.", *self.chance.sample(calls, count))

    # Moves --------------------------------------------------------------------------------------

    async def move(self) -> None:
        moves: list[tuple[int, Callable[[Side], Awaitable[None]]]] = [
            (5, self.prompt),
            (2, self.steer),
            (1, self.cancel),
            (3, self.set_mode),
            (7, self.answer),
            (3, self.decide),
            (2, self.answer_question),
            (2, self.type),
            (1, self.undo),
            (1, self.rewind),
            (1, self.stop_agent),
            (2, self.come_and_go),
            (1, self.reload),
            (1, self.kill),
        ]
        side = self.chance.choice(self.sides)
        make = self.chance.choices([each for _, each in moves], [weight for weight, _ in moves])[0]
        self.made.append(f"{side.session_id}: {make.__name__}")
        self._remember()
        try:
            async with asyncio.timeout(50):
                await make(side)
        except AmanuError as error:
            assert error.kind in _REFUSALS, f"{error.kind}: {error}"
            self.made[-1] += f" ({error.kind})"

    async def prompt(self, side: Side) -> None:
        self.number += 1
        text = f"prompt number {self.number}."
        params = PromptSendParams(session_id=side.session_id, prompt_id=f"p{self.number}", text=text)
        await side.session.prompts.send(params, self.chance.choice(side.watchers))
        side.said[params.prompt_id] = text

    async def steer(self, side: Side) -> None:
        if (turn := side.session.state.turn) is not None:
            self.number += 1
            params = PromptSteerParams(
                session_id=side.session_id,
                prompt_id=f"p{self.number}",
                turn_id=turn.turn_id,
                text=f"steering number {self.number}.",
            )
            side.turns[params.prompt_id] = turn.turn_id
            await side.session.prompts.steer(params, self.chance.choice(side.watchers))
            side.said[params.prompt_id] = params.text

    async def cancel(self, side: Side) -> None:
        if (turn := side.session.state.turn) is not None:
            side.asked.clear()  # a sub-agent in the foreground ends with its turn
            await side.session.prompts.cancel(turn.turn_id)

    async def set_mode(self, side: Side) -> None:
        side.mode = self.chance.choice(get_args(Mode))
        self.made[-1] += f" {side.mode}"
        await side.session.set_mode(side.mode)

    async def answer(
        self, side: Side, decisions: tuple[str, ...] = ("allow", "allow", "allow", "reject", "finish")
    ) -> None:
        if not (approvals := side.session.state.approvals):
            return
        asked, decision = self.chance.choice(approvals), self.chance.choice(decisions)
        self.made.append(f"{side.session_id}: {decision} {asked.title}")
        if decision == "allow":
            for proposal in side.session.state.proposals:
                if proposal.proposal_id == asked.proposal_id:
                    self._allow(hunk.new_text for file in proposal.files for hunk in file.hunks)
            if (ran := _WRITES.search(asked.title)) is not None:  # where no private copy can be had, it runs in place
                self._allow([ran[1] or f"{ran[3]} {ran[2]}"])
        params = ApprovalResolveParams(
            session_id=side.session_id, tool_call_id=asked.tool_call_id, decision=decision, digest=asked.digest
        )
        await side.session.resolve_approval(params, self.chance.choice(side.watchers))

    async def decide(self, side: Side) -> None:
        if not (waiting := [each for each in side.session.state.proposals if each.state == "pending"]):
            return
        proposal = self.chance.choice(waiting)
        hunks = [hunk for file in proposal.files for hunk in file.hunks if hunk.state == "pending"]
        chosen = self.chance.sample(hunks, self.chance.randint(min(1, len(hunks)), len(hunks)))
        decisions: list[HunkDecision] = []
        for hunk in chosen:
            word = self.chance.choice(["accept", "accept", "reject"])
            decisions.append(HunkDecision(hunk_id=hunk.hunk_id, decision=word))
            if word == "accept":
                self._allow([hunk.new_text])
        if decisions:
            await side.session.edits.resolve(
                ProposalResolveParams(
                    session_id=side.session_id,
                    proposal_id=proposal.proposal_id,
                    version=proposal.version,
                    hunks=decisions,
                )
            )

    async def answer_question(self, side: Side) -> None:
        if questions := side.session.state.questions:
            question = self.chance.choice(questions)
            side.asked.discard(question.item_id)
            params = QuestionAnswerParams(session_id=side.session_id, question_id=question.item_id, outcome="declined")
            await side.session.answer_question(params, self.chance.choice(side.watchers))

    async def type(self, side: Side) -> None:
        """The user changes a line of the file on the disk."""
        self.number += 1
        file = self.root / "notes.txt"
        lines = file.read_text().splitlines() if file.exists() else [""]
        lines[self.chance.randrange(len(lines))] = line = f"user {self.number}"
        self.allowed.add(line)
        file.write_text("\n".join(lines) + "\n")

    async def undo(self, side: Side) -> None:
        turns = {item.turn_id for item in side.session.state.items if isinstance(item, ToolCall)}
        if turns:
            scope = EditScope(turn_id=self.chance.choice(sorted(turns)))
            await side.session.edits.undo(ProposalUndoParams(session_id=side.session_id, scope=scope))

    async def rewind(self, side: Side) -> None:
        """Files, or files and conversation, as they were before a turn."""
        turns = list(dict.fromkeys(item.turn_id for item in side.session.state.items if isinstance(item, UserMessage)))
        if turns:
            first = self.chance.randrange(len(turns))
            params = CheckpointRestoreParams(
                session_id=side.session_id, turn_id=turns[first], conversation=self.chance.random() < 0.5
            )
            await side.session.checkpoints.restore(params)
            if params.conversation:
                side.is_rewound = True
                gone = {*turns[first:]}
                side.said = {
                    key: text for key, text in side.said.items() if side.turns.get(key, f"turn-{key}") not in gone
                }

    async def stop_agent(self, side: Side) -> None:
        if working := [each.agent_id for each in side.session.state.agents if each.ended_at is None]:
            side.asked.clear()
            agent_id = self.chance.choice(working)
            await agents_of(side.session).stop(AgentParams(session_id=side.session_id, agent_id=agent_id))

    async def come_and_go(self, side: Side) -> None:
        watcher = side.watchers[1]
        if watcher.attached:
            side.session.detach(watcher)
            watcher.attached = False
        else:
            await watcher.attach(self.sessions)

    async def reload(self, side: Side) -> None:
        """The session is closed in an orderly way and opened again."""
        self._end(side)
        await self.sessions.close(side.session_id)
        await self._open(side)

    async def kill(self, _: Side) -> None:
        """The daemon is killed, with both sessions."""
        for side in self.sides:
            self._end(side)
            for watcher in side.watchers:
                side.session.detach(watcher)
        for session in list(self.sessions._open.values()):  # pyright: ignore[reportPrivateUsage]
            lose_what_is_not_on_disk(session)
        await self.sessions.shutdown()
        self.sessions = open_sessions()
        for side in self.sides:
            await self._open(side)

    def _end(self, side: Side) -> None:
        """Jobs and agents end with their session."""
        side.jobs.clear()
        side.asked.clear()

    async def _open(self, side: Side) -> None:
        side.session = await self.sessions.get(side.session_id)
        for watcher in side.watchers:
            watcher.attached = False
        await side.watchers[0].attach(self.sessions)

    # What must always hold ------------------------------------------------------------------------

    def look(self) -> None:
        self._remember()
        for side in self.sides:
            state = side.session.state
            assert state.mode == side.mode, f"{side.session_id} is in {state.mode}, not {side.mode}"
            running = {job.job_id for job in state.jobs if job.state == "running"}
            assert side.jobs <= running, (
                f"{side.session_id}: nobody ended {[job for job in state.jobs if job.job_id in side.jobs - running]}"
            )
            started = {item.item_id for item in state.items if isinstance(item, ToolCall) and item.state == "succeeded"}
            side.jobs = {job.job_id for job in state.jobs if job.job_id in running and job.tool_call_id in started}
            working = {each.agent_id for each in state.agents if each.ended_at is None}
            questions = {each.item_id: each.agent_id for each in state.questions if each.agent_id is not None}
            assert side.asked <= {*questions}, f"{side.session_id}: a sub-agent's question was answered by nobody"
            side.asked = {item_id for item_id, agent_id in questions.items() if agent_id in working}
            for each in state.agents:
                child = self.sessions.opened(each.session_id)
                # While its session is being opened, that shows the mode of a moment before.
                is_at_work = each.activity not in ("", "Waiting for its turn")
                assert child is None or not is_at_work or child.state.mode == state.mode, (
                    f"{side.session_id} is in {state.mode}, its {each.agent_id} in {child.state.mode}"
                )
            view = side.session.view()
            for watcher in side.watchers:
                if watcher.attached:
                    assert watcher.state is not None
                    seen = watcher.state.last(len(view.items)).model_dump()
                    assert seen == view.model_dump(), f"{watcher.name} sees something else"
            for proposal in state.proposals:
                assert proposal.turn_id.startswith("turn-p"), proposal.turn_id
        self._look_at_files()

    def _remember(self) -> None:
        """Allow the lines that a lax mode may have applied."""
        for side in self.sides:
            if side.mode in _LAX:
                for proposal in side.session.state.proposals:
                    self._allow(hunk.new_text for file in proposal.files for hunk in file.hunks)

    def _look_at_files(self) -> None:
        for file in self.root.iterdir():
            lines = {*file.read_text().splitlines()}
            assert lines <= self.allowed, f"{file.name} holds {sorted(lines - self.allowed)}, which nobody allowed"

    def _allow(self, texts: Any) -> None:
        for text in texts:
            self.allowed |= {*text.splitlines()}

    # At the end ---------------------------------------------------------------------------------

    async def rest(self) -> None:
        """Answer what is asked until nothing runs and nothing waits."""
        async with asyncio.timeout(50):
            while any(self._is_busy(side) for side in self.sides):
                await asyncio.sleep(0.005)
                for side in self.sides:
                    self._remember()
                    try:
                        await self.answer(side, ("allow", "reject"))
                        await self.answer_question(side)
                        if not side.session.running and side.session.state.queue:
                            await self.prompt(side)
                    except AmanuError as error:
                        assert error.kind in _REFUSALS, f"{error.kind}: {error}"

    def _is_busy(self, side: Side) -> bool:
        state = side.session.state
        return bool(side.session.running or agents_of(side.session).running or state.queue or state.approvals)

    async def look_back(self) -> None:
        for side in self.sides:
            while sum(isinstance(each, Assistant) for each in side.session.core.conversation) < _STEPS:
                await self.prompt(side)
                await self.rest()
            await self.prompt(side)  # what its agents reported last, is told with it
        await self.rest()
        self.look()
        told = {side.session_id: self._told(side) for side in self.sides}
        for side in self.sides:
            check_calls(side.session.core.conversation)
            for text in side.said.values():
                assert told[side.session_id].count(text) == 1, f"{text}: told {told[side.session_id].count(text)} times"
            if not side.is_rewound:
                self._look_at_reports(side, told[side.session_id])
        await self.kill(self.sides[0])
        for side in self.sides:
            lost = {*told[side.session_id].splitlines()} ^ {*self._told(side).splitlines()}
            assert not lost, f"{side.session_id}: not the same after kill −9: {lost}"

    def _look_at_reports(self, side: Side, told: str) -> None:
        shown = Counter(
            each.name for each in side.session.state.agents if each.state == "completed" and each.background
        )
        assert told.count(_REPORT) >= shown["worker"], f"{shown['worker']} reports, {told.count(_REPORT)} told"

    def _told(self, side: Side) -> str:
        return "\n".join(message.model_dump_json() for message in side.session.core.conversation)
