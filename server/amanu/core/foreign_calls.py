"""Calls by models that were trained on other agents' tools, read as calls of ours.

A name of Claude Code, Codex, Gemini CLI, OpenCode, Cursor, Cline, VS Code, OpenHands or Kimi CLI stands for the tool of
ours that does the same, and what these tools say in another structure is put into ours. Arguments that only have
another name are left to `argument_aliases.py`. Permission, hooks and record see the call of ours.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

Arguments = Mapping[str, JsonValue]

FOREIGN_NAMES: Mapping[str, Sequence[str]] = {
    name: others.split()
    for name, others in {
        "read_file": "Read read ReadFile view_file view_image cat",
        "read_many_files": "read_files ReadManyFiles",
        "list_directory": "LS ls list list_dir list_files ListDirectory",
        "glob": "Glob find_path find_files",
        "grep": "Grep search_file_content grep_search grep_files search_files ripgrep",
        "edit_file": "Edit edit MultiEdit multi_edit replace search_replace replace_string_in_file "
        "multi_replace_string_in_file StrReplaceFile str_replace",
        "write_file": "Write write WriteFile write_to_file create_file",
        "apply_patch": "ApplyPatch patch applypatch",
        "delete_file": "DeleteFile remove_file",
        "move_file": "MoveFile rename_file",
        "run_shell_command": "Bash bash Shell shell local_shell shell_command exec_command execute_bash "
        "run_terminal_cmd run_terminal_command run_in_terminal execute_command run_command terminal",
        "read_command": "BashOutput TaskOutput get_terminal_output read_background_output",
        "stop_command": "KillShell KillBash TaskStop",
        "write_command": "write_stdin",
        "web_fetch": "WebFetch webfetch FetchURL fetch_webpage fetch",
        "web_search": "WebSearch websearch SearchWeb google_web_search",
        "write_todos": "TodoWrite todowrite todo_write update_plan manage_todo_list SetTodoList",
        "ask_user": "AskUserQuestion",
        "enter_plan_mode": "EnterPlanMode",
        "exit_plan_mode": "ExitPlanMode",
        "run_agent": "Task task Agent",
        "activate_skill": "Skill skill",
        "get_diagnostics": "get_errors diagnostics",
        "list_symbols": "list_code_definition_names",
        "finish_task": "finish attempt_completion",
    }.items()
}
"""Our tool → its names elsewhere, where the meaning is the same."""
_OURS = {foreign: name for name, others in FOREIGN_NAMES.items() for foreign in others}
_TEXT_EDITORS = ("str_replace_based_edit_tool", "str_replace_editor", "text_editor", "str_replace_based_edit")
"""Anthropic's editor, and OpenHands': four tools under one name, told apart by `command`."""
_EDITOR_COMMANDS = {"view": "read_file", "create": "write_file", "str_replace": "edit_file"}

_MILLISECONDS_FROM = 1_000
"""A `timeout` of at least this is in milliseconds, as Claude Code's and OpenCode's are; Kimi CLI's is in seconds."""
_LONGEST = 86_400_000
"""Milliseconds that a command may run."""
_URL = re.compile(r"https?://[^\s<>\"'`)\]]+")
_PATCH_HERE = re.compile(r"\s*(?:apply_patch|applypatch)\s+<<-?\s*(['\"]?)(\w+)\1[ \t]*\n(.*?\n)\2\s*\Z", re.DOTALL)

_PATCHED_FILE = re.compile(r"^(\*\*\* (?:(?:Add|Update|Delete) File|Move to): *)(.+)$", re.MULTILINE)
_FOLDERS = ("path", "workdir", "cwd", "dir_path", "directory")
"""Names of the argument that says where a command runs."""
_SHELL = re.compile(r"(?:/[\w./-]*/)?(?:ba|z|da|k)?sh")
_RUNS_A_LINE = ("-c", "-lc", "-cl", "-ic", "-lic")
"""Options of a shell that can be dropped without loss when our own shell runs the line."""


@dataclass(frozen=True)
class OurCall:
    """A call of one of our tools, or the call as it was written if it is of none."""

    tool: str
    arguments: Arguments


def as_ours(name: str, arguments: Arguments, tools: Container[str]) -> OurCall:
    """The call that a call of that name stands for, if it is of one of `tools`; a tool that really has the name goes
    first. Raises `ValueError` for what no tool of ours does, with what does instead."""
    if name in _TEXT_EDITORS and name not in tools:
        command = arguments.get("command")
        found = _EDITOR_COMMANDS.get(command) if isinstance(command, str) else None
        if found is None:
            raise ValueError(f"{name} has no command {command!r} here; use edit_file, write_file or read_file")
        name, arguments = found, {key: value for key, value in arguments.items() if key != "command"}
    ours = OurCall(our_name(name, tools), arguments)
    translate = _TRANSLATIONS.get(ours.tool)
    translated = translate(ours) if translate is not None else ours
    return translated if translated.tool in tools else ours


def our_name(name: str, tools: Container[str]) -> str:
    """The name of the tool of ours that is meant, if it is one of `tools`; else the name itself."""
    ours = _OURS.get(name, name)
    return ours if name not in tools and ours in tools else name


def _read_file(call: OurCall) -> OurCall:
    arguments = dict(call.arguments)
    first = last = None
    match arguments.get("view_range"):
        case [int() as first, int() as last]:
            del arguments["view_range"]
        case _:
            offset, limit = arguments.get("offset"), arguments.get("limit")
            if isinstance(offset, int):
                first = max(1, offset)  # some count from 0: a line too many at the top does no harm
                del arguments["offset"]
            if isinstance(limit, int) and limit > 0:
                last = (first or 1) + limit - 1
                del arguments["limit"]
    if first is not None:
        arguments.setdefault("start_line", max(1, first))
    if last is not None and last > 0:  # -1: to the end
        arguments.setdefault("end_line", last)
    return OurCall(call.tool, arguments)


def _list_directory(call: OurCall) -> OurCall:
    arguments = dict(call.arguments)
    return OurCall("glob", arguments | {"pattern": "**/*"}) if arguments.pop("recursive", None) is True else call


def _grep(call: OurCall) -> OurCall:
    arguments = dict(call.arguments)
    for name in ("-n", "output_mode"):  # the file and the line are always shown
        arguments.pop(name, None)
    if arguments.pop("-i", None) is True or arguments.pop("case_sensitive", None) is False:
        arguments["ignore_case"] = True
    if arguments.pop("isRegexp", None) is False:
        arguments["fixed"] = True
    around = [arguments.pop(name, None) for name in ("-A", "-B", "-C")]
    if lines := [each for each in around if isinstance(each, int)]:
        arguments.setdefault("context", max(lines))
    return OurCall(call.tool, arguments)


def _run_shell_command(call: OurCall) -> OurCall:
    arguments = dict(call.arguments)
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        words = [str(word) for word in command]
        in_shell = len(words) == 3 and _SHELL.fullmatch(words[0]) and words[1] in _RUNS_A_LINE
        command = words[2] if in_shell else shlex.join(words)
        arguments.pop("cmd", None)
        arguments["command"] = command
    if isinstance(command, str) and (patch := _patch_in(command)):
        folder = next((value for name in _FOLDERS if isinstance(value := arguments.get(name), str) and value), "")
        return OurCall("apply_patch", {"patch": _in_folder(patch, folder)})
    timeout = arguments.pop("timeout_ms", None)
    if timeout is None and isinstance(arguments.get("timeout"), int | float):
        timeout = arguments.pop("timeout")
        timeout = timeout * 1_000 if isinstance(timeout, int | float) and timeout < _MILLISECONDS_FROM else timeout
    if isinstance(timeout, int | float) and timeout > 0:
        arguments.setdefault("timeout_s", min(timeout, _LONGEST) / 1_000)  # integers may be of any size
    escalated = arguments.pop("with_escalated_permissions", None) is True  # Codex: asks the user, as ours does
    if arguments.get("sandbox_permissions") == "require_escalated" or escalated:
        arguments.pop("sandbox_permissions", None)
        arguments.setdefault("outside", True)
        if isinstance(reason := arguments.pop("justification", None), str):
            arguments.setdefault("reason", reason)
    return OurCall(call.tool, arguments)


def _patch_in(command: str) -> str:
    """The patch that a command line gives to `apply_patch`, which GPT is trained to call so; "" if it does nothing of
    the kind, or anything else besides."""
    if (here := _PATCH_HERE.match(command)) is not None:
        return here[3]
    if not re.match(r"\s*(?:apply_patch|applypatch)\s", command):
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return words[1] if len(words) == 2 and words[1].lstrip().startswith("*** Begin Patch") else ""


def _in_folder(patch: str, folder: str) -> str:
    """The patch with the paths that a command in that folder means."""
    return _PATCHED_FILE.sub(lambda match: match[1] + posixpath.join(folder, match[2]), patch) if folder else patch


def _web_fetch(call: OurCall) -> OurCall:
    """Gemini CLI's has only a prompt, in which the addresses stand."""
    prompt = call.arguments.get("prompt")
    if "url" in call.arguments or not isinstance(prompt, str):
        return call
    urls = list(dict.fromkeys(url.rstrip(".,;:!?") for url in _URL.findall(prompt)))
    if len(urls) > 1:
        raise ValueError(f"web_fetch reads one url at a time; call it once for each of {', '.join(urls)}")
    return OurCall(call.tool, {**call.arguments, "url": urls[0]}) if urls else call


_TRANSLATIONS: Mapping[str, Callable[[OurCall], OurCall]] = {
    "read_file": _read_file,
    "list_directory": _list_directory,
    "grep": _grep,
    "run_shell_command": _run_shell_command,
    "web_fetch": _web_fetch,
}
