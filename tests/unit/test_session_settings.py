"""The user's settings and rules as a page shows and changes them: the file keeps what they wrote, and is never left
wrong."""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.config import load_settings
from amanu.home import Home, find_home
from amanu.session.services import make_services
from amanu.session.sessions import Sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Notice, ToolCall
from amanu_protocol.requests import (
    RuleAddParams,
    RuleListParams,
    RuleRemoveParams,
    SessionCreateParams,
    StoredRule,
)
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.session_client import Client

FILE = """# mine
model = "anthropic:claude-opus-5-5"  # the big one

[limits]
# as much as I am ready to pay
cost_usd = 2.0
"""


@contextlib.asynccontextmanager
async def sessions(text: str = "", environ: Mapping[str, str] | None = None) -> AsyncGenerator[tuple[Sessions, Home]]:
    home = find_home().make()
    home.settings.write_text(text)
    made = Sessions(make_services(home, load_settings(home, environ or {})), environ or {})
    try:
        yield made, home
    finally:
        await made.shutdown()


@pytest.mark.parametrize(
    ("key", "value", "written", "since"),
    [
        ("model", "gemini:gemini-3.8-flash", 'model = "gemini:gemini-3.8-flash"  # the big one\n', "in new sessions"),
        ("limits.cost_usd", 5, "# as much as I am ready to pay\ncost_usd = 5\n", "in new sessions"),
        ("limits.steps", 30, "cost_usd = 2.0\nsteps = 30\n", "in new sessions"),
        ("mode", "plan", 'mode = "plan"\n', "in new sessions"),
        ("sandbox.write", ["~/.cache/pip"], '[sandbox]\nwrite = ["~/.cache/pip"]\n', "when Amanu is restarted"),
        ("rules.deny", ["@write(docs/**)"], '[rules]\ndeny = ["@write(docs/**)"]\n', "from now on"),
        ("agents.enabled", False, "[agents]\nenabled = false\n", "in new sessions"),
    ],
)
async def test_a_key_is_written_and_the_comments_stay(key: str, value: Any, written: str, since: str) -> None:
    async with sessions(FILE) as (made, home):
        result = await made.settings.set(key, value)
        text = home.settings.read_text()
        assert written in text and text.startswith("# mine\n") and "# as much as I am ready to pay\n" in text
        assert since in result.summary
        setting = next(setting for setting in result.settings.settings if setting.key == key)
        assert (setting.value, setting.origin) == (value, "file")
        assert text.splitlines()[setting.line or 0].lstrip().startswith(key.rpartition(".")[2])
        load_settings(home, {})


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("limits.steps", 0, "limits.steps: Input should be greater than or equal to 1"),
        ("mode", "yolo", "mode: Input should be 'plan'"),
        ("limits.step", 3, "Unknown setting 'limits.step'."),
        ("rules.allow", ["@wrote"], "@wrote is not an effect"),
        ("endpoints", {"x": {}}, "is a table; edit it in"),
        ("web.search", "searxng", "searxng needs search_url"),
    ],
)
async def test_what_is_wrong_is_said_and_not_written(key: str, value: Any, why: str) -> None:
    async with sessions(FILE) as (made, home):
        with pytest.raises(AmanuError, match=why.replace(".", r"\.")):
            await made.settings.set(key, value)
        assert home.settings.read_text() == FILE


async def test_a_key_that_is_taken_out_has_its_default() -> None:
    async with sessions(FILE) as (made, home):
        result = await made.settings.set("limits.cost_usd", None)
        setting = next(setting for setting in result.settings.settings if setting.key == "limits.cost_usd")
        assert (setting.value, setting.origin, setting.line) == (None, "default", None)
        assert "cost_usd" not in home.settings.read_text() and "back to its default" in result.summary


async def test_the_environment_goes_before_the_file() -> None:
    async with sessions(FILE, {"AMANU_MODE": "plan"}) as (made, _):
        listed = await made.settings.list()
        setting = next(setting for setting in listed.settings if setting.key == "mode")
        assert (setting.value, setting.origin, setting.variable) == ("plan", "environment", "AMANU_MODE")


async def test_every_setting_is_documented() -> None:
    async with sessions() as (made, _):
        listed = await made.settings.list()
        assert {setting.key for setting in listed.settings} >= {"model", "limits.steps", "routing.subagent", "rule"}
        assert [setting.key for setting in listed.settings if not setting.about or not setting.values] == []


async def test_a_new_default_model_holds_for_the_next_session() -> None:
    async with sessions() as (made, _):
        await made.settings.set("model", "gemini:gemini-3.8-flash")
        assert (await made.models.list(Client({}))).default_model_id == "gemini:gemini-3.8-flash"


async def test_a_file_edited_by_hand_holds_in_new_sessions(tmp_path: Path) -> None:
    async with sessions(FILE) as (made, home):
        for text, model_id in (
            ('model = "scripted:demo"\n', "scripted:demo"),
            ('model = "scripted:demo"\n[limits', "scripted:demo"),  # its rules are read anew for each call, which tells
            ('model = "scripted:tour"\n[base_urls]\nollama = "http://127.0.0.1:9/v1"\n', "scripted:tour"),
        ):
            home.settings.write_text(text)
            params = SessionCreateParams(session_id=f"s{len(text)}", roots=[str(tmp_path)])
            assert (await made.create(params, Client({}))).state.model_id == model_id
            assert (await made.models.list(Client({}))).default_model_id == model_id
        with pytest.raises(AmanuError, match=r"No model server answers at http://127\.0\.0\.1:9/v1"):
            await made.models.choose("ollama:qwen3", Client({}))


async def test_an_endpoint_written_by_hand_says_when_it_holds() -> None:
    async with sessions(FILE) as (made, home):
        home.settings.write_text('model = "mine:x"\n[endpoints.mine]\nbase_url = "http://127.0.0.1:9/v1"\n')
        with pytest.raises(AmanuError, match=r"\[endpoints\.mine\] takes effect when Amanu is restarted"):
            await made.models.choose(None, Client({}))
        with pytest.raises(AmanuError, match="Unknown model 'other:x'"):
            await made.models.choose("other:x", Client({}))


def brief(rules: list[StoredRule]) -> list[tuple[str, str, str, bool]]:
    return [(rule.decision, rule.rule, rule.origin, rule.removable) for rule in rules]


async def test_rules_are_listed_with_their_origin_added_and_removed(tmp_path: Path) -> None:
    tables = (
        '[rules]\nmust_ask = ["@write(*.lock)"]\n\n[[rule]]\ndecision = "deny"\npath = "secret/**"\nreason = "No."\n'
    )
    client, roots = Client({}), [str(tmp_path)]
    async with sessions(tables) as (made, home):
        (home.config / "rules.toml").write_text(
            f'# kept\n[user]\nallow = ["run_shell_command(npm test)"]\n["workspace"."{tmp_path}"]\nallow = ["@read"]\n'
        )
        added = await made.rules.add(RuleAddParams(decision="deny", rule="run_shell_command(git push *)"))
        assert added.summary == "Never allows git push with any arguments. This holds from now on."
        rules = (await made.rules.list(RuleListParams(roots=roots), client)).rules
        assert brief(rules) == [
            ("deny", "run_shell_command(git push *)", "config", True),
            ("mustAsk", "@write(*.lock)", "config", True),
            ("deny", "*(secret/**)", "config", False),
            ("allow", "run_shell_command(npm test)", "user", True),
            ("allow", "@read", "workspace", True),
        ]
        in_force = made.services.rules.rules(roots, trusted=False)
        assert "run_shell_command(git push *)" in {rule.text for rule in in_force}
        for rule in rules:
            if rule.origin != "folder" and rule.removable:
                removal = {**rule.model_dump(include={"decision", "rule", "root"}), "origin": rule.origin}
                await made.rules.remove(RuleRemoveParams.model_validate(removal))
        assert brief((await made.rules.list(RuleListParams(roots=roots), client)).rules) == [
            ("deny", "*(secret/**)", "config", False)
        ]
        assert (home.config / "rules.toml").read_text().startswith("# kept\n")
        assert [rule.text for rule in made.services.rules.rules(roots, trusted=False)] == ["*(secret/**)"]


@pytest.mark.parametrize(
    ("removal", "why"),
    [
        (RuleRemoveParams(decision="deny", rule="@run", origin="config"), "Rule not found: @run"),
        (RuleRemoveParams(decision="allow", rule="@run", origin="user"), "Rule not found: @run"),
    ],
)
async def test_a_rule_that_is_gone_is_said(removal: RuleRemoveParams, why: str) -> None:
    async with sessions() as (made, _):
        with pytest.raises(AmanuError, match=why):
            await made.rules.remove(removal)


async def test_a_key_that_is_passed_over_is_told_in_a_new_session(tmp_path: Path) -> None:
    async with sessions("model = 'scripted:demo'\n\n[limits]\nstepz = 3\n") as (made, home):
        params = SessionCreateParams(session_id="s", roots=[str(tmp_path)])
        state = (await made.create(params, Client({}))).state
        assert [item.text for item in state.items if isinstance(item, Notice) and item.code == "settings"] == [
            f"{home.settings}: line 4: There is no setting limits.stepz. Did you mean limits.steps? It is passed over."
        ]


async def test_rules_that_were_edited_by_hand_hold_at_once_and_a_broken_file_is_told(tmp_path: Path) -> None:
    home = find_home().make()
    home.settings.write_text(FILE)
    reads = [step("", call("read_file", path="notes.txt", start_line=number)) for number in range(1, 5)]
    async with scripted_session(tmp_path, *(each for read in reads for each in (read, step("Done.")))) as d:

        async def read(prompt_id: str) -> ToolCall:
            await d.prompt("go", prompt_id)
            state = await d.over(prompt_id)
            return next(item for item in reversed(state.items) if isinstance(item, ToolCall))

        assert (await read("p1")).state == "succeeded"
        home.settings.write_text(FILE + '[rules]\ndeny = ["read_file"]\n')
        denied = await read("p2")
        assert denied.state == "rejected" and "your config.toml" in (denied.error or "")
        home.settings.write_text(FILE + "[rules]\ndeny = [")
        broken = await read("p3")
        assert broken.state == "failed" and "config.toml is not valid TOML" in (broken.error or "")
        home.settings.write_text(FILE)
        assert (await read("p4")).state == "succeeded"


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ('[rules]\ndeny = ["@write"]\n', "rejected"),
        ('[rules]\nallow = ["@write"]\n', "succeeded"),
        ("[rules]\nallow = [", "awaitingApproval"),
        ("[limits]\nsteps = 9\n", "awaitingApproval"),
    ],
)
async def test_rules_edited_by_hand_decide_an_open_question_once_a_second_session_opens(
    tmp_path: Path, text: str, stands: str
) -> None:
    edit = call("edit_file", path="notes.txt", old_text="line 3\n", new_text="line three\n")
    async with scripted_session(tmp_path, step("", edit), step("Done.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        before = d.file.read_text()
        await edited(d, text)
        if stands == "awaitingApproval":
            assert len(d.session.state.approvals) == 1 and d.file.read_text() == before
            await edited(d, '[rules]\nallow = ["@write"]\n')
            stands = "succeeded"
        await d.over("p1")
        item = next(item for item in d.session.state.items if isinstance(item, ToolCall))
        assert item.state == stands
        assert (d.file.read_text() != before) == (stands == "succeeded")


async def edited(d: ScriptedSession, text: str) -> None:
    """Settings with that text, and a new session of the same folder."""
    find_home().settings.write_text(text)
    params = SessionCreateParams(session_id=f"s{len(text)}", roots=[str(d.root)], model_id="scripted:demo")
    await d.sessions.create(params, Client({}))
