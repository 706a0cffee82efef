"""The names under which models call the tools of MCP servers: `mcp__server__tool`.

A name says which server it belongs to, and nothing a server chooses can change that: whatever is not plain gets a hash
of its own, so a rule about one tool never comes to mean another.
"""

import hashlib
import re

from amanu.core.rules import MCP

MAX_NAME = 64
"""Characters; OpenAI and Anthropic take no more."""
_MAX_SERVER = 32
_HASH = 6
_PLAIN_SERVER = re.compile(rf"(?!_)(?:(?!__)[A-Za-z0-9_-]){{1,{_MAX_SERVER}}}(?<!_)")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9_-]+")


def model_name(server: str, tool: str) -> str:
    """The name for a server's tool: ASCII, at most `MAX_NAME` characters, different for each pair."""
    name = f"{prefix(server)}{tool}"
    if _PLAIN_TOOL.fullmatch(tool) and len(name) <= MAX_NAME:
        return name
    name = f"{prefix(server)}{_ascii(tool)}"
    return f"{name[: MAX_NAME - _HASH - 1]}_{short_hash(f'{server} {tool}')}"


def prefix(server: str) -> str:
    """How the names of all its tools begin."""
    if _PLAIN_SERVER.fullmatch(server):
        return f"{MCP}{server}__"
    plain = re.sub("_{2,}", "_", _ascii(server)).strip("_")
    return f"{MCP}{plain[: _MAX_SERVER - _HASH - 1]}-{short_hash(server)}__"


def _ascii(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def short_hash(text: str) -> str:
    """A suffix that tells a name that was changed from others; the same in every run."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
