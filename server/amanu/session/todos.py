"""A session's to-do list: set by the model or by an approved plan, told to the model again when it may have lost it."""

from collections.abc import Sequence

from amanu.core.conversation import Conversation
from amanu.core.emit import Emit
from amanu.core.listeners import Notes, StepRecord, TurnListener, TurnView
from amanu.core.notes import SystemNote
from amanu.text.fences import block
from amanu.text.wording import describe_todos, is_finished
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Todo, TodoList
from amanu_protocol.state import SessionState

PATIENCE = 10
"""Tool calls without an update after which the model is reminded."""
REMINDER = (
    f"Your to-do list has not changed for {PATIENCE} tool calls. If it is out of date, call write_todos; otherwise go "
    "on. Do not mention this reminder."
)
KEPT = "The earlier conversation was shortened. This is your to-do list as it stands:"


class Todos:
    """The list of one session."""

    def __init__(self, emit: Emit, state: SessionState) -> None:
        self._emit = emit
        self._state = state
        self.revision = 0
        """Grows each time the list is set."""
        self.last: Sequence[Todo] = ()
        """As it was last set in this process; the state's own list is cleared at the end of a turn that finishes it."""

    @property
    def current(self) -> Sequence[Todo]:
        return self._state.todos

    @property
    def summary(self) -> str:
        """For the user, on one line."""
        return self._state.todos_summary

    def set(self, todos: Sequence[Todo]) -> None:
        """Replace the whole list. Shown in place of the one before if only the progress is new."""
        self.revision += 1
        self.last = todos
        turn = self._state.turn or self._state.last_turn
        turn_id = "" if turn is None else turn.turn_id
        item = TodoList(
            item_id=self._item_id(turn_id, todos), turn_id=turn_id, todos=list(todos), summary=describe_todos(todos)
        )
        self._emit(ItemCompleted(item=item))

    def _item_id(self, turn_id: str, todos: Sequence[Todo]) -> str:
        number = 1
        while isinstance(shown := self._state.item(f"{turn_id}.todos{number}"), TodoList):
            if [todo.text for todo in shown.todos] == [todo.text for todo in todos]:
                break
            number += 1
        return f"{turn_id}.todos{number}"


class TodoReminder(TurnListener):
    """Tells the model of its unfinished list after `PATIENCE` calls without an update, and after a compaction."""

    def __init__(self, todos: Todos, conversation: Conversation) -> None:
        self._todos = todos
        self._conversation = conversation
        self._generation = conversation.generation
        self._revision = todos.revision
        self._calls = 0

    async def before_request(self, turn: TurnView, step: int) -> Notes:
        if self._generation == self._conversation.generation:
            return ()
        self._generation = self._conversation.generation
        return self._note(KEPT, "The model was told its to-dos again")

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes:
        if self._revision != self._todos.revision:
            self._revision, self._calls = self._todos.revision, 0
            return ()
        self._calls += len(step.results)
        if self._calls < PATIENCE:
            return ()
        return self._note(REMINDER, "The model was reminded of its to-dos")

    def _note(self, text: str, user_text: str) -> Notes:
        self._calls = 0
        todos = self._todos.current
        if is_finished(todos):
            return ()
        lines = "\n".join(f"- {_STATUS[todo.status]}: {todo.text}" for todo in todos)
        return (SystemNote(f"{text}\n{block('todos', lines)}", f"{user_text}: {self._todos.summary}."),)


_STATUS = {"pending": "pending", "inProgress": "in_progress", "done": "done", "cancelled": "cancelled"}
"""As `write_todos` names them."""
