"""What sessions are called: the gist of the first prompt, worded by the utility model where there is one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from amanu.core.model import TokenUsage
from amanu.session.title import LONGEST, cleaned, gist
from amanu_protocol.events import SessionChanged
from support.scripted_session import ScriptedSession, step
from unit.test_session_routing import opened

TITLE = step("Fix the login page", aside=True, usage={"input": 100, "output": 5})


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("write it", "write it"),
        ("hi", "hi"),
        ("Hello!", "Hello!"),
        ("hello 4", "hello 4"),
        ("Hi there, can you please fix the login page? It fails since Monday.", "Fix the login page?"),
        ("Hey Amanu, I want you to rename x", "Rename x"),
        ("hide the menu", "hide the menu"),
        ("Could you\n\nadd tests", "add tests"),
        ("@src/app.py please explain this", "Explain this"),
        ("Explain @src/app.py to me", "Explain app.py to me"),
        ("@src/app.py", "app.py"),
        ("Mail me@home.test when done", "Mail me@home.test when done"),
        ("```py\nx = 1\n```\nWhy does `x` fail?", "Why does x fail?"),
        ("```py\nx = 1\n```", "x = 1"),
        ("Use e.g. Pytest for it. Then stop.", "Use e.g. Pytest for it."),
        ("Raise it to 2.5 Then stop", "Raise it to 2.5 Then stop"),
        ("Schöne Grüße. Über alles.", "Schöne Grüße."),
        ("/review all of it", "/review all of it"),
        ("…", "…"),
        ("  \n ", "Untitled"),
        ("word " * 30, "word word word word word word word word word word word…"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_the_gist_of_a_prompt(prompt: str, title: str) -> None:
    assert gist(prompt) == title and len(title) <= LONGEST


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Fix the login page", "Fix the login page"),
        ('"Fix the login page."\n', "Fix the login page"),
        ("**Title: Fix the login page**", "Fix the login page"),
        ("# Fix\nBecause it fails", "Fix"),
        ("a\u202eb", "a<U+202E>b"),
        ("", ""),
        ('".."', ""),
        ("word " * 30, "word word word word word word word word word word word…"),
    ],
)
def test_a_models_answer_as_a_title(answer: str, title: str) -> None:
    assert cleaned(answer) == title


def titles(d: ScriptedSession) -> list[str | None]:
    """What the session was called, one after the other."""
    return [message.event.title for message in d.client.messages if isinstance(message.event, SessionChanged)]


async def prompts(d: ScriptedSession) -> None:
    await d.prompt("Please fix the login page. It fails.")
    await d.ended()


async def test_the_utility_model_words_it_after_the_first_reply_and_that_is_counted(tmp_path: Path) -> None:
    scripts = {"mine": [step("Done."), step("More.")], "cheap": [TITLE, step("Another", aside=True)]}
    async with opened(tmp_path, scripts, model="mine", utility="cheap") as d:
        await d.prompt("Please mend the login page. It fails.")
        await d.ended()
        state = await d.until(lambda state: state.title == "Fix the login page")
        assert titles(d) == ["Mend the login page.", "Fix the login page"]
        assert state.usage is not None and state.usage.input_tokens >= 100
        await d.prompt("go on", "p2")
        await d.over("p2")
        await d.session.own_parts.title.stop()
        assert d.session.state.title == "Fix the login page"


@pytest.mark.parametrize(
    "answer",
    [step("", aside=True, error="quotaExhausted", failures=99), step(" ", aside=True)],
    ids=["no quota", "nothing"],
)
async def test_where_that_fails_the_gist_stays_and_nothing_is_said(tmp_path: Path, answer: dict[str, Any]) -> None:
    scripts = {"mine": [step("Done.")], "cheap": [answer]}
    async with opened(tmp_path, scripts, model="mine", utility="cheap") as d:
        await prompts(d)
        await d.session.own_parts.title.stop()
        assert d.session.state.title == "Fix the login page."
        assert not [item for item in d.session.state.items if item.kind == "notice"]


async def test_a_title_of_the_users_stays(tmp_path: Path) -> None:
    async with opened(tmp_path, {"mine": [step("Done.")], "cheap": [TITLE]}, model="mine", utility="cheap") as d:
        await d.session.rename("Mine")
        await prompts(d)
        assert d.session.state.title == "Mine"
        usage = d.session.state.usage
        assert usage is None or usage.input_tokens < 100


async def test_a_title_the_user_gives_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def ask(*_: object, **__: object) -> tuple[str, TokenUsage]:
        asked.set()
        await answer.wait()
        return "Late", TokenUsage()

    monkeypatch.setattr("amanu.agent.side_query.ask", ask)
    async with opened(tmp_path, {"mine": [step("Done.")], "cheap": []}, model="mine", utility="cheap") as d:
        await prompts(d)
        await asked.wait()
        await d.session.rename("Mine")
        answer.set()
        await asyncio.sleep(0)
        await d.session.own_parts.title.stop()
        assert d.session.state.title == "Mine"


@pytest.mark.parametrize(
    ("words_titles", "routing"), [(False, {"utility": "cheap"}), (True, {})], ids=["off", "no utility model"]
)
async def test_no_model_is_asked(tmp_path: Path, words_titles: bool, routing: dict[str, Any]) -> None:
    scripts = {"mine": [step("Done.")], "cheap": [TITLE]}
    async with opened(tmp_path, scripts, model="mine", titles=words_titles, **routing) as d:
        await prompts(d)
        await d.session.own_parts.title.stop()
        assert titles(d) == ["Fix the login page."]
