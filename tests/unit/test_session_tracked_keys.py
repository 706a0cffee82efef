"""Where git tracks a private key: commands of git work as if nothing were hidden, and others do not see it unasked."""

import subprocess
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from support.required_programs import needs
from support.scripted_session import scripted_session, step
from unit.test_session_layer import git, repository, shell, tool_calls

pytestmark = pytest.mark.layers

NO_QUESTION, CHANGES, SECRETS = "", "changed", "needs files that hold secrets"


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("line", "question", "output"),
    [
        ("git status --short", NO_QUESTION, ""),
        ("git diff | head -20", NO_QUESTION, ""),
        ("cd . && git status --short && git diff --stat", NO_QUESTION, ""),
        ("git add -A && git stash", NO_QUESTION, "No local changes to save"),
        ("git rebase -q other", CHANGES, ""),
        ("git ls-files | xargs cat", SECRETS, "server.key"),
        ("touch new.txt; git diff --stat", SECRETS, "server.key"),
        ("touch new.txt; git add -A", SECRETS, "server.key"),
        ("git status --short; grep -r KEY .", SECRETS, "server.key"),
    ],
)
async def test_a_command_beside_a_tracked_key(tmp_path: Path, line: str, question: str, output: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), step("Done.")) as d:
        (d.root / "server.key").write_text("KEY\n")
        repository(d.root)
        subprocess.run(
            "git checkout -q -b other; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m other; "
            "git checkout -q main",
            shell=True,
            check=True,
            cwd=d.root,
        )
        await d.trust()
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        said = "\n".join(f"{asked.title}\n{asked.blocked}" for asked in state.approvals)
        assert question in said and bool(question) == bool(said)
        (call,) = tool_calls(d)
        assert output in call.output and ("server.key" in call.output) == ("server.key" in output)
        if state.approvals:
            await d.answer("allow", scope="once")
        await d.over("p1")
        assert git(d.root, "show", "main:server.key") == "KEY\n"
