"""The keys of the chat, as one table: what `?` shows is what is bound. The user's `config.toml` may bind others."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

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
    "picture",
    "keys",
    "suspend",
    "nextQuestion",
    "previousQuestion",
    "background",
]
Combination = tuple[str, ...]
"""Keys pressed one after the other, in prompt_toolkit's names."""


@dataclass(frozen=True)
class Key:
    """One row of the table. `default` are the keys as `config.toml` writes them."""

    action: Action
    default: Sequence[str]
    about: str
    always: Sequence[Combination] = ()
    """Bound whatever the user chooses: the chat would be unusable without."""


KEYS: Sequence[Key] = (
    Key("send", ["enter"], "send the prompt, or answer with the row that is marked", [("c-m",)]),
    Key("newLine", ["alt-enter", "ctrl-j"], "new line (so does Enter after a \\)"),
    Key("complete", ["tab"], "complete a command, a file after @, an argument"),
    Key("mode", ["shift-tab"], "next mode: ask, acceptEdits, draft, plan"),
    Key("stop", ["esc"], "stop what runs; twice, if nothing runs: to an earlier turn", [("escape",)]),
    Key("interrupt", ["ctrl-c"], "clear the prompt; stop what runs; twice: leave", [("c-c",), ("<sigint>",)]),
    Key("leave", ["ctrl-d"], "leave, where nothing is typed"),
    Key("search", ["ctrl-r"], "search in earlier prompts"),
    Key("editor", ["ctrl-g", "ctrl-x ctrl-e"], "write the prompt in your editor"),
    Key("everything", ["ctrl-o"], "show all that was cut above: outputs, thoughts"),
    Key("picture", ["ctrl-v"], "take the picture in the clipboard; the path of one can be pasted"),
    Key("background", ["ctrl-b"], "put the command that runs in the background"),
    Key("suspend", ["ctrl-z"], "back to the shell; fg returns"),
    Key("nextQuestion", ["ctrl-n"], "where several questions wait: the next one"),
    Key("previousQuestion", ["ctrl-p"], "the one before; what is typed stays there"),
    Key("keys", ["?"], "show these keys, where nothing is typed"),
)

_EDITING = frozenset({"up", "down", "left", "right", "home", "end", "c-h", "delete", "c-i"})
"""Keys that move and delete, in the composer and in lists."""
_MODIFIERS = {
    **dict.fromkeys(("c", "ctrl", "control"), "c"),
    **dict.fromkeys(("s", "shift"), "s"),
    **dict.fromkeys(("a", "alt", "m", "meta"), "a"),
}
_NAMES = {"c-m": "Enter", "c-i": "Tab", "c-h": "Backspace", "s-tab": "Shift-Tab", "escape": "Esc", "c-@": "Ctrl-Space"}
_SHOWN_MODIFIERS = {"c": "Ctrl", "s": "Shift"}

Reason = Literal["unknownAction", "unknownKey", "reserved", "taken"]


@dataclass(frozen=True)
class KeyWarning:
    """A line of `[terminal.keys]` that does not hold; its action keeps its default."""

    action: str
    reason: Reason
    sentence: str
    """Says what to do."""


class KeyMap:
    """All keys of one chat."""

    def __init__(self, bound: Mapping[Action, Sequence[Combination]]) -> None:
        self._bound = bound

    def bound(self, action: Action) -> Sequence[Combination]:
        return self._bound[action]

    def released(self, action: Action) -> Sequence[Combination]:
        """The default keys of an action that no action has any more, but for characters, which can be typed."""
        taken = {each for combinations in self._bound.values() for each in combinations}
        return [each for each in _defaults(_row(action)) if each not in taken and not _is_character(each)]

    def shown(self, action: Action) -> str:
        """The first key, in words."""
        return _in_words(self._bound[action][0])

    def table(self) -> Sequence[tuple[str, str]]:
        """Keys and meaning of each action."""
        return [(", ".join(map(_in_words, self._named(each.action))), each.about) for each in KEYS]

    def _named(self, action: Action) -> Sequence[Combination]:
        return [each for each in self._bound[action] if not each[0].startswith("<")]


def key_map(wanted: Mapping[str, str | Sequence[str]]) -> tuple[KeyMap, Sequence[KeyWarning]]:
    """The keys with those of `[terminal.keys]`, action → key or keys; and what of it does not hold."""
    bound: dict[Action, Sequence[Combination]] = {each.action: _defaults(each) for each in KEYS}
    warnings: list[KeyWarning] = []
    chosen: dict[Action, Sequence[Combination]] = {}
    for name, value in wanted.items():
        keys = [value] if isinstance(value, str) else value
        row = next((each for each in KEYS if each.action == name), None)
        refused = _unknown_action(name) if row is None else _refused(row, keys)
        if refused is not None:
            warnings.append(refused)
        elif row is not None:
            chosen[row.action] = _combinations(row, keys)
    while (conflict := _conflict(bound | chosen, chosen)) is not None:
        action, other, key = conflict
        del chosen[action]
        sentence = f"{key} would be {other} as well. Give {action} another key, or {other} one in [terminal.keys]."
        warnings.append(_warning(action, "taken", sentence))
    return KeyMap(bound | chosen), warnings


def _row(action: Action) -> Key:
    return next(each for each in KEYS if each.action == action)


def _defaults(row: Key) -> Sequence[Combination]:
    return _combinations(row, row.default)


def _combinations(row: Key, keys: Sequence[str]) -> Sequence[Combination]:
    found = [*row.always, *map(_combination, keys)]
    return list(dict.fromkeys(each for each in found if each is not None))


def _unknown_action(name: str) -> KeyWarning:
    near = difflib.get_close_matches(name, get_args(Action), 1)
    meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(get_args(Action))}."
    return KeyWarning(name, "unknownAction", f"[terminal.keys] {name}: there is no such action. {meant}")


def _warning(action: str, reason: Reason, sentence: str) -> KeyWarning:
    return KeyWarning(action, reason, f"[terminal.keys] {action}: {sentence} It keeps its default.")


def _refused(row: Key, keys: Sequence[str]) -> KeyWarning | None:
    """Why an action cannot have these keys."""
    if not keys:
        return _warning(row.action, "unknownKey", "name at least one key.")
    for key in keys:
        combination = _combination(key)
        if combination is None:
            return _warning(
                row.action, "unknownKey", f"there is no key “{key}”. Write it as ctrl-x, alt-enter, f5 or ctrl-x b."
            )
        if (why := _reserved(row, combination)) is not None:
            return _warning(row.action, "reserved", f"{why} Choose another key.")
    return None


def _reserved(row: Key, combination: Combination) -> str | None:
    first, shown = combination[0], _key_in_words(combination[0])
    for other in KEYS:
        if other is not row and (first,) in other.always and (first != "escape" or len(combination) == 1):
            return f"{shown} must stay {other.action}."
    if first in _EDITING and combination not in _defaults(row):
        return f"{shown} moves and edits in the prompt and in lists."
    if len(first) == 1 and not (row.action == "keys" and len(combination) == 1):
        return f"{shown} is a character, which could not be typed any more."
    return None


def _conflict(
    bound: Mapping[Action, Sequence[Combination]], chosen: Mapping[Action, Sequence[Combination]]
) -> tuple[Action, Action, str] | None:
    """A chosen action with a key of another, or one that begins another's; the last line of the file gives way."""
    actions: Sequence[Action] = [*chosen]
    for action in reversed(actions):
        for key in bound[action]:
            others: list[Action] = [each for each, keys in bound.items() if each != action and _meets(key, keys)]
            if others:
                return action, others[0], _in_words(key)
    return None


def _meets(key: Combination, others: Sequence[Combination]) -> bool:
    """Whether it is one of those, or begins one, or one begins it: but for Esc, which is Alt before a key."""
    return any(
        key[: len(each)] == each[: len(key)] and (key == each or ("escape",) not in (key, each)) for each in others
    )


def _combination(text: str) -> Combination | None:
    """The keys that are written as `ctrl-x ctrl-e`; None where there is no such key."""
    keys: list[str] = []
    for word in text.split():
        pressed = [*_pressed(word)]
        if not pressed:
            return None
        keys += pressed
    return tuple(keys) or None


def _pressed(word: str) -> Iterator[str]:
    """One key, behind Esc if Alt is pressed; nothing where there is no such key."""
    from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES

    *before, base = word.split("-") if not word.endswith("-") else [*word[:-1].split("-")[:-1], "-"]
    modifiers = {_MODIFIERS.get(each.lower(), "") for each in before}
    base = base if len(base) == 1 and not modifiers - {"a"} else base.lower()
    base = {"esc": "escape", "return": "enter", "del": "delete", "backtab": "s-tab"}.get(base, base)
    plain = "".join(f"{each}-" for each in "cs" if each in modifiers) + base
    key = KEY_ALIASES.get(plain, plain)
    is_known = key in ALL_KEYS and not key.startswith("<")
    if "" in modifiers or not (is_known or (len(key) == 1 and key.isprintable() and key != " ")):
        return
    if "a" in modifiers:
        yield "escape"
    yield key


def _is_character(combination: Combination) -> bool:
    return len(combination) == 1 and len(combination[0]) == 1


def _in_words(combination: Combination) -> str:
    return " ".join(map(_key_in_words, combination)).replace("Esc ", "Alt-")


def _key_in_words(key: str) -> str:
    if (name := _NAMES.get(key)) is not None:
        return name
    *modifiers, base = key.split("-") if len(key) > 1 else [key]
    base = base if len(key) == 1 else base.capitalize()
    return "-".join([*(_SHOWN_MODIFIERS[each] for each in modifiers), base])
