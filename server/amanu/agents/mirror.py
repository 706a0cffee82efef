"""Shows in a session what its sub-agents do: their calls, answers and warnings, as items of its own."""

from collections.abc import Callable

from amanu.core.emit import Emit
from amanu.core.sub_agents import COMPLETE_TASK
from amanu.core.tool import AgentLabel
from amanu_protocol.events import Event, ItemChanged, ItemCompleted
from amanu_protocol.items import Answer, Notice, ToolCall


class AgentMirror:
    """Repeats events of a sub-agent's session in its parent's. Only the agent's own session has thoughts, text while it
    is being written, full outputs, its to-do list, and `complete_task`, whose result is that of `run_agent`."""

    def __init__(self, emit: Emit, label: AgentLabel, on_activity: Callable[[str], None]) -> None:
        """`emit`: of the parent. `on_activity` is told what the agent is doing."""
        self._emit = emit
        self._label = label
        self._on_activity = on_activity

    def on_event(self, event: Event, position: int) -> None:
        """An `EventListener` of the agent's session."""
        match event:
            case ItemChanged(item=ToolCall() as item) | ItemCompleted(item=ToolCall() as item):
                if item.tool == COMPLETE_TASK:
                    return
                if item.state == "executing":
                    self._on_activity(item.title)
                ours = item.model_copy(update=self._marks | {"blob": None})
                self._emit(event.model_copy(update={"item": ours}))
            case ItemCompleted(item=Answer() as item) if item.text.strip():
                self._emit(event.model_copy(update={"item": item.model_copy(update=self._marks)}))
            case ItemCompleted(item=Notice() as item) if item.level != "info":
                self._emit(event.model_copy(update={"item": item.model_copy(update=self._marks)}))
            case _:
                pass

    @property
    def _marks(self) -> dict[str, str]:
        return {"agent_id": self._label.agent_id, "turn_id": self._label.turn_id}
