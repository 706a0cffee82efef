"""Definitions of sub-agents: Markdown with front matter, as Amanu, Claude Code and Gemini CLI write it.

They come with Amanu, from the user's own files, from plug-ins, and from a trusted workspace. None gives an agent more
rights: the session's mode and rules apply to all of them.
"""

import importlib.resources
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from amanu.context.extension_files import PLACES, find_files
from amanu.context.extension_folders import ExtensionFolder
from amanu.core.sub_agents import AgentDefinition
from amanu.core.tool import Subject, SubjectFilter, ToolError, TrustCheck
from amanu.text.display import one_line
from amanu.text.front_matter import MarkdownFile, parse_markdown
from amanu.workspace import disk
from amanu.workspace.workspace import Workspace

MAX_BYTES = 64 * 1024
MAX_AGENTS = 20
"""Agents of the user, plug-ins and the workspace together: each takes a line in every request."""
BUILT_IN = ("investigator", "planner", "reviewer", "general")

TOOLS_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    # Claude Code (code.claude.com/docs, "Tools available to Claude")
    "Read": ("read_file",),
    "Edit": ("edit_file", "apply_patch"),
    "MultiEdit": ("edit_file", "apply_patch"),
    "NotebookEdit": ("edit_file",),
    "Write": ("write_file",),
    "Bash": ("run_shell_command", "read_command", "write_command", "stop_command"),
    "BashOutput": ("read_command",),
    "KillShell": ("stop_command",),
    "Glob": ("glob",),
    "Grep": ("grep",),
    "LS": ("list_directory",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("web_search",),
    "TodoWrite": ("write_todos",),
    "AskUserQuestion": ("ask_user",),
    "LSP": ("find_definition", "find_references", "list_symbols", "inspect_symbol", "get_diagnostics"),
    # Gemini CLI (docs/tools); names that are ours as well are not listed
    "grep_search": ("grep",),
    "search_file_content": ("grep",),
    "replace": ("edit_file",),
    "google_web_search": ("web_search",),
    "read_background_output": ("read_command",),
}
_NEVER = frozenset({"Agent", "Task", "run_agent", "invoke_agent", "ExitPlanMode", "Skill", "complete_task"})
"""Tools that a sub-agent never has, or always has, whatever its definition says."""
_RIGHTS = frozenset({"model", "permissionMode", "permission", "mcpServers", "mcp_servers", "hooks", "effort"})
"""Fields that would give an agent more than its session has, or start something."""
_READ = frozenset({"name", "description", "tools", "disallowedTools", "model", "maxTurns", "max_turns"}) | frozenset(
    {"timeout_mins", "background", "output_schema", "kind"}
)
_HARMLESS = frozenset({"color", "display_name", "temperature", "license", "version", "author", "metadata"})
"""Fields that change nothing here, and that nobody misses."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MODEL = re.compile(r"[^:\s]+:\S+")


@dataclass(frozen=True)
class FoundAgents:
    """The agents there are, and what is wrong with their files: a sentence for the user about each fault."""

    agents: Sequence[AgentDefinition]
    warnings: Sequence[str] = ()

    def find(self, name: str) -> AgentDefinition | None:
        return next((agent for agent in self.agents if agent.name == name), None)


@dataclass(frozen=True)
class AgentPlaces:
    """Where a session's agents are defined."""

    user: Sequence[Path]
    """The user's own folders."""
    workspace: Workspace
    allowed: SubjectFilter
    """Says which files may be read without asking the user."""
    covers: TrustCheck
    trusted: Callable[[], bool]
    plugins: Callable[[], Sequence[ExtensionFolder]] = tuple
    """The folders of agents in plug-ins."""

    def find(self) -> FoundAgents:
        """All definitions. Of those with the same name, the user's wins, then a plug-in's, then the workspace's, then
        ours. Blocks."""
        agents: dict[str, AgentDefinition] = {}
        warnings: list[str] = []
        for read in [*self._user_files(), *self._plugin_files(), *(self._workspace_files() if self.trusted() else ())]:
            warnings += read.warnings
            definition = read.definition
            if definition is None or definition.name in agents:
                continue
            if len(agents) >= MAX_AGENTS:
                warnings.append(f"{read.path} was left out: only {MAX_AGENTS} agents can be defined.")
                continue
            agents[definition.name] = definition
        own = [agent for agent in built_in() if agent.name not in agents]
        return FoundAgents([*own, *sorted(agents.values(), key=lambda agent: agent.name)], warnings)

    def _user_files(self) -> Iterator["ReadDefinition"]:
        for folder in self.user:
            for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
                try:
                    data = path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_BYTES else None
                except OSError:
                    data = None
                yield read_definition(path, data)

    def _plugin_files(self) -> Iterator["ReadDefinition"]:
        for folder in self.plugins():
            for name in folder.names():
                yield read_definition(Path(folder.plugin, name), folder.read(name), narrows=True)

    def _workspace_files(self) -> Iterator["ReadDefinition"]:
        for root in self.workspace.roots:
            for place in PLACES:
                for name in find_files(self.workspace, root, place) if place.kind == "agent" else ():
                    data = self._read(root / name)
                    if data is not None:
                        yield read_definition(Path(name), data, narrows=True)

    def _read(self, path: Path) -> bytes | None:
        try:
            inside = self.workspace.resolve(str(path))
            if not self.allowed([Subject("read_file", "read", self.workspace.relative(inside))]):
                return None
            stored = disk.read(self.workspace.guard, inside)
        except ToolError:
            return None
        return stored.data if stored is not None and self.covers(inside, stored.data) else None


@dataclass
class ReadDefinition:
    """The result of reading one file."""

    path: Path
    definition: AgentDefinition | None = None
    """None: the file defines no agent."""
    warnings: list[str] = field(default_factory=list[str])

    def warn(self, text: str) -> None:
        self.warnings.append(f"{self.path}: {text}")


def read_definition(path: Path, data: bytes | None, *, narrows: bool = False) -> ReadDefinition:
    """The agent that a file defines. `data`: its content; None if it cannot be read. `narrows`: it is a
    workspace's or a plug-in's, and its choice of a model is ignored, too. Never fails."""
    read = ReadDefinition(path)
    if data is None or len(data) > MAX_BYTES:
        read.warn(f"it cannot be read, or has more than {MAX_BYTES // 1024} KiB; the agent is left out.")
        return read
    file = parse_markdown(data.decode("utf-8", "replace"))
    if file.fault:
        read.warn(f"{file.fault}; it was read line by line, as “key: value”.")
    name = file.text("name") or path.stem.lower()
    if not _NAME.fullmatch(name):
        read.warn(f"{one_line(name)[:80]!r} is not a valid agent name (a-z, 0-9, - and _); the agent is left out.")
        return read
    if not file.text("description") or not file.body:
        read.warn("an agent needs a description and, below the front matter, instructions; it is left out.")
        return read
    if file.text("kind") not in ("", "local"):
        read.warn("only local agents can be run; it is left out.")
        return read
    _warn_of_fields(read, file, narrows=narrows)
    read.definition = AgentDefinition(
        name,
        one_line(file.text("description")),
        file.body,
        tools=_tools(read, file, "tools"),
        without_tools=_tools(read, file, "disallowedTools") or (),
        model=None if narrows else _model(read, file),
        steps=_number(read, file, "maxTurns", "max_turns"),
        seconds=None if (minutes := _number(read, file, "timeout_mins")) is None else minutes * 60,
        output_schema=_schema(read, file),
        background=file.fields.get("background") is True,
        source=str(path),
    )
    return read


@cache
def built_in() -> Sequence[AgentDefinition]:
    """The agents that come with Amanu."""
    return [_built_in(name) for name in BUILT_IN]


def _built_in(name: str) -> AgentDefinition:
    """The definition in `built_in/NAME.md`, with the schema of its result in `built_in/NAME.json`. Read line by line:
    the first prompt of every session would wait for a YAML parser."""
    folder = importlib.resources.files("amanu.agents") / "built_in"
    _, head, body = (folder / f"{name}.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    schema = folder / f"{name}.json"
    return AgentDefinition(
        name,
        fields["description"],
        body.strip(),
        tools=tuple(fields["tools"].split(", ")) if "tools" in fields else None,
        output_schema=json.loads(schema.read_text(encoding="utf-8")) if schema.is_file() else None,
    )


def _warn_of_fields(read: ReadDefinition, file: MarkdownFile, *, narrows: bool) -> None:
    for name in file.fields:
        if name in _RIGHTS and narrows:
            read.warn(f"{name} is ignored: a workspace's or plug-in's agent cannot have more rights than its session.")
        elif name not in _READ | _HARMLESS:
            read.warn(f"{one_line(name)[:80]} is not supported, so it is ignored.")


def _tools(read: ReadDefinition, file: MarkdownFile, name: str) -> tuple[str, ...] | None:
    """The tools in that field, by our names; None if there is no such field, or if `tools` names all."""
    if file.fields.get(name) is None:
        return None
    names: dict[str, None] = {}
    for word in file.words(name):
        tool, _, scope = word.strip("[]\"' ").partition("(")  # brackets and quotes of a list that was read line by line
        if scope and tool not in _NEVER:
            read.warn(f"{one_line(word)[:80]}: the part in brackets is ignored; rules decide on each call.")
        if tool == "*":
            return None if name == "tools" else ("*",)
        if tool in _NEVER:
            continue
        if re.match(r"mcp_[^_]", tool):  # Gemini's form
            tool = f"mcp__{tool.removeprefix('mcp_')}"
        names |= dict.fromkeys(TOOLS_ELSEWHERE.get(tool, (tool,)))
    return tuple(names)


def _model(read: ReadDefinition, file: MarkdownFile) -> str | None:
    model = file.text("model")
    if model in ("", "inherit"):
        return None
    if not _MODEL.fullmatch(model):
        read.warn(f"model {one_line(model)[:80]} is ignored: it must be vendor:model, or inherit.")
        return None
    return model


def _number(read: ReadDefinition, file: MarkdownFile, *names: str) -> int | None:
    for name in names:
        value = file.fields.get(name)
        if value is None:
            continue
        text = str(value).strip()
        if text.isdecimal() and 0 < int(text) < 10_000:
            return int(text)
        read.warn(f"{name} must be a whole number above 0; it is ignored.")
    return None


def _schema(read: ReadDefinition, file: MarkdownFile) -> dict[str, Any] | None:
    schema = file.fields.get("output_schema")
    if schema is None:
        return None
    schema = cast("dict[str, Any]", schema)
    if not isinstance(cast("object", schema), dict) or schema.get("type") != "object":
        read.warn("output_schema must be a JSON Schema of type object; it is ignored.")
        return None
    from jsonschema import Draft202012Validator  # slow to import, and few agents have a schema
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        reason = error.message if isinstance(error, SchemaError) else "it is nested too deeply"
        read.warn(f"output_schema is not a valid JSON Schema ({one_line(reason)[:200]}); it is ignored.")
        return None
    return schema
