"""`/model WORDS`: the model that is meant, or those that may be."""

from collections.abc import Sequence

from amanu.cli.console import Console
from amanu.cli.header import describe
from amanu.cli.text import one_line, visible
from amanu_protocol.items import ModelInfo

LISTED = 12
"""Models of a list from which one is to be chosen by number; more are narrowed down first."""


class ModelChoice:
    """Remembers the numbers of the list that was shown last."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: Sequence[ModelInfo] = ()

    def choose(self, typed: str, models: Sequence[ModelInfo]) -> str | None:
        """The id of the model that is meant: by its number in the last list, or words that only one has in id or name.
        What nobody knows is returned as it is: the daemon refuses it. None: several may be meant, and are listed."""
        if typed.isdecimal() and 1 <= int(typed) <= len(self._shown):
            return self._shown[int(typed) - 1].model_id
        matching = matches(typed, models)
        if len(matching) <= 1:
            return matching[0].model_id if matching else typed
        self._shown = matching[:LISTED]
        self._console.line(("", f"{len(matching)} models have “{visible(typed)}” in id or name:"))
        for number, model in enumerate(self._shown, 1):
            missing = "" if model.available else f" — {one_line(model.unavailable or 'not available')}"
            self._console.line(("bold", f"{number:3} "), ("" if model.available else "dim", describe(model) + missing))
        more = f" {len(matching) - LISTED} more: type more of the name." if len(matching) > LISTED else ""
        self._console.line(("dim", f"/model 1 switches to the first of them.{more}"))
        return None


def matches(typed: str, models: Sequence[ModelInfo]) -> Sequence[ModelInfo]:
    """The models of that id, whatever their vendor; else those that have all the words, where there are any the
    ones that can be used."""
    named = [model for model in models if typed == model.model_id.partition(":")[2]]
    words = typed.casefold().split()
    found = named or [model for model in models if _has(model, words)]
    return [model for model in found if model.available] or found


def _has(model: ModelInfo, words: Sequence[str]) -> bool:
    text = f"{model.model_id} {model.name}".casefold()
    return all(word in text for word in words)
