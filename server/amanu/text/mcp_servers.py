"""MCP servers in words. What a server says of itself is on one line, with hidden characters made visible."""

from collections.abc import Iterator, Sequence

from amanu.text.amounts import token_count
from amanu.text.display import one_line, visible
from amanu_protocol.items import Line, Tone
from amanu_protocol.requests import McpServer

"""Lines shown of the changes of one server's tools."""
_MAX_TARGET = 4_000
"""Characters of a command line: all of it is shown, in any case that is not an attack on the reader."""

_STATES: dict[str, tuple[Tone, str]] = {
    "unapproved": ("warning", "needs your approval"),
    "off": ("plain", "off"),
    "configured": ("plain", "starts when it is needed"),
    "starting": ("plain", "starting"),
    "ready": ("good", "ready"),
    "failed": ("bad", "failed"),
    "needsSignIn": ("warning", "needs you to sign in"),
}
NO_SERVERS = "No MCP servers are configured for this folder. `amanu mcp add` or `amanu mcp import` adds one."


def explain_server(server: McpServer) -> McpServer:
    """The server with its lines."""
    return server.model_copy(update={"lines": [*_lines(server)]})


def headline(server: McpServer) -> str:
    """One line for a server."""
    _, state = _STATES[server.state]
    count = len(server.tools)
    tools = f"{count} tool{'s' * (count != 1)}, {token_count(server.tokens)} tokens" if count else ""
    changed = f"{len(server.changed_tools)} new or changed, off until you approve them" if server.changed_tools else ""
    return one_line(f"{server.name}: " + " · ".join(filter(None, [state, tools, changed, server.source])))


def commands(server: McpServer) -> str:
    """What the user can do about it, for clients without buttons; "" when nothing has to be done."""
    match server.state:
        case "unapproved":
            return f"/mcp approve {server.name} approves it."
        case "off":
            return f"/mcp approve {server.name} turns it on."
        case "failed":
            return f"/mcp restart {server.name} tries again."
        case "needsSignIn":
            return f"/mcp signin {server.name} signs in."
        case _:
            return f"/mcp approve {server.name} approves the tools as they are now." if server.changed_tools else ""


def summary(servers: Sequence[McpServer], problems: Sequence[str], *, deferred: bool) -> str:
    """The list on several lines, with all that is to be approved. `problems` are those of the files."""
    if not servers:
        return "\n".join([NO_SERVERS, *map(one_line, problems)])
    lines: list[str] = []
    for server in servers:
        asks = server.state in ("unapproved", "failed", "needsSignIn") or bool(server.changed_tools)
        lines += details(server) if asks else [headline(server)]
    if deferred:
        lines.append(
            "Their tools would take too much of the model's context window, so it finds them with search_tools."
        )
    lines += map(one_line, problems)
    lines.append("/mcp NAME shows one, /mcp off NAME stops one.")
    return "\n".join(lines)


def details(server: McpServer) -> list[str]:
    """All there is to know of one server, a line each."""
    lines = [line.text for line in _lines(server)]
    return [*lines, *([f"  {command}"] if (command := commands(server)) else [])]


def offered(client: str, names: Sequence[str]) -> str:
    """To a user whose editor handed these servers over to the session."""
    return one_line(f"MCP servers from {client}: {', '.join(names)}.")


def still_starting(names: Sequence[str]) -> str:
    """To a user whose prompt goes out without the tools of these servers."""
    which = "MCP server is" if len(names) == 1 else "MCP servers are"
    return f"The {which} still starting: {', '.join(sorted(names))}. This turn goes on without their tools."


def waiting(servers: Sequence[McpServer]) -> str:
    """To a user whose session has servers that wait for them."""
    unapproved = [server for server in servers if server.state == "unapproved"]
    out_of_order = [server for server in servers if server.state in ("failed", "needsSignIn")]
    changed = [server for server in servers if server not in unapproved and server not in out_of_order]
    lines: list[str] = []
    if unapproved:
        many = len(unapproved) > 1
        what = "These MCP servers need your approval before they start:"
        lines.append(what if many else "This MCP server needs your approval before it starts:")
        lines += [f"  {server.name} ({_source(server)}): {_target(server)}" for server in unapproved]
    for server in out_of_order:
        state = _STATES[server.state][1]
        lines.append(one_line(f"The MCP server {server.name} {state}{': ' if server.reason else '.'}{server.reason}"))
        lines.append(commands(server))
    if changed:
        lines.append("Tools of MCP servers are new or have changed; they are off until you approve them:")
        lines += [
            f"  {server.name}: {one_line(', '.join(tool.name for tool in server.changed_tools))}" for server in changed
        ]
    if unapproved or changed:
        lines.append("/mcp shows what you would approve.")
    return "\n".join(lines)


def _lines(server: McpServer) -> Iterator[Line]:
    tone, _ = _STATES[server.state]
    yield Line(tone=tone, text=headline(server))
    yield Line(tone="plain", text=f"  {_target(server)}")
    for text in filter(None, [server.access, server.reason]):
        yield Line(tone="plain", text=f"  {one_line(text)}")
    for tool in server.tools:
        about = one_line(tool.description.strip().partition("\n")[0] or tool.title)
        yield Line(tone="plain", text=f"  {one_line(tool.name)}{' — ' if about else ''}{about}")
    diff = [line for tool in server.changed_tools for line in visible(tool.diff).splitlines()]
    for line in diff:
        yield Line(
            tone="good" if line.startswith("+") else "bad" if line.startswith("-") else "plain", text=f"  {line}"
        )


def _target(server: McpServer) -> str:
    return visible(server.target[:_MAX_TARGET]).replace("\n", "␊")


def _source(server: McpServer) -> str:
    return one_line(server.source)
