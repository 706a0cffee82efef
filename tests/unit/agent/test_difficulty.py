"""The judgement of how hard a prompt is: read from whatever comes."""

import pytest

from amanu.agent import difficulty
from amanu.core.model import Overloaded

ANSWERS: list[tuple[str, int | None]] = [
    ('{"difficulty": 40}', 40),
    ('```json\n{"difficulty": 40}\n```', 40),
    ('Sure! {"reasoning": "a {brace}", "difficulty": 77} Hope it helps.', 77),
    ('{"difficulty": "63"}', 63),
    ('{"difficulty": 12.6}', 13),
    ('{"x": 1} {"difficulty": 5}', 5),
    ('{"difficulty": 40', 40),
    ("difficulty: 90", 90),
    ("**Difficulty**: 9", 9),
    ('{"difficulty": 0}', None),
    ('{"difficulty": 101}', None),
    ('{"difficulty": true}', None),
    ('{"difficulty": null}', None),
    ('{"difficulty": NaN}', None),
    ('{"difficulty": [1]}', 1),
    ("hard", None),
    ("42", None),
    ("", None),
    ("{" * 5000, None),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_read(answer: str, expected: int | None) -> None:
    assert difficulty.parse_difficulty(answer) == expected


async def test_what_is_asked() -> None:
    asked: list[tuple[str, str]] = []

    async def ask(system: str, question: str) -> str:
        asked.append((system, question))
        return '{"difficulty": 3}'

    prompt = "a" * 5000 + "the end"
    assert await difficulty.judge_difficulty(ask, prompt, ["one", "two", "three", "four"]) == 3
    ((system, question),) = asked
    assert system == difficulty.SYSTEM
    assert question.count("<message>") == 4 and "one" not in question and "two" in question
    assert "the end" in question and len(question) < 2500


async def test_a_failure_is_no_judgement() -> None:
    async def fails(system: str, question: str) -> str:
        raise Overloaded("No.")

    assert await difficulty.judge_difficulty(fails, "x", []) is None
