"""Checkpoints: files, the conversation, or both go back to the moment before a turn.

Files go back by undoing what that turn and all later ones applied, and nothing else. Only what an edit made is ever
removed; git is not used. What commands did is listed, and stays.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from amanu.core.conversation import Rewound
from amanu.session.built_files import REWOUND
from amanu.session.core import SessionCore
from amanu.session.history import SHOWN_ITEMS
from amanu.session.queue import PromptQueue
from amanu.session.record_format import read_event
from amanu.session.restore import REWINDS, conversation, rewound
from amanu.session.review import Selections, SessionEdits
from amanu.storage.journal import Record
from amanu.text.wording import describe_todos, is_finished
from amanu.workspace.hunks import line_counts
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import AgentChanged, ItemCompleted, JobChanged, SessionChanged, SessionRewound, TurnStarted
from amanu_protocol.items import Job, Mode, PlanDocument, Proposal, SubAgent, Todo, TodoList, ToolCall, UserMessage


@dataclass
class RecordedTurn:
    """A turn, as the journal has it."""

    turn_id: str
    prompt_id: str
    timestamp: int
    position: int
    """Position of its first record in the journal."""
    message: UserMessage | None = None
    commands: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])
    """Titles of the commands that may have changed something that cannot be undone."""


class Checkpoints:
    """The checkpoints of one session."""

    def __init__(self, core: SessionCore, queue: PromptQueue, edits: SessionEdits) -> None:
        self._journal = core.journal
        self._conversation = core.conversation
        self._history = core.history
        self._state = core.state
        self._plan = core.plan
        self._shown_files = core.workspace.shown_files
        self._emit = core.emit
        self._queue = queue
        self._edits = edits
        self._idle = core.turn.idle

    async def list(self) -> r.CheckpointListResult:
        """The checkpoints of all turns, oldest first."""
        proposals: defaultdict[str, list[Proposal]] = defaultdict(list)
        for proposal in self._state.proposals:
            proposals[proposal.turn_id].append(proposal)
        turns = await self._turns()
        return r.CheckpointListResult(checkpoints=[self._checkpoint(turn, proposals[turn.turn_id]) for turn in turns])

    async def preview(self, params: r.CheckpointPreviewParams) -> r.CheckpointPreviewResult:
        turns = await self._since(params.turn_id)
        files = await self._edits.take_back(self._applied(turns), dry_run=True)
        commands = [title for turn in turns for title in turn.left]
        return r.CheckpointPreviewResult(files=files, commands=commands, turns=len(turns))

    async def restore(self, params: r.CheckpointRestoreParams) -> r.CheckpointRestoreResult:
        """Go back to before that turn. With the conversation, edits of those turns that are still open are rejected.
        Raises `AmanuError`: turnInProgress, itemNotFound, storageError."""
        async with self._idle():
            if any(agent.works for agent in self._state.agents):
                raise AmanuError("turnInProgress", "A sub-agent works in the background.", hint="Stop it first.")
            turns = await self._since(params.turn_id)
            files = await self._edits.take_back(self._applied(turns), dry_run=False) if params.files else []
            if not params.conversation:
                return r.CheckpointRestoreResult(files=files)
            await self._edits.reject_open([turn.turn_id for turn in turns], REWOUND)
            await self._edits.take_back(self._applied(turns, str(self._plan.path)), dry_run=False)
            await self._rewind(turns)
        message = turns[0].message
        return r.CheckpointRestoreResult(
            files=files, text=message.text if message else None, attachments=message.attachments if message else []
        )

    async def forget(self, turn_id: str) -> None:
        """Take the last turn out of the conversation: its prompt could not be saved. Does nothing for any other
        turn."""
        async with self._idle():
            turns = await self._turns()
            if not turns or turns[-1].turn_id != turn_id:
                return
            await self._edits.reject_open([turn_id], REWOUND)
            with contextlib.suppress(AmanuError):  # the caller reports that the disk is full
                await self._rewind(turns[-1:])
            if len(turns) == 1:
                self._emit(SessionChanged(title=""))

    async def _rewind(self, turns: "Sequence[RecordedTurn]") -> None:
        """Take these turns, which are the last ones, out of the conversation."""
        first, turn_ids = turns[0], [turn.turn_id for turn in turns]
        todos = await self._todos_before(turn_ids)
        page = None
        if self._state.item(first.prompt_id) is None:
            page = await self._history.page(self._state, self._journal, first.prompt_id, SHOWN_ITEMS)
        event = SessionRewound(
            item_id=first.prompt_id,
            turn_ids=turn_ids,
            items=page[0] if page else [],
            todos=todos,
            todos_summary=describe_todos(todos) if todos else "",
            plan=await self._plan_before(first.position),
        )
        # Before the rewind: if the daemon dies in between, no plan is carried out that was not approved,
        if (mode := await self._mode_before(first.position)) is not None:
            self._plan.go_back(mode)
        # and an end is told twice rather than never.
        for job in await self._jobs_told_since(first.position):
            self._emit(JobChanged(job=job.model_copy(update={"told": False})))
        for agent in await self._agents_told_since(first.position):
            self._emit(AgentChanged(agent=agent))
        self._emit(event, entry=Rewound(position=first.position))
        spans = rewound(await self._journal.beginning(REWINDS))
        self._conversation.replace_with(await self._journal.read_through(lambda records: conversation(records, spans)))
        self._shown_files.restore(self._conversation)
        self._queue.forget_turns(turn_ids)
        await self._plan.restore()
        await self._emit.durable()

    async def _jobs_told_since(self, position: int) -> "list[Job]":
        """The background commands from before that record whose end the model was told after it."""
        told: dict[str, bool] = {}
        for record in await self._journal.beginning('{"kind":"jobChanged"'):
            if record.position < position:
                with contextlib.suppress(ValidationError):
                    event = read_event(record)
                    if isinstance(event, JobChanged):
                        told[event.job.job_id] = event.job.told
        return [job for job in self._state.jobs if job.told and told.get(job.job_id) is False]

    async def _agents_told_since(self, position: int) -> "list[SubAgent]":
        """The background sub-agents from before that record whose end the model was told only after it, with what to
        tell again."""
        untold: dict[str, SubAgent] = {}
        for record in await self._journal.beginning('{"kind":"agentChanged"'):
            with contextlib.suppress(ValidationError):
                event = read_event(record)
                if isinstance(event, AgentChanged) and event.agent.background:
                    agent_id, is_before = event.agent.agent_id, record.position < position
                    if not event.agent.told and (is_before or agent_id in untold):
                        untold[agent_id] = event.agent
                    elif is_before:
                        untold.pop(agent_id, None)
        told = {agent.agent_id for agent in self._state.agents if agent.told}
        return [agent for agent in untold.values() if agent.agent_id in told]

    async def _todos_before(self, turn_ids: Sequence[str]) -> "list[Todo]":
        """The to-dos as they were left by the turns before these."""
        remaining_turn_ids = {turn.turn_id for turn in await self._turns()} - set(turn_ids)
        lists = await self._journal.read_through(
            lambda records: [record for record in records if '"kind":"todoList"' in record.event]
        )
        for record in reversed(lists):
            with contextlib.suppress(ValidationError):
                event = read_event(record)
                if (
                    isinstance(event, ItemCompleted)
                    and isinstance(event.item, TodoList)
                    and event.item.turn_id in remaining_turn_ids
                ):
                    return [] if is_finished(event.item.todos) else event.item.todos
        return []

    async def _since(self, turn_id: str) -> "Sequence[RecordedTurn]":
        turns = await self._turns()
        index = next((index for index, turn in enumerate(turns) if turn.turn_id == turn_id), None)
        if index is None:
            raise AmanuError("itemNotFound", "This session has no such turn.")
        return turns[index:]

    async def _turns(self) -> "Sequence[RecordedTurn]":
        return await self._journal.read_through(_turns)

    def _applied(self, turns: "Iterable[RecordedTurn]", path: str | None = None) -> Selections:
        scopes = [r.EditScope(turn_id=turn.turn_id, path=path) for turn in turns]
        return {key: ids for scope in scopes for key, ids in self._edits.select(scope, ("applied",)).items()}

    def _checkpoint(self, turn: RecordedTurn, proposals: Sequence[Proposal]) -> r.Checkpoint:
        """`proposals`: those of that turn."""
        files: dict[str, r.CheckpointFile] = {}
        for proposal in proposals:
            for file in proposal.files:
                if file.path == str(self._plan.path):
                    continue
                states = [hunk.state for hunk in file.hunks]
                applied = [hunk for hunk in file.hunks if hunk.state == "applied"]
                added, removed = line_counts(applied)
                if applied and file.change == "rename":  # its one hunk is the whole file
                    added, removed = file.added, file.removed
                entry = files.get(file.path)
                files[file.path] = r.CheckpointFile(
                    path=file.path,
                    added=added + (entry.added if entry else 0),
                    removed=removed + (entry.removed if entry else 0),
                    applied=len(applied) + (entry.applied if entry else 0),
                    undone=states.count("reverted") + (entry.undone if entry else 0),
                    open=states.count("pending") + states.count("conflicted") + (entry.open if entry else 0),
                )
            for row in proposal.rows:
                entry = files.get(row.path) or r.CheckpointFile(
                    path=row.path, added=0, removed=0, applied=0, undone=0, open=0
                )
                files[row.path] = entry.model_copy(
                    update={
                        "applied": entry.applied + (row.state == "applied"),
                        "undone": entry.undone + (row.state == "reverted"),
                        "open": entry.open + (row.state in ("pending", "conflicted")),
                    }
                )
        text = turn.message.text if turn.message else ""
        return r.Checkpoint(
            turn_id=turn.turn_id,
            prompt_id=turn.prompt_id,
            text=next((line.strip() for line in text.splitlines() if line.strip()), "")[:200],
            at=turn.timestamp,
            files=list(files.values()),
            commands=turn.commands,
        )

    async def _plan_before(self, position: int) -> PlanDocument | None:
        """The session's plan as it stood before that record; None if the session has none."""
        changes = [*await self._journal.beginning('{"kind":"sessionChanged"'), *await self._journal.beginning(REWINDS)]
        for record in sorted(changes, key=lambda record: -record.position):
            if record.position < position and '"plan":{' in record.event:
                with contextlib.suppress(ValidationError):
                    event = read_event(record)
                    if isinstance(event, SessionChanged | SessionRewound) and event.plan is not None:
                        return event.plan
        return self._state.plan and self._plan.draft()

    async def _mode_before(self, position: int) -> Mode | None:
        """The mode before that record, if the approval of a plan has changed it since then; None if nothing has, or the
        user did so otherwise."""
        changes: list[tuple[int, SessionChanged]] = []
        for record in await self._journal.beginning('{"kind":"sessionChanged"'):
            with contextlib.suppress(ValidationError):
                event = read_event(record)
                if isinstance(event, SessionChanged) and event.mode is not None:
                    changes.append((record.position, event))
        last_at, last = changes[-1]  # the first is the session's beginning
        if last_at < position or last.plan is None or last.plan.state != "approved":
            return None
        return next((event.mode for at, event in reversed(changes) if at < position), None)


def _turns(records: Iterable[Record]) -> list[RecordedTurn]:
    """The recorded turns that were not taken out again. Parses only the events it needs."""
    turns: dict[str, RecordedTurn] = {}
    for record in records:
        if not any(kind in record.event for kind in _RELEVANT):
            continue
        try:
            event = read_event(record)
        except ValidationError:
            continue
        match event:
            case TurnStarted():
                turns[event.turn_id] = RecordedTurn(event.turn_id, event.prompt_id, record.timestamp, record.position)
            case ItemCompleted(item=UserMessage() as message) if message.turn_id in turns and not message.steer:
                turns[message.turn_id].message = message
            case ItemCompleted(item=ToolCall(effect="run") as call) if call.turn_id in turns:
                if call.decision is not None and call.decision.outcome == "allowed":
                    turns[call.turn_id].commands.append(call.title)
                    turns[call.turn_id].left += [call.title] if _may_leave(call) else []
            case SessionRewound():
                for turn_id in event.turn_ids:
                    turns.pop(turn_id, None)
            case _:
                pass
    return list(turns.values())


def _may_leave(call: ToolCall) -> bool:
    """Whether the call may have changed something that cannot be undone. One that failed and has no place on record may
    not have said so."""
    if call.sandbox is None or call.sandbox.place is None:
        return bool(call.not_undone) or call.state != "succeeded"
    return bool(call.not_undone) or (call.sandbox.place.writes and call.sandbox.place.then == "stays")


_RELEVANT = ('"kind":"turnStarted"', '"kind":"userMessage"', '"effect":"run"', '"kind":"sessionRewound"')
