"""What is said of a draft that the user has not decided on."""

import pytest

from amanu.cli.open_draft import also_applied, describe_open_draft, open_files
from amanu_protocol.items import HunkState
from amanu_protocol.state import SessionState
from support.sample_events import hunk, proposed


def session(*states: HunkState, besides: int = 0) -> SessionState:
    """One draft of a file for each state, and so many paths besides."""
    made = [proposed(hunk(number, state=state), path=f"/w/{state}.txt") for number, state in enumerate(states, 1)]
    files = [file for each in made for file in each.files]
    paths = [f"/w/{number}.bin" for number in range(besides)]
    draft = made[0].model_copy(update={"files": files, "draft": True, "state": "pending", "besides": paths})
    return SessionState(
        session_id="s" * 8,
        title="",
        roots=["/w"],
        mode="draft",
        model_id="m",
        trusted=False,
        read_only=False,
        proposals=[draft],
    )


def test_files_that_are_decided_on_are_not_counted() -> None:
    state = session("pending", "applied", "rejected", "conflicted")
    assert open_files(state) == ["/w/pending.txt", "/w/conflicted.txt"]
    assert "(2 files)" in describe_open_draft(state, in_chat=True)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, ""),
        (2, "Also applied if you accept the whole draft: 0.bin, 1.bin."),
        (23, f"Also applied if you accept the whole draft: {', '.join(f'{n}.bin' for n in range(20))} and 3 more."),
    ],
)
def test_what_no_hunk_shows_is_named(count: int, said: str) -> None:
    state = session("pending", besides=count)
    assert also_applied(state) == said
    assert describe_open_draft(state, in_chat=True).endswith(said or "discards it.")
    assert ("Not kept after this run: 0.bin" in describe_open_draft(state, in_chat=False)) == (count > 0)
