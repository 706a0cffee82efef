"""Slash commands in a session: a Gemini command folder works as it is; what a command runs and reads is policy's."""

import subprocess
from pathlib import Path

import pytest

from amanu.core.conversation import User
from amanu.session import command_lines
from amanu_protocol.items import Notice, ToolCall
from amanu_protocol.requests import AuditQueryParams
from support.scripted_session import ScriptedSession, conversation, scripted_session, step

GEMINI = {
    "git/commit.toml": (
        'description = "Writes a commit message."\n'
        'prompt = """\nWrite a commit message for:\n\n```diff\n!{git status --short}\n```\n"""\n'
    ),
    "review.toml": 'prompt = """\nFollow @{docs/rules.md}. Review {{args}}: !{grep -n {{args}} notes.txt}\n"""\n',
    "clean.toml": 'prompt = "Clean: !{touch {{args}}}"\n',
    "leak.toml": 'prompt = "See @{.env} and @{../outside.txt}."\n',
    "plain.toml": 'prompt = "Change the log."\n',
}
"""In the form of Gemini CLI's documentation: namespaces, arguments, commands, files."""


async def told(d: ScriptedSession, prompt: str, prompt_id: str = "p1") -> str:
    await d.prompt(prompt, prompt_id)
    await d.over(prompt_id)
    messages = [message.text for message in conversation(d.session) if isinstance(message, User)]
    return messages[-1]


def notices(d: ScriptedSession, code: str) -> list[str]:
    return [item.text for item in d.session.state.items if isinstance(item, Notice) and item.code == code]


async def prepare(d: ScriptedSession) -> None:
    for name, text in GEMINI.items():
        path = d.root / ".gemini/commands" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (d.root / "docs").mkdir()
    (d.root / "docs/rules.md").write_text("Be kind.\n")
    (d.root.parent / "outside.txt").write_text("outside")
    subprocess.run(["git", "init", "-q", str(d.root)], check=True)
    await d.trust()


async def test_a_gemini_folder_works_unchanged(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two."), step("Three.")) as d:
        await prepare(d)
        commit = await told(d, "/git:commit", "p1")
        assert "```diff\n?? .gemini/\n?? docs/\n?? notes.txt\n```" in commit
        review = await told(d, "/review line 1", "p2")
        assert 'Follow @"docs/rules.md". Review line 1: 1:line 1\n10:line 10' in review
        assert '<file path="docs/rules.md">\nBe kind.\n' in review
        calls = [item for item in d.session.state.items if isinstance(item, ToolCall)]
        assert [(item.turn_id, item.title, item.state) for item in calls] == [
            ("turn-p1", "Run git status --short", "succeeded"),
            ("turn-p2", "Run grep -n 'line 1' notes.txt", "succeeded"),
        ]
        assert [item.decision and item.decision.by for item in calls] == ["rule", "rule"]
        entries = (await d.sessions.audit_query(AuditQueryParams(session_id="s"))).entries
        assert [entry.kind for entry in entries if entry.tool_call_id == calls[0].item_id] == [
            "decided",
            "started",
            "ended",
        ]
        assert "Change the log.\n\n/plain it broke" in await told(d, "/plain it broke", "p3")


async def test_what_needs_approval_is_shown_and_not_run(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        await prepare(d)
        text = await told(d, "/clean a; rm -rf notes.txt")
        assert "(not run, because it needs the user's approval: \"touch 'a; rm -rf notes.txt'\"" in text
        (notice,) = notices(d, "attachmentNotSent")
        assert notice.startswith("Not run, because it needs your approval: touch 'a; rm -rf notes.txt'")
        assert "A rule would allow it: run_shell_command(touch" in notice
        assert not (d.root / "a; rm -rf notes.txt").exists()
        assert (d.root / "notes.txt").exists()


async def test_a_project_s_command_reads_nothing_that_is_asked_about(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        await prepare(d)
        (d.root / ".env").write_text("KEY=s3cr3t\n")
        text = await told(d, "/leak")
        assert "s3cr3t" not in text and "<file" not in text


async def test_an_untrusted_folder_has_no_commands(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        await prepare(d)
        await d.trust(False)
        assert (await told(d, "/git:commit")).startswith("/git:commit")


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("cat nothing.txt", "[exit code 1]"),
        ("cat printed.txt", "!{touch x} @notes.txt"),
        ("true", "<>"),
    ],
)
async def test_what_a_command_prints_is_only_text(tmp_path: Path, line: str, output: str) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        (d.root / "printed.txt").write_text("!{touch x} @notes.txt")
        path = d.root / ".claude/commands/show.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nallowed-tools: Bash(*)\nmodel: opus\n---\n<!`{line}`>")
        await d.trust()
        text = await told(d, "/show")
        assert output in text
        assert "<file" not in text and not (d.root / "x").exists()


async def test_a_command_that_does_not_end_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_lines, "SECONDS", 0.3)
    async with scripted_session(tmp_path, step("One.")) as d:
        path = d.root / ".claude/commands/wait.md"
        path.parent.mkdir(parents=True)
        path.write_text("Wait: !`sleep 60` !`sleep 60`")
        await d.trust()
        text = await told(d, "/wait")
        assert text.count("it took more than 0.3 seconds.") == 2


@pytest.mark.parametrize("prompt", [" /plain it broke", "\n/plain it broke \n"])
async def test_blanks_around_a_command_change_nothing(tmp_path: Path, prompt: str) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        await prepare(d)
        assert (await told(d, prompt)).startswith("Change the log.\n\n/plain it broke\n")
