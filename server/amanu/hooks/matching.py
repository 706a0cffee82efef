"""Decides which hooks a moment concerns. Matchers are Claude Code's: letters, digits, `_`, `-` and spaces between `|`
or `,` are names; anything else is a regular expression that must match the whole name, in Gemini's files a part of it.
A tool is matched under our name, Claude Code's and Gemini CLI's."""

import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from amanu.hooks.model import Hook, HookMoment

_NAMES = re.compile(r"[A-Za-z0-9_\-| ,]*\Z")
_CONDITION = re.compile(r"([A-Za-z0-9_\-*]+)(?:\((.*)\))?\Z", re.DOTALL)
_LONGEST = 500  # characters of a matcher

TOOL_NAMES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # ours → (Claude Code's, Gemini CLI's); a hook is told the first
    "read_file": (("Read",), ("read_file",)),
    "read_many_files": (("Read",), ("read_many_files",)),
    "list_directory": (("LS",), ("list_directory",)),
    "glob": (("Glob",), ("glob",)),
    "grep": (("Grep",), ("search_file_content", "grep_search")),
    "edit_file": (("Edit", "MultiEdit"), ("replace",)),
    "rewrite_lines": (("Edit", "MultiEdit"), ("replace",)),
    "write_file": (("Write",), ("write_file",)),
    # they change, make and remove files, so a hook that guards any of these must hear of them
    "apply_patch": (("Edit", "MultiEdit", "Write"), ("replace", "write_file")),
    "rename_symbol": (("Edit", "MultiEdit", "Write"), ("replace", "write_file")),
    "move_file": (("Edit", "MultiEdit", "Write"), ("replace", "write_file")),
    "delete_file": (("Edit", "MultiEdit", "Write"), ("replace", "write_file")),
    "save_memory": (("Edit", "MultiEdit", "Write"), ("save_memory",)),
    "run_shell_command": (("Bash",), ("run_shell_command",)),
    "write_command": (("Bash",), ("run_shell_command",)),
    "web_fetch": (("WebFetch",), ("web_fetch",)),
    "web_search": (("WebSearch",), ("google_web_search",)),
    "write_todos": (("TodoWrite",), ("write_todos",)),
    "ask_user": (("AskUserQuestion",), ("ask_user",)),
    "enter_plan_mode": (("EnterPlanMode",), ("enter_plan_mode",)),
    "exit_plan_mode": (("ExitPlanMode",), ("exit_plan_mode",)),
    "run_agent": (("Task", "Agent"), ("run_agent",)),
    "activate_skill": (("Skill",), ("activate_skill",)),
    "read_mcp_resource": (("ReadMcpResourceTool", "ReadMcpResource"), ("read_mcp_resource",)),
    "list_mcp_resources": (("ListMcpResourcesTool", "ListMcpResources"), ("list_mcp_resources",)),
}


WIDER = frozenset({"apply_patch", "rename_symbol", "move_file", "delete_file", "save_memory"})
"""Tools that can do more than those whose names they go by, too: a hook that guards these hears of them, but one that
leaves only these to the model does not leave them."""

_ORDER = {tool: at for at, tool in enumerate(TOOL_NAMES)}


def names(tool: str) -> tuple[str, ...]:
    """All names by which a matcher may call a tool, ours first."""
    claude, gemini = TOOL_NAMES.get(tool, ((), ()))
    other = (tool.replace("__", "_"),) if tool.startswith("mcp__") else ()
    return tuple(dict.fromkeys((tool, *claude, *gemini, *other)))


def is_selected(tool: str, selected: Collection[str]) -> bool:
    """Whether that tool is among those that a hook leaves to the model by naming only `selected`."""
    return tool in selected or (tool not in WIDER and not set(selected).isdisjoint(names(tool)))


def our_tool(name: str, tools: Sequence[str]) -> str:
    """The first of `tools` that a hook calls by that name; the name itself if there is none."""
    ordered = sorted(tools, key=lambda tool: (tool != name, _ORDER.get(tool, len(_ORDER))))
    return next((tool for tool in ordered if name in names(tool)), name)


def matcher_fault(matcher: str) -> str:
    """A sentence that says why it is not a valid matcher; "" if it is one."""
    if len(matcher) > _LONGEST:
        return f"Its matcher is longer than {_LONGEST} characters."
    if not _is_plain(matcher):
        try:
            re.compile(matcher)
        except (re.error, RecursionError, OverflowError) as error:
            return f"Its matcher {matcher!r} is not a valid regular expression: {error}."
    return ""


def matches(hook: Hook, moment: HookMoment) -> bool:
    """Whether that hook runs at that moment."""
    failed = moment.event == "PostToolUseFailure" and hook.source.dialect == "gemini"  # Gemini has one event for both
    if hook.event != moment.event and not (failed and hook.event == "PostToolUse"):
        return False
    call = moment.call
    if call is None:  # a matcher where there is nothing to match is ignored, in Claude Code and in Gemini CLI
        return not moment.subject or matches_any(hook.matcher, (moment.subject,))
    subjects = names(call.tool)
    if not matches_tool(hook, subjects):
        return False
    return not hook.condition or _condition_holds(hook.condition, subjects, call.commands)


def matches_tool(hook: Hook, subjects: Sequence[str]) -> bool:
    """Whether the hook, which has no fault, is about a tool with any of those names. To Gemini CLI every matcher is a
    regular expression for a part of the name (`hookPlanner.ts`)."""
    if matches_any(hook.matcher, subjects):
        return True
    return hook.source.dialect == "gemini" and any(re.search(hook.matcher, subject) for subject in subjects)


def matches_any(matcher: str, subjects: Sequence[str]) -> bool:
    """Whether the matcher, which has no fault, matches one of those names."""
    if matcher in ("", "*"):
        return True
    if _is_plain(matcher):
        wanted = {name.strip() for name in re.split(r"[|,]", matcher)}
        return not wanted.isdisjoint(subjects)
    return any(re.fullmatch(matcher, subject) for subject in subjects)


def _is_plain(matcher: str) -> bool:
    return matcher == "*" or _NAMES.match(matcher) is not None


def _condition_holds(condition: str, subjects: Sequence[str], commands: Sequence[str]) -> bool:
    """Whether Claude's `if` holds: it names a tool, and perhaps a pattern for one of its commands or its path. One that
    is not understood holds: rather run the hook once too often."""
    match = _CONDITION.match(condition.strip())
    if match is None:
        return True
    tool, pattern = match[1], match[2]
    if not any(fnmatchcase(subject, tool) for subject in subjects):
        return False
    if pattern is None:
        return True
    pattern = pattern.removesuffix(":*") + "*" if pattern.endswith(":*") else pattern
    return any(fnmatchcase(text, pattern) for text in commands)
