"""Which tools a session has."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from amanu.config import Settings
from amanu.core.sub_agents import COMPLETE_TASK, AgentDefinition
from amanu.core.tool import Tool
from amanu.proposals.proposals import Proposals
from amanu.tools.ask_user import AskUser
from amanu.tools.code.find_definition import FindDefinition, FindReferences
from amanu.tools.code.get_diagnostics import GetDiagnostics
from amanu.tools.code.inspect_symbol import InspectSymbol
from amanu.tools.code.list_symbols import ListSymbols
from amanu.tools.code.rename_symbol import RenameSymbol
from amanu.tools.edits.apply_patch import ApplyPatch
from amanu.tools.edits.delete_file import DeleteFile
from amanu.tools.edits.edit_file import EditFile
from amanu.tools.edits.move_file import MoveFile
from amanu.tools.edits.save_memory import SaveMemory
from amanu.tools.edits.write_file import WriteFile
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu.tools.files.glob import Glob
from amanu.tools.files.grep import Grep
from amanu.tools.files.list_directory import ListDirectory
from amanu.tools.files.read_file import ReadFile
from amanu.tools.files.read_many_files import ReadManyFiles
from amanu.tools.files.read_output import ReadOutput
from amanu.tools.finish_task import FinishTask
from amanu.tools.plan_mode import EnterPlanMode, ExitPlanMode
from amanu.tools.shell.read_command import ReadCommand
from amanu.tools.shell.run_shell_command import RunShellCommand
from amanu.tools.shell.stop_command import StopCommand
from amanu.tools.shell.write_command import WriteCommand
from amanu.tools.web.web_fetch import WebFetch
from amanu.tools.web.web_search import WebSearch
from amanu.tools.write_todos import WriteTodos
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import BlobRef

_NOT_FOR_AGENTS = frozenset({EnterPlanMode.name, ExitPlanMode.name, SaveMemory.name, FinishTask.name})
"""What concerns the session, which is not a sub-agent's business."""
FILES = (ReadFile, ReadManyFiles, ListDirectory, Glob, Grep)
CODE = (GetDiagnostics, FindDefinition, FindReferences, ListSymbols, InspectSymbol)
"""They ask the user's editor."""
SHELL = (RunShellCommand, ReadCommand, WriteCommand, StopCommand)
EDITS = (EditFile, WriteFile, ApplyPatch, MoveFile, DeleteFile)


def make_tools(environment: ToolEnvironment, *, headless: bool = False) -> dict[str, Tool[Any]]:
    """The tools that belong to no part, by name, always in this order: prompt caches depend on it.

    `headless`: no editor will ever be attached and nobody is there, so the tools that ask an editor or the user are
    left out, and so is `save_memory`, whose edits no rule can allow. Otherwise they are always listed, attached or
    not, because the list must not change; so is `web_search`, whichever model the session goes on with."""
    code = () if headless else CODE
    renames = () if headless else (RenameSymbol,)
    planning = environment.plan_mode is not None
    plan_tools = ((ExitPlanMode,) if planning else ()) if headless else (EnterPlanMode, ExitPlanMode)
    searching = environment.search_service is not None or environment.model_searches
    web = (WebFetch, WebSearch) if searching else (WebFetch,)
    remembering = () if headless else (SaveMemory,)
    kinds: tuple[type[SessionTool[Any]], ...] = (
        *FILES,
        *code,
        ReadOutput,
        *EDITS,
        *renames,
        *SHELL,
        *web,
        WriteTodos,
        *plan_tools,
        *remembering,
    )
    tools: list[Tool[Any]] = [kind(environment) for kind in kinds]
    if not headless:
        tools.append(AskUser(environment))
    return {tool.name: tool for tool in tools}


def tools_of_agent(tools: Mapping[str, Tool[Any]], definition: AgentDefinition) -> dict[str, Tool[Any]]:
    """Those of a session's tools that a sub-agent of that definition has, in their order."""
    return {name: tool for name, tool in tools.items() if may_use(definition, name)}


def may_use(definition: AgentDefinition, name: str) -> bool:
    """Whether a sub-agent of that definition may have the tool of that name."""
    return name == COMPLETE_TASK or (
        name not in _NOT_FOR_AGENTS
        and (definition.tools is None or _matches(name, definition.tools))
        and not _matches(name, definition.without_tools)
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def preview_tools(
    workspace: Workspace, variables: Mapping[str, str], settings: Settings, *, trusted: bool = False
) -> dict[str, Tool[Any]]:
    """The tools of a headless session, to be described and previewed but not run."""
    proposals = Proposals(workspace, lambda proposal: None, _nothing)
    environment = ToolEnvironment(workspace, proposals, _NoBlobs(), variables, settings, trusted=lambda: trusted)
    return make_tools(environment, headless=True)


class _NoBlobs:
    async def put_blob(self, data: bytes) -> BlobRef:
        raise AssertionError("these tools are only previewed")

    async def find_blob(self, beginning: str) -> bytes:
        raise AssertionError("these tools are only previewed")


async def _nothing(*_: object) -> None:
    raise AssertionError("these tools are only previewed")
