"""What is said of a draft that the user has not decided on."""

from amanu.cli.open_draft import describe_open_draft, open_paths
from amanu_protocol.items import HunkState, RowVersion
from amanu_protocol.state import SessionState
from support.sample_events import hunk, proposed, row


def session(*states: HunkState) -> SessionState:
    """One draft of a file and a row for each state."""
    made = [proposed(hunk(number, state=state), path=f"/w/{state}.txt") for number, state in enumerate(states, 1)]
    files = [file for each in made for file in each.files]
    rows = [row(at, path=f"/w/{state}.bin", state=state) for at, state in enumerate(states, 1)]
    draft = made[0].model_copy(update={"files": files, "rows": rows, "draft": True, "state": "pending"})
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


def test_folders_are_counted_by_themselves() -> None:
    state = session("pending")
    folder = RowVersion(kind="folder")
    made = row(1, kind="folder", path="/w/new", after=folder, state="pending")
    state.proposals[0] = state.proposals[0].model_copy(update={"rows": [made]})
    assert "(1 file and 1 folder)" in describe_open_draft(state, in_chat=True)


def test_files_that_are_decided_on_are_not_counted() -> None:
    state = session("pending", "applied", "rejected", "conflicted")
    assert open_paths(state) == ["/w/pending.txt", "/w/conflicted.txt", "/w/pending.bin", "/w/conflicted.bin"]
    assert "(4 files)" in describe_open_draft(state, in_chat=True)


def test_a_draft_in_conflict_is_not_over() -> None:
    state = session("conflicted")
    state.proposals[0] = state.proposals[0].model_copy(update={"state": "settled"})
    assert open_paths(state) == ["/w/conflicted.txt", "/w/conflicted.bin"]
