"""All tools of a session."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from amanu.checks.editor_feedback import Aftermath
from amanu.config import Shell
from amanu.core.tool import Tool
from amanu.proposals.proposals import Proposals
from amanu.sandbox.sandbox import Sandbox
from amanu.text.redaction import Secrets
from amanu.tools.code.find_definition import FindDefinition, FindReferences
from amanu.tools.code.get_diagnostics import GetDiagnostics
from amanu.tools.code.list_symbols import ListSymbols
from amanu.tools.edits.apply_patch import ApplyPatch
from amanu.tools.edits.delete_file import DeleteFile
from amanu.tools.edits.edit_file import EditFile
from amanu.tools.edits.move_file import MoveFile
from amanu.tools.edits.write_file import WriteFile
from amanu.tools.files.glob import Glob
from amanu.tools.files.grep import Grep
from amanu.tools.files.list_directory import ListDirectory
from amanu.tools.files.read_file import ReadFile
from amanu.tools.files.read_many_files import ReadManyFiles
from amanu.tools.files.read_output import GetKept, ReadOutput
from amanu.tools.finish_task import FinishTask
from amanu.tools.limits import Limits
from amanu.tools.shell.run_shell_command import PutBlob, RunShellCommand
from amanu.workspace.search import Search
from amanu.workspace.workspace import Workspace


def make_tools(
    workspace: Workspace,
    proposals: Proposals,
    put_blob: PutBlob,
    get_kept: GetKept,
    environment: Mapping[str, str],
    shell: Shell,
    key_variables: Collection[str] = (),
    *,
    sandbox: Sandbox | None = None,
    trusted: Callable[[], bool] = lambda: False,
    secrets: Secrets | None = None,
    aftermath: Aftermath | None = None,
    headless: bool = False,
    until_done: bool = False,
) -> list[Tool[Any]]:
    """The tools, always in this order: prompt caches depend on it.

    `environment` is the one commands start with (of the client, not of the daemon); `put_blob` keeps output that is too
    long to show, `get_kept` finds it again; `shell` are the user's limits for commands; `key_variables` hold keys that
    no command gets; `secrets` are taken out of what commands print.
    `aftermath` knows what edits do to the findings of the person's editor; None: there is none.
    `headless`: no editor will ever be there, so nothing asks one; else those tools are always there, whoever is
    attached, for the list must not change. `until_done`: a turn ends when the model says so with a tool.
    `sandbox` holds commands; None: nothing does. `trusted`: whether the person trusts the folders now."""
    limits = Limits(shell_inactivity=shell.inactivity_seconds, shell_total=shell.total_seconds)
    search = Search(workspace)
    asking = [
        GetDiagnostics(workspace, limits),
        FindDefinition(workspace, limits),
        FindReferences(workspace, limits),
        ListSymbols(workspace, limits),
    ]
    return [
        ReadFile(workspace, limits),
        ReadManyFiles(workspace, search, limits),
        ListDirectory(workspace, limits),
        Glob(workspace, search, limits),
        Grep(workspace, search, limits),
        *(asking if not headless else ()),
        ReadOutput(get_kept, limits),
        EditFile(workspace, proposals, aftermath),
        WriteFile(workspace, proposals, aftermath),
        ApplyPatch(workspace, proposals, aftermath),
        MoveFile(workspace, proposals, aftermath),
        DeleteFile(workspace, proposals, aftermath),
        RunShellCommand(
            workspace,
            put_blob,
            environment,
            limits,
            key_variables,
            shell.pass_environment,
            secrets or Secrets(),
            sandbox,
            trusted,
        ),
        *((FinishTask(),) if until_done else ()),
    ]
