"""The calls that a text ends with, by the table of templates."""

from collections.abc import Collection, Iterator

from amanu.agent.markup.shapes import NotACall, Read, Unreadable, WrittenCall, skip_closing
from amanu.agent.markup.templates import NOISE, TEMPLATES, WRAPPERS, Template

HEAD = 200
"""Characters behind a mark within which a call names its tool."""


def read_calls(text: str, tools: Collection[str], *, whole: bool = True) -> list[WrittenCall]:
    """The calls that the text, which begins with a mark, consists of; all are of `tools`. Raises `NotACall` if it holds
    anything else, and `Unreadable`. Without `whole` more may follow: then an end that is too short to tell is none."""
    text = text.replace(NOISE, "")
    calls: list[WrittenCall] = []
    at = skip_closing(text, 0) if text[:3] != "```" else 0
    while at < len(text):
        try:
            found, at = _read_one(text, at, first=not calls)
        except (NotACall, Unreadable) as fault:
            if not whole and len(text) - at < HEAD:
                return calls
            if isinstance(fault, Unreadable) and (fault.tool in tools or not (whole or fault.tool)):
                raise
            raise NotACall from None
        if any(call.tool not in tools for call in found):
            raise NotACall
        calls += found
        at = skip_closing(text, at)
    if not calls and whole:
        raise NotACall
    return calls


def _read_one(text: str, at: int, *, first: bool) -> Read:
    fault: Unreadable | None = None
    for template, mark in _matching(text, at):
        if template.alone and not first:
            continue
        try:
            return template.read(text, at if template.alone else at + len(mark))
        except NotACall:
            continue
        except Unreadable as error:
            fault = fault or error
    if fault is not None:
        raise fault
    wrapper = next((mark for mark in WRAPPERS if text.startswith(mark, at)), None)
    if wrapper is None:
        raise NotACall
    return [], at + len(wrapper)


def _matching(text: str, at: int) -> Iterator[tuple[Template, str]]:
    for template in TEMPLATES:
        mark = next((mark for mark in template.opens if text.startswith(mark, at)), None)
        if mark is not None:
            yield template, mark
