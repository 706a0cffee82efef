"""Ask the attached editors what their language servers know: patiently, and never forever."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from amanu.core.tool import ToolError
from amanu.workspace.overlay import LanguageQueries, Overlay, Question
from amanu_protocol.requests import EditorStatus

PATIENCE = 12.0
"""Seconds in which a language server may start; VS Code's client says `starting` for ten when it finds nothing. Big
projects need longer: the model is told, and can ask again."""
PAUSE = 0.4
"""Seconds between two questions to one that is starting."""
REASON = 300
"""Characters of an editor's own words that the model is told."""

_ABOUT: dict[Question, tuple[str, str]] = {
    "diagnostics": ("findings", "run the project's own linter, type checker or build."),
    "definition": ("symbols", "use grep."),
    "references": ("symbols", "use grep."),
    "symbols": ("symbols", "use grep."),
    "hover": ("symbols", "read the definition; grep finds it."),
    "callHierarchy": ("symbols", "use grep."),
    "rename": ("symbols", "find the uses with grep and change them with apply_patch."),
}
"""What the question is about, and what the model can do instead."""


class EditorAnswer(Protocol):
    """A result of `amanu/editor/*`."""

    @property
    def status(self) -> EditorStatus: ...

    @property
    def message(self) -> str | None: ...


A = TypeVar("A", bound=EditorAnswer)


async def ask(
    overlay: Overlay, question: Question, paths: Iterable[Path], call: Callable[[LanguageQueries], Awaitable[A]]
) -> A:
    """The first successful answer about one of those absolute paths; `call` puts the question to one editor. Who is
    starting is asked again for a while. Raises `ToolError` saying why nobody answered, and what to do instead."""
    subject, instead = _ABOUT[question]
    languages = overlay.languages(question, paths)
    if not languages:
        raise ToolError(f"No attached editor can answer about {subject}; {instead}")
    end = asyncio.get_running_loop().time() + PATIENCE
    reasons: list[str] = []
    for language in languages:
        answer = await _started(language, call, end)
        if answer.status == "success":
            return answer
        reasons.append(_reason(language.name or "The editor", answer))
    raise ToolError(f"{' '.join(reasons)} Instead, {instead}")


async def _started(language: LanguageQueries, call: Callable[[LanguageQueries], Awaitable[A]], end: float) -> A:
    while True:
        answer = await call(language)
        if answer.status != "starting" or asyncio.get_running_loop().time() >= end:
            return answer
        await asyncio.sleep(PAUSE)


def _reason(editor_name: str, answer: EditorAnswer) -> str:
    message = " ".join((answer.message or "").split())[:REASON]
    match answer.status:
        case "starting":
            return f"{editor_name} has a language server, but it is still starting."
        case "noServer":
            return f"{editor_name} has no language server for that."
        case _:
            return f"{editor_name} could not answer{f': {message}' if message else ''}".rstrip(".") + "."
