"""Recognises calls that a model wrote as text, which runs nothing: Python from Gemini, JSON and tags from models
trained on other interfaces.

Precision before recall: the user may have asked what such a call looks like. So a written call must end the reply, name
an available tool and, if it is plain JSON, be almost the whole reply.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, cast

PROSE = 300
"""Characters allowed before plain JSON: enough for an announcement, not for an explanation."""
LONGEST = 100_000
"""Characters at a reply's end that are examined; a call that writes a file may be long."""

_CLOSED = re.compile(r"</(tool_call|function_call|tool_use|tool_code|invoke|function)>\s*(?:</\w+>\s*)?\Z")
_MARKED = ("[TOOL_CALLS]", "<|python_tag|>", "<|tool_call")
"""Marks that begin the calls of Mistral, Llama and others; the rest of the reply is the call."""
_CODE = ("tool_code", "tool_call", "tool", "tool_calls")
"""Languages of fenced blocks that hold only calls."""
_NAMED = re.compile(
    r"""(?:default_api|functions)\.([A-Za-z_]\w*)\(|"(?:name|tool|tool_name|function)"\s*:\s*"([\w-]+)\""""
    r"""|<(?:function|invoke)(?:=|\s+name=["'])([\w-]+)|^[ \t]*(?:print\()?([A-Za-z_]\w*)\(""",
    re.MULTILINE,
)
_ARGUMENTS = ("arguments", "args", "parameters", "input", "tool_input")


def written_call(text: str, tools: Collection[str]) -> str | None:
    """The tool that a reply without calls tries to call at its end; None if there is none. Linear in the text."""
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
    """The tagged call that ends the text; "" if there is none."""
    for mark in _MARKED:
        start = text.rfind(mark)
        if start >= 0 and text[:start].rpartition("\n")[2].strip() == "" and text.endswith(("]", "}", ")", ">")):
            return text[start:]
    closed = _CLOSED.search(text, max(0, len(text) - 200))
    start = -1 if closed is None else text.rfind(f"<{closed[1]}", 0, closed.start())
    return "" if start < 0 else text[start:]


def _fenced(text: str) -> tuple[str, str, str] | None:
    """(text before, language, code) of the fenced block that ends the text; None if there is none."""
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
    """The same for JSON without a fence that begins a line and ends the text."""
    start = re.search(r"^[ \t]*[\[{]", text, re.MULTILINE)
    return (text, "", "") if start is None else (text[: start.start()], "", text[start.start() :])


def _of_json(text: str) -> Iterator[str]:
    """The tools the JSON calls, if it is a call or a list of calls."""
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
