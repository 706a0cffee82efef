"""One session of the daemon for one ACP client, over a connection of its own."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from amanu.client.base_texts import load_base_texts
from amanu.client.daemon_client import DaemonClient, Disconnected
from amanu.client.session_view import SessionView, mint
from amanu.frontends.acp.config_options import config_options, modes
from amanu.frontends.acp.content import prompt_of
from amanu.frontends.acp.files import ClientFiles
from amanu.frontends.acp.own_prompt import OwnPrompt
from amanu.frontends.acp.peer import INTERNAL_ERROR, INVALID_REQUEST, ClientDisconnected, Peer, RpcError
from amanu.frontends.acp.permissions import Permissions
from amanu.frontends.acp.schema import Block, ClientFeatures
from amanu.frontends.acp.trust import ask_trust
from amanu.frontends.acp.updates import Updates
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    EventMessage,
    PromptUnqueued,
    SessionChanged,
    TurnEnded,
    TurnStarted,
)
from amanu_protocol.items import Item, UserMessage
from amanu_protocol.state import SessionState

RECONNECT_ATTEMPTS = 6
"""Failed attempts to reconnect to the daemon after which a waiting prompt fails. The delay doubles each time."""
MAX_RETRY_SECONDS = 10.0
"""The longest delay between two attempts."""
UNREACHABLE = "The daemon cannot be reached. Run `amanu doctor` to find the cause."
PAGE = 500
"""Earlier items asked for at once."""
UNQUEUED_SECONDS = 1.0
"""A prompt that left the queue and has not started by then was taken back."""

Connect = Callable[[Sequence[str]], Awaitable[DaemonClient]]
"""Connects to the daemon with these folders. Raises `AmanuError`."""


class AcpSession:
    """Made with a view that is attached. `begin` once the client knows the session."""

    def __init__(self, view: SessionView, peer: Peer, features: ClientFeatures, connect: Connect) -> None:
        self.view = view
        self._peer = peer
        self._connect = connect
        self._prompt: OwnPrompt | None = None
        self._own_turns: set[str] = set()
        self._begun = False
        self.is_new = False
        """Created for this client."""
        self.rejected_servers: list[str] = []
        """Names of MCP servers that could not be handed over."""
        self._features = features
        self._trust_asked = False
        self._commands: list[dict[str, Any]] | None = None
        self._models: r.ModelListResult | None = None
        self._servers: list[r.OfferedServer] = []
        self._connected = asyncio.Event()
        self._reconnect_settled = asyncio.Event()
        """Cleared when the connection is lost; set again on success, or after `RECONNECT_ATTEMPTS` failures."""
        self._connected.set()
        self._reconnect_settled.set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._files = ClientFiles(peer, view.session_id)
        self.updates = Updates(self._send, features, self._own_turns.__contains__)
        self._permissions = Permissions(view, peer, features, self.updates)
        self._use(view.client)
        view.listeners.append(self._on_event)
        view.replaced.append(self._on_replaced)

    # The methods of ACP ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start updates and permission requests once the response that announces the session has been sent."""
        asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._begun = True
        self.updates.show_all(self.view.state.items, self.view.state)  # what came while it was replayed
        self.view.listeners.append(self.updates.on_event)
        for name in self.rejected_servers:
            self.updates.notice("warning", f"The MCP server {name} is left out: a value is empty or too long.")
        self._start(self._ask())
        self._start(self._keep_connected())
        self._start(self.send_slash_commands())

    async def described(self) -> dict[str, Any]:
        """What answers `session/new`, `load` and `resume`."""
        return {"modes": modes(self.view.state), "configOptions": await self.options()}

    async def options(self) -> list[dict[str, Any]]:
        """All config options. Raises `AmanuError`."""
        self._models = await self.view.client.request("amanu/model/list", r.Empty(), r.ModelListResult)
        return config_options(self.view.state, self._models)

    async def offer(self, servers: list[r.OfferedServer]) -> None:
        """Hand the client's MCP servers over. Raises `AmanuError`."""
        self._servers = servers
        params = r.McpOfferParams(session_id=self.view.session_id, servers=servers)
        await self.view.client.request("amanu/mcp/offer", params, r.Empty)

    async def replay(self) -> None:
        """Send the whole conversation as updates. Raises `AmanuError`, `Disconnected`."""
        state = self.view.state
        items = [*await self._earlier_items(), *state.items]
        await load_base_texts(self.view.client, state, state.proposals)
        for item in items:
            self.updates.show(item, state, replayed=True)
        self.updates.show_usage(state)

    async def prompt(self, blocks: Sequence[Block]) -> str:
        """Send the prompt and wait for the end of its turn; the stop reason. Raises `RpcError`, `AmanuError`."""
        if self._prompt is not None:
            raise RpcError(INVALID_REQUEST, "The previous prompt is still being answered. Cancel it first.")
        own = self._prompt = OwnPrompt(mint())
        try:
            return await self._run(own, blocks)
        except asyncio.CancelledError:
            if not self._peer.closed:  # but if the client is gone, the turn goes on
                with contextlib.suppress(AmanuError, Disconnected):
                    await self._cancel(own)
            raise
        finally:
            self._prompt = None

    async def cancel(self) -> None:
        """Stop what the client waits on, else the turn that runs. Raises `AmanuError`."""
        await self._cancel(self._prompt)

    async def send_slash_commands(self) -> None:
        """Tell the client the slash commands, if they have changed. Raises `AmanuError`."""
        params = r.CommandListParams(session_id=self.view.session_id)
        listed = await self.view.client.request("amanu/command/list", params, r.CommandListResult)
        commands = [
            {
                "name": command.name,
                "description": command.description,
                **({"input": {"hint": command.argument_hint}} if command.argument_hint else {}),
            }
            for command in listed.commands
        ]
        if commands != self._commands:
            self._commands = commands
            self._send({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    async def leave(self) -> None:
        """Close it, and delete it if it was created here and has no prompt."""
        state = self.view.state
        if self.is_new and not (state.title or state.items or state.queue or state.read_only):
            params = r.SessionParams(session_id=state.session_id)
            with contextlib.suppress(AmanuError, Disconnected):
                await self.view.client.request("amanu/session/delete", params, r.Empty)
        await self.close()

    async def close(self) -> None:
        """Detach from the session. A running turn continues."""
        if self._prompt is not None:
            self._prompt.end(None)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.view.client.close()

    # Prompts -----------------------------------------------------------------------------------------

    async def _run(self, own: OwnPrompt, blocks: Sequence[Block]) -> str:
        text, attachments = prompt_of(blocks)
        own.preparation = asyncio.create_task(self._prepare())
        try:
            await own.preparation
        except asyncio.CancelledError:
            if not own.cancelled:
                raise
            return "cancelled"
        own.sent = True
        sent = await self.view.prompt(text, attachments, prompt_id=own.prompt_id)
        if sent.status == "answered":  # by the daemon: `/memory`, `/mcp` …
            return "end_turn"
        if sent.turn_id is not None:
            own.turn_id = sent.turn_id
            self._own_turns.add(sent.turn_id)
        if own.cancelled:
            await self._cancel(own)
        return own.stop_reason(await own.ended)

    async def _prepare(self) -> None:
        """What comes before a prompt is sent."""
        await self._until_connected()
        if not self._trust_asked:
            await ask_trust(self.view, self._peer, self._features)
            self._trust_asked = True

    async def _cancel(self, own: OwnPrompt | None) -> None:
        if own is not None:
            own.cancelled = True
            if own.preparation is not None:
                own.preparation.cancel()
            if own.turn_id is None:  # not sent yet, or in the queue
                params = r.PromptUnqueueParams(session_id=self.view.session_id, prompt_id=own.prompt_id)
                await self.view.client.request("amanu/prompt/unqueue", params, r.Empty)
                return
        await self.view.cancel()

    def _on_event(self, message: EventMessage, state: SessionState) -> None:
        own = self._prompt
        match message.event:
            case TurnStarted(turn_id=turn_id, prompt_id=prompt_id) if own and prompt_id == own.prompt_id:
                own.turn_id = turn_id
                self._own_turns.add(turn_id)
                if own.cancelled:
                    self._start(self._cancel(own))
            case TurnEnded(reason=reason) if own and own.turn_id is None and reason != "completed":
                self._start(self._take_back(own))
            case TurnEnded(turn_id=turn_id) as ended if own and turn_id == own.turn_id:
                asyncio.get_running_loop().call_soon(own.end, ended)  # after what is still said of this event
            case PromptUnqueued(prompt_id=prompt_id) if own and prompt_id == own.prompt_id:
                asyncio.get_running_loop().call_later(UNQUEUED_SECONDS, lambda: own.turn_id or own.end(None))
            case SessionChanged(mode=mode) as changed if self._begun:
                if mode is not None:
                    self._send({"sessionUpdate": "current_mode_update", "currentModeId": mode})
                if self._models is not None and (mode or changed.model_id or changed.effort or changed.service_tier):
                    options = config_options(state, self._models)
                    self._send({"sessionUpdate": "config_option_update", "configOptions": options})
                if changed.trusted is not None:
                    self._start(self.send_slash_commands())
            case _:
                pass

    def _on_replaced(self, state: SessionState) -> None:
        """Events were missed: the daemon was restarted, or this client was too slow."""
        self.updates.show_all(state.items, state)
        own = self._prompt
        if own is None or not own.sent:
            return
        message = state.item(own.prompt_id)
        if isinstance(message, UserMessage):
            own.turn_id = message.turn_id
        if own.turn_id is None:
            if state.turn is None:
                self._start(self._take_back(own))
        elif state.turn is None or state.turn.turn_id != own.turn_id:
            last = state.last_turn
            interrupted = TurnEnded(turn_id=own.turn_id, reason="interrupted", message="", can_continue=True)
            own.end(last if last is not None and last.turn_id == own.turn_id else interrupted)

    async def _take_back(self, own: OwnPrompt) -> None:
        """Withdraw the prompt: after an incomplete turn the queue waits for the user, who cannot send from here
        meanwhile."""
        if any(prompt.prompt_id == own.prompt_id for prompt in self.view.state.queue):
            params = r.PromptUnqueueParams(session_id=self.view.session_id, prompt_id=own.prompt_id)
            await self.view.client.request("amanu/prompt/unqueue", params, r.Empty)
            own.fail(RpcError(INVALID_REQUEST, "The previous turn did not complete. Send the prompt again."))

    # Inside ------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        while True:
            with contextlib.suppress(Disconnected):
                await self._permissions.run()
            await self._connected.wait()

    async def _keep_connected(self) -> None:
        """Go on with another daemon when this one is gone."""
        while True:
            await self.view.client.lost.wait()
            self._connected.clear()
            self._reconnect_settled.clear()
            attempts = 0
            while not await self._reconnect():
                attempts += 1
                if attempts == RECONNECT_ATTEMPTS:
                    self._reconnect_settled.set()
                    if self._prompt is not None and self._prompt.sent:
                        self._prompt.fail(RpcError(INTERNAL_ERROR, UNREACHABLE))
                await asyncio.sleep(min(0.1 * 2**attempts, MAX_RETRY_SECONDS))
            self._connected.set()
            self._reconnect_settled.set()

    async def _reconnect(self) -> bool:
        client: DaemonClient | None = None
        try:
            client = await self._connect(self.view.state.roots)
            self._use(client)
            await self.view.reattach(client)
            if self._servers:
                await self.offer(self._servers)
        except Exception:
            if client is not None:
                await client.close()
            return False
        return True

    async def _until_connected(self) -> None:
        """Wait while the daemon is being reached again. Raises `RpcError` where that takes long."""
        if self.view.client.lost.is_set():
            await asyncio.sleep(0)  # `_keep_connected` may not know yet
            await self._reconnect_settled.wait()
        if self.view.client.lost.is_set():
            raise RpcError(INTERNAL_ERROR, UNREACHABLE)

    def _use(self, client: DaemonClient) -> None:
        client.on_request = self._files.answer
        client.on_notification = self._on_notification

    def _on_notification(self, method: str, params: Any) -> None:
        if method == "amanu/mcp/changed" and self._begun:  # servers bring commands
            self._start(self.send_slash_commands())

    async def _earlier_items(self) -> list[Item]:
        state = self.view.state
        pages: list[list[Item]] = []
        first = state.items[0].item_id if state.items else ""
        has_earlier = state.has_earlier
        while has_earlier and first:
            params = r.HistoryPageParams(session_id=state.session_id, before_item_id=first, limit=PAGE)
            page = await self.view.client.request("amanu/history/page", params, r.HistoryPageResult)
            pages.insert(0, page.items)
            has_earlier, first = page.has_earlier and bool(page.items), page.items[0].item_id if page.items else ""
        return [item for page in pages for item in page]

    def _send(self, update: dict[str, Any]) -> None:
        self._peer.notify("session/update", {"sessionId": self.view.session_id, "update": update})

    def _start(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            with contextlib.suppress(AmanuError, Disconnected, ClientDisconnected, RpcError):
                await work

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
