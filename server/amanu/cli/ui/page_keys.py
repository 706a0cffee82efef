"""The keys of the review page, which has them for itself while it is open: what `?` shows there is what is bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

PageAction = Literal[
    "next",
    "previous",
    "nextFile",
    "previousFile",
    "down",
    "up",
    "top",
    "bottom",
    "accept",
    "reject",
    "why",
    "edit",
    "undo",
    "acceptFile",
    "rejectFile",
    "back",
    "keys",
]


@dataclass(frozen=True)
class PageKey:
    """A row of the table. `bound` are sequences in prompt_toolkit's names."""

    action: PageAction
    shown: str
    about: str
    bound: Sequence[Sequence[str]]


PAGE_KEYS: Sequence[PageKey] = (
    PageKey("next", "j, ↓", "the next change", [["j"], ["down"]]),
    PageKey("previous", "k, ↑", "the change before", [["k"], ["up"]]),
    PageKey("nextFile", "n", "the next file", [["n"]]),
    PageKey("previousFile", "p", "the file before", [["p"]]),
    PageKey("down", "PgDn, Space", "what is below", [["pagedown"], [" "]]),
    PageKey("up", "PgUp, b", "what is above", [["pageup"], ["b"]]),
    PageKey("top", "Home, g", "the beginning of the file", [["home"], ["g"]]),
    PageKey("bottom", "End, G", "its end", [["end"], ["G"]]),
    PageKey("accept", "a, 1, Enter", "accept; keep what a rule applied; apply again", [["a"], ["1"], ["enter"]]),
    PageKey("reject", "r, 2", "reject; undo what is applied", [["r"], ["2"]]),
    PageKey("why", "w", "reject, with words to the model", [["w"]]),
    PageKey("edit", "e, 3", "edit it in your editor, then accept that", [["e"], ["3"]]),
    PageKey("undo", "u", "undo what is applied", [["u"]]),
    PageKey("acceptFile", "A", "accept all that waits of the file: it is shown first", [["A"]]),
    PageKey("rejectFile", "R", "reject all that waits of the file: it is shown first", [["R"]]),
    PageKey("back", "q, Esc", "back to the chat; the rest is decided later", [["q"], ["escape"]]),
    PageKey("keys", "?", "show these keys", [["?"]]),
)


def page_table() -> Sequence[tuple[str, str]]:
    return [(each.shown, each.about) for each in PAGE_KEYS]
