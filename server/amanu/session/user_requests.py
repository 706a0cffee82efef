"""What a prompt asks of the daemon and not of the model: one call of a tool, made for the user.

    ! git status              runs the command
    /apply src/a.py           proposes the block of code below as a change to that file
    ```python
    …
    ```

The call is previewed, decided on, run, shown and recorded like a call of the model's. The model is told of it beside
the next prompt. A file that is not there yet is created without a model; else one is asked where the block belongs
(`[routing] utility`, or the session's own).
"""

import re
from dataclasses import dataclass

from amanu.agent.system_prompt import load_prompt
from amanu.agent.turn import Turn
from amanu.agent.user_call import UserCall, UserRequest
from amanu.core.tool import Subject, ToolError
from amanu.session.core import SessionCore
from amanu.text.fences import block
from amanu.tools.edits.edit_file import EditFile
from amanu.tools.edits.placed_block import MIDDLE, WHOLE_FILE, middle_mark, read_edits
from amanu.tools.edits.write_file import WriteFile
from amanu.tools.shell.run_shell_command import RunShellCommand
from amanu.workspace.text_file import FileText

MAX_FILE = 200_000
"""Characters of a file that a block is placed in: all of it is sent."""
_MAX_REPLY = 16_000  # tokens

_COMMAND = re.compile(r"!(?![!\[])(.*)\Z", re.DOTALL)
"""`!!` is emphasis, and `![` a picture in Markdown."""
_APPLY = re.compile(r"/apply[ \t]+(\S[^\n]*)\n\s*(`{3,}|~{3,})[^\n]*\n(.*?)\n?\2[`~]*\s*\Z", re.DOTALL)


def user_request(prompt: str, core: SessionCore) -> UserRequest | None:
    """What the prompt asks of the daemon; None for one that is for the model."""
    if core.assignment is not None or core.services.headless:
        return None  # no user wrote it: a model did, for tools that may be fewer, or a script, of who knows what
    text = prompt.strip()
    if (match := _COMMAND.match(text)) is not None and match[1].strip():
        return _CommandRequest(match[1].strip())
    if (match := _APPLY.match(text)) is not None and match[3].strip():
        return _BlockRequest(core, match[1].strip(), match[3])
    return None


@dataclass(frozen=True)
class _CommandRequest:
    command: str

    @property
    def text(self) -> str:
        return f"! {self.command}"

    async def call(self, turn: Turn) -> UserCall:
        return UserCall(RunShellCommand.name, {"command": self.command})


@dataclass(frozen=True)
class _BlockRequest:
    core: SessionCore
    path: str
    code: str

    @property
    def text(self) -> str:
        """Without the block, which the model wrote."""
        return f"/apply {self.path}"

    async def call(self, turn: Turn) -> UserCall:
        file = await self._file()
        whole = UserCall(WriteFile.name, {"path": self.path, "content": f"{self.code}\n"})
        if file is None or not file.text.strip():
            return whole
        mask = self.core.services.secrets.mask_content
        shown = self.core.workspace.display_path(file.path)
        question = "\n\n".join([block("file", mask(file.text), shown), block("block", mask(self.code))])
        middle = middle_mark(f"{file.text}\n{self.code}")
        system = load_prompt("apply").replace(MIDDLE, middle)
        reply = await turn.side_query(system, question, max_output=min(_MAX_REPLY, turn.info.max_output), whole=True)
        edits = read_edits(reply, middle)
        return whole if edits == WHOLE_FILE else UserCall(EditFile.name, {"path": self.path, "edits": [*edits]})

    async def _file(self) -> FileText | None:
        """The file as the user sees it; None when there is none. Raises `ToolError`."""
        workspace = self.core.workspace
        path = workspace.resolve(self.path)
        file = await workspace.read_if_exists(path)
        name = workspace.display_path(path)
        if file is None:
            return None
        if not self.core.approvals.allowed([Subject("read_file", "read", workspace.relative(path))]):
            raise ToolError(f"{name} may hold secrets, or a rule protects it, so it is not sent to a model.")
        if len(file.text) > MAX_FILE:
            raise ToolError(f"{name} is too large for a block to be placed in it: ask for the change in a prompt.")
        return file
