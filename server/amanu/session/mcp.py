"""The MCP servers of one session: what its turns and prompts get of them. What the user decides: `mcp_decisions.py`."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial

from amanu.context.server_instructions import ServerInstructions
from amanu.context.slash_commands import ExpandedPrompt
from amanu.core.session_part import PromptBlocked, Request, SessionPart
from amanu.core.tool import AnyTool, ToolError
from amanu.mcp.model import McpServer, McpServers, ServerView
from amanu.session.core import SessionCore
from amanu.session.mcp_prompts import expand, prompts_of
from amanu.session.roots import SessionFolders
from amanu.session.unasked_calls import CallRefused, UnaskedCalls
from amanu.text import mcp_servers as wording
from amanu.text.display import one_line, visible
from amanu.tools.environment import ToolEnvironment
from amanu.tools.mcp.resources import find_server
from amanu.tools.mcp.toolbox import USABLE, Toolbox, Toolboxes
from amanu.tools.registry import may_use
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError

CODE = "mcp"
"""Code of the notices."""
MAX_MENTIONED = 100_000
"""Characters of a mentioned resource."""
START_SECONDS = 5.0
"""Seconds that a prompt waits for servers whose tools are not known yet."""
WAITING = ("unapproved", "failed", "needsSignIn")
"""States in which nothing goes on without the user."""
_USUAL_WINDOW = 200_000
"""Tokens of the window, as long as no model has been chosen."""


class SessionMcp(SessionPart):
    """One session's view of the servers that all share."""

    def __init__(self, core: SessionCore, environment: ToolEnvironment) -> None:
        self._servers = core.services.mcp
        self.folders = SessionFolders(core.state, core.trusted)
        self._state = core.state
        self._secrets = core.services.secrets
        self._notices = core.notices
        self._access = core.access
        self._assignment = core.assignment
        allows = partial(may_use, core.assignment.definition) if core.assignment is not None else _any_tool
        self._toolboxes = Toolboxes(environment, allows)
        self._instructions = ServerInstructions(core.conversation)
        self._window = _USUAL_WINDOW
        self._announced: set[tuple[str, str]] = set()
        """(Server, digest) of what the user was told waits for them, (server, source) of what was offered."""
        self._awaited: set[tuple[str, str]] = set()
        """(Server, digest) of those that a prompt has waited for."""
        self._changed = asyncio.Event()
        """Set when something changes that a prompt waits for; prompts start one after the other."""

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        return {"amanu/mcp/offer": Request(r.McpOfferParams, lambda part, p, c: part.offer(p.servers, c.name))}

    async def open(self, *, begins: bool) -> None:
        if begins:
            self.announce()

    def on_trust(self, *, taken_back: bool) -> None:
        self.announce()

    async def stop(self) -> None:
        self._changed.set()  # a prompt that waits for servers is not sent any more

    async def close(self) -> None:
        """End the servers that were offered to the session."""
        if self._servers is not None and self._takes_offers:
            self._servers.offer(self.folders, "", ())

    # For turns --------------------------------------------------------------------------------------

    def servers(self) -> Sequence[McpServer]:
        """Those configured for the session's folders, and those offered to it."""
        return [] if self._servers is None else self._servers.servers(self.folders)

    async def prepare_note(self, window: int) -> None:
        """Wait for servers that start for the first time, so that the turn has their tools, or say that it has not."""
        if self._servers is None or not self._starting():
            return
        changed = self._changed
        self._servers.listeners.append(changed.set)
        try:
            async with asyncio.timeout(START_SECONDS):
                while self._starting() and not self._access.closed:
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            late = self._starting()
            self._awaited |= late
            self._notices.report_on_session(CODE, "info", wording.still_starting([name for name, _ in late]))
        finally:
            self._servers.listeners.remove(changed.set)

    def _starting(self) -> set[tuple[str, str]]:
        """(Server, digest) of those whose first tools are on the way, unless a prompt has waited for them already."""
        states = {True: ("starting", "configured"), False: ("starting",)}  # what is offered is started at once
        views = [server.view for server in self.servers()]
        starting = {
            (view.name, view.digest) for view in views if view.state in states[view.is_offered] and not view.tools
        }
        return starting - self._awaited

    def turn_tools(self, window: int) -> Sequence[AnyTool]:
        self.announce()  # those that the turn goes without
        self._window = window
        return self._toolboxes.make(self.servers(), window).listed

    def note(self) -> str:
        """What servers say of themselves, where the model has not been told yet."""
        views = [server.view for server in self.servers()]
        return self._instructions.note({view.name: view.instructions for view in views if view.state in USABLE})

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
            return [
                r.MentionItem(text=f"@{each.name}:", detail="resources of an MCP server", kind="resource")
                for each in servers
            ]
        found = await find_server(servers, server).list_resources()
        return [
            r.MentionItem(text=f"@{server}:{resource.uri}", detail=one_line(resource.name), kind="resource")
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

    async def expand_prompt(self, text: str, calls: UnaskedCalls) -> ExpandedPrompt:
        """A user's prompt that names one of a server, with its text, which the user is shown; any other as it is.
        Raises `AmanuError` (invalidParams) when an argument is missing or the server has no such prompt any more, and
        `PromptBlocked`."""
        with_prompts = [server for server in self.servers() if server.view.state in USABLE and server.view.has_prompts]
        try:
            expanded = await expand(text, with_prompts, calls)
        except CallRefused as error:
            raise PromptBlocked(str(error)) from None
        except ToolError as error:
            raise AmanuError("invalidParams", str(error)) from None
        if expanded is None:
            return ExpandedPrompt(text, text, text)
        self._notices.report_on_session(
            CODE, "info", f"{expanded.name} of the MCP server {expanded.server} says:\n{visible(expanded.text)}"
        )
        return ExpandedPrompt(expanded.for_model, expanded.arguments, expanded.arguments)

    # For clients ------------------------------------------------------------------------------------

    def offer(self, servers: Sequence[r.OfferedServer], client: str) -> None:
        """See `McpOfferParams`. Raises `AmanuError` (sessionNotFound, sessionReadOnly, invalidParams)."""
        self._access.require_writable()
        if not self._takes_offers:
            raise AmanuError(
                "invalidParams",
                "A sub-agent uses the MCP servers of the session it works for.",
                hint="Offer them to that one.",
            )
        for server in servers:
            self._secrets.learn_environment({**server.env, **server.headers})
            self._secrets.learn(value.rpartition(" ")[2] for name, value in server.headers.items() if _signs_in(name))
        if self._servers is not None:
            self._servers.offer(self.folders, client, servers)

    @property
    def _takes_offers(self) -> bool:
        return self._state.parent_session_id is None

    # For the user -----------------------------------------------------------------------------------

    @property
    def shared(self) -> McpServers:
        """All servers of the process; there are some."""
        assert self._servers is not None
        return self._servers

    def listed(self) -> tuple[Sequence[r.McpServer], bool]:
        """(The servers in words, whether their tools are deferred.)"""
        servers = self.servers()
        toolbox = self._toolboxes.make(servers, self._window)
        return [_in_words(server.view, toolbox) for server in servers], toolbox.deferred

    def problems(self) -> Sequence[str]:
        """What is wrong with the files that configure them, and with what was offered."""
        return [] if self._servers is None else self._servers.problems(self.folders)

    def announce(self) -> None:
        """Tell the user of servers that their editor offered, of servers and tools that wait for them, and of files
        that are wrong, each once."""
        if not self._access.writable or self._assignment is not None:  # a sub-agent's session: its parent tells
            return
        for problem in self.problems():
            if (problem, "") not in self._announced:
                self._announced.add((problem, ""))
                self._notices.report_on_session(CODE, "warning", visible(problem))
        views = [server.view for server in self.servers()]
        self._announce_offered([view for view in views if view.is_offered])
        if not any(map(_waits, views)):
            return
        waiting = [
            server
            for server in self.listed()[0]
            if (server.state in WAITING or server.changed_tools) and _announcement(server) not in self._announced
        ]
        if waiting:
            self._announced |= {_announcement(server) for server in waiting}
            self._notices.report_on_session(CODE, "info", wording.waiting(waiting))

    def _announce_offered(self, views: Sequence[ServerView]) -> None:
        new = [view for view in views if (view.name, view.source) not in self._announced]
        if new:
            self._announced |= {(view.name, view.source) for view in new}
            self._notices.report_on_session(CODE, "info", wording.offered(new[0].source, [view.name for view in new]))


def approval_digest(server: r.McpServer) -> tuple[str, str]:
    """(Its name, the digest that its approval would be about): of what it starts, or of its tools."""
    return server.name, server.digest if server.state in ("unapproved", "off") else server.tools_digest


def _signs_in(header: str) -> bool:
    """Whether its last word is a secret, whatever the header is called."""
    return header.lower() in ("authorization", "proxy-authorization")


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
    name, digest = approval_digest(server)
    return name, server.reason or server.state if server.state in ("failed", "needsSignIn") else digest
