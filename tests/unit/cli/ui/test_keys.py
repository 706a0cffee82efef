"""The table of keys, and what `[terminal.keys]` may make of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from amanu.cli.ui.keys import KEYS, Action, Reason, key_map
from amanu.config import workspace_rules
from amanu_protocol.errors import AmanuError

Wanted = Mapping[str, str | Sequence[str]]


def shown(wanted: Wanted) -> dict[Action, str]:
    table = dict(zip((each.action for each in KEYS), (keys for keys, _ in key_map(wanted)[0].table()), strict=True))
    return {each.action: table[each.action] for each in KEYS}


DEFAULT = shown({})


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, {}),
        ({"mode": "f2"}, {"mode": "F2"}),
        ({"mode": "F2"}, {"mode": "F2"}),
        ({"editor": ["ctrl-e", "ctrl-x b"]}, {"editor": "Ctrl-E, Ctrl-X b"}),
        ({"everything": "c-x", "editor": "alt-e"}, {"everything": "Ctrl-X", "editor": "Alt-e"}),
        ({"everything": "M-E"}, {"everything": "Alt-E"}),
        ({"everything": "ctrl-r", "search": "ctrl-o"}, {"everything": "Ctrl-R", "search": "Ctrl-O"}),
        ({"stop": "ctrl-q"}, {"stop": "Esc, Ctrl-Q"}),
        ({"send": "ctrl-s"}, {"send": "Enter, Ctrl-S"}),
        ({"send": "enter", "interrupt": "ctrl-c"}, {}),
        ({"interrupt": ["f9", "f9"]}, {"interrupt": "Ctrl-C, F9"}),
        ({"keys": ["f1", "?"]}, {"keys": "F1, ?"}),
        ({"complete": "ctrl-space"}, {"complete": "Ctrl-Space"}),
        ({"mode": "alt--"}, {"mode": "Alt--"}),
        ({"mode": "ctrl-shift-left"}, {"mode": "Ctrl-Shift-Left"}),
    ],
)
def test_actions_have_the_keys_that_the_user_names(wanted: Wanted, expected: dict[Action, str]) -> None:
    assert key_map(wanted)[1] == []
    assert shown(wanted) == {**DEFAULT, **expected}


@pytest.mark.parametrize(
    ("wanted", "refused", "reason", "says"),
    [
        ({"sned": "f2"}, "sned", "unknownAction", "Did you mean send?"),
        ({"x": "f2"}, "x", "unknownAction", "There are send, newLine,"),
        ({"mode": "ctrl-foo"}, "mode", "unknownKey", "“ctrl-foo”. Write it as ctrl-x"),
        ({"mode": "hyper-x"}, "mode", "unknownKey", "“hyper-x”"),
        ({"mode": "<any>"}, "mode", "unknownKey", "“<any>”"),
        ({"mode": "\x1b"}, "mode", "unknownKey", "there is no key"),
        ({"mode": ""}, "mode", "unknownKey", "there is no key"),
        ({"mode": []}, "mode", "unknownKey", "name at least one key"),
        ({"mode": ["f2", "ctrl-foo"]}, "mode", "unknownKey", "“ctrl-foo”"),
        ({"mode": "enter"}, "mode", "reserved", "Enter must stay send."),
        ({"mode": "ctrl-m"}, "mode", "reserved", "Enter must stay send."),
        ({"mode": "ctrl-c"}, "mode", "reserved", "Ctrl-C must stay interrupt."),
        ({"send": "ctrl-c"}, "send", "reserved", "Ctrl-C must stay interrupt."),
        ({"mode": "ctrl-c x"}, "mode", "reserved", "Ctrl-C must stay interrupt."),
        ({"mode": "x"}, "mode", "reserved", "x is a character, which could not be typed any more."),
        ({"mode": "x ctrl-a"}, "mode", "reserved", "is a character"),
        ({"mode": "down"}, "mode", "reserved", "Down moves and edits"),
        ({"mode": "backspace"}, "mode", "reserved", "Backspace moves and edits"),
        ({"mode": "tab"}, "mode", "reserved", "Tab moves and edits"),
        ({"mode": "ctrl-o"}, "mode", "taken", "Ctrl-O would be everything as well."),
        ({"mode": "ctrl-x"}, "mode", "taken", "Ctrl-X would be editor as well."),
        ({"mode": "ctrl-o x"}, "mode", "taken", "Ctrl-O x would be everything as well."),
        ({"mode": "esc"}, "mode", "reserved", "Esc must stay stop."),
        ({"mode": "alt-enter"}, "mode", "taken", "Alt-Enter would be newLine as well."),
    ],
)
def test_what_cannot_be_says_why_and_leaves_the_default(
    wanted: Wanted, refused: str, reason: Reason, says: str
) -> None:
    ((warning),) = key_map(wanted)[1]
    assert (warning.action, warning.reason) == (refused, reason)
    assert warning.sentence.startswith(f"[terminal.keys] {refused}: ") and says in warning.sentence
    assert shown(wanted) == DEFAULT


def test_of_two_actions_on_one_key_the_first_has_it() -> None:
    wanted = {"mode": "f2", "search": "f2", "everything": "f3"}
    assert [(each.action, each.reason) for each in key_map(wanted)[1]] == [("search", "taken")]
    assert shown(wanted) == {**DEFAULT, "mode": "F2", "everything": "F3"}


@pytest.mark.parametrize(
    ("wanted", "action", "released"),
    [
        ({}, "mode", []),
        ({"mode": "f2"}, "mode", [("s-tab",)]),
        ({"editor": "ctrl-g"}, "editor", [("c-x", "c-e")]),
        ({"everything": "ctrl-r", "search": "ctrl-o"}, "search", []),
        ({"keys": "f1"}, "keys", []),
    ],
)
def test_a_key_that_was_given_up_does_nothing(wanted: Wanted, action: Action, released: list[tuple[str, ...]]) -> None:
    assert key_map(wanted)[0].released(action) == released


@pytest.mark.parametrize("text", ['[terminal.keys]\nmode = "f2"\n', '[terminal]\nediting = "vi"\n'])
def test_a_workspace_binds_no_keys(text: str, tmp_path: Path) -> None:
    (tmp_path / ".amanu").mkdir()
    (tmp_path / ".amanu" / "config.toml").write_text(text)
    with pytest.raises(AmanuError, match="may only set deny and must_ask"):
        workspace_rules(tmp_path)
