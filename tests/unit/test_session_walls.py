"""What walls around a command look like from the conversation."""

from pathlib import Path

import pytest

from amanu.agent import approval
from amanu_protocol.requests import AuditQueryParams
from needs import needs
from session_desk import call, desk, step


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def _run(tmp_path: Path, command: str, **files: str) -> tuple[str, list[str]]:
    """What the model is told of an allowed command in a folder with those files, and what is there afterwards."""
    needs("bwrap")
    run = call("run_shell_command", command=command)
    async with desk(tmp_path, step("", run), step("Done.")) as d:
        for name, text in files.items():
            (d.root / f"{name}.md").write_text(text)
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        return d.told(), sorted(each.name for each in d.root.iterdir())


async def test_what_only_seems_to_be_there_is_named_as_that(tmp_path: Path) -> None:
    told, there = await _run(tmp_path, "touch -c it && ls && echo .vscode/x")
    assert "Not files of the workspace, but placeholders of the sandbox: .vscode, AGENTS.md, CLAUDE.md" in told
    assert there == ["notes.txt"]


async def test_who_reads_all_texts_is_not_stopped_by_what_only_seems_to_be_there(tmp_path: Path) -> None:
    """A formatter of Markdown opens whatever is called `*.md` and no folder."""
    told, _ = await _run(tmp_path, "touch -c it && find . -name '*.md' ! -type d -exec cat {} +", README="read me")
    assert "read me" in told and "Exit code: 0" in told
    assert "CLAUDE.md" not in told


async def test_what_is_there_is_no_placeholder(tmp_path: Path) -> None:
    told, _ = await _run(tmp_path, "touch -c it && cat AGENTS.md", AGENTS="Not AGENTS.mdx: see AGENTS.md")
    assert "see AGENTS.md" in told and "placeholders" not in told


async def test_what_came_to_be_in_a_subfolder_and_is_obeyed_is_told_and_on_record(tmp_path: Path) -> None:
    """It cannot be kept from coming to be: only at the top of a workspace is it known where."""
    needs("bwrap")
    line = "mkdir -p lib/.vscode old/.git && touch lib/.envrc lib/plain; echo 'Exit code: 0'; exit 3"
    again = call("run_shell_command", command="touch lib/plain")
    first = step("", call("run_shell_command", command=line))
    async with desk(tmp_path, first, step("", again), step("Done.")) as d:
        (d.root / "old" / ".git").mkdir(parents=True)
        await d.prompt("go")
        await d.answer("allow")
        await d.answer("allow")
        await d.over("p1")
        shown = [each.output for each in d.session.state.items if each.kind == "toolCall"]
        entries = (await d.sessions.audit_query(AuditQueryParams(session_id="s"))).entries
        told = d.told()
    assert "obeyed by git, editors, shells or agents there: lib/.envrc, lib/.vscode. Look" in shown[0]
    assert "lib/.envrc, lib/.vscode" in told and "obeyed" not in shown[1]
    ended = [each for each in entries if each.kind == "ended"]
    assert [each.data.get("new") for each in ended] == ["lib/.envrc, lib/.vscode", None]
    assert "new, and obeyed: lib/.envrc" in ended[0].text and ended[0].data["exit"] == "3"


async def test_what_is_obeyed_and_was_replaced_with_the_folder_above_it_is_told(tmp_path: Path) -> None:
    """The name itself is held, but not those above it: they are folders of the workspace like others."""
    needs("bwrap")
    line = "mv sub away && mkdir -p sub/.vscode && touch sub/.vscode/tasks.json"
    async with desk(tmp_path, step("", call("run_shell_command", command=line)), step("Done.")) as d:
        for name in ("sub", "same"):
            (d.root / name / ".vscode").mkdir(parents=True)
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        told = d.told()
    assert "obeyed by git, editors, shells or agents there: away/.vscode, sub/.vscode. Look" in told
