"""sessions, auth, logs, doctor."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from amanu import __main__, __version__
from amanu.cli import auth, doctor, exits, logs, run, sessions, trust, version
from amanu.core.model_families import MODELS_DATE
from amanu.home import Home, find_home
from amanu.models.catalogue import STALE_DAYS, Catalogue
from amanu_protocol.labels import TRUST
from amanu_protocol.requests import AuthStatus
from support.cli_in_process import InProcessCli, fails
from support.cli_process import AMANU, script

KEY = "sk-ant-0123456789abcdefghij"


@pytest.fixture
def home() -> Home:
    return find_home().make()


def test_ctrl_c_during_the_imports_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> object:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr("sys.argv", ["amanu", "chat"])
    monkeypatch.setattr(__main__, "hide_memory", lambda: None)
    monkeypatch.setattr("importlib.import_module", interrupted)
    assert __main__.main() == exits.CANCELLED


@pytest.mark.parametrize("argv", [["completion", "zsh"], ["doctor", "--report"]])
def test_where_not_every_character_can_be_printed(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.BytesIO()
    monkeypatch.setattr("sys.argv", ["amanu", *argv])
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(printed, encoding="ascii"))
    monkeypatch.setattr(__main__, "hide_memory", lambda: None)
    assert __main__.main() == 0
    sys.stdout.flush()
    assert b"\\u2" in printed.getvalue()


# sessions ---------------------------------------------------------------------------------------------


@pytest.fixture
def session_id(tmp_path: Path, inside: InProcessCli) -> str:
    model = script(tmp_path, {"text": "Hello."})
    done = inside.run(run.main, "greet me", "--model", model, "--output-format", "json", cwd=tmp_path)
    return json.loads(done.stdout)["sessionId"]


def test_list(tmp_path: Path, inside: InProcessCli, session_id: str) -> None:
    line = inside.run(sessions.main, "list", cwd=tmp_path).stdout
    assert line.startswith(f"{session_id}  ") and line.endswith(f"  greet me  {tmp_path}\n")
    found = json.loads(inside.run(sessions.main, "list", "--json", cwd=tmp_path).stdout)
    assert [each["sessionId"] for each in found["sessions"]] == [session_id]
    assert inside.run(sessions.main, cwd=tmp_path).stdout == line
    (tmp_path / "other").mkdir()
    assert inside.run(sessions.main, "list", "--root", "other", cwd=tmp_path).stdout == ""
    assert inside.run(sessions.main, "list", "--root", ".", cwd=tmp_path).stdout.endswith("  greet me\n")


def test_show(tmp_path: Path, inside: InProcessCli, session_id: str) -> None:
    assert "› greet me\nHello.\n" in inside.run(sessions.main, "show", session_id, cwd=tmp_path).stdout
    state = json.loads(inside.run(sessions.main, "show", session_id, "--json", cwd=tmp_path).stdout)
    assert [item["kind"] for item in state["items"]] == ["userMessage", "answer"]


def test_rename_and_delete(tmp_path: Path, inside: InProcessCli, session_id: str) -> None:
    assert inside.run(sessions.main, "rename", session_id, "A greeting", cwd=tmp_path).returncode == 0
    assert "A greeting" in inside.run(sessions.main, "list", cwd=tmp_path).stdout
    assert inside.run(sessions.main, "delete", session_id, cwd=tmp_path).stdout == f"deleted {session_id}\n"
    assert inside.run(sessions.main, "list", cwd=tmp_path).stderr == "There are no sessions yet.\n"
    fails(inside.run(sessions.main, "show", session_id, cwd=tmp_path), 2, "There is no session")
    fails(inside.run(sessions.main, "delete", session_id, cwd=tmp_path), 2, "There is no session")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--limit", "0"], "invalid number value: '0'"),
        (["list", "--limit", "501"], "invalid number value: '501'"),
        (["list", "--root", "nowhere"], "nowhere is not a folder on"),
        (["show", "../x"], "“../x” is not a session id."),
        (["delete", ""], "“” is not a session id."),
        (["rename", "a", " "], "a title has 1 to 200 characters"),
        (["rename", "a b", "title"], "“a b” is not a session id."),
    ],
)
def test_sessions_refuses(tmp_path: Path, inside: InProcessCli, arguments: list[str], said: str) -> None:
    fails(inside.run(sessions.main, *arguments, cwd=tmp_path), 2, said)


# auth -------------------------------------------------------------------------------------------------


def test_a_key_is_kept_and_forgotten_and_never_printed(tmp_path: Path, inside: InProcessCli, home: Home) -> None:
    ran = [
        inside.run(auth.main, "status", cwd=tmp_path),
        inside.run(auth.main, "set", "anthropic", cwd=tmp_path, typed=f"{KEY}\n"),
        inside.run(auth.main, "status", cwd=tmp_path),
        inside.run(auth.main, "forget", "anthropic", cwd=tmp_path),
        inside.run(auth.main, "status", cwd=tmp_path),
    ]
    assert [each.returncode for each in ran] == [0] * 5
    assert not any(KEY in each.stdout + each.stderr for each in ran)
    lines = [next(line for line in each.stdout.splitlines() if "anthropic" in line) for each in ran]
    assert "no key; set ANTHROPIC_API_KEY" in lines[0]
    assert "stored by amanu auth" in lines[2]
    assert lines[4] == lines[0]
    assert ran[3].stdout == "anthropic: key removed\n"
    assert inside.run(auth.main, "forget", "anthropic", cwd=tmp_path).stderr == "anthropic: no key was stored\n"
    assert (home.config / "auth.json").stat().st_mode & 0o077 == 0


def test_a_key_in_the_environment(tmp_path: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    shown = inside.run(auth.main, "status", cwd=tmp_path).stdout
    assert "from the environment (GEMINI_API_KEY)" in shown and KEY not in shown


WHENCE: list[tuple[AuthStatus, str]] = [
    (AuthStatus(vendor="openai", source="signIn", account="ada@example.org"), "signed in as ada@example.org"),
    (AuthStatus(vendor="openai", source="signIn", account="\x1b[31mada\nx"), "signed in as ada x"),
    (AuthStatus(vendor="openai", source="endedSignIn", account="ada"), "has ended; run: amanu auth login openai"),
    (AuthStatus(vendor="openai", source="environment", variable="K", account="a"), "precedence over the sign-in as a"),
    (AuthStatus(vendor="openai", source="environment", variable="K"), "from the environment (K)"),
    (
        AuthStatus(vendor="openai", source="none", variable="K"),
        "no key; set K, or: amanu auth set openai, or: amanu auth login openai",
    ),
    (AuthStatus(vendor="gemini", source="none", variable="K"), "no key; set K, or: amanu auth set gemini"),
    (AuthStatus(vendor="mine", source="none"), "no key"),
]


@pytest.mark.parametrize(("status", "said"), WHENCE)
def test_where_a_key_comes_from(status: AuthStatus, said: str) -> None:
    assert auth.source(status).endswith(said)


@pytest.mark.parametrize(
    ("arguments", "typed", "code", "said"),
    [
        (["set", "anthropic"], "\n", 2, "input contains no key"),
        (["set", "anthropic"], "two words\n", 2, "one word"),
        (["set", "antropic"], f"{KEY}\n", 2, "Unknown vendor 'antropic'. Available: anthropic,"),
        (["set", "ollama"], f"{KEY}\n", 2, "Unknown vendor 'ollama'"),
        (["set", "anthropic", KEY], "", 2, "unrecognized arguments"),
        (["local", "anthropic"], "", 4, "not a local model server"),
        (["login", "anthropic"], "", 2, "invalid choice: 'anthropic'"),
        (["logout"], "", 2, "required"),
        ([], "", 2, "required"),
    ],
)
def test_auth_refuses(
    tmp_path: Path, inside: InProcessCli, arguments: list[str], typed: str, code: int, said: str
) -> None:
    fails(inside.run(auth.main, *arguments, cwd=tmp_path, typed=typed), code, said)


# logs -------------------------------------------------------------------------------------------------


def test_logs(tmp_path: Path, inside: InProcessCli, home: Home) -> None:
    path = home.logs / "daemon.log"
    assert inside.run(logs.main, "--path", cwd=tmp_path).stdout == f"{path}\n"
    assert "is empty" in inside.run(logs.main, cwd=tmp_path).stderr
    path.write_text("".join(f"line {n}\x1b[2J\n" for n in range(9)) + f"x-api-key: {KEY}\n")
    assert inside.run(logs.main, "--lines", "3", cwd=tmp_path).stdout == f"line 7\nline 8\nx-api-key: {KEY}\n"


# doctor -----------------------------------------------------------------------------------------------


def findings(inside: InProcessCli, cwd: Path, *arguments: str) -> dict[str, dict[str, str]]:
    done = inside.run(doctor.main, "--json", *arguments, cwd=cwd)
    found = {each["what"]: each for each in json.loads(done.stdout)["findings"]}
    assert done.returncode == any(each["level"] == "problem" for each in found.values())
    assert all(each["todo"] for each in found.values() if each["level"] in ("note", "problem")), "each says what to do"
    return found


def test_a_new_machine_has_no_problem(tmp_path: Path, inside: InProcessCli) -> None:
    found = findings(inside, tmp_path)
    assert {each["level"] for each in found.values()} <= {"ok", "info", "note"}
    assert "amanu demo" in found["keys"]["todo"]
    assert not find_home().config.exists(), "looking makes nothing"


def test_text_for_people(tmp_path: Path, inside: InProcessCli) -> None:
    done = inside.run(doctor.main, cwd=tmp_path)
    assert done.returncode == 0
    assert "✓ python" in done.stdout and "! keys" in done.stdout and "→ amanu auth set VENDOR" in done.stdout


def test_problems(tmp_path: Path, inside: InProcessCli, home: Home) -> None:
    home.state.chmod(0o755)
    (home.config / "auth.json").write_text("{}")
    (home.config / "auth.json").chmod(0o644)
    (home.config / "config.toml").write_text("mode = 'wild'\n")
    found = findings(inside, tmp_path)
    assert [name for name, each in found.items() if each["level"] == "problem"] == [
        "state",
        "kept keys",
        "settings",
        "keys",
    ]
    assert found["state"]["todo"] == f"chmod 700 {home.state}"
    assert "mode" in found["settings"]["detail"]


@pytest.mark.parametrize(
    ("text", "level"), [("{", "problem"), ("[]", "problem"), ('{"allowed": null}', "note"), ('{"allowed": []}', "note")]
)
def test_a_damaged_list_of_allowed_servers(
    tmp_path: Path, inside: InProcessCli, home: Home, text: str, level: str
) -> None:
    home.local_models.write_text(text)
    assert findings(inside, tmp_path)["keys"]["level"] == level


@pytest.mark.parametrize(("days", "level"), [(0, "ok"), (STALE_DAYS, "ok"), (STALE_DAYS + 1, "note")])
def test_the_age_of_the_prices(
    tmp_path: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch, days: int, level: str
) -> None:
    monkeypatch.setattr(Catalogue, "age", days)
    found = findings(inside, tmp_path)["models"]
    assert (found["level"], MODELS_DATE in found["detail"]) == (level, True)


def test_keys_by_source_only(tmp_path: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    found = findings(inside, tmp_path)
    assert found["anthropic"]["detail"] == "from the environment (ANTHROPIC_API_KEY)"
    assert KEY not in json.dumps(found)


def test_a_left_over_socket(tmp_path: Path, inside: InProcessCli, home: Home) -> None:
    import socket

    from amanu.daemon.sockets import socket_path

    with socket.socket(socket.AF_UNIX) as left:
        left.bind(os.fspath(socket_path(home)))
    found = findings(inside, tmp_path)
    assert found["daemon"]["level"] == "note" and "no process is listening" in found["daemon"]["detail"]


# trust ------------------------------------------------------------------------------------------------


def test_trust(tmp_path: Path, inside: InProcessCli) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    shown = inside.run(trust.main, "show", cwd=tmp_path).stdout
    assert shown == (
        f"{tmp_path}:\n  {TRUST['untrusted']}\n  Trusting this folder would enable:\n"
        "    AGENTS.md — instructions to the model (new)\n"
        "    sandboxed checks of edits by the linters and type checkers set up in it\n"
    )
    assert inside.run(trust.main, "add", cwd=tmp_path).stdout.startswith(f"{tmp_path}:\n  {TRUST['trusted']}\n")
    (tmp_path / "AGENTS.md").write_text("Use \x1b[2Jblanks.\n")
    shown = inside.run(trust.main, "show", str(tmp_path), cwd=tmp_path.parent).stdout
    assert "    AGENTS.md — instructions to the model (changed)\n" in shown
    assert "-Use tabs.\n+Use <U+001B>[2Jblanks.\n" in shown
    digest = shown.split("--digest ")[1].split()[0]
    (tmp_path / "AGENTS.md").write_text("Use something else.\n")
    refused = inside.run(trust.main, "add", "--digest", digest, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (exits.FAILED, "")
    assert "have changed since they were shown" in refused.stderr
    assert json.loads(inside.run(trust.main, "show", "--json", cwd=tmp_path).stdout)["state"] == "changed"
    assert "not trusted" in inside.run(trust.main, "remove", cwd=tmp_path).stdout
    assert inside.run(trust.main, "show", "nowhere", cwd=tmp_path).returncode != 0


# in a folder that was deleted -------------------------------------------------------------------------

GONE = "The current folder was deleted. Change to one that exists, with cd, and try again.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *((each.split(), GONE) for each in ("run hi", "run --continue hi", "tool list", "mcp list", "mcp import",
                                            "trust show", "trust add", "hooks list", "plugin add ./x")),
        (["policy", "explain", "ls"], "'.' is not a folder.\n"),
        *((each.split(), "") for each in ("doctor", "models", "auth", "sessions list", "logs", "audit show")),
    ],
)  # fmt: skip
def test_a_folder_that_was_deleted(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "gone").mkdir()
    line = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *AMANU, *arguments]
    ran = subprocess.run(
        line, cwd=tmp_path / "gone", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50
    )
    assert "Traceback" not in ran.stderr
    if said:
        assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", said)
    else:
        assert ran.stdout or ran.stderr


# version ----------------------------------------------------------------------------------------------


def test_version(tmp_path: Path, inside: InProcessCli) -> None:
    lines = inside.run(version.main, cwd=tmp_path).stdout.splitlines()
    assert lines[0] == f"amanu {__version__}"
    told = json.loads(inside.run(version.main, "--json", cwd=tmp_path).stdout)
    assert told["version"] == __version__ and Path(told["folder"], "__main__.py").exists()
    assert lines[1:] == [
        f"Python {told['python']} at {told['executable']}",
        told["platform"],
        f"installed in {told['folder']}",
    ]
