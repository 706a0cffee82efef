"""Calls that a model wrote as text, where nothing runs them: Gemini's Python for a tool it has not, JSON and tags of
models that were trained on other interfaces.

Precision before recall: a person may have asked how such a call looks. So it must be the reply's end, name a tool that
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

_FENCED = re.compile(r"(?:^|\n)```[ \t]*([\w-]*)[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_TAGGED = re.compile(
    r"<(tool_call|function_call|tool_use|tool_code|invoke|function)\b[^<>]*>.*</\1>\s*(?:</\w+>\s*)?\Z"
    r"|\[TOOL_CALLS\].*\Z|<\|(?:python_tag|tool_call)[^>]*\|?>.*\Z",
    re.DOTALL,
)
_CODE = ("tool_code", "tool_call", "tool", "tool_calls")
"""Languages of fences that are calls and nothing else."""
_NAMED = re.compile(
    r"""(?:default_api|functions)\.([A-Za-z_]\w*)\s*\(|"(?:name|tool|tool_name|function)"\s*:\s*"([\w-]+)\""""
    r"""|<(?:function|invoke)(?:=|\s+name=["'])([\w-]+)|^\s*(?:print\()?([A-Za-z_]\w*)\(""",
    re.MULTILINE,
)
_ARGUMENTS = ("arguments", "args", "parameters", "input", "tool_input")


def written_call(text: str, tools: Collection[str]) -> str | None:
    """The tool that a reply without calls means to call at its end; None where it means none."""
    text = text.rstrip()[-LONGEST:]
    if tagged := _TAGGED.search(text):
        return _first(_named(tagged[0]), tools)
    fenced = _FENCED.search(text)
    if fenced is not None and fenced[1] in _CODE:
        return _first(_named(fenced[2]), tools)
    before, json_text = (text[: fenced.start()], fenced[2]) if fenced else _bare(text)
    if len(before.strip()) > PROSE or (fenced is not None and fenced[1] not in ("", "json")):
        return None
    return _first(_of_json(json_text), tools)


def _first(names: Iterator[str], tools: Collection[str]) -> str | None:
    return next((name for name in names if name in tools), None)


def _named(code: str) -> Iterator[str]:
    return (name for match in _NAMED.finditer(code) for name in match.groups() if name)


def _bare(text: str) -> tuple[str, str]:
    """What stands before the JSON that ends the text, and that; the JSON begins a line."""
    start = re.search(r"^[ \t]*[\[{]", text, re.MULTILINE)
    return (text, "") if start is None else (text[: start.start()], text[start.start() :])


def _of_json(text: str) -> Iterator[str]:
    """The tools that the JSON calls, if it is a call or a list of them."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    for each in cast(list[Any], value if isinstance(value, list) else [value]):
        if not isinstance(each, dict):
            return
        call = cast(dict[str, Any], each)
        inner: Any = call.get("function") or call.get("functionCall") or call.get("tool_call")
        call = cast(dict[str, Any], inner) if isinstance(inner, dict) else call
        name = next((call[key] for key in ("name", "tool", "tool_name", "function") if key in call), None)
        if isinstance(name, str) and any(key in call for key in _ARGUMENTS):
            yield name
