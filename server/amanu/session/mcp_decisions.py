"""What the user decides on the MCP servers of a session: the requests `amanu/mcp/*`, and the command `/mcp`."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any

from amanu.core.session_part import Request, SessionPart, SlashCommand
from amanu.core.tool import ToolError
from amanu.mcp.model import ServerView
from amanu.session.core import SessionCore
from amanu.session.mcp import CODE, SessionMcp, approval_digest
from amanu.text import mcp_servers as wording
from amanu.text.display import visible
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError

log = logging.getLogger(__name__)

USAGE = "Usage: /mcp, or /mcp NAME, or /mcp approve|off|restart|signin NAME"


class McpDecisions(SessionPart):
    """The decisions of one session. Requests raise `AmanuError`."""

    def __init__(self, core: SessionCore, mcp: SessionMcp) -> None:
        self._mcp = mcp
        self._notices = core.notices
        self._emit = core.emit
        self._access = core.access
        self._audit = core.audit
        self._shown: set[tuple[str, str]] = set()
        """(Server, digest) of what a notice showed in full: `/mcp approve` approves that and nothing else."""
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        return {
            "amanu/mcp/list": Request(r.SessionParams, lambda d, p, c: d.list(), reads=True),
            "amanu/mcp/approve": Request(r.McpApproveParams, lambda d, p, c: d.approve(p.name, p.digest)),
            "amanu/mcp/approveTools": Request(
                r.McpApproveToolsParams, lambda d, p, c: d.approve_tools(p.name, p.tools_digest)
            ),
            "amanu/mcp/turnOff": Request(r.McpServerParams, lambda d, p, c: d.turn_off(p.name)),
            "amanu/mcp/restart": Request(r.McpServerParams, lambda d, p, c: d.restart(p.name)),
            "amanu/mcp/signIn": Request(r.McpServerParams, lambda d, p, c: d.sign_in(p.name)),
        }

    @classmethod
    def slash_commands(cls) -> Sequence[SlashCommand]:
        return [
            SlashCommand(
                "mcp",
                "Show the MCP servers; approve, stop, restart or sign in to one",
                lambda part, arguments: part.answer(arguments),
                "[approve|off|restart|signin NAME]",
            )
        ]

    # Requests ---------------------------------------------------------------------------------------

    def list(self) -> r.McpListResult:
        servers, deferred = self._mcp.listed()
        summary = wording.summary(servers, self._mcp.problems(), deferred=deferred)
        return r.McpListResult(servers=[*servers], deferred=deferred, summary=summary)

    async def approve(self, name: str, digest: str) -> r.McpServerResult:
        view = self._view(name)
        await self._mcp.shared.approve(self._mcp.folders, name, digest)
        return await self._decided(name, f"You approved the MCP server {name}.", digest=digest, target=view.target)

    async def approve_tools(self, name: str, tools_digest: str) -> r.McpServerResult:
        self._view(name)
        await self._mcp.shared.approve_tools(self._mcp.folders, name, tools_digest)
        return await self._decided(name, f"You approved the tools of the MCP server {name}.", tools=tools_digest)

    async def turn_off(self, name: str) -> r.McpServerResult:
        self._view(name)
        await self._mcp.shared.turn_off(self._mcp.folders, name)
        return await self._decided(name, f"The MCP server {name} is off.")

    async def restart(self, name: str) -> r.McpServerResult:
        self._view(name)
        await self._mcp.shared.restart(self._mcp.folders, name)
        return await self._decided(name, f"The MCP server {name} was restarted.")

    async def sign_in(self, name: str) -> r.McpSignInResult:
        """Start to sign in. Returns when there is a page to open, or when it is over."""
        self._view(name)
        page: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def open_page(url: str) -> None:
            if not page.done():
                page.set_result(url)

        async def signed_in() -> r.McpServerResult:
            await self._mcp.shared.sign_in(self._mcp.folders, name, open_page)
            return await self._decided(name, f"You are signed in to the MCP server {name}.")

        task = self._in_background(signed_in())
        await asyncio.wait([task, page], return_when=asyncio.FIRST_COMPLETED)
        if not page.done():
            return r.McpSignInResult(url=None, summary=self._server(name).lines[0].text)
        url = page.result()
        return r.McpSignInResult(url=url, summary=f"Open this page to sign in to {name}: {visible(url)}")

    # Slash command ----------------------------------------------------------------------------------

    async def answer(self, arguments: str) -> None:
        """Answer `/mcp` with those arguments, in a notice. What starts a server answers when it has started."""
        match arguments.split():
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
        """Approve what the user was shown of the server; if that is not what it is now, show it instead."""
        waits = server.state in ("unapproved", "off")
        if not waits and not server.changed_tools:
            self._say(f"{wording.headline(server)}. There is nothing to approve.")
        elif not _to_agree_to(server) <= self._shown:
            self._show(server)
        elif waits:
            self._in_background(self.approve(server.name, server.digest))
        else:
            self._in_background(self.approve_tools(server.name, server.tools_digest))

    def _show(self, server: r.McpServer) -> None:
        self._shown |= _to_agree_to(server)
        self._say("\n".join(wording.details(server)))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    # ------------------------------------------------------------------------------------------------

    def _view(self, name: str) -> ServerView:
        """The server of that name. Raises `AmanuError` (mcpServerNotFound)."""
        self._access.require_writable()
        view = next((server.view for server in self._mcp.servers() if server.name == name), None)
        if view is None:
            names = ", ".join(server.name for server in self._mcp.servers())
            raise AmanuError(
                "mcpServerNotFound",
                f"There is no MCP server {name!r} here.",
                hint=f"Configured: {names}." if names else wording.NO_SERVERS,
            )
        return view

    def _server(self, name: str) -> r.McpServer:
        """The same in words."""
        self._view(name)
        return next(server for server in self._mcp.listed()[0] if server.name == name)

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
        except Exception:
            log.exception("a request about an MCP server failed")
            text, level = "Internal error in Amanu; see `amanu logs`.", "warning"
        if self._access.writable:
            self._notices.report_on_session(CODE, level, text)
            with contextlib.suppress(AmanuError):
                await self._emit.durable()

    def _say(self, text: str) -> None:
        self._notices.report_on_session(CODE, "info", text)


def _to_agree_to(server: r.McpServer) -> set[tuple[str, str]]:
    """What its approval would be about."""
    return {approval_digest(server)} if server.state in ("unapproved", "off") or server.changed_tools else set()
