"""What sessions and frontends see of MCP servers. `mcp/servers.py` implements it; nothing here imports the SDK."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import JsonValue

from amanu_protocol.items import Question, QuestionField
from amanu_protocol.requests import OfferedServer

ServerState = Literal["unapproved", "off", "configured", "starting", "ready", "failed", "needsSignIn"]
"""`unapproved`: the user has not approved what it starts, or that changed since · `off`: the user turned it off ·
`configured`: approved, and started when it is first needed."""


@dataclass(frozen=True)
class ServerTool:
    """A tool as its server lists it, with the text the user approved. Everything in it comes from the server."""

    name: str
    """The server's own name for it: not unique beyond the server."""
    title: str
    description: str
    input_schema: Mapping[str, JsonValue]
    read_only: bool = False
    """What the server claims, like the three below: to be believed only where that asks more of the user."""
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True)
class ChangedTool:
    """A tool that is off because its text is new, or not what the user approved."""

    name: str
    diff: str
    """Unified, hidden characters made visible; of a new tool its whole text."""


@dataclass(frozen=True)
class ServerView:
    """A server at one moment."""

    name: str
    """ASCII letters, digits, `_` and `-`; unique among the servers of a workspace."""
    state: ServerState
    reason: str
    """Why it is in that state, as a sentence; "" where the state says it all."""
    source: str
    """Where it is configured: "your mcp.toml", ".mcp.json of this workspace" …; of one that was offered, the client."""
    target: str
    """What starts or is connected to: the exact command line, or the address."""
    access: str
    """A sentence: what its process may do (sandbox, network, folders)."""
    digest: str
    """Of all that an approval is about: command, arguments, names of variables, address, access."""
    tools: Sequence[ServerTool] = ()
    """Those in force, sorted by name; of a server that is not running, those it had when it last ran."""
    changed_tools: Sequence[ChangedTool] = ()
    tools_digest: str = ""
    """Of the tools as the server lists them now: what approving `changed_tools` is about."""
    instructions: str = ""
    """What the server tells models about itself: untrusted data, at most 2 KB."""
    has_resources: bool = False
    has_prompts: bool = False
    is_offered: bool = False
    """A client offered it to the session: no file configures it."""
    contained: bool = False
    """It can change no file and reach nobody: nothing of what it does lasts."""


@dataclass(frozen=True)
class ServerResource:
    uri: str
    name: str
    description: str = ""
    media_type: str = ""


@dataclass(frozen=True)
class PromptArgument:
    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True)
class ServerPrompt:
    name: str
    description: str = ""
    arguments: Sequence[PromptArgument] = ()


@dataclass(frozen=True)
class Content:
    """A piece of what a server answers."""

    kind: Literal["text", "image", "audio", "resource", "link"]
    text: str = ""
    """Of `text` and of a `resource` in words; of a `link` its title and description."""
    data: bytes = b""
    """Of everything else."""
    media_type: str = ""
    uri: str = ""


@dataclass(frozen=True)
class CallAnswer:
    """What a tool answered."""

    content: Sequence[Content]
    structured: JsonValue | None = None
    is_error: bool = False
    hint: str = ""
    """Our own words for the user and the model: what the sandbox withheld from the server."""


async def _decline(server: str, message: str, fields: Sequence[QuestionField]) -> Question | None:
    return None


@dataclass(frozen=True)
class CallClient:
    """Who makes a call, and how the server reaches them meanwhile."""

    progress: Callable[[str], None] = field(default=lambda text: None)
    """Shows the user a line on how far it is."""
    ask: Callable[[str, str, Sequence[QuestionField]], Awaitable[Question | None]] = _decline
    """Asks the user what a server wants to know: (server, its message, fields) → the answered or declined question;
    None: nobody is there."""


class McpServer(Protocol):
    """One server, as one workspace sees it; its process is shared with all that configure the same in the same roots.
    Methods start it if need be. They raise `ToolError` with a sentence for the model and the user, and end at once
    when their task is cancelled."""

    @property
    def name(self) -> str: ...

    @property
    def view(self) -> ServerView:
        """As it is now: to be read once for what belongs together."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any], client: CallClient) -> CallAnswer: ...

    async def list_resources(self) -> Sequence[ServerResource]: ...

    async def read_resource(self, uri: str) -> Sequence[Content]: ...

    async def list_prompts(self) -> Sequence[ServerPrompt]: ...

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """The prompt's messages as one text."""
        ...


class Workspace(Protocol):
    """Whose servers: the folders of a session, whether the user trusts them, and what clients offered to it."""

    @property
    def roots(self) -> Sequence[Path]: ...

    @property
    def trusted(self) -> bool: ...

    @property
    def session_id(self) -> str:
        """The session whose offered servers are used."""
        ...


class McpServers(Protocol):
    """All servers of the process: one process or connection for each (configuration, roots)."""

    listeners: list[Callable[[], None]]
    """Called when a view may have changed: a state, a list of tools, the configuration."""

    def servers(self, workspace: Workspace) -> Sequence[McpServer]:
        """Those configured for a workspace, by name, in whatever state: the user's, then its own if it is trusted (they
        cannot take a name of the user's), then those that were offered. Quick: it reads files only when they
        changed."""
        ...

    def program_files(self, workspace: Workspace) -> Sequence[Path]:
        """The files of the workspace that approved servers run, even if they have changed since; real paths. Blocks for
        an instant."""
        ...

    def problems(self, workspace: Workspace) -> Sequence[str]:
        """What is wrong with the files that configure them, and with what was offered, as sentences for the user."""
        ...

    def offer(self, workspace: Workspace, client: str, servers: Sequence[OfferedServer]) -> None:
        """A client hands these over to the workspace's session, instead of those before; none takes them back. The user
        configured them there, so they count as approved, and are started to learn their tools. They are kept
        in memory only."""
        ...

    async def approve(self, workspace: Workspace, name: str, digest: str) -> None:
        """The user approves what that server starts, as they were shown it, and it is started to learn its tools,
        which are approved with it. Returns once that is recorded, before it has started. Raises `AmanuError`
        (mcpServerNotFound; mcpServerChanged when it is another by now)."""
        ...

    async def approve_tools(self, workspace: Workspace, name: str, tools_digest: str) -> None:
        """The user approves the tools as they are now. Raises like `approve`."""
        ...

    async def turn_off(self, workspace: Workspace, name: str) -> None:
        """Stop it, and do not start it again until it is approved anew. Raises `AmanuError` (mcpServerNotFound)."""
        ...

    async def restart(self, workspace: Workspace, name: str) -> None:
        """Stop it if it runs, and start it again. Raises `AmanuError` (mcpServerNotFound)."""
        ...

    async def sign_in(self, workspace: Workspace, name: str, open_page: Callable[[str], None]) -> None:
        """Sign in to a server that asks for it: `open_page` shows the user the page of its authorization server.
        Returns when it is done. Raises `AmanuError` (mcpServerNotFound, authRequired)."""
        ...

    async def close(self) -> None:
        """End all processes and connections."""
        ...
