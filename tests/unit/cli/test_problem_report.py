"""`amanu doctor --report`: what is in it, what is not, and that nothing it meets makes it fail."""

import asyncio
import io
import json
import os
import re
import sys
import tempfile
import tomllib
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from amanu.cli import doctor, problem_report
from amanu.cli.problem_report import MAX_REPORT, ReportSource
from amanu.core.model_families import MODELS
from amanu.home import Home, find_home
from amanu.storage.journal import Journal, Record
from amanu.system.logs import CLIENT_CONNECTED
from amanu.text.redaction import MASK
from amanu_protocol.events import Event, StepEnded, TurnRouted, TurnStarted
from support.cli_in_process import InProcessCli, fails
from unit.test_redaction import SHAPES

MODEL = MODELS[0].model_id
SHAPE = "ghp_" + "0123456789abcdefghijABCDEFGHIJ"


def report(home: Home, environ: dict[str, str], session: str | None = None) -> str:
    """The report, without the findings of this machine."""

    async def examine() -> str:
        return "✓ amanu         a finding\n"

    return asyncio.run(problem_report.problem_report(ReportSource(home, environ, session), examine))


def keep_session(home: Home, session_id: str, *events: str) -> Path:
    async def write() -> None:
        journal = await Journal.open(home.sessions / session_id)
        for seq, event in enumerate(events, 1):
            journal.append(Record(1, seq, 1_700_000_000_000 + seq, event, None))
        await journal.durable()
        await journal.close()

    asyncio.run(write())
    return home.sessions / session_id


# Keys -------------------------------------------------------------------------------------------------

ANY_KEY = st.one_of(
    st.sampled_from([*SHAPES.values()]),
    st.from_regex(r"\A(?:sk-|ghp_|AKIA|xoxb-)[A-Z0-9]{24}\Z"),
    st.text("abcdefghijkmnpqrstuvwxyzABCDEFGH0123456789+/=_-<&", min_size=12, max_size=60),  # known by its place alone
)
ENCODINGS: list[Callable[[str], str]] = [
    str,
    lambda key: json.dumps(key),
    lambda key: quote(key, safe=""),
    lambda key: f"https://me:{key}@host/v1?key={key}",
    lambda key: b64encode(f"user:{key}".encode()).decode(),
]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=ANY_KEY)
@example(key=SHAPES["private key"])
@example(key="correct horse battery staple")
def test_no_key_is_in_it_wherever_it_was_put(tmp_path: Path, key: str) -> None:
    home = find_home({"AMANU_HOME": tempfile.mkdtemp(dir=tmp_path)}).make()
    text = json.dumps(key)
    (home.config / "auth.json").write_text(json.dumps({"keys": {"anthropic": key}}))
    (home.config / "mcp-auth.json").write_text(json.dumps({"https://h": {"tokens": {"access_token": key}}}))
    (home.config / "mcp.toml").write_text(
        f"[servers.a]\ncommand = 'x'\nenv = {{ A = {text} }}\n"
        f"[servers.b]\nurl = 'https://h'\nheaders = {{ X = {text} }}\n"
    )
    (home.config / "config.toml").write_text(
        f"model = {text}\nsurprise = {text}\n[base_urls]\nopenai = {text}\n[web]\nsearch_url = {text}\n"
        f"[shell]\npass_environment = [{text}]\n[request_fields.{text}]\nx = {text}\n"
        "[endpoints.mine]\nbase_url = 'http://h'\nkey_variable = 'MINE'\n"
    )
    tomllib.loads((home.config / "config.toml").read_text())
    said = [f"{number} {encoded(key)}" for number, encoded in enumerate(ENCODINGS)]
    (home.logs / "daemon.log").write_text("\n".join(said), "utf-8")
    escaped = "".join(f"\\u{ord(character):04x}" for character in key)
    keep_session(home, "s1", f'{{"text": "{escaped}"}}', *(json.dumps({"type": "x", "text": each}) for each in said))
    environ = {"HOME": "/nowhere/ada", "MINE": key, "OPENAI_API_KEY": key, "AMANU_MODEL": key, "TERM": key, key: "x"}
    whole = report(home, environ, "s1")
    windows = {key[start : start + 12] for start in range(max(1, len(key) - 11))}
    assert {
        window for window in windows if window in whole and window not in "-----BEGIN RSA PRIVATE KEY-----"
    } == set()
    assert "a finding" in whole and "6 events" in whole and "`model` = set" in whole


# Names ------------------------------------------------------------------------------------------------

NAMED = [
    ("/nowhere/ada/shop/cart.py", "~/shop/cart.py"),
    ("file:///nowhere/ada/x", "file://~/x"),
    ("in /nowhere/ada.", "in /nowhere/~."),
    ("/nowhere/adams/x", "/nowhere/adams/x"),
    ("Ada wrote it, by ada@example.org", "~ wrote it, by [mail]"),
    ("/media/ada/disk", "/media/~/disk"),
    ("canada", "canada"),
    ("on engine9: it; engine9.example.org too; engine99 not", "on [host]: it; [host] too; engine99 not"),
]


@pytest.mark.parametrize(("line", "expected"), NAMED)
def test_who_and_where_the_user_is(line: str, expected: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_report.platform, "node", lambda: "engine9.example.org")
    (home.logs / "daemon.log").write_text(f"said: {line}\n")
    assert f"\nsaid: {expected}\n" in report(home, {"HOME": "/nowhere/ada", "USER": "ada"})


# Contents ---------------------------------------------------------------------------------------------


@pytest.fixture
def home() -> Home:
    return find_home().make()


SETTINGS = [
    ("mode = 'draft'", '`mode` = "draft"'),
    ("mode = 'of my own'", "`mode` = set"),
    ("[limits]\nsteps = 7", "`limits.steps` = 7"),
    (f"model = '{MODEL}'", f'`model` = "{MODEL}"'),
    ("model = 'openai:ft:acme'", "`model` = openai:…"),
    ("model = 'acme:x'", "`model` = set"),
    ("log_level = 'debug'", '`log_level` = "debug"'),
    ("[rules]\ndeny = ['a', 'b']", "`rules.deny` = list of 2"),
    ("[endpoints.acme]\nbase_url = 'http://acme'", "`endpoints`: set"),
    ("acme = 1", "1 keys that do not exist"),
    ("mode = ", "config.toml cannot be read: TOMLDecodeError"),
]


@pytest.mark.parametrize(("text", "said"), SETTINGS)
def test_settings_are_named_and_only_harmless_values_shown(text: str, said: str, home: Home) -> None:
    home.settings.write_text(text)
    whole = report(home, {})
    assert f"\n- {said}\n" in whole and "acme" not in whole


def test_what_is_in_it(home: Home) -> None:
    (home.logs / "daemon.log").write_text("".join(f"1 INFO amanu: line {n}\n" for n in range(999)))
    with (home.logs / "daemon.log").open("a") as log:
        log.write(f"1 INFO amanu.x: {CLIENT_CONNECTED}Neovim 0.11.4\n1 INFO y: ```` is no fence\n")
    home.memory.write_text("be brief")
    keep_session(home, "abcd1", json.dumps({"type": "turnStarted", "prompt": "a prompt"}))
    whole = report(home, {"HTTPS_PROXY": "http://p", "SHELL": "/bin/zsh"})
    for part in (
        *("- Amanu: 0.", "- Python: 3.", "pydantic 2.", "- clients: Neovim 0.11.4", "✓ amanu         a finding"),
        *("line 998", "\n`````text\n", "AGENTS.md (8 bytes)", "values: HTTPS_PROXY\n", "no prompts, no answers"),
    ):
        assert part in whole
    assert "a prompt" not in whole and "http://p" not in whole and "line 800" not in whole and "SHELL" not in whole
    for typed in ("abcd1", "abc", "latest"):
        with_session = report(home, {}, typed)
        assert "a prompt" in with_session and "Its last part is a session" in with_session, typed


LATEST: list[tuple[str, dict[str, int], dict[str, object]]] = [
    ("the one written last", {"a/journal.sqlite": 1, "b/journal.sqlite": 2}, {}),
    (
        "a daemon has not yet merged its log",
        {"a/journal.sqlite": 3, "b/journal.sqlite": 1, "b/journal.sqlite-wal": 4},
        {},
    ),
    (
        "the other is a sub-agent's",
        {"a/journal.sqlite": 2, "b/journal.sqlite": 1},
        {"title": "x", "parentSessionId": "b"},
    ),
    ("nothing was said in the other", {"a/journal.sqlite": 2, "b/journal.sqlite": 1}, {"title": ""}),
]


@pytest.mark.parametrize(("times", "other"), [each[1:] for each in LATEST], ids=[each[0] for each in LATEST])
def test_the_latest_session(times: dict[str, int], other: dict[str, object], home: Home) -> None:
    for name in "ab":
        folder = keep_session(home, name, json.dumps({"text": f"said in {name}"}))
        (folder / "summary.json").write_text(json.dumps({"title": "x", "parentSessionId": None}))
    (home.sessions / "a" / "summary.json").write_text(json.dumps({"title": "x", **other}))
    for name, changed in times.items():
        (home.sessions / name).touch()
        os.utime(home.sessions / name, (changed, changed))
    whole = report(home, {}, "latest")
    assert "said in b" in whole and "said in a" not in whole


def test_it_fits_into_one_field_of_an_issue(home: Home) -> None:
    (home.logs / "daemon.log").write_text("y" * 500_000 + "\n" + "x y z\n" * 99_999)
    keep_session(home, "abcd1", *(json.dumps({"n": n, "text": "words " * 3000}) for n in range(300)))
    whole = report(home, {}, "abcd1")
    assert MAX_REPORT * 0.8 < len(whole) <= MAX_REPORT
    assert '{"n":299' in whole and "earlier lines]" in whole and "characters]" in whole
    assert whole.count("```") == 6, "each block is closed"


EVENTS = [
    ('{"kind": "x", "a": null, "b": "", "c": [], "d": {"e": {}}, "f": 0, "g": false}', '{"kind":"x","f":0,"g":false}'),
    ('{"list": [null, {"a": null, "b": "é"}]}', '{"list":[null,{"b":"é"}]}'),
    ("no\nJSON", "no JSON"),
    ("[" * 9999, "["),
]


@pytest.mark.parametrize(("event", "shown"), EVENTS)
def test_events_are_brief(event: str, shown: str, home: Home) -> None:
    keep_session(home, "abcd1", event)
    assert f" 1 {shown}" in report(home, {}, "abcd1")


# What cannot be read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([TurnStarted(turn_id="t1", prompt_id="p", model_id="gemini:g")], None),
        (
            [
                TurnStarted(turn_id="t1", prompt_id="p", model_id="anthropic:c"),
                StepEnded(turn_id="t1", step=1, finish_reason="tool_use", request_id="req_011CSHoEeqs5C35K2UUqR7Fy"),
                TurnRouted(turn_id="t1", model_id="openai:g", reason="It is overloaded."),
                StepEnded(turn_id="t1", step=2),
            ],
            [
                "t1 step 1: anthropic:c, end: tool_use, request: req_011CSHoEeqs5C35K2UUqR7Fy",
                "t1 step 2: openai:g, end: not said, request: not said",
            ],
        ),
        (
            [StepEnded(turn_id="t", step=n, finish_reason="STOP", request_id=f"chatcmpl-{n}") for n in range(1, 31)],
            [f"t step {n}: , end: STOP, request: chatcmpl-{n}" for n in range(11, 31)],
        ),
        ([StepEnded(turn_id="t", step=1, request_id=SHAPE)], [f"t step 1: , end: not said, request: {MASK}"]),
    ],
)
def test_how_the_last_replies_ended(events: list[Event], shown: list[str] | None, home: Home) -> None:
    """A vendor's support asks for the id of a request."""
    keep_session(home, "abcd1", '{"kind": "damaged', *(each.model_dump_json() for each in events))
    _, heading, rest = report(home, {}, "abcd1").partition("The last replies:\n\n```text\n")
    lines = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in rest.partition("\n```")[0].splitlines()]
    assert (lines if heading else None) == shown
    assert "The last replies" not in report(home, {})


def damaged_session(home: Home) -> None:
    (keep_session(home, "abcd1", "{}") / "journal.sqlite").write_bytes(b"no database" * 999)


DAMAGE: list[tuple[str, Callable[[Home], object], str | None, str]] = [
    ("no folder at all", lambda home: None, None, "## Log\n\nIt is empty."),
    ("no session", lambda home: home.make().sessions.mkdir(), "latest", "no session “latest”"),
    ("no sessions' folder", lambda home: home.make(), "abcd", "It cannot be read: "),
    ("unknown session", lambda home: keep_session(home.make(), "abcd1", "{}"), "ef", "no session “ef”"),
    ("damaged session", lambda home: damaged_session(home.make()), "abcd1", "The original is kept"),
    ("log is a folder", lambda home: (home.make().logs / "daemon.log").mkdir(), None, "It cannot be read: "),
    ("log is no text", lambda home: (home.make().logs / "daemon.log").write_bytes(b"\xff\x00\x1b[2Jx"), None, "x\n```"),
    ("keys are no JSON", lambda home: home.make().auth.write_text("{"), None, "a finding"),
    ("keys are nested", lambda home: home.make().auth.write_text('{"a":' * 900 + "1" + "}" * 900), None, "a finding"),
    ("settings are nested", lambda home: home.make().settings.write_text("a = " + "[" * 9999), None, "cannot be read"),
]


@pytest.mark.parametrize(("damage", "session", "said"), [each[1:] for each in DAMAGE], ids=[each[0] for each in DAMAGE])
def test_what_cannot_be_read_is_a_line_of_it(damage: Callable[[Home], object], session: str | None, said: str) -> None:
    home = find_home()
    damage(home)
    whole = report(home, {}, session)
    assert said in whole and "\x1b" not in whole


def test_a_check_that_fails_is_a_line_of_it(home: Home) -> None:
    async def examine() -> str:
        raise PermissionError(13, "Permission denied", "/proc/x")

    whole = asyncio.run(problem_report.problem_report(ReportSource(home, {}), examine))
    assert "## Doctor\n\nIt cannot be read: [Errno 13] Permission denied: '/proc/x'\n\n## Settings" in whole


# The command ------------------------------------------------------------------------------------------


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_file_it_is_printed(tmp_path: Path, inside: InProcessCli, home: Home) -> None:
    (home.config / "config.toml").write_text("mode = 'wild'\n")
    done = inside.run(doctor.main, "--report", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), "a problem is no failure of the report"
    assert "✗ settings" in done.stdout and done.stdout.startswith("# Amanu")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--report", "r.md"], 2, "shown before it is written"),
        (["--report", "there.md", "--yes"], 2, "already exists"),
        (["--report", "no/r.md", "--yes"], 1, "cannot be written: No such file"),
        (["--report", "--json"], 2, "not allowed with"),
        (["--session", "latest"], 2, "need --report"),
        (["--yes"], 2, "need --report"),
    ],
)
def test_what_is_refused(tmp_path: Path, inside: InProcessCli, arguments: list[str], code: int, said: str) -> None:
    (tmp_path / "there.md").write_text("mine")
    fails(inside.run(doctor.main, *arguments, cwd=tmp_path), code, said)
    assert [path.name for path in tmp_path.iterdir()] == ["there.md"]


def test_yes_writes_it_for_its_owner(tmp_path: Path, inside: InProcessCli) -> None:
    done = inside.run(doctor.main, "--report", "r.md", "--yes", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Written: r.md\n")
    assert (tmp_path / "r.md").stat().st_mode & 0o077 == 0
    assert (tmp_path / "r.md").read_text().startswith("# Amanu")


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("\n", False), ("n\n", False), ("", False)])
def test_at_a_terminal_it_is_shown_and_asked_about(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    written: bool,
) -> None:
    target, shown = tmp_path / "r.md", tmp_path / "shown"
    monkeypatch.setenv("PAGER", f"sh -c 'cp $0 {shown}'")
    monkeypatch.setattr(sys, "stdin", Keyboard(answer))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert doctor.main(["--report", str(target)]) == 0
    text = shown.read_text()
    assert f"Write these {len(text.splitlines())} lines to {target}? [y/N]" in capsys.readouterr().out
    assert (target.read_text() if target.exists() else None) == (text if written else None)
