"""What the user of a plain client says to the agent: prompts by a command or from the chat document."""

import secrets
from typing import TYPE_CHECKING

from amanu.frontends.lsp.plain.chat_document import ChatDocument, chat_document
from amanu.frontends.lsp.plain.command_arguments import (
    EffortArguments,
    LinesArguments,
    ModeArguments,
    SessionArguments,
    TextArguments,
)
from amanu.frontends.lsp.plain.documents import Documents
from amanu.frontends.lsp.plain.editor import PlainEditor
from amanu.frontends.lsp.plain.workspace_session import WorkspaceSession
from amanu.workspace.diagnostics import OWN, format_finding
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import SelectionAttachment

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session

_FIX_FINDINGS = "Fix this. Diagnostics reported there:\n"
_FIX_LINES = "Find what is wrong with these lines and fix it."
REQUESTS = {
    "explain": "Explain these lines.",
    "document": "Write documentation comments for these lines, in the style of the file. Change no code.",
    "test": "Write tests for these lines, in the style of the tests there are.",
}
"""What can be asked about lines at once, by the verb the user sees."""


class Prompting:
    """The commands that go to the agent, each one method. `client` is who prompts. Raise `AmanuError`."""

    def __init__(
        self, workspace: WorkspaceSession, documents: Documents, editor: PlainEditor, client: "Client"
    ) -> None:
        self._workspace = workspace
        self._documents = documents
        self._editor = editor
        self._client = client

    def chat_of(self, session: "Session") -> ChatDocument:
        return chat_document(session, self._documents)

    async def prompt(self, arguments: TextArguments) -> None:
        if not arguments.text.strip():
            return await self.open_chat()
        return await self._send(await self._workspace.get(), arguments.text, [])

    async def fix(self, arguments: LinesArguments) -> None:
        findings = [finding for finding in arguments.findings if finding.source != OWN]
        text = _FIX_FINDINGS + "\n".join(format_finding(finding) for finding in findings) if findings else _FIX_LINES
        await self._send(await self._workspace.get(), text, [_selection(arguments)])

    async def request(self, verb: str, arguments: LinesArguments) -> None:
        """One of `REQUESTS`."""
        await self._send(await self._workspace.get(), REQUESTS[verb], [_selection(arguments)])

    async def send_draft(self, arguments: SessionArguments) -> None:
        """What is written in the chat document."""
        session = await self._workspace.named(arguments.session)
        chat = self.chat_of(session)
        draft = await chat.draft()
        selections = [selection for name, selection in chat.selections.items() if name in draft]
        await self._send(session, draft, selections)
        await chat.remove_draft(draft)

    async def open_chat(self, lines: LinesArguments | None = None) -> None:
        """Show the chat document; `lines` are mentioned in it."""
        chat = self.chat_of(await self._workspace.get())
        position = await chat.open(None if lines is None else _selection(lines))
        await self._editor.show(chat.document.path, focus=True, line=position)

    async def new_session(self) -> None:
        await self._workspace.begin()
        await self.open_chat()

    async def set_mode(self, arguments: ModeArguments) -> None:
        await (await self._workspace.get()).set_mode(arguments.text)
        self._editor.say(f"Amanu: mode {arguments.text}.")

    async def set_model(self, arguments: TextArguments) -> None:
        await (await self._workspace.get()).set_model(arguments.text, self._client)
        self._editor.say(f"Amanu: model {arguments.text}, starting with the next turn.")

    async def set_effort(self, arguments: EffortArguments) -> None:
        await (await self._workspace.get()).set_effort(arguments.text)
        self._editor.say(f"Amanu: thinking effort {arguments.text}, starting with the next turn.")

    async def stop(self) -> None:
        session = await self._workspace.get()
        if session.state.turn is not None:
            await session.prompts.cancel(session.state.turn.turn_id)

    async def _send(self, session: "Session", text: str, selections: list[SelectionAttachment]) -> None:
        """Into the running turn, or as a prompt of its own."""
        session_id, prompt_id = session.state.session_id, f"u-{secrets.token_hex(8)}"
        turn = session.state.turn
        if turn is not None:
            steering = r.PromptSteerParams(
                session_id=session_id,
                prompt_id=prompt_id,
                turn_id=turn.turn_id,
                text=text,
                attachments=[*selections],
            )
            try:
                return await session.prompts.steer(steering, self._client)
            except AmanuError as error:
                if error.kind != "staleTurn":
                    raise
        prompt = r.PromptSendParams(session_id=session_id, prompt_id=prompt_id, text=text, attachments=[*selections])
        await session.prompts.send(prompt, self._client)
        return None


def _selection(lines: LinesArguments) -> SelectionAttachment:
    return SelectionAttachment(path=lines.path, lines=lines.lines, text=lines.text)
