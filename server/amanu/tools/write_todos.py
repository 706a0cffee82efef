"""Keeps the list of what the model means to do."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.text.wording import describe_todos
from amanu.tools.environment import SessionTool
from amanu_protocol.items import Todo

MAX_TODOS = 50
MAX_TEXT = 200

_NAMES_ELSEWHERE = {"completed": "done", "inProgress": "in_progress"}


class TodoParams(BaseModel):
    text: str = Field(min_length=1, max_length=MAX_TEXT, description=f"At most {MAX_TEXT} characters.")
    status: Literal["pending", "in_progress", "done", "cancelled"]

    @field_validator("status", mode="before")
    @classmethod
    def _known_status(cls, status: Any) -> Any:
        return _NAMES_ELSEWHERE.get(status, status) if isinstance(status, str) else status

    @property
    def todo(self) -> Todo:
        return Todo(text=self.text, status="inProgress" if self.status == "in_progress" else self.status)


class WriteTodosParams(Params):
    todos: list[TodoParams] = Field(max_length=MAX_TODOS)


class WriteTodos(SessionTool[WriteTodosParams]):
    name = "write_todos"
    effect = "read"
    description = (
        "Replaces the whole of your to-do list, which the user sees. Use it for work of three or more steps. Set an "
        "item in_progress when you begin it, one at a time, and done as soon as it is done and checked; add what turns "
        "up on the way."
    )
    params = WriteTodosParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return "Update the to-do list"

    async def preview(self, params: WriteTodosParams, call: CallContext) -> Preview:
        started = [entry.text for entry in params.todos if entry.status == "in_progress"]
        if len(started) > 1:
            raise ToolError(f"{len(started)} to-dos are in_progress. Mark at most one so, and call again.")
        todos = [entry.todo for entry in params.todos]
        title = f"To-dos: {describe_todos(todos)}"
        detail = "\n".join(f"{entry.status}: {entry.text}" for entry in params.todos)
        return Preview(title=title, subject=Subject(self.name, self.effect, ""), detail=detail)

    async def run(self, params: WriteTodosParams, call: CallContext) -> Outcome:
        todos = [entry.todo for entry in params.todos]
        self._environment.set_todos(todos)
        return Outcome(f"To-dos: {describe_todos(todos)}.", "")
