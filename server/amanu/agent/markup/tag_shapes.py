"""The shapes of calls that are written in tags, or in marks between which values stand as they are."""

import json
import re

from pydantic import JsonValue

from amanu.agent.markup.shapes import (
    NAME,
    Read,
    Unreadable,
    WrittenCall,
    as_object,
    bare_name,
    skip_space,
    take,
)
from amanu.core.loose_json import JSONFault, scan

_TAG = r"(?:[\w-]+:|｜DSML｜)?"
_PARAMETER = re.compile(
    rf"\s*<{_TAG}(?:parameter(?:=|\s+name=)[\"']?(?P<name>[\w.-]+)[\"']?[^<>\n]*|(?!/)(?P<tag>\w[\w.-]*))>"
)
_END = re.compile(rf"\s*</{_TAG}(?:invoke|function)>")


def tagged(text: str, at: int) -> Read:
    """`NAME">` or `NAME>`, the rest of an opening tag, then parameters in tags of their own or as JSON, then the
    closing tag."""
    head = take(rf"\s*(?:<{_TAG}(?:invoke|function)(?:=|\s+name=))?[\"']?({NAME})[\"']?[^<>\n]*>", text, at)
    tool, at = bare_name(head[1]), head.end()
    arguments: dict[str, JsonValue] = {}
    if text.startswith("{", skip_space(text, at)):
        try:
            value, at = scan(text, skip_space(text, at))
        except JSONFault as fault:
            raise Unreadable(tool, str(fault)) from None
        arguments = as_object(tool, value)
    while (begin := _PARAMETER.match(text, at)) is not None:
        name = begin["name"] or begin["tag"]
        closing = rf"</{_TAG}{'parameter' if begin['name'] else re.escape(name)}>"
        end = re.compile(rf"{closing}(?=\s*(?:<{_TAG}\w|</{_TAG}(?:invoke|function)>))").search(text, begin.end())
        if end is None:
            raise Unreadable(tool, f"the parameter {name}: expected its closing tag and that of the call")
        arguments[name] = _line_ends_off(text[begin.end() : end.start()])
        at = end.end()
    end = _END.match(text, at)
    if end is None:
        raise Unreadable(tool, "expected a parameter or the closing tag")
    return [WrittenCall(tool, arguments)], end.end()


def _line_ends_off(value: str) -> str:
    """The value without the line break that templates put on either side."""
    return value.removeprefix("\n").removesuffix("\n")


_KEY = re.compile(r"\s*<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>", re.DOTALL)
_VALUE_END = re.compile(r"</arg_value>(?=\s*(?:<arg_key>|</\w*tool_call>|\Z))")


def in_keys(text: str, at: int) -> Read:
    """A name, then pairs of `<arg_key>` and `<arg_value>`, then `</tool_call>`."""
    head = take(rf"\s*({NAME})\s*(?:<tool_sep>)?(?=\s*(?:<arg_key>|</\w*tool_call>))", text, at)
    tool, at = bare_name(head[1]), head.end()
    arguments: dict[str, JsonValue] = {}
    while (key := _KEY.match(text, at)) is not None:
        end = _VALUE_END.search(text, key.end())
        if end is None:
            raise Unreadable(tool, f"the argument {key[1]}: expected </arg_value>")
        arguments[key[1]] = _line_ends_off(text[key.end() : end.start()])
        at = end.end()
    end = re.compile(r"\s*(?:</\w*tool_call>|\Z)").match(text, at)
    if end is None:
        raise Unreadable(tool, "expected <arg_key> or </tool_call>")
    return [WrittenCall(tool, arguments)], end.end()


_XTML = re.compile(r'<\|open\|>argument key="([\w.-]+)"[^<]*<\|sep\|>(.*?)<\|close\|>argument<\|sep\|>', re.DOTALL)


def in_xtml(text: str, at: int) -> Read:
    """`"NAME" …<|sep|>`, then arguments between `<|open|>` and `<|close|>`."""
    head = take(rf'"({NAME})"[^<]*<\|sep\|>', text, at)
    tool, at = bare_name(head[1]), head.end()
    arguments: dict[str, JsonValue] = {}
    while (argument := _XTML.match(text, at)) is not None:
        arguments[argument[1]] = argument[2]
        at = argument.end()
    if not text.startswith(close := "<|close|>call<|sep|>", at):
        raise Unreadable(tool, f"expected an argument or {close}")
    return [WrittenCall(tool, arguments)], at + len(close)


_QUOTE = re.compile(r'<escape>|<\|"\|>')


def in_braces(text: str, at: int) -> Read:
    """`call:NAME{key:value}`, with strings between marks of their own."""
    head = take(rf"\s*call:({NAME})(?=\{{)", text, at)
    tool, at = bare_name(head[1]), head.end()
    end = next((end.start() for end in re.finditer(r"<end_function_call>|<tool_call\|>", text[at:])), len(text) - at)
    pieces = _QUOTE.split(text[at : at + end])
    if len(pieces) % 2 == 0:
        raise Unreadable(tool, "a string: expected its closing mark")
    pieces[1::2] = [json.dumps(piece) for piece in pieces[1::2]]
    written = "".join(pieces)
    try:
        value, _ = scan(written, 0)
    except JSONFault as fault:
        raise Unreadable(tool, str(fault)) from None
    return [WrittenCall(tool, as_object(tool, value))], at + end
