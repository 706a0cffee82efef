"""The review follows the user's own hand also where no hunk shows it: binary files, links, modes, folders."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from support.draft_session import DONE, end_daemon
from support.required_programs import needs
from support.row_session import by_user, files, name, rows
from support.scripted_session import ScriptedSession, scripted_session, step
from unit.test_session_layer import shell
from unit.test_session_own_hand import SIGNS, edit, looked

pytestmark = pytest.mark.layers

HANDS: dict[str, tuple[str, Sequence[tuple[str, str]]]] = {
    "a new binary file": (
        r"printf 'a\0' > new.bin",
        [
            ("true", "new.bin r"),
            ("mv new.bin ../k", "new.bin -"),
            ("mv ../k new.bin", "new.bin r"),
            ("echo > new.bin", "new.bin -"),
        ],
    ),
    "a changed binary file": (
        r"printf 'a\0' > pic.bin",
        [
            (r"printf 'old\0' > pic.bin", "pic.bin -"),
            (r"printf 'a\0' > pic.bin", "pic.bin r"),
            ("rm pic.bin", "pic.bin -"),
        ],
    ),
    "a deleted binary file": ("rm pic.bin", [(r"printf 'old\0' > pic.bin", "pic.bin -"), ("rm pic.bin", "pic.bin r")]),
    "a renamed binary file": (
        "mv pic.bin pic2.bin",
        [("mv pic2.bin pic.bin", "pic.bin -"), ("mv pic.bin pic2.bin", "pic.bin r"), ("rm pic2.bin", "pic.bin -")],
    ),
    "a link": (
        "ln -sfn own.bin link",
        [("ln -sfn notes.txt link", "link -"), ("ln -sfn own.bin link", "link r"), ("rm link", "link -")],
    ),
    "executable bits": (
        "chmod +x tool.sh",
        [("chmod -x tool.sh", "tool.sh -"), ("chmod +x tool.sh", "tool.sh r"), ("rm tool.sh", "tool.sh -")],
    ),
    "a new folder": ("mkdir made", [("rmdir made", "made -"), ("mkdir made", "made r")]),
    "a removed folder": ("rmdir empty", [("mkdir empty", "empty -"), ("rmdir empty", "empty r")]),
    "twice by the model": (
        r"printf 'a\0' > new.bin; printf 'b\0' > pic.bin",
        [("rm new.bin", "new.bin -, pic.bin r"), (r"printf 'old\0' > pic.bin", "new.bin -, pic.bin -")],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.05)


def waiting(d: ScriptedSession) -> str:
    return ", ".join(f"{name(d, row)} {SIGNS[row.waits]}" for row in rows(d))


@pytest.mark.parametrize("hand", HANDS)
async def test_what_is_not_there_any_more_waits_no_more(tmp_path: Path, hand: str) -> None:
    line, then = HANDS[hand]
    steps = [step("", shell(line)), step("", edit("last\n", "LAST\n", "last.txt")), DONE]
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        files(d.root)
        (d.root / "last.txt").write_text("last\n")
        await d.prompt("go")
        await d.over("p1")
        for at, (by_hand, expected) in enumerate(then):
            by_user(d.root, by_hand)
            await looked(d)
            assert waiting(d) == expected, at


@pytest.mark.parametrize("hand", HANDS)
async def test_it_is_seen_when_the_session_is_opened_again(tmp_path: Path, hand: str) -> None:
    line, then = HANDS[hand]
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="acceptEdits") as d:
        files(d.root)
        await d.prompt("go")
        await d.over("p1")
        for by_hand, expected in then:
            await d.sessions.close("s")
            by_user(d.root, by_hand)
            await end_daemon(d)
            await d.until(lambda _, expected=expected: waiting(d) == expected)


async def test_what_a_later_command_replaces_is_not_the_user_s_hand(tmp_path: Path) -> None:
    lines = [
        r"printf 'a\0' > new.bin",
        r"printf 'b\0' > new.bin",
        "rm new.bin",
        r"printf 'c\0' > new.bin; chmod +x new.bin",
    ]
    steps = [*(step("", shell(line)) for line in lines), step("", edit("last\n", "LAST\n", "last.txt")), DONE]
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        files(d.root)
        (d.root / "last.txt").write_text("last\n")
        await d.prompt("go")
        await d.over("p1")
        before = waiting(d)
        await looked(d)
        assert waiting(d) == before and "-" not in before
