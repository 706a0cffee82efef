"""Remember a fact: an edit of a memory file, proposed like any other."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from amanu.context.remembered_facts import one_fact, project_file, with_fact
from amanu.core.tool import CallContext, Preview, ToolError
from amanu.proposals.model import FileEdit
from amanu.text.display import one_line
from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.workspace.text_file import FileText


class SaveMemoryParams(EditParams):
    fact: str = Field(description="One self-contained sentence.")
    scope: Literal["user", "project"] = Field(description="user: for all projects.")

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """No explanation is asked for: the fact says it all."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        handler.resolve_ref_schema(schema)["properties"].pop("explanation")
        return schema


class SaveMemory(EditTool[SaveMemoryParams]):
    name = "save_memory"
    description = (
        "Proposes a fact for AGENTS.md, for later sessions. Only when the user asks you to remember something or "
        "states a lasting preference; not for what the repository already says or what is temporary."
    )
    params = SaveMemoryParams
    waits = True  # two facts side by side would be one hunk, and a no to one a no to both

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        fact = arguments.get("fact")
        return one_line(f"Remember: {fact}") if isinstance(fact, str) else "Remember"

    def live_call(self) -> None:
        return None

    async def preview(self, params: SaveMemoryParams, call: CallContext) -> Preview:
        own = self._workspace.guard.memory
        if params.scope == "user" and own is not None and await asyncio.to_thread(own.is_symlink):
            raise ToolError(
                f"{own} is a symbolic link, and links out of the workspace are not followed. Nothing was changed. "
                "Ask the user to add the fact themselves."
            )
        preview = await super().preview(params, call)
        return replace(preview, title=one_line(f"{preview.title}: {params.fact}"))

    def changes(self, params: SaveMemoryParams) -> Sequence[FileChange]:
        fact = one_fact(params.fact)
        if self._environment.secrets.mask_output(fact) != fact:
            raise ToolError("The fact seems to contain a key or password, which is never remembered.")
        return [FileChange(str(self._file(params.scope)), partial(_with_fact, fact))]

    def resolve(self, path: str) -> Path:
        own = self._workspace.guard.memory
        return own if own is not None and path == str(own) else super().resolve(path)

    def _file(self, scope: Literal["user", "project"]) -> Path:
        """Of several roots, the first one's."""
        own = self._workspace.guard.memory
        if scope == "project":
            path = project_file(self._workspace.roots[0])
            if path == own:
                raise ToolError("The workspace is the folder of the memory for all projects. Use scope user.")
            return path
        if own is None:
            raise ToolError("There is no memory for all projects here. Use scope project.")
        return own

    def _title(self, edits: Sequence[FileEdit]) -> str:
        path = edits[0].base.path
        where = (
            "all projects"
            if path == self._workspace.guard.memory
            else f"this project, in {self._workspace.relative(path)}"
        )
        return f"Remember for {where}"


def _with_fact(fact: str, base: FileText) -> str:
    return with_fact(base.text, fact)
