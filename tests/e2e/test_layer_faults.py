"""A sample of `support/layer_faults.py`: the moments at which a mix would show. `make soak` tries every moment."""

import pytest

from support.layer_faults import FileFault, Mode, survive
from support.required_programs import needs

KILLS: list[tuple[Mode, str, tuple[str, str, str]]] = [
    # What the daemon was about to do → whether the text, the executable bits and the repository are as before or after.
    ("ask", r"os.remove .*/dead/x\.txt", ("after", "before", "before")),
    ("ask", r"os.chmod .*/run\.sh$", ("after", "after", "after")),
    ("ask", r"os.rename .*/pic\.bin$", ("after", "after", "after")),
    ("ask", r"os.rename .*/\.git/index$", ("after", "after", "after")),
    ("ask", r"os.rename .*/\.git/refs/heads/main", ("after", "after", "after")),
    ("acceptEdits", r"os.remove .*/dead/x\.txt", ("after", "before", "before")),
    ("acceptEdits", r"os.rename .*/link$", ("after", "after", "before")),
    ("draft", r"os.rename .*/work/a\.txt", ("after", "before", "before")),
    ("draft", r"os.rename .*/redo/.*json$", ("after", "before", "before")),
    ("draft", r"os.rename .*/work/pic\.bin$", ("after", "after", "before")),
    ("draft", r"os.rmdir .*/hollow$", ("after", "after", "before")),
]


@pytest.mark.parametrize(("mode", "at", "standing"), KILLS, ids=[f"{mode} {at}" for mode, at, _ in KILLS])
async def test_a_daemon_killed_while_changes_come_home_leaves_no_mix(
    mode: Mode, at: str, standing: tuple[str, str, str]
) -> None:
    needs("bwrap")
    outcome = await survive(
        FileFault("kill", at=at, since="command" if mode == "acceptEdits" else "decision", mode=mode)
    )
    assert outcome.happened and (outcome.text, outcome.bits, outcome.git) == standing


STORING: list[tuple[Mode, str, bool]] = [
    # What the daemon was about to do → whether the changes are on record then.
    ("ask", r"os.rename .*/files/[0-9a-f]{64}$", False),
    ("draft", r"fsync .*/files$", False),
    ("draft", r"os.mkdir .*/s1/blobs$", True),
]


@pytest.mark.parametrize(("mode", "at", "kept"), STORING, ids=[f"{mode} {at}" for mode, at, _ in STORING])
async def test_a_daemon_killed_while_it_stores_files_keeps_all_changes_or_none(mode: Mode, at: str, kept: bool) -> None:
    needs("bwrap")
    outcome = await survive(FileFault("kill", at=at, since="command", mode=mode))
    assert outcome.happened and (outcome.kept, outcome.text, outcome.git) == (kept, "before", "before")


FULL: list[tuple[Mode, str, tuple[str, str]]] = [
    # From what on the disk was full → the text and the repository.
    ("ask", r"os.rename .*/held/.*/3$", ("before", "before")),
    ("ask", r"os.symlink .*/\.git/index\.lock", ("after", "before")),
    ("ask", r"os.rename .*/files/[0-9a-f]{64}$", ("before", "before")),
    ("acceptEdits", r"os.rename .*/files/[0-9a-f]{64}$", ("before", "before")),
    ("draft", r"os.link .*/d/sub/new\.txt", ("before", "before")),
]


@pytest.mark.parametrize(("mode", "at", "standing"), FULL, ids=[f"{mode} {at}" for mode, at, _ in FULL])
async def test_a_full_disk_leaves_no_mix_and_is_told(mode: Mode, at: str, standing: tuple[str, str]) -> None:
    needs("bwrap")
    outcome = await survive(FileFault("full", at=at, since="decision" if mode == "draft" else "command", mode=mode))
    assert outcome.happened and (outcome.text, outcome.git) == standing
