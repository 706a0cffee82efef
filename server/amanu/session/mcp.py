"""The MCP servers of one session: its tools, and the user's decisions on them (`/mcp`, `amanu/mcp/*`)."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from amanu.agent.window.token_gauge import tool_tokens
from amanu.context.server_instructions import ServerInstructions
from amanu.context.slash_commands import ExpandedPrompt
from amanu.core.tool import ToolError
from amanu.mcp.model import McpServer, McpServers, ServerView
from amanu.session.core import SessionCore
from amanu.session.mcp_prompts import expand, prompts_of
from amanu.text import mcp_servers as wording
from amanu.text.display import one_line, visible
from amanu.tools.environment import ToolEnvironment
from amanu.tools.mcp.resources import find_server
from amanu.tools.mcp.toolbox import USABLE, Toolbox, Toolboxes
from amanu.tools.registry import may_use
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.state import SessionState

CODE = "mcp"
"""Code of the notices."""
USAGE = "Usage: /mcp, or /mcp NAME, or /mcp approve|off|restart|signin NAME"
MAX_MENTIONED = 100_000
"""Characters of a mentioned resource."""
WAITING = ("unapproved", "failed", "needsSignIn")
"""States in which nothing goes on without the user."""
_USUAL_WINDOW = 200_000
"""Tokens of the window, as long as no model has been chosen."""


@dataclass(frozen=True)
class SessionFolders:
    """Implements `mcp.model.Workspace`."""

    state: SessionState

    @property
    def roots(self) -> Sequence[Path]:
        return [Path(root) for root in self.state.roots]

    @property
    def trusted(self) -> bool:
        return self.state.trusted


class SessionMcp:
    """One session's view of the servers that all share. Requests raise `AmanuError`."""

    def __init__(self, core: SessionCore, environment: ToolEnvironment) -> None:
        self._servers = core.services.mcp
        self._folders = SessionFolders(core.state)
        self._state = core.state
        self._notices = core.notices
        self._emit = core.emit
        self._access = core.access
        self._audit = core.audit
        self._assignment = core.assignment
        allows = partial(may_use, core.assignment.definition) if core.assignment is not None else _any_tool
        self._toolboxes = Toolboxes(environment, tool_tokens, allows)
        self._instructions = ServerInstructions(core.conversation)
        self._window = _USUAL_WINDOW
        self._announced: set[tuple[str, str]] = set()
        """(Server, digest) of what the user was told waits for them."""
        self._shown: set[tuple[str, str]] = set()
        """(Server, digest) of what a notice showed in full: `/mcp approve` agrees to that and to nothing else."""
        self._tasks: set[asyncio.Task[None]] = set()

    # For turns --------------------------------------------------------------------------------------

    def servers(self) -> Sequence[McpServer]:
        """Those configured for the session's folders."""
        return [] if self._servers is None else self._servers.servers(self._folders)

    def toolbox(self, window: int) -> Toolbox:
        """The tools for a turn that starts now, with a model that has a window of so many tokens. They stay the same
        for the whole turn."""
        self._window = window
        return self._toolboxes.make(self.servers(), window)

    def note_with_prompt(self) -> str:
        """What servers say of themselves, where the model has not been told yet."""
        usable = [server.view for server in self.servers() if server.view.state in USABLE]
        return self._instructions.note({view.name: view.instructions for view in usable})

    async def read_resource(self, server: str, uri: str) -> str:
        """A resource that the user mentioned. Raises `ToolError`."""
        content = await find_server(self._with_resources(), server).read_resource(uri)
        text = "\n\n".join(piece.text or f"[{piece.media_type or piece.kind}: not shown]" for piece in content)
        if len(text) > MAX_MENTIONED:
            text = f"{text[:MAX_MENTIONED]}\n(truncated; read it with read_mcp_resource)"
        return visible(text)

    async def resources(self, server: str) -> Sequence[r.MentionItem]:
        """What a mention may name: the resources of that server, or, for "", the servers that have some. Raises
        `ToolError`."""
        servers = self._with_resources()
        if not server:
            return [r.MentionItem(text=f"@{each.view.name}:", detail="resources of an MCP server") for each in servers]
        found = await find_server(servers, server).list_resources()
        return [
            r.MentionItem(text=f"@{server}:{resource.uri}", detail=one_line(resource.name))
            for resource in found
            if "://" in resource.uri and not re.search(r"[\s<>\"'`]", resource.uri)
        ]

    def _with_resources(self) -> Sequence[McpServer]:
        return [server for server in self.servers() if server.view.state in USABLE and server.view.has_resources]

    async def prompt_commands(self) -> Sequence[r.Command]:
        """The prompts of the servers that run, as slash commands: no server is started to complete a slash."""
        running = [server for server in self.servers() if server.view.state == "ready" and server.view.has_prompts]
        listed = await asyncio.gather(*map(prompts_of, running))
        return [command for prompts in listed for command in prompts]

    async def expand_prompt(self, text: str) -> ExpandedPrompt:
        """A user's prompt that names one of a server, with its text, which the user is shown; any other as it is.
        Raises `AmanuError` (invalidParams) when an argument is missing or the server has no such prompt any more."""
        with_prompts = [server for server in self.servers() if server.view.state in USABLE and server.view.has_prompts]
        try:
            expanded = await expand(text, with_prompts)
        except ToolError as error:
            raise AmanuError("invalidParams", str(error)) from None
        if expanded is None:
            return ExpandedPrompt(text, text, text)
        self._say(f"{expanded.name} of the MCP server {expanded.server} says:\n{visible(expanded.text)}")
        return ExpandedPrompt(expanded.for_model, expanded.arguments, expanded.arguments)

    # Requests ---------------------------------------------------------------------------------------

    def list(self) -> r.McpListResult:
        servers, deferred = self._listed()
        summary = wording.summary(servers, self._problems(), deferred=deferred)
        return r.McpListResult(servers=[*servers], deferred=deferred, summary=summary)

    async def approve(self, name: str, digest: str) -> r.McpServerResult:
        view = self._view(name)
        await self._shared.approve(self._folders, name, digest)
        return await self._decided(name, f"You agreed to the MCP server {name}.", digest=digest, target=view.target)

    async def approve_tools(self, name: str, tools_digest: str) -> r.McpServerResult:
        self._view(name)
        await self._shared.approve_tools(self._folders, name, tools_digest)
        return await self._decided(name, f"You agreed to the tools of the MCP server {name}.", tools=tools_digest)

    async def turn_off(self, name: str) -> r.McpServerResult:
        self._view(name)
        await self._shared.turn_off(self._folders, name)
        return await self._decided(name, f"The MCP server {name} is off.")

    async def restart(self, name: str) -> r.McpServerResult:
        self._view(name)
        await self._shared.restart(self._folders, name)
        return await self._decided(name, f"The MCP server {name} was started again.")

    async def sign_in(self, name: str) -> r.McpSignInResult:
        """Start to sign in. Returns when there is a page to open, or when it is over."""
        self._view(name)
        page: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def open_page(url: str) -> None:
            if not page.done():
                page.set_result(url)

        async def signed_in() -> r.McpServerResult:
            await self._shared.sign_in(self._folders, name, open_page)
            return await self._decided(name, f"You are signed in to the MCP server {name}.")

        task = self._in_background(signed_in())
        await asyncio.wait([task, page], return_when=asyncio.FIRST_COMPLETED)
        if not page.done():
            return r.McpSignInResult(url=None, summary=self._server(name).lines[0].text)
        url = page.result()
        return r.McpSignInResult(url=url, summary=f"Open this page to sign in to {name}: {visible(url)}")

    # Slash command ----------------------------------------------------------------------------------

    async def carry_out(self, argument: str) -> None:
        """`/mcp` with that argument: the answer is a notice. What starts a server answers when it has started."""
        match argument.split():
            case []:
                listed = self.list()
                self._shown |= {key for server in listed.servers for key in _to_agree_to(server)}
                self._say(listed.summary)
            case ["approve", name]:
                self._approve_shown(self._server(name))
            case ["off", name]:
                self._say((await self.turn_off(name)).summary)
            case ["restart", name]:
                self._in_background(self.restart(name))
            case ["signin", name]:
                self._say((await self.sign_in(name)).summary)
            case [name]:
                self._show(self._server(name))
            case _:
                raise AmanuError("invalidParams", USAGE)
        await self._emit.durable()

    def _approve_shown(self, server: r.McpServer) -> None:
        """Agree to what the user was shown of the server; if that is not what it is now, show it instead."""
        waits = server.state in ("unapproved", "off")
        if not waits and not server.changed_tools:
            self._say(f"{wording.headline(server)}. There is nothing to agree to.")
        elif not _to_agree_to(server) <= self._shown:
            self._show(server)
        elif waits:
            self._in_background(self.approve(server.name, server.digest))
        else:
            self._in_background(self.approve_tools(server.name, server.tools_digest))

    def _show(self, server: r.McpServer) -> None:
        self._shown |= _to_agree_to(server)
        self._say("\n".join(wording.details(server)))

    # Notices ----------------------------------------------------------------------------------------

    def announce(self) -> None:
        """Tell the user of servers and tools that wait for them, and of files that are wrong, each once."""
        if not self._access.writable or self._assignment is not None:  # a sub-agent's session: its parent tells
            return
        for problem in self._problems():
            if (problem, "") not in self._announced:
                self._announced.add((problem, ""))
                self._notices.report_on_session(CODE, "warning", visible(problem))
        if not any(_waits(server.view) for server in self.servers()):
            return
        waiting = [
            server
            for server in self._listed()[0]
            if (server.state in WAITING or server.changed_tools) and _announcement(server) not in self._announced
        ]
        if waiting:
            self._announced |= {_announcement(server) for server in waiting}
            self._say(wording.waiting(waiting))

    def close(self) -> None:
        """End what goes on in the background."""
        for task in self._tasks:
            task.cancel()

    # ------------------------------------------------------------------------------------------------

    def _problems(self) -> Sequence[str]:
        return [] if self._servers is None else self._servers.problems(self._folders)

    @property
    def _shared(self) -> McpServers:
        assert self._servers is not None  # or there would be no server of that name
        return self._servers

    def _listed(self) -> tuple[Sequence[r.McpServer], bool]:
        """(The servers in words, whether their tools are deferred.)"""
        servers = self.servers()
        toolbox = self._toolboxes.make(servers, self._window)
        return [_in_words(server.view, toolbox) for server in servers], toolbox.deferred

    def _view(self, name: str) -> ServerView:
        """The server of that name. Raises `AmanuError` (mcpServerNotFound)."""
        self._access.require_writable()
        view = next((server.view for server in self.servers() if server.view.name == name), None)
        if view is None:
            names = ", ".join(server.view.name for server in self.servers())
            raise AmanuError(
                "mcpServerNotFound",
                f"There is no MCP server {name!r} here.",
                hint=f"Configured: {names}." if names else wording.NO_SERVERS,
            )
        return view

    def _server(self, name: str) -> r.McpServer:
        """The same in words."""
        self._view(name)
        return next(server for server in self._listed()[0] if server.name == name)

    async def _decided(self, name: str, text: str, **data: str) -> r.McpServerResult:
        """The user's decision, put on record, and what came of it."""
        self._audit.record_server(text, server=name, **data)
        server = self._server(name)
        await self._emit.durable()
        return r.McpServerResult(server=server, summary="\n".join([text, *wording.details(server)]))

    def _in_background(self, work: Coroutine[Any, Any, r.McpServerResult]) -> asyncio.Task[None]:
        """Do what may take long; a notice says what came of it."""
        task = asyncio.create_task(self._report(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _report(self, work: Awaitable[r.McpServerResult]) -> None:
        try:
            text, level = (await work).summary, "info"
        except (AmanuError, ToolError) as error:
            hint = error.data.hint if isinstance(error, AmanuError) else None
            text, level = " ".join(filter(None, [str(error), hint])), "warning"
        if self._access.writable:
            self._notices.report_on_session(CODE, level, text)
            with contextlib.suppress(AmanuError):
                await self._emit.durable()

    def _say(self, text: str) -> None:
        self._notices.report_on_session(CODE, "info", text)


def _any_tool(name: str) -> bool:
    return True


def _in_words(view: ServerView, toolbox: Toolbox) -> r.McpServer:
    names = {tool.tool.name: tool.name for tool in toolbox.by_server.get(view.name, ())}
    server = r.McpServer(
        name=view.name,
        state=view.state,
        reason=visible(view.reason),
        source=visible(view.source),
        target=visible(view.target),
        access=visible(view.access),
        digest=view.digest,
        tokens=toolbox.tokens.get(view.name, 0),
        tools=[
            r.McpTool(
                name=visible(tool.name),
                full_name=names.get(tool.name, ""),
                title=visible(tool.title),
                description=visible(tool.description),
                read_only=tool.read_only,
                destructive=tool.destructive,
                open_world=tool.open_world,
            )
            for tool in view.tools
        ],
        changed_tools=[
            r.McpChangedTool(name=visible(tool.name), diff=visible(tool.diff)) for tool in view.changed_tools
        ],
        tools_digest=view.tools_digest,
        lines=[],
    )
    return wording.explain_server(server)


def _waits(view: ServerView) -> bool:
    """Whether it waits for the user."""
    return view.state in WAITING or bool(view.changed_tools)


def _announcement(server: r.McpServer) -> tuple[str, str]:
    """What the user is told of it once."""
    name, digest = _key(server)
    return name, server.reason or server.state if server.state in ("failed", "needsSignIn") else digest


def _key(server: r.McpServer) -> tuple[str, str]:
    return server.name, server.digest if server.state in ("unapproved", "off") else server.tools_digest


def _to_agree_to(server: r.McpServer) -> set[tuple[str, str]]:
    """What a yes to it would be about."""
    return {_key(server)} if server.state in ("unapproved", "off") or server.changed_tools else set()
