"""Calls that a model wrote as text, where nothing runs them: Gemini's Python for a tool it has not, JSON and tags of
models that were trained on other interfaces.

Precision before recall: a user may have asked how such a call looks. So it must be the reply's end, name a tool that
is there, and, where it is plain JSON, be almost all of the reply.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, cast

PROSE = 300
"""Characters beside plain JSON: an announcement, no explanation."""
LONGEST = 100_000
"""Characters of a reply's end that are looked at; a call that writes a file may be long."""

_CLOSED = re.compile(r"</(tool_call|function_call|tool_use|tool_code|invoke|function)>\s*(?:</\w+>\s*)?\Z")
_MARKED = ("[TOOL_CALLS]", "<|python_tag|>", "<|tool_call")
"""What begins the calls of Mistral, Llama and others; they are the rest of the reply."""
_CODE = ("tool_code", "tool_call", "tool", "tool_calls")
"""Languages of fences that are calls and nothing else."""
_NAMED = re.compile(
    r"""(?:default_api|functions)\.([A-Za-z_]\w*)\(|"(?:name|tool|tool_name|function)"\s*:\s*"([\w-]+)\""""
    r"""|<(?:function|invoke)(?:=|\s+name=["'])([\w-]+)|^[ \t]*(?:print\()?([A-Za-z_]\w*)\(""",
    re.MULTILINE,
)
_ARGUMENTS = ("arguments", "args", "parameters", "input", "tool_input")


def written_call(text: str, tools: Collection[str]) -> str | None:
    """The tool that a reply without calls means to call at its end; None where it means none. Linear in the text."""
    text = text.rstrip()[-LONGEST:]
    if tagged := _tagged(text):
        return _first(_named(tagged), tools)
    preamble, language, code = _fenced(text) or _bare(text)
    if language in _CODE:
        return _first(_named(code), tools)
    if len(preamble.strip()) > PROSE or language not in ("", "json"):
        return None
    return _first(_of_json(code), tools)


def _first(names: Iterator[str], tools: Collection[str]) -> str | None:
    return next((name for name in names if name in tools), None)


def _named(code: str) -> Iterator[str]:
    return (name for match in _NAMED.finditer(code) for name in match.groups() if name)


def _tagged(text: str) -> str:
    """The call in tags that ends the text, "" for none."""
    for mark in _MARKED:
        start = text.rfind(mark)
        if start >= 0 and text[:start].rpartition("\n")[2].strip() == "" and text.endswith(("]", "}", ")", ">")):
            return text[start:]
    closed = _CLOSED.search(text, max(0, len(text) - 200))
    start = -1 if closed is None else text.rfind(f"<{closed[1]}", 0, closed.start())
    return "" if start < 0 else text[start:]


def _fenced(text: str) -> tuple[str, str, str] | None:
    """What stands before the fence that ends the text, its language, and what is in it."""
    opened: tuple[int, str, int] | None = None
    closed: tuple[int, str, int, int] | None = None
    offset = 0
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if opened is not None:
            if stripped == "```":
                opened, closed = None, (*opened, offset)
        elif stripped:
            opened = (offset, stripped[3:].strip(), offset + len(line)) if stripped.startswith("```") else None
            closed = None
        offset += len(line)
    if closed is None:
        return None
    start, language, begin, end = closed
    return text[:start], language, text[begin:end]


def _bare(text: str) -> tuple[str, str, str]:
    """The same for JSON that ends the text without a fence; it begins a line."""
    start = re.search(r"^[ \t]*[\[{]", text, re.MULTILINE)
    return (text, "", "") if start is None else (text[: start.start()], "", text[start.start() :])


def _of_json(text: str) -> Iterator[str]:
    """The tools that the JSON calls, if it is a call or a list of them."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    for item in cast(list[Any], value if isinstance(value, list) else [value]):
        if not isinstance(item, dict):
            return
        call = cast(dict[str, Any], item)
        inner: Any = call.get("function") or call.get("functionCall") or call.get("tool_call")
        call = cast(dict[str, Any], inner) if isinstance(inner, dict) else call
        name = next((call[key] for key in ("name", "tool", "tool_name", "function") if key in call), None)
        if isinstance(name, str) and any(key in call for key in _ARGUMENTS):
            yield name
