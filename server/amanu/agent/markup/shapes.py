"""The shapes in which templates write calls: JSON, a name before JSON, tags, Python and two notations of their own.

A reader gets a text and the place behind the opening mark. It returns the calls found there and where they end. It
raises `NotACall` for what no model means as a call, and `Unreadable` for what is one, of a tool that it could name, but
cannot be read to its end.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from amanu.core.loose_json import JSONFault, scan

MAX_PYTHON = 20_000
"""Characters of calls written in Python: their parser holds the event loop."""

NAME = r"[A-Za-z_][\w.-]*"
ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "params")
_NAMES = ("name", "tool_name", "tool", "function")
_AROUND = ("function", "functionCall", "tool_call")
_BESIDE = ("type", "id", "tool_call_id", "call_id")
_PREFIX = re.compile(r"(?:default_api|functions|tools)\.")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class WrittenCall:
    tool: str
    arguments: Mapping[str, JsonValue]


class NotACall(Exception): ...


class Unreadable(Exception):
    """A call of `tool` that is not written to its end, or wrongly. Its text says where, and what was expected. The tool
    is "" while it is not known."""

    def __init__(self, tool: str, fault: str) -> None:
        super().__init__(fault)
        self.tool = tool


Read = tuple[list[WrittenCall], int]
Reader = Callable[[str, int], Read]


def skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


CLOSING = (
    *("</tool_call>", "</tool_calls>", "</TOOLCALL>", "</function_call>", "</function_calls>", "</tool_use>"),
    *("</minimax:tool_call>", "</seed:tool_call>", "</longcat_tool_call>", "</function>", "</invoke>"),
    *("</｜DSML｜function_calls>", "</｜DSML｜tool_calls>", "<|/tool_call|>", "<tool_call|>", "<end_function_call>"),
    *("<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜tool_call_end｜>", "<｜tool_calls_end｜>"),
    *("<|tool▁call▁end|>", "<|tool▁calls▁end|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"),
    *("<|close|>tools<|sep|>", "<|close|>message<|sep|>", "<|tools_suffix|>", "<|END_ACTION|>", "<|action_end|>"),
    *("<|python_end|>", "<|call|>", "<|end|>", "<|return|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "</s>"),
    *("<|endoftext|>", "<|END_OF_TURN_TOKEN|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "</answer>", "</response>"),
    "```",
)
"""Marks and tokens that may end a call, a list of calls or a reply. Most are optional: servers that take them for the
end of the reply leave them out."""
_CLOSING = re.compile("|".join(map(re.escape, CLOSING)))


def skip_closing(text: str, at: int) -> int:
    """The place behind all closing marks and space."""
    at = skip_space(text, at)
    while (mark := _CLOSING.match(text, at)) is not None:
        at = skip_space(text, mark.end())
    return at


def end_of_calls(text: str) -> int:
    """The place where the closing marks at the end of the text begin."""
    end = len(text.rstrip())
    while (mark := next((mark for mark in CLOSING if text.endswith(mark, 0, end)), "")) != "":
        end = len(text[: end - len(mark)].rstrip())
    return end


def take(pattern: str | re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = (re.compile(pattern, re.DOTALL) if isinstance(pattern, str) else pattern).match(text, at)
    if match is None:
        raise NotACall
    return match


def bare_name(name: str) -> str:
    return _PREFIX.sub("", name, count=1)


def in_json(text: str, at: int) -> Read:
    """An object `{"name": …, "arguments": {…}}`, a list of them, or several in a row."""
    at = skip_space(text, at)
    if text[at : at + 1] not in ("{", "["):
        raise NotACall
    calls: list[WrittenCall] = []
    while text[at : at + 1] in ("{", "["):
        if doubled := re.match(r"\{\s*\{\s*[\"']", text[at : at + 40]):  # of templates whose braces were escaped
            at += doubled[0].index("{", 1)
        value, end = _value(text, at)
        if doubled:
            end = take(r"\s*\}", text, end).end()
        for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
            calls.append(_of_object(item))
        at = end
        following = skip_space(text, re.compile(r"\s*[;,]?").match(text, at).end())  # type: ignore[union-attr]
        if text[following : following + 1] != "{":
            break
        at = following
    if not calls:
        raise NotACall
    return calls, at


_NAMED = re.compile(r"""["'](?:name|tool_name|tool|function)["']\s*:\s*["']([\w.-]+)["']""")
ARGUMENTS_FIRST = re.compile(r"""[^\w"']*["'](?:arguments|parameters)["']\s*:""")
"""The beginning of a call that is named behind its arguments, as Hermes' template has it."""


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return scan(text, at)
    except JSONFault as fault:
        name = _NAMED.search(text, at, min(at + 200, fault.position))
        if name is None and ARGUMENTS_FIRST.match(text, at) is None:
            raise NotACall from None
        raise Unreadable("" if name is None else bare_name(name[1]), str(fault)) from None


def _of_object(item: Any) -> WrittenCall:
    if not isinstance(item, dict):
        raise NotACall
    outer = cast("dict[str, Any]", item)
    inner: Any = next((outer[key] for key in _AROUND if key in outer), None)
    call = cast("dict[str, Any]", inner) if isinstance(inner, dict) else outer
    name = next((call[key] for key in _NAMES if isinstance(call.get(key), str)), None)
    if name is None or call.keys() - {*_NAMES, *ARGUMENTS, *_BESIDE}:
        raise NotACall
    given: Any = next((call[key] for key in ARGUMENTS if key in call), None)
    if given is None:
        given = cast("dict[str, Any]", {})
    return WrittenCall(bare_name(name), as_object(bare_name(name), given))


def as_object(tool: str, given: Any) -> dict[str, JsonValue]:
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            given, _ = scan(given, skip_space(given, 0))
        except JSONFault as fault:
            raise Unreadable(tool, str(fault)) from None
    if not isinstance(given, dict):
        raise Unreadable(tool, "the arguments: expected an object")
    return cast("dict[str, JsonValue]", given)


def whole_object(text: str, at: int) -> Read:
    """`in_json` where no mark says that it is a call: each has a name and arguments."""
    value, _ = _value(text, skip_space(text, at))
    if not all(map(has_arguments, cast("list[Any]", value) if isinstance(value, list) else [value])):
        raise NotACall
    return in_json(text, at)


def has_arguments(item: Any) -> bool:
    """Whether an object names the arguments of a call."""
    if not isinstance(item, dict):
        return False
    outer = cast("dict[str, Any]", item)
    objects = [cast("dict[str, Any]", each) for each in (outer, *map(outer.get, _AROUND)) if isinstance(each, dict)]
    return any(key in each for each in objects for key in ARGUMENTS)


def named(before: str = "", between: str = r"\s*") -> Reader:
    """A name, then its arguments as JSON. `before` and `between`: patterns of what else stands there."""
    head = re.compile(rf"\s*(?:{before})({NAME})(?:{between})", re.DOTALL)

    def read(text: str, at: int) -> Read:
        name = take(head, text, at)
        tool = bare_name(name[1])
        if not text.startswith("{", name.end()):
            if name.end() == len(text):
                raise Unreadable(tool, "the text ends before the arguments")
            raise NotACall
        try:
            value, end = scan(text, name.end())
        except JSONFault as fault:
            raise Unreadable(tool, str(fault)) from None
        return [WrittenCall(tool, as_object(tool, value))], end

    return read


def in_python(text: str, at: int) -> Read:
    """Calls with keyword arguments: in a list, one a line, in `print(…)`, of `default_api`. They reach to the end of
    the text, or to a closing mark."""
    end = max(at, end_of_calls(text))
    code = text[at:end].strip()
    head = re.match(rf"\[?\s*(?:print\(\s*)?({NAME})\(", code)
    if head is None:
        raise NotACall
    tool = bare_name(head[1])
    if len(code) > MAX_PYTHON:
        raise Unreadable(tool, f"no more than {MAX_PYTHON:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # for "\d"
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"line {error.lineno}, column {error.offset}: " if isinstance(error, SyntaxError) else ""
        raise Unreadable(tool, f"{where}expected calls in Python") from None
    return [*_calls_in(tool, body)], end


def _calls_in(tool: str, body: Iterable[ast.stmt]) -> Iterable[WrittenCall]:
    for statement in body:
        if not isinstance(statement, ast.Expr):
            raise NotACall
        value = statement.value
        for each in value.elts if isinstance(value, ast.List) else [value]:
            yield _of_expression(tool, each)


def _of_expression(tool: str, node: ast.expr) -> WrittenCall:
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[]):
            return _of_expression(tool, inner)
        case ast.Call(func=ast.Name() | ast.Attribute() as function, args=[], keywords=keywords):
            name = bare_name(ast.unparse(function))
            try:
                arguments = {str(each.arg): ast.literal_eval(each.value) for each in keywords if each.arg is not None}
                arguments = cast("dict[str, JsonValue]", json.loads(json.dumps(arguments, allow_nan=False)))
            except (ValueError, TypeError, RecursionError, MemoryError):
                raise Unreadable(name, "the arguments: expected literals") from None
            if len(arguments) < len(keywords):
                raise Unreadable(name, "the arguments: expected name=value")
            return WrittenCall(name, arguments)
        case ast.Call():
            raise Unreadable(tool, "the arguments: expected name=value")
        case _:
            raise NotACall


def by_name(text: str, at: int) -> Read:
    """A list of `{"NAME": {…}}`."""
    value, end = _value(text, skip_space(text, at))
    calls: list[WrittenCall] = []
    for item in cast("list[Any]", value if isinstance(value, list) else [value]):
        if not isinstance(item, dict) or len(cast("dict[str, Any]", item)) != 1:
            raise NotACall
        for name, given in cast("dict[str, Any]", item).items():
            calls.append(WrittenCall(bare_name(name), as_object(name, given)))
    return calls, end
