"""The results of a search over all sessions, as lines: a session, and below it the places."""

from amanu.cli.console import Console, Span
from amanu.cli.session_lookup import SHORT, session_line
from amanu.cli.text import one_line, visible
from amanu.text.amounts import plural
from amanu_protocol.requests import FoundPlace, FoundSession, SessionSearchResult

_NAMES = {"userMessage": "you", "answer": "answer", "toolCall": "call", "question": "question", "change": "change"}


def show_found(result: SessionSearchResult, typed: str, console: Console, digits: int = SHORT) -> None:
    """`digits` of each session's id are printed."""
    for found in result.sessions:
        console.line(("bold", session_line(found.session, digits)), ("dim", f"  {_folders(found)}"), hang=digits + 2)
        places = [place for place in found.places if place.kind != "title"]
        for place in places:
            console.line(("dim", f"  {_NAMES.get(place.kind, place.kind):9}"), *_spans(place), hang=11)
        if found.count > len(found.places):
            console.line(("dim", f"  and {found.count - len(found.places)} more"))
    if not result.sessions:
        console.line(("", f"No session has “{one_line(typed)}” in it."))
    if result.unread:
        several = plural(result.unread, "session")
        console.line(("yellow", f"{several} not looked through yet: search again in a moment."))


def _folders(found: FoundSession) -> str:
    return ", ".join(map(one_line, found.session.roots))


def _spans(place: FoundPlace) -> list[Span]:
    return [("bold" if part.found else "", visible(part.text)) for part in place.excerpt]
