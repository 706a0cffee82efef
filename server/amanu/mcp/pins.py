"""The user's approvals of servers: command and access, the content of the files of a workspace that a server runs, and
the text of each of its tools.

A server is approved as a whole, by its digest. What it lists first after that is approved with it; a tool that is new
later, or whose text is another, is off until the user approves it. So is a changed text of the server's instructions.

    <state>/mcp/pins.json    by owner of the configuration (the user, or a folder) and name
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from amanu.mcp.model import ChangedTool, ServerTool
from amanu.system.private_file import PrivateFile
from amanu.text.display import visible

INSTRUCTIONS = "(instructions)"
"""Stands for a server's instructions among its changed tools."""


@dataclass(frozen=True)
class Listing:
    """What a server lists."""

    tools: tuple[ServerTool, ...] = ()
    """Sorted by name, which is unique."""
    instructions: str = ""
    has_resources: bool = False
    has_prompts: bool = False

    @cached_property
    def texts(self) -> dict[str, str]:
        """What a user approves: name → text. A tool that takes the name of the instructions turns them off, not the
        other way round."""
        texts = {tool.name: tool_text(tool) for tool in self.tools}
        if self.instructions:
            texts.setdefault(INSTRUCTIONS, self.instructions)
        return texts

    @cached_property
    def digest(self) -> str:
        return _sha256(json.dumps(sorted(self.texts.items())))


@dataclass(frozen=True)
class Pin:
    """What is recorded of one server."""

    digest: str = ""
    """Of the configuration that was approved; "": none."""
    off: bool = False
    """The user turned it off."""
    texts: Mapping[str, str] | None = None
    """The texts that were approved; None: the next listing is."""
    listing: Listing | None = None
    """The latest."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path of each file of a workspace that it runs → digest of the content that was approved."""

    def with_listing(self, listing: Listing) -> "Pin":
        return replace(self, listing=listing, texts=listing.texts if self.texts is None else self.texts)

    @property
    def tools(self) -> list[ServerTool]:
        """Those in force."""
        if self.listing is None or self.texts is None:
            return []
        listed = self.listing.texts
        return [tool for tool in self.listing.tools if self.texts.get(tool.name) == listed[tool.name]]

    @property
    def instructions(self) -> str:
        text = self.listing.instructions if self.listing else ""
        return text if (self.texts or {}).get(INSTRUCTIONS) == text else ""

    @property
    def changed(self) -> list[ChangedTool]:
        """What is off until the user approves it."""
        if self.listing is None or self.texts is None:
            return []
        return [
            ChangedTool(name, difference(name, self.texts.get(name), text))
            for name, text in self.listing.texts.items()
            if self.texts.get(name) != text
        ]


@dataclass
class Pins:
    """The file. Methods block, for a millisecond; they raise `AmanuError` (storageError, permissionDenied)."""

    path: Path
    _file: PrivateFile = field(init=False)
    _parsed: dict[str, Pin] = field(init=False, default_factory=dict[str, Pin])
    _parsed_from: dict[str, Any] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._file = PrivateFile(self.path)

    def find(self, name: str, root: Path | None) -> Pin:
        """Of the server of that name in the file of that folder; None: in the user's own."""
        tree = self._file.read()
        if tree is not self._parsed_from:
            self._parsed, self._parsed_from = _parse(tree), tree
        return self._parsed.get(_key(name, root), Pin())

    def save(self, name: str, root: Path | None, pin: Pin) -> None:
        """Record it. What another process recorded of other servers stays."""
        with self._lock():
            servers = {key: _as_json(kept) for key, kept in _parse(self._file.read()).items()}
            self._file.write({"servers": {**servers, _key(name, root): _as_json(pin)}})

    def forget(self, name: str, root: Path | None) -> None:
        """Record nothing of it any more."""
        with self._lock():
            servers = {key: _as_json(kept) for key, kept in _parse(self._file.read()).items()}
            servers.pop(_key(name, root), None)
            self._file.write({"servers": servers})

    def _lock(self) -> AbstractContextManager[object]:
        from filelock import FileLock

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock(self.path.with_suffix(".lock"), timeout=5, mode=0o600)


def tool_text(tool: ServerTool) -> str:
    """All that a model is told of a tool, as text to read and to compare."""
    claims = {"read only": tool.read_only, "destructive": tool.destructive, "idempotent": tool.idempotent}
    claims |= {"open world": tool.open_world}
    schema = json.dumps(tool.input_schema, indent=1, sort_keys=True, ensure_ascii=False)
    return (
        f"name: {tool.name}\ntitle: {tool.title}\n"
        f"claims: {', '.join(name for name, value in claims.items() if value) or 'none'}\n"
        f"description:\n{tool.description}\narguments:\n{schema}\n"
    )


def difference(name: str, old_text: str | None, new_text: str) -> str:
    """A unified diff with hidden characters made visible, never cut, for all of it is approved; the whole text when
    there was none before."""
    old_lines, new_lines = visible(old_text or "").splitlines(), visible(new_text).splitlines()
    lines = new_lines if old_text is None else list(unified_diff(old_lines, new_lines, "approved", "now", lineterm=""))
    return "".join(f"{line}\n" for line in lines) or f"{visible(name)}: its text differs only in line endings.\n"


def _key(name: str, root: Path | None) -> str:
    return f"{name} {root or 'user'}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _as_json(pin: Pin) -> dict[str, Any]:
    return asdict(pin)


def _parse(tree: Mapping[str, Any]) -> dict[str, Pin]:
    """A damaged entry counts as none: the user is asked again."""
    pins: dict[str, Pin] = {}
    servers = tree.get("servers")
    for key, entry in (cast("dict[str, Any]", servers) if isinstance(servers, dict) else {}).items():
        try:
            listing = None if entry["listing"] is None else _listing(entry["listing"])
            files = cast("dict[str, str]", entry.get("files", {}))  # older versions recorded none
            pins[key] = Pin(str(entry["digest"]), bool(entry["off"]), entry["texts"], listing, dict(files))
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return pins


def _listing(entry: dict[str, Any]) -> Listing:
    tools = cast("Sequence[dict[str, Any]]", entry["tools"])
    return Listing(
        tuple(ServerTool(**tool) for tool in tools),
        str(entry["instructions"]),
        bool(entry["has_resources"]),
        bool(entry["has_prompts"]),
    )
