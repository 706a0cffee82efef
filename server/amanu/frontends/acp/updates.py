"""What happens in a session as ACP's `session/update`. One rule: bring the client up to date with an item, whatever
it has seen of it; so events, a replay and a state that came anew go the same way."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from amanu.frontends.acp.schema import ClientFeatures
from amanu.frontends.acp.tool_calls import ENDED, describe_call
from amanu_protocol.events import (
    AgentChanged,
    Event,
    EventMessage,
    ItemChanged,
    ItemCompleted,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    ItemsWithdrawn,
    ProposalChanged,
    RetryChanged,
    SessionChanged,
    SessionRewound,
    TurnEnded,
    TurnRouted,
    UsageChanged,
)
from amanu_protocol.items import Answer, Citations, Item, Notice, Question, Thought, TodoList, ToolCall, UserMessage
from amanu_protocol.state import SessionState

OUTPUT_SECONDS = 0.25
"""Between two updates of a running call's output: each holds all of it."""
SAID_ELSEWHERE = ("completed", "cancelled", "failed", "hook")
"""Ends of a turn that the answer to its prompt tells, or a notice."""
COMPACTION = {"compacting": "in_progress", "compacted": "completed", "compactionFailed": "failed"}
"""Codes of notices about a compaction → its status."""
_TODO_STATUS = {"pending": "pending", "inProgress": "in_progress", "done": "completed"}


class Updates:
    """Of one session. `send` takes the body of an update; `own_turn` says whether that turn answers a prompt of this
    client, which shows the user's words itself."""

    def __init__(
        self,
        send: Callable[[dict[str, Any]], None],
        features: ClientFeatures,
        own_turn: Callable[[str], bool],
    ) -> None:
        self._send = send
        self._features = features
        self._own_turn = own_turn
        self._shown: dict[str, int] = {}
        """Item → characters of its text that were sent; of a call, the hash of what was sent last; of others, 1."""
        self._calls: dict[str, dict[str, Any]] = {}
        """Open calls → what was last sent of them."""
        self._void = ""
        """The reason why the last reply was taken back; the message about the retry gives it."""
        self._outputs: dict[str, asyncio.TimerHandle] = {}
        """Calls whose output has grown since."""

    def on_event(self, message: EventMessage, state: SessionState) -> None:
        """A listener of the session's view, which has folded the event into the state."""
        match message.event:
            case ItemDelta(item_id=item_id):
                self._on_delta(state.item(item_id), state)
            case ItemStarted(item=item) | ItemChanged(item=item) | ItemCompleted(item=item):
                self.show(item, state)
            case ItemsReplaced(items=items, withdrawn=withdrawn):
                self._withdraw(withdrawn)
                self.show_all(items, state)
            case ItemsWithdrawn(item_ids=item_ids, reason=reason):
                self._withdraw(item_ids)
                self._void = reason
                self.notice("warning", f"The reply was cut off and is being requested again. {reason}".strip())
            case ProposalChanged(proposal=proposal):
                for call_id in proposal.tool_call_ids:
                    if isinstance(call := state.item(call_id), ToolCall) and call_id in self._shown:
                        self._show_call(call, state)
            case event:
                self._on_session_event(event, state)

    def show_all(self, items: Iterable[Item], state: SessionState) -> None:
        """Bring the client up to date with these items, in their order."""
        for item in items:
            self.show(item, state)

    def skip(self, items: Iterable[Item]) -> None:
        """The client has seen these items: only what comes to them later is sent."""
        for item in items:
            self._shown[item.item_id] = len(item.text) if isinstance(item, Thought | Answer | UserMessage) else 1

    def show(self, item: Item, state: SessionState, *, replayed: bool = False) -> None:
        """Bring the client up to date with one item. `replayed`: it was there before the client was."""
        match item:
            case Thought():
                self._show_text("agent_thought_chunk", item)
            case Answer(agent_id=None):
                self._show_text("agent_message_chunk", item)
            case UserMessage() if replayed or item.steer or not self._own_turn(item.turn_id):
                self._show_text("user_message_chunk", item)
            case ToolCall():
                self._show_call(item, state)
            case TodoList():
                self._show_plan(item)
            case Notice(agent_id=None):
                self._show_notice(item, replayed=replayed)
            case Citations():
                self._show_citations(item)
            case Question(state="open") | Question(agent_id=str()):
                pass
            case Question() if self._is_new(item.item_id):
                self._message(item.item_id, f"\n_{item.title}_ {item.summary}\n")
            case _:
                pass

    def notice(self, severity: str, text: str, detail: str = "") -> None:
        """Something Amanu itself says, as it happens. A client that has no notices gets a message."""
        if self._features.notices:
            self._send({"sessionUpdate": "notice", "severity": severity, "title": text, "description": detail or None})
        else:
            self._send(_chunk("agent_message_chunk", f"\n_{text}_\n", None))

    # Inside ------------------------------------------------------------------------------------------

    def _on_session_event(self, event: Event, state: SessionState) -> None:
        match event:
            case SessionChanged(title=str(title)):
                self._send({"sessionUpdate": "session_info_update", "title": title})
            case UsageChanged():
                self.show_usage(state)
            case TurnRouted(model_id=model_id, reason=reason):
                self.notice("info", f"Continuing with {model_id}. {reason}".strip())
            case RetryChanged(retry=retry) if (
                retry is not None and self._features.notices and retry.reason != self._void
            ):
                self.notice("warning", f"{retry.reason} Retrying: attempt {retry.attempt}.")
            case SessionRewound():
                self.notice(
                    "warning", "The conversation was rewound in another client. Load the session again to see it."
                )
            case TurnEnded(reason=reason, message=text) if reason not in SAID_ELSEWHERE and text:
                last = state.items[-1] if state.items else None
                if not (isinstance(last, Notice) and last.text == text):
                    self.notice("warning", text)
            case AgentChanged(agent=agent):
                call = state.item(agent.tool_call_id)
                if isinstance(call, ToolCall) and call.state not in ENDED:
                    self._show_output_soon(call.item_id, state)
            case _:
                pass

    def show_usage(self, state: SessionState) -> None:
        usage = state.usage
        if usage is None or not usage.context_window:
            return
        cost = None if usage.cost_usd is None else {"amount": usage.cost_usd, "currency": "USD"}
        self._send(
            {
                "sessionUpdate": "usage_update",
                "used": usage.context_tokens,
                "size": usage.context_window,
                **({} if cost is None else {"cost": cost}),
            }
        )

    def _on_delta(self, item: Item | None, state: SessionState) -> None:
        if isinstance(item, ToolCall):
            self._show_output_soon(item.item_id, state)
        elif item is not None:
            self.show(item, state)

    def _is_new(self, item_id: str) -> bool:
        return self._shown.setdefault(item_id, 0) == 0

    def _show_text(self, kind: str, item: Thought | Answer | UserMessage) -> None:
        sent = self._shown.get(item.item_id, 0)
        text = item.text[sent:]
        if text:
            self._shown[item.item_id] = sent + len(text)
            self._send(_chunk(kind, text, item.item_id))

    def _message(self, item_id: str, text: str) -> None:
        self._shown[item_id] = 1
        self._send(_chunk("agent_message_chunk", text, item_id))

    def _show_call(self, call: ToolCall, state: SessionState) -> None:
        timer = self._outputs.pop(call.item_id, None)
        if timer is not None:
            timer.cancel()
        described = describe_call(call, state)
        fingerprint = hash(repr(described)) or 1
        if self._shown.get(call.item_id) == fingerprint:
            return
        known = self._calls.get(call.item_id)
        if known is None and self._is_new(call.item_id):
            self._send({"sessionUpdate": "tool_call", **described})
        else:
            changed = {key: value for key, value in described.items() if (known or {}).get(key) != value}
            self._send({"sessionUpdate": "tool_call_update", **changed, "toolCallId": call.item_id})
        self._shown[call.item_id] = fingerprint
        self._calls[call.item_id] = described
        if call.state in ENDED:
            del self._calls[call.item_id]

    def _show_output_soon(self, item_id: str, state: SessionState) -> None:
        def show() -> None:
            self._outputs.pop(item_id, None)
            if isinstance(call := state.item(item_id), ToolCall):
                self._show_call(call, state)

        if item_id not in self._outputs and item_id in self._shown:
            self._outputs[item_id] = asyncio.get_running_loop().call_later(OUTPUT_SECONDS, show)

    def _show_plan(self, item: TodoList) -> None:
        entries = [
            {"content": todo.text, "priority": "medium", "status": _TODO_STATUS[todo.status]}
            for todo in item.todos
            if todo.status in _TODO_STATUS
        ]
        self._send({"sessionUpdate": "plan", "entries": entries})

    def _show_notice(self, notice: Notice, *, replayed: bool) -> None:
        if (status := COMPACTION.get(notice.code)) is not None and self._features.compactions:
            update: dict[str, Any] = {
                "sessionUpdate": "compaction_update",
                "compactionId": notice.item_id,
                "status": status,
            }
            if status == "completed" and notice.detail:
                update["summary"] = [{"type": "text", "text": notice.detail}]
            if status == "failed":
                update["error"] = notice.text
            self._send(update)
        elif self._is_new(notice.item_id) or status is not None:
            if replayed or not self._features.notices:
                self._message(notice.item_id, f"\n_{notice.text}_\n")
            else:
                self._shown[notice.item_id] = 1
                self.notice(notice.level, notice.text, notice.detail)

    def _show_citations(self, item: Citations) -> None:
        if self._is_new(item.item_id) and item.sources:
            links = [
                f"- [{source.title or source.url}]({source.url})" if source.url else f"- {source.title}"
                for source in item.sources
            ]
            self._message(item.item_id, "\n\n" + "\n".join(links) + "\n")

    def _withdraw(self, item_ids: Iterable[str]) -> None:
        """They never happened. Text cannot be taken back in version 1; a call is at least no longer open."""
        for item_id in item_ids:
            self._shown.pop(item_id, None)
            if self._calls.pop(item_id, None) is not None:
                self._send({"sessionUpdate": "tool_call_update", "toolCallId": item_id, "status": "failed"})


def _chunk(kind: str, text: str, message_id: str | None) -> dict[str, Any]:
    chunk: dict[str, Any] = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return chunk if message_id is None else {**chunk, "messageId": message_id}
