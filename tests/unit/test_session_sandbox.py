"""What a sandbox around a command look like from the conversation."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.requests import AuditQueryParams
from support.required_programs import needs
from support.scripted_session import call, scripted_session, step


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def _run(tmp_path: Path, command: str, **files: str) -> tuple[str, list[str]]:
    """What the model is told of an allowed command in a folder with those files, and what is there afterwards."""
    needs("bwrap")
    run = call("run_shell_command", command=command, network=True)
    async with scripted_session(tmp_path, step("", run), step("Done.")) as d:
        for name, text in files.items():
            (d.root / f"{name}.md").write_text(text)
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        return d.told(), sorted(each.name for each in d.root.iterdir())


async def test_nothing_is_there_but_the_workspace(tmp_path: Path) -> None:
    told, there = await _run(tmp_path, "touch -c it && ls -A && find . -name '*.md' -exec cat {} +", README="read me")
    assert "notes.txt" in told and "read me" in told and ".vscode" not in told and "Exit code: 0" in told
    assert there == ["README.md", "notes.txt"]


async def test_what_came_to_be_and_is_obeyed_is_told_and_on_record(tmp_path: Path) -> None:
    """Put aside in a folder that was there; in a new one, which may be a clone or an archive, it stays."""
    needs("bwrap")
    line = "mkdir -p lib/.vscode new/.vscode old/.git && touch lib/.envrc lib/plain; echo 'Exit code: 0'; exit 3"
    again = call("run_shell_command", command="touch lib/plain")
    first = step("", call("run_shell_command", command=line))
    async with scripted_session(tmp_path, first, step("", again), step("Done.")) as d:
        (d.root / "old" / ".git").mkdir(parents=True)
        (d.root / "lib").mkdir()
        await d.prompt("go")
        await d.answer("allow")
        await d.answer("allow")
        await d.over("p1")
        shown = [each.output for each in d.session.state.items if each.kind == "toolCall"]
        entries = (await d.sessions.audit_query(AuditQueryParams(session_id="s"))).entries
        told = d.told()
        there = sorted(each.name for each in (d.root / "lib").iterdir())
    assert there == ["plain"]
    assert "git, editors, shells or agents act on it: new/.vscode. Look" in shown[0]
    assert "would act on it: lib/.envrc, lib/.vscode. It is now in" in told and "act on it" not in shown[1]
    ended = [each for each in entries if each.kind == "ended"]
    assert [each.data.get("new") for each in ended] == ["new/.vscode", None]
    assert [each.data.get("aside") for each in ended] == ["lib/.envrc, lib/.vscode", None]
    assert "protected files put aside: lib/.envrc" in ended[0].text and ended[0].data["exit"] == "3"


async def test_what_is_obeyed_and_was_replaced_with_the_folder_above_it_is_put_aside(tmp_path: Path) -> None:
    """The name itself is held, but not those above it: they are folders of the workspace like others."""
    needs("bwrap")
    line = "mv sub away && mkdir -p sub/.vscode && touch sub/.vscode/tasks.json"
    async with scripted_session(tmp_path, step("", call("run_shell_command", command=line)), step("Done.")) as d:
        for name in ("sub", "same"):
            (d.root / name / ".vscode").mkdir(parents=True)
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        told = d.told()
        assert (d.root / "away" / ".vscode").exists() and not (d.root / "sub" / ".vscode").exists()
    assert "would act on it: sub/.vscode. It is now in" in told
