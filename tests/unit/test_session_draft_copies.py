"""Background commands, plan mode and sub-agents work on copies of the layer with the draft."""

import os
from pathlib import Path
from typing import Literal

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.tools.shell import session_layer
from amanu_protocol.items import Mode
from support.agent_session import ask_agent, complete, nested, session_with_agents
from support.draft_session import DONE, decide_all, edit, is_over, results, settled, turn, write
from support.required_programs import needs
from support.scripted_session import TWELVE, scripted_session, step
from unit.test_session_layer import shell, tree

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


async def test_a_job_works_on_a_copy_that_is_never_kept(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("cat notes.txt; echo job > job.txt; echo ready; sleep 60", background=True, until="ready")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        before = tree(d.root)
        await turn(d)
        assert "line two" in results(d)[1] and "not kept" in results(d)[1]
        assert tree(d.root) == before


async def test_a_job_finds_what_is_drafted_besides_text_and_what_was_built(tmp_path: Path) -> None:
    look = "./made.sh; ls -A; readlink link; cat out/deep/x; test -e gone || echo gone; echo y > out/y; echo ready"
    steps = [
        step("", write("made.sh", "#!/bin/sh\necho ran\n")),
        step(
            "",
            shell("chmod +x made.sh; printf 'a\\0' > pic.bin; ln -s made.sh link; rm -r gone; mkdir -p out/deep new"),
        ),
        step("", shell("echo built > out/deep/x")),
        step("", shell(f"{look}; sleep 60", background=True, until="ready|denied")),
        step("", shell("ls out")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("out/\n")
        (d.root / "gone").mkdir()
        (d.root / "gone" / "old.bin").write_bytes(b"b\0")
        await turn(d)
        shown = results(d)[3]
        for each in ("ran", "pic.bin", "new", "made.sh\n", "built", "gone\nready"):
            assert each in shown, each
        assert results(d)[4].startswith("deep\n"), "what a job makes is not kept"


async def test_a_job_is_told_what_is_too_big_for_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_layer, "_COPIED", 32 << 10)
    steps = [
        step(
            "", edit("line 2\n", "line two\n"), shell("mkdir out; head -c 100000 /dev/zero > out/big; echo > small.o")
        ),
        step("", shell("ls; echo ready; sleep 60", background=True, until="ready")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("out/\n*.o\n")
        await turn(d)
        shown = results(d)[-1]
        assert "too large: out" in shown and "notes.txt\nsmall.o\nready" in shown


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("cat out/deep/x; wc -c pic.bin", False),
        ("rm out/deep/x; echo y > out/y", True),
        ("echo y > out/deep/x", True),
        ("echo y > out/deep/y", True),
        ("rm -r out", True),
    ],
)
async def test_a_command_of_plan_mode_finds_what_was_built_and_drafted_before(
    tmp_path: Path, line: str, changes: bool
) -> None:
    """And nothing of that is changed."""
    build = shell("mkdir -p out/deep; echo built > out/deep/x; printf 'pic\\0' > pic.bin; echo drafted >> notes.txt")
    later, last = shell(f"f() {{ {line}; }}; f"), shell("cat out/deep/x; ls out")
    steps = step("", build), DONE, step("", later), DONE, step("", last), DONE
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("out/\n")
        modes: list[tuple[str, Mode]] = [("p1", "draft"), ("p2", "plan"), ("p3", "draft")]
        for prompt_id, mode in modes:
            await d.session.set_mode(mode)
            await turn(d, prompt_id)
        outputs = [result for result in results(d) if "Apply" not in result]
        assert changes or ("built" in outputs[1] and "pic" in outputs[1])
        assert ("was thrown away" in outputs[1]) == changes
        assert outputs[2].startswith("built\ndeep\n") and "y" not in outputs[2].split()


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_an_agent_drafts_into_the_draft_of_its_session(
    tmp_path: Path, decision: Literal["accept", "reject"]
) -> None:
    """All that its commands do, in a layer of its own that begins as its parent's; and later agents find it there."""
    first = [
        step(
            "", shell("cat out/x; test -x run.sh && rm gone.bin; printf 'c\\0d' > pic.bin; chmod +x tool.sh; mkdir new")
        ),
        step("", shell("ls; echo agent >> notes.txt; rm -r sub; ln -s notes.txt link")),
        step("", complete()),
    ]
    second = [
        step("", shell("tr '\\0' ' ' < pic.bin; ./tool.sh; readlink link; ls -d new sub gone.bin")),
        step("", complete()),
    ]
    steps = [
        step("", shell("mkdir out; echo built > out/x; echo > run.sh; chmod +x run.sh; printf 'a\\0b' > pic.bin")),
        step("", ask_agent("first")),
        step("", ask_agent("second")),
        step("", shell("tr '\\0' ' ' < pic.bin; ./tool.sh; readlink link; ls -d new sub gone.bin")),
        DONE,
    ]
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.txt").write_text("a\n")
    (root / "gone.bin").write_bytes(b"old\0")
    (root / "tool.sh").write_text("#!/bin/sh\necho ran\n")
    (root / ".gitignore").write_text("out/\n")
    async with session_with_agents(tmp_path, {"first": first, "second": second}, *steps, mode="draft") as d:
        before = tree(d.root)
        await turn(d)
        outputs = [item.output for at in (1, 2) for item in nested(d, at) if item.tool == "run_shell_command"]
        assert outputs[0].startswith("built\n") and "gone.bin" not in outputs[1].partition("Exit code")[0]
        for later in (outputs[2], results(d)[3]):
            assert later.startswith("c dran\nnotes.txt\n") and "\nnew\n" in later
            assert "'sub'" in later and "'gone.bin'" in later and "Drafted" not in later
        assert tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        after = tree(d.root)
        if decision == "reject":
            assert after == before
            return
        assert after["notes.txt"] == f"{TWELVE}agent\n" and (after["pic.bin"], after["link"]) == (
            "c\0d",
            "-> notes.txt",
        )
        assert not {"gone.bin", "sub/a.txt"} & set(after) and after["new"] == "/" and after["out/x"] == "built\n"
        assert os.access(d.root / "tool.sh", os.X_OK) and os.access(d.root / "run.sh", os.X_OK)


@pytest.mark.parametrize("who", ["job", "agent", "plan"])
async def test_a_copy_is_made_without_what_is_gone(tmp_path: Path, who: str) -> None:
    """What was built and is deleted again; and of a draft whose layer was given up."""
    line = shell(
        "cat pic.bin | tr '\\0' ' '; echo ready", background=who == "job", until="ready" if who == "job" else None
    )
    too_much = shell("for n in $(seq 250); do echo > $n.txt; done")
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("mkdir -p pkg/out; echo > pkg/out/x; printf 'a\\0b' > pic.bin")),
        step("", shell("rm -r pkg"), too_much),
        DONE,
        step("", ask_agent("looker") if who == "agent" else line),
        DONE,
    ]
    async with session_with_agents(
        tmp_path, {"looker": [step("", line), step("", complete())]}, *steps, mode="draft"
    ) as d:
        (d.root / ".gitignore").write_text("out/\n")
        await d.prompt("go")
        while (state := await d.until(lambda s: s.approvals or is_over(s, "p1"))).approvals:
            await d.answer("finish" if state.approvals[0].title.startswith("Apply") else "reject")
        if who == "plan":
            await d.session.set_mode("plan")
        await turn(d, "p2")
        shown = nested(d)[0].output if who == "agent" else results(d)[-1]
        assert "a b" in shown and "failed" not in shown
