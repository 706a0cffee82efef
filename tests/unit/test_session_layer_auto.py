"""In auto mode, commands run on a private copy of the workspace, and what they change comes home without a question."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from amanu.core.rules import parse_rule
from amanu.permissions import approvals as approval
from amanu_protocol.items import Mode
from support.required_programs import needs
from support.scripted_session import TWELVE, TWO_HUNKS, scripted_session, step
from unit.test_session_layer import EDIT, git, repository, shell, tree

pytestmark = pytest.mark.layers

DONE = step("Done.")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def test_what_a_command_changed_can_be_undone(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(f"{EDIT}; rm old.txt")), DONE, mode="auto") as d:
        (d.root / "old.txt").write_text("old\n")
        await d.prompt("go")
        (proposal,) = (await d.ended()).proposals
        assert tree(d.root) == {"notes.txt": TWO_HUNKS}
        hunks = [hunk.hunk_id for file in proposal.files for hunk in file.hunks]
        await d.session.core.proposals.undo(proposal.proposal_id, hunks)
        assert tree(d.root) == {"notes.txt": TWELVE, "old.txt": "old\n"}


def status(root: Path) -> str:
    """The first line of `git status`, and whether there are more."""
    first, *more = [line.strip() for line in git(root, "status", "--short", "--ignored").splitlines()] or [""]
    return f"{first} …" if more else first


IN_LAYER: Sequence[tuple[str, str, tuple[str, str], bool]] = [
    # name, command, (status, last commit) that it leaves, whether there is a proposal
    ("text", EDIT, ("M notes.txt", "first"), True),
    ("a binary file", "printf 'x\\0' > logo.bin", ("M logo.bin", "first"), True),
    ("its deletion", "rm logo.bin", ("D logo.bin", "first"), True),
    ("what git ignores", "mkdir out && echo built > out/x && cat out/x", ("!! out/", "first"), False),
    ("a commit after an edit", f"{EDIT} && git commit -qam second", ("", "second"), True),
    ("a branch with another workflow", "git checkout -q other", ("", "other"), False),
    ("more than can be reviewed", "for n in $(seq 250); do echo $n > $n.log; done", ("?? 1.log …", "first"), False),
    ("a script that commits", "bash -c 'git commit -q --allow-empty -m inner'", ("", "inner"), False),
]


@pytest.mark.parametrize(
    ("line", "left", "is_proposal"), [row[1:] for row in IN_LAYER], ids=[row[0] for row in IN_LAYER]
)
async def test_nothing_is_asked(tmp_path: Path, line: str, left: tuple[str, str], is_proposal: bool) -> None:
    """What the layer cannot give back is run again on the workspace, which the mode allows."""
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="auto", headless=True) as d:
        (d.root / "logo.bin").write_bytes(b"\0logo")
        (d.root / ".gitignore").write_text("out/\n")
        repository(d.root)
        git(d.root, "checkout", "-q", "-b", "other")
        (d.root / ".github" / "workflows").mkdir(parents=True)
        (d.root / ".github" / "workflows" / "ci.yml").write_text("on: push\n")
        git(d.root, "add", "-A")
        git(d.root, "commit", "-q", "-m", "other")
        git(d.root, "checkout", "-q", "main")
        await d.trust()
        await d.prompt("go")
        state = await d.ended()
        assert (status(d.root), git(d.root, "log", "-1", "--format=%s").strip()) == left
        assert bool(state.proposals) == is_proposal


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto"])
@pytest.mark.parametrize("rules", [(), ("run_shell_command(./count.sh)",)], ids=["no rule", "a rule"])
async def test_a_script_that_nobody_was_shown_may_change(tmp_path: Path, mode: Mode, rules: Sequence[str]) -> None:
    """Only what the user approved is held to the bytes that they could see."""
    script = "#!/bin/sh\nsleep 0.1; echo '# ran' >> count.sh\n"
    async with scripted_session(tmp_path, step("", shell("./count.sh")), DONE, mode=mode) as d:
        (d.root / "count.sh").write_text(script)
        (d.root / "count.sh").chmod(0o755)
        for rule in rules:
            d.session.core.approvals.allow_in_session(parse_rule("allow", rule, "session"))
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        if state.approvals:
            assert ": 1 file changed" in state.approvals[0].title
            await d.answer("allow", scope="once")
        await d.over("p1")
        assert (d.root / "count.sh").read_text() == f"{script}# ran\n"
        assert "swapped" not in d.told() and "may not be what was approved" not in d.told()


@pytest.mark.parametrize("rule", ["run_shell_command(sed *)", "run_shell_command+network(sed *)"])
async def test_what_a_rule_of_the_user_s_names_runs_on_the_workspace(tmp_path: Path, rule: str) -> None:
    async with scripted_session(tmp_path, step("", shell(EDIT)), DONE, mode="auto") as d:
        d.session.core.approvals.allow_in_session(parse_rule("allow", rule, "session"))
        await d.prompt("go")
        assert not (await d.ended()).proposals
        assert d.file.read_text() == TWO_HUNKS
