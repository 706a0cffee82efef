"""The bench of the terminal: its data, how it counts, and what its pages say."""

from typing import Any

import pytest
from bench.terminal import transcripts
from bench.terminal.page import ROWS, needs, page
from bench.terminal.play import Played
from bench.terminal.pseudo_terminal import text_of
from bench.terminal.task import NAMES, Hand, Name, Task, load, steps, taken

MORE = {"9-model"}
"""Tasks for which ours needs more than the better of the others. None may join them."""


def hand(*lines: str) -> Hand:
    return Hand(steps(["type before"]), steps(lines), "", "")


def task(**hands: Hand | str) -> Task:
    found: dict[Name, Hand | str] = {name: hands.get(name.split()[0].lower(), "It cannot.") for name in NAMES}
    return Task("1-it", "Do it", "Anywhere.", {}, True, [], found)


@pytest.mark.parametrize(
    ("lines", "keys", "characters", "words"),
    [
        (["press Enter"], 1, 0, "1 key"),
        (["type /mod", "see /model", "press Enter"], 1, 4, "1 key + 4 characters"),
        (["type a b", "press C-c", "press C-c", "wait 2"], 2, 3, "2 keys + 3 characters"),
        (["type a"], 0, 1, "1 character"),
        (["see that it is there already"], 0, 0, "nothing"),
    ],
)
def test_keys_and_characters_are_counted(lines: list[str], keys: int, characters: int, words: str) -> None:
    played = hand(*lines)
    assert (played.pressed, played.characters, played.strokes, taken(played)) == (
        keys,
        characters,
        keys + characters,
        words,
    )


@pytest.mark.parametrize("line", ["", "press", "push Enter", "type "])
def test_a_line_that_is_no_step_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="no step"):
        steps([line])


@pytest.mark.parametrize(
    ("hands", "words"),
    [
        ({"amanu": hand("press 1"), "codex": hand("press 1", "press 2")}, "1 fewer"),
        ({"amanu": hand("press 1"), "codex": hand("type y"), "gemini": hand("press 1", "press 2")}, "as many"),
        ({"amanu": hand("type yes"), "codex": hand("press 1"), "gemini": hand("type yes")}, "**2 more**"),
        ({"amanu": hand("press 1")}, "the only one"),
    ],
)
def test_ours_is_compared_with_the_better_of_the_others(hands: dict[str, Hand], words: str) -> None:
    assert needs(task(**hands)) == words


def test_there_are_ten_tasks_and_each_is_checked() -> None:
    tasks = load()
    assert [each.name.partition("-")[0] for each in tasks] == [str(number) for number in range(1, 11)]
    for each in tasks:
        hands = [hand for hand in each.hands.values() if isinstance(hand, Hand)]
        assert all(each.result or hand.keys[-1].verb == "see" for hand in hands), each.name


def test_ours_needs_no_more_keys() -> None:
    assert {each.name for each in load() if needs(each).endswith("more**")} == MORE


def test_a_page_says_what_was_missed_and_what_failed() -> None:
    figures = {("first", "Amanu"): [30.0, 50.0], ("key", "Amanu"): [20.0]}
    played = {("1-it", "Amanu"): Played(1.0, "", "no 'x' in:")}
    text = page("<!-- -->", NAMES, figures, [task(amanu=hand("press 1"))], played, ["Codex: keys: slow"])
    rows = {line.split(" | ")[0]: line for line in text.splitlines()}
    assert rows[f"| {ROWS[0].title}"].endswith("| ≤ 100 ms | met |")
    assert rows["| key → screen, 10,000 items"].endswith("| ≤ 16 ms | **missed** |")
    assert "| **FAILED** | cannot | cannot |" in text and "Amanu FAILED: no 'x'" in text and "- Codex: keys" in text


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        (b"\x1b[1;31mHere\x1b[0m I\x1b[3Cam", "HereIam"),
        (b"\x1b]0;title\x07\x1b]11;?\x1b\\\x1bP+q\x1b\\\xe2\x80\xba \r\n", "\u203a"),
        (b"\x1b(Ba\x1b7\x08b", "ab"),
    ],
)
def test_of_what_a_program_draws_the_text_is_kept(drawn: bytes, text: str) -> None:
    assert text_of(drawn) == text


def test_their_transcripts_are_lengthened_by_their_own_turn() -> None:
    turn = {"turn_id": "turn-1"}
    records = [
        {"type": "session_meta", "ordinal": 0, "payload": {"id": "s"}},
        {"type": "event_msg", "ordinal": 1, "payload": {"type": "task_started", **turn}},
        {"type": "response_item", "ordinal": 2, "payload": {"role": "user", "content": "Are you there?"}},
        {"type": "response_item", "ordinal": 3, "payload": {"role": "assistant", "id": "msg_bench"}},
        {"type": "event_msg", "ordinal": 4, "payload": {"type": "task_complete", **turn}},
    ]
    found = list(transcripts.codex(records, 6))
    assert [each["ordinal"] for each in found] == [*range(13)]
    assert sum(each["payload"].get("role") in ("user", "assistant") for each in found) == 6
    assert len({each["payload"]["turn_id"] for each in found if "turn_id" in each["payload"]}) == 3
    said: list[dict[str, Any]] = [
        {"sessionId": "s"},
        {"type": "user", "id": "a"},
        {"type": "gemini", "id": "b"},
        {"$set": {}},
    ]
    theirs = [each for each in transcripts.gemini(said, 6) if "type" in each]
    assert len(theirs) == len({each["id"] for each in theirs}) == 6
