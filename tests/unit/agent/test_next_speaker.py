"""Who speaks next: what the rules say of a reply, and what is left to a judge."""

import asyncio
from typing import Any

import pytest
from bench.endings.corpus import MOST_ASKED, load

from amanu.agent import next_speaker as speaker
from amanu.agent.next_speaker import parse_speaker, should_continue
from amanu.agent.reply_endings import speaker_by_rule
from amanu.core.conversation import Assistant, Conversation, Text, User
from amanu.core.model import StreamBroken

RULED: list[tuple[str, Any]] = [
    # announced, and stopped
    ("I will now read the file.", "model"),
    ("The parser is at fault.\n\nNow I'll fix it.", "model"),
    ("Found it. I'm going to now run the tests.", "model"),
    ("Okay, let me check the tests:", "model"),
    ("**I will now apply the change.**", "model"),
    ("Next, I will update these files:", "model"),
    ("I’ll now look at `what?.py`.", "model"),
    # questions, in any script
    ("Shall I go on?", "user"),
    ("Which one do you mean: a or b?\nLet me know.", "user"),
    ("Soll ich das ändern?", "user"),
    ("続けますか？", "user"),
    ("هل أتابع؟", "user"),
    ("Should I delete it? I will now wait.", "user"),
    # answers
    ("Done.", "user"),
    ("Understood.", "user"),
    ("Alles erledigt!", "user"),
    ("All tests pass.", "user"),
    ("The file has 3 lines.", "user"),
    ("I changed two files:\n\n- `a.py`\n- `b.py`", "user"),
    ("Here it is:\n\n```python\nx = 1\n```", "user"),
    ("| a | b |\n|---|---|\n| 1 | 2 |", "user"),
    ("Steps:\n1. Let me now do this.\n2. I will now do that.", "user"),
    ("Let me know if anything is missing.", "user"),
    ("It is fixed. Feel free to ask for more.", "user"),
    ("If you like, I'll now add tests.", "user"),
    ("I will now wait for your decision.", "user"),
    ("Once you have set the key, I'll now be able to go on.", "user"),
    ("I'd be happy to explain more.", "user"),
    ("Now I'll leave the rest to you.", "user"),
    ("It was hard. " * 60, "user"),
    ("I'll use tabs from now on.", "user"),
    ("I'll now hand this back to you.", "user"),
    ("Let me point out that the tests now pass.", "user"),
    ("Done.\n\n***", "user"),
    ("**", "user"),
    ("I fixed it, and I can also add a test.", "user"),
    # only a judge can tell
    ("Reading the file now...", None),
    ("Checking the callers next.", None),
    ("Okay, running the tests now.", None),
    ("Everything is working now.", "user"),
    ("Nothing left.", "user"),
    ("The fix is in place; next I start the server", None),
    ("I fixed the parser and will now run the tests.", None),
    ("First, I will add the field. Then I will move the data.", None),
    ("I will now stop here.", None),
    ("Je vais maintenant m'arrêter ici.", None),
    ("Vou agora parar por aqui.", None),
    ("Teraz uruchomię testy.", None),
]


@pytest.mark.parametrize(("text", "expected"), RULED)
def test_what_the_rules_say(text: str, expected: str | None) -> None:
    assert speaker_by_rule(text, may_stop_midway=True) == expected


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("Jetzt ändere ich den Parser:", True),
        ("我现在来看一下这个文件。", True),
        ("Ich sehe mir die Datei an.", False),
        ("Let me look at the file.", False),
        ("I will read a.py and then b.py.", False),
        ("The call that fails is this one:", False),
    ],
)
def test_what_may_be_an_announcement_is_one_of_models_known_to_stop_midway(text: str, certain: bool) -> None:
    assert speaker_by_rule(text, may_stop_midway=True) == "model"
    assert speaker_by_rule(text, may_stop_midway=False) == ("model" if certain else None)


def test_endings_in_eight_languages_are_ruled_rightly_and_seldom_left_to_the_judge() -> None:
    endings = load()
    assert len(endings) == 80
    asked = [ending.text for ending in endings if ending.ruled is None]
    assert len(asked) <= MOST_ASKED * len(endings), asked
    assert [ending.text for ending in endings if ending.ruled not in (None, ending.next)] == []


@pytest.mark.parametrize("name", ["endings", "held_out", "short", "second_hand"])
def test_a_rule_never_has_the_model_go_on_when_it_is_the_users_turn(name: str) -> None:
    assert [ending.text for ending in load(name) if (ending.next, ending.ruled) == ("user", "model")] == []


def test_a_short_announcement_is_never_taken_for_an_answer() -> None:
    assert [ending.text for ending in load("short") if (ending.next, ending.ruled) == ("model", "user")] == []


@pytest.mark.parametrize("phrase", ["e", "e ", "now, ", "voy ", "まず", "はい", "では", "我", "я ", "好"])
def test_a_very_long_line_is_judged_at_once(phrase: str) -> None:
    """The time of a pattern that tries every place twice would be seen."""
    assert speaker_by_rule(phrase * 20_000, may_stop_midway=True) == "user"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"next_speaker": "model"}', "model"),
        ('Sure!\n```json\n{"next_speaker": " Model "}\n```', "model"),
        ('{"next_speaker": "user"}', "user"),
        ('{"next_speaker": "user"}', "user"),
        ('{"next_speaker": ["model"]}', "user"),
        ('{"next_speaker": "model"', "user"),
        ("{next_speaker: model}", "user"),
        ("model", "user"),
        ("[1]", "user"),
        ("", "user"),
    ],
)
def test_a_judgement_is_the_model_only_when_it_clearly_says_so(answer: str, expected: str) -> None:
    assert parse_speaker(answer) == expected


UNCLEAR = "Teraz uruchomię testy."


async def test_without_a_judge_the_rules_decide_alone() -> None:
    for text, expected in [(UNCLEAR, False), ("Let me look at the file.", True), ("All tests pass.", False)]:
        reply = Assistant(parts=(Text(text=text),))
        assert await should_continue(Conversation([reply]), reply, None, may_stop_midway=True) == expected


async def judged(text: str, judge: Any, *, midway: bool = True) -> tuple[bool, list[str]]:
    asked: list[str] = []

    async def ask(system: str, question: str) -> str:
        asked.append(question)
        if isinstance(judge, Exception):
            raise judge
        if judge is None:
            await asyncio.Event().wait()
        return str(judge)

    conversation = Conversation([User(text="Fix it."), Assistant(parts=(Text(text=text),))])
    return await should_continue(conversation, Assistant(parts=(Text(text=text),)), ask, may_stop_midway=midway), asked


@pytest.mark.parametrize(
    ("text", "judge", "midway", "expected", "questions"),
    [
        (UNCLEAR, '{"next_speaker": "model"}', True, True, 1),
        (UNCLEAR, '{"next_speaker": "user"}', True, False, 1),
        (UNCLEAR, "What?", True, False, 1),
        (UNCLEAR, StreamBroken("No."), True, False, 1),
        (UNCLEAR, None, True, False, 1),
        (UNCLEAR, '{"next_speaker": "model"}', False, False, 0),
        ("I will now read it.", StreamBroken("No."), False, True, 0),
        ("Shall I?", '{"next_speaker": "model"}', True, False, 0),
        (" \n", '{"next_speaker": "model"}', True, False, 0),
    ],
)
async def test_the_judge_is_asked_only_where_needed_and_trusted_only_when_clear(
    monkeypatch: pytest.MonkeyPatch, text: str, judge: Any, midway: bool, expected: bool, questions: int
) -> None:
    monkeypatch.setattr(speaker, "SECONDS", 0.01)
    found, asked = await judged(text, judge, midway=midway)
    assert (found, len(asked)) == (expected, questions)
    assert all("Fix it." in each and text in each for each in asked)
