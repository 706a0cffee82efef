"""The keys of the chat, as one table: what `?` shows is what is bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Action = Literal[
    "send",
    "newLine",
    "complete",
    "mode",
    "stop",
    "interrupt",
    "leave",
    "search",
    "editor",
    "everything",
    "keys",
    "suspend",
]


@dataclass(frozen=True)
class Key:
    """One row of the table. `bound` are sequences in prompt_toolkit's names; none where prompt_toolkit binds them."""

    action: Action
    shown: str
    about: str
    bound: Sequence[Sequence[str]] = ()


KEYS: Sequence[Key] = (
    Key("send", "Enter", "send the prompt, or answer with the row that is marked", [["enter"]]),
    Key("newLine", "Alt-Enter, Ctrl-J", "new line (so does Enter after a \\)", [["escape", "enter"], ["c-j"]]),
    Key("complete", "Tab", "complete a command, a file after @, an argument"),
    Key("mode", "Shift-Tab", "next mode: ask, acceptEdits, draft, plan", [["s-tab"]]),
    Key("stop", "Esc", "stop what runs; twice while nothing runs: go back to an earlier turn", [["escape"]]),
    Key("interrupt", "Ctrl-C", "clear the prompt; stop what runs; twice: leave", [["c-c"], ["<sigint>"]]),
    Key("leave", "Ctrl-D", "leave, where nothing is typed", [["c-d"]]),
    Key("search", "Ctrl-R", "search in earlier prompts"),
    Key("editor", "Ctrl-G, Ctrl-X Ctrl-E", "write the prompt in your editor", [["c-g"], ["c-x", "c-e"]]),
    Key("everything", "Ctrl-O", "show all that was cut above: outputs, thoughts", [["c-o"]]),
    Key("suspend", "Ctrl-Z", "back to the shell; fg returns", [["c-z"]]),
    Key("keys", "?", "show these keys, where nothing is typed", [["?"]]),
)


def bound(action: Action) -> Sequence[Sequence[str]]:
    return next(each.bound for each in KEYS if each.action == action)


def table() -> Sequence[tuple[str, str]]:
    """Name and meaning of each."""
    return [(each.shown, each.about) for each in KEYS]
