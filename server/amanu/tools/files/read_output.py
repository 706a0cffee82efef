"""Read tool output that the conversation no longer contains in full."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.tools.environment import SessionTool
from amanu.tools.shell.output import TO_LOOK_AT_BINARY, is_binary, readable
from amanu.workspace.encodings import readable_lines
from amanu_protocol.errors import AmanuError

ID_LENGTH = 16
"""Characters of a blob's id that the model sees: unique in any session, and short to write."""

_SNIFFED = 1 << 20  # bytes: a log may begin with many NULs


class ReadOutputParams(Params):
    id: str = Field(min_length=8, max_length=64)
    start: int = Field(default=0, ge=0, description="Character to start at.")
    length: int = Field(default=10_000, ge=1, description="Characters to read, at most 30,000.")
    find: str | None = Field(default=None, description="Return only the lines that contain this text.")


class ReadOutput(SessionTool[ReadOutputParams]):
    name = "read_output"
    effect = "read"
    description = (
        "Reads output of an earlier tool call that was shortened or removed; the text in its place names the id. For "
        "the current content of a file, read the file instead."
    )
    params = ReadOutputParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Read earlier output {str(arguments.get('id', ''))[:8]}"

    async def preview(self, params: ReadOutputParams, call: CallContext) -> Preview:
        return Preview(
            title=f"Read earlier output {params.id[:8]}",
            subject=Subject(self.name, self.effect, params.id),
            detail=f"Output of this session with the id {params.id}",
        )

    async def run(self, params: ReadOutputParams, call: CallContext) -> Outcome:
        try:
            data = await self._environment.blobs.find_blob(params.id)
        except AmanuError:
            raise ToolError(f"This session has no output with the id {params.id!r}.") from None
        if is_binary(data[:_SNIFFED]):
            raise ToolError(f"That output is binary and cannot be read as text. {TO_LOOK_AT_BINARY}")
        mask = self._environment.secrets.mask_content
        text = await asyncio.to_thread(lambda: readable(readable_lines(data), mask))
        if params.find is not None:
            return self._matching_lines(text, params.find)
        piece = text[params.start : params.start + min(params.length, self._limits.shell_model)]
        end = params.start + len(piece)
        continuation = f"; read on with start {end}" if end < len(text) else ""
        head = f"[characters {params.start}–{end} of {len(text)}{continuation}]\n"
        return Outcome(head + piece, f"{len(piece):,} characters")

    def _matching_lines(self, text: str, needle: str) -> Outcome:
        lines = [f"{number}: {line[: self._limits.line_characters]}" for number, line in _matching(text, needle)]
        listed = lines[: self._limits.grep_lines]
        rest_note = f"\n[… {len(lines) - len(listed)} more lines]" if len(lines) > len(listed) else ""
        answer = "\n".join(listed) + rest_note if lines else f"No line contains {needle!r}."
        return Outcome(answer, f"{len(lines)} line{'s' * (len(lines) != 1)}")


def _matching(text: str, needle: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if needle in line]
