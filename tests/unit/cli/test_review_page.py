"""The review page as its model: what stands on it, what a key decides, and that it is what was on it."""

from collections.abc import Sequence
from typing import Any

import pytest

from amanu.cli import review_page_text
from amanu.cli.diff import HunkText
from amanu.cli.review_page import FRESH_SECONDS, Decision, ReviewPage
from amanu.cli.ui.page_keys import PageAction, page_table
from amanu_protocol.items import Proposal, Row
from amanu_protocol.labels import IGNORED
from amanu_protocol.state import SessionState
from support.fake_daemon import state
from support.sample_events import hunk, proposed, row

BASE = "".join(f"line {n}\n" for n in range(1, 31))


def changed(number: int, at: int, new: str, **told: Any) -> Any:
    return hunk(number, at, **{"old_text": f"line {at + 1}\n", "new_text": new, **told})


def two_files(version: int = 1, logo: Row | None = None, **second: Any) -> SessionState:
    """Two hunks of one file, one of another, and a row."""
    first = proposed(
        changed(1, 1, "two = 2\n"),
        changed(2, 20, "x\ny\n", **second),
        path="/w/a.py",
        base_text=BASE,
        version=version,
    )
    other = proposed(changed(3, 4, "z\n"), path="/w/b.txt", base_text=BASE).files[0]
    rows = [row(1) if logo is None else logo]
    return state(proposals=[first.model_copy(update={"files": [*first.files, other], "rows": rows})])


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Reader:
    """Somebody who looks at the page before each key."""

    def __init__(self, shown: SessionState, proposal_id: str | None = None, size: tuple[int, int] = (60, 20)) -> None:
        self.clock = Clock()
        self.size = size
        self.page = ReviewPage(proposal_id, clock=self.clock)
        self.page.follow(shown)
        self.clock.now += FRESH_SECONDS

    def presses(self, *keys: PageAction) -> Decision | None:
        decision = None
        for key in keys:
            self.screen()
            decision = self.page.press(key)
        return decision

    def screen(self) -> list[str]:
        rows = self.page.rows(*self.size)
        assert len(rows) <= self.size[1]
        return ["".join(text for _, text in each).rstrip() for each in rows]

    @property
    def said(self) -> str:
        return self.page._message[1]  # pyright: ignore[reportPrivateUsage]


def decided(decision: Decision | None) -> list[str]:
    return [] if decision is None else [f"{verb} {each.key[1]}" for verb, each in decision.changes]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["accept"], ["accept h1"]),
        (["reject"], ["reject h1"]),
        (["why"], ["reject h1"]),
        (["next", "accept"], ["accept h2"]),
        (["next", "previous", "accept"], ["accept h1"]),
        (["nextFile", "accept"], ["accept h3"]),
        (["nextFile", "nextFile", "reject"], ["reject r1"]),
        (["nextFile", "nextFile", "nextFile", "previousFile", "accept"], ["accept h3"]),
        (["next"] * 9 + ["accept"], ["accept r1"]),
        (["acceptFile"], []),
        (["acceptFile", "accept"], ["accept h1", "accept h2"]),
        (["rejectFile", "down", "up", "accept"], ["reject h1", "reject h2"]),
        (["acceptFile", "reject"], []),
        (["acceptFile", "next", "accept"], ["accept h2"]),
        (["undo"], []),
        (["down", "up", "top", "bottom", "keys"], []),
        (["bottom", "accept"], []),  # it is out of sight, and comes back
        (["bottom", "accept", "accept"], ["accept h1"]),
        (["keys", "accept"], []),
        (["keys", "accept", "accept"], ["accept h1"]),
        (["keys", "keys", "accept"], ["accept h1"]),
        (["keys", "acceptFile", "accept"], ["accept h1"]),
    ],
)
def test_the_decision_of_keys(keys: Sequence[PageAction], expected: list[str]) -> None:
    assert decided(Reader(two_files(), size=(60, 16)).presses(*keys)) == expected


def one(**told: Any) -> Proposal:
    return proposed(changed(1, 1, "two\n", **told), base_text=BASE)


@pytest.mark.parametrize(
    ("told", "key", "expected", "said"),
    [
        ({"state": "applied"}, "accept", ["keep h1"], ""),
        ({"state": "applied"}, "reject", ["undo h1"], ""),
        ({"state": "applied"}, "undo", ["undo h1"], ""),
        ({"state": "applied", "reviewed": True}, "accept", [], "Not possible: It is applied. u undoes it."),
        ({"state": "applied", "reviewed": True}, "undo", ["undo h1"], ""),
        ({"state": "reverted"}, "accept", ["redo h1"], ""),
        ({"state": "reverted"}, "reject", [], "Not possible: It was undone. a applies it again."),
        ({"state": "conflicted"}, "accept", ["accept h1"], ""),
        ({"state": "rejected"}, "accept", [], "Not possible: It was rejected, and the model was told."),
        ({"state": "accepted"}, "reject", [], "Not possible: It is being applied."),
        ({"state": "pending"}, "undo", [], "Not possible: It is not applied yet."),
    ],
)
def test_only_the_verbs_of_a_change_and_else_the_reason(
    told: dict[str, Any], key: PageAction, expected: list[str], said: str
) -> None:
    reader = Reader(state(proposals=[one(**told)]), "p")
    assert decided(reader.presses(key)) == expected
    assert reader.said.startswith(said)


def test_a_row_that_cannot_be_decided_says_why() -> None:
    reader = Reader(two_files(logo=row(1, undecidable="The turn that made it was rewound.")), "p")
    assert reader.presses("nextFile", "nextFile", "accept") is None
    assert reader.said == "Not possible: The turn that made it was rewound."


@pytest.mark.parametrize(
    ("told", "keys", "expected", "said"),
    [
        ({}, ["accept"], ["accept h1"], ""),  # a later version with the same text: the version is the drawn one's
        ({"new_text": "other\n"}, ["accept"], [], IGNORED["tooSoon"]),
        ({"state": "rejected"}, ["accept"], [], IGNORED["tooSoon"]),
        ({"new_text": "other\n"}, ["acceptFile"], [], IGNORED["tooSoon"]),
    ],
)
def test_nothing_is_decided_that_has_just_become_another(
    told: dict[str, Any], keys: Sequence[PageAction], expected: list[str], said: str
) -> None:
    reader = Reader(two_files(), "p")
    reader.screen()
    proposal = two_files(version=2).proposals[0]
    hunks = [each.model_copy(update=told if each.hunk_id == "h1" else {}) for each in proposal.files[0].hunks]
    files = [proposal.files[0].model_copy(update={"hunks": hunks}), proposal.files[1]]
    reader.page.follow(state(proposals=[proposal.model_copy(update={"files": files})]))
    assert decided(reader.presses(*keys)) == expected
    assert reader.said == said


def test_a_decision_is_about_the_version_that_was_drawn() -> None:
    reader = Reader(two_files(version=1), "p")
    reader.screen()
    reader.page.follow(two_files(version=2))
    decision = reader.page.press("accept")  # the page was not drawn again
    assert decision is not None and [each.proposal.version for _, each in decision.changes] == [1]


def test_a_question_about_a_file_ends_when_the_file_becomes_another() -> None:
    reader = Reader(two_files(), "p")
    reader.presses("acceptFile")
    reader.page.follow(two_files(version=2, new_text="other\n"))
    assert reader.said == "The changes are others now. Look at them again."
    reader.clock.now += FRESH_SECONDS
    assert decided(reader.presses("accept")) == ["accept h1"]


def test_what_another_client_decides_stays_chosen() -> None:
    reader = Reader(two_files())
    reader.presses("next")
    reader.page.follow(two_files(version=2, state="rejected"))
    assert "❯ ✗ line 21  +2 −1" in reader.screen()
    reader.clock.now += FRESH_SECONDS
    assert reader.presses("accept") is None


@pytest.mark.parametrize(
    ("after", "chosen", "said"),
    [
        ({"state": "applied", "reviewed": True}, "line 21", ""),
        ({"state": "conflicted", "reason": "its lines are others"}, "line 2 ", "its lines are others"),
    ],
)
def test_the_next_open_change_comes_by_itself(after: dict[str, Any], chosen: str, said: str) -> None:
    reader = Reader(two_files())
    decision = reader.presses("accept")
    assert decision is not None
    proposal = two_files(version=2).proposals[0]
    hunks = [each.model_copy(update=after if each.hunk_id == "h1" else {}) for each in proposal.files[0].hunks]
    files = [proposal.files[0].model_copy(update={"hunks": hunks}), proposal.files[1]]
    reader.page.follow(state(proposals=[proposal.model_copy(update={"files": files})]))
    reader.page.decided(decision)
    assert any(each.startswith("❯") and chosen in each for each in reader.screen())
    assert reader.said == said
    assert reader.presses("next", "accept") is not None, "his own decision keeps nobody waiting"


@pytest.mark.parametrize("size", [(60, 10), (90, 26), (160, 45), (20, 4), (1, 1)])
def test_every_size(size: tuple[int, int]) -> None:
    reader = Reader(two_files(), size=size)
    for key in ("next", "down", "nextFile", "acceptFile", "bottom", "keys"):
        reader.presses(key)
        reader.screen()


def test_what_stands_on_it() -> None:
    reader = Reader(two_files(), size=(60, 24))
    reader.presses("next")
    reader.page.other_questions = 1
    assert reader.screen() == [
        " Review · a.py · 2 of 4 changes · 4 open · ● 1 question more",
        "a.py",
        "  ○ line 2  +1 −1",
        "❯ ○ line 21  +2 −1",
        "b.txt",
        "  ○ line 5  +1 −1",
        "logo.png",
        "─" * 60,
        "▌ @@ -18,7 +18,8 @@ · 2 of 2",
        "▌   18   line 18",
        "▌   19   line 19",
        "▌   20   line 20",
        "▌   21 - line 21",
        "▌   21 + x",
        "▌   22 + y",
        "▌   23   line 22",
        "▌   24   line 23",
        "▌   25   line 24",
        *[""] * 4,
        " a accept · r reject · w say why · e edit · q back · ? keys",
        " A R whole file · j k change · n p file · PgDn PgUp scroll",
    ]


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ([], "── a.py (edit)"),
        (["nextFile"], "── b.txt (edit)"),
        (["next", "next"], "── b.txt (edit)"),
        (["nextFile", "nextFile"], "── logo.png (binary"),
        (["nextFile", "down", "previousFile"], "── a.py (edit)"),
        (["nextFile", "acceptFile"], "── b.txt (edit)"),
    ],
)
def test_the_file_of_the_chosen_change_is_shown(keys: Sequence[PageAction], shown: str) -> None:
    reader = Reader(two_files(), size=(60, 10))
    reader.presses(*keys)
    assert [line[2 : 2 + len(shown)] for line in reader.screen() if "── " in line] == [shown]


def test_a_change_that_goes_gives_way_to_another_file() -> None:
    reader = Reader(two_files(), "p")
    reader.presses("nextFile", "nextFile")
    proposal = two_files(version=2).proposals[0]
    reader.page.follow(state(proposals=[proposal.model_copy(update={"rows": []})]))
    assert any("── b.txt (edit)" in line for line in reader.screen())
    assert reader.presses("accept") is None and reader.said == IGNORED["tooSoon"]


@pytest.mark.parametrize("height", [6, 10, 40])
def test_every_key_can_be_seen(height: int) -> None:
    reader = Reader(two_files(), size=(60, height))
    reader.presses("keys")
    shown = reader.screen()
    for _ in range(20):
        reader.presses("down")
        shown += reader.screen()
    assert all(any(line.startswith(f"  {name} ") for line in shown) for name, _ in page_table())


HOSTILE = "\x1b[2Ja\u202eb\x07"


def test_nothing_of_a_change_reaches_the_terminal_as_control() -> None:
    file = proposed(changed(1, 1, f"{HOSTILE}\n", reason=HOSTILE, explanation=HOSTILE), path=f"/w/{HOSTILE}.py")
    reader = Reader(state(proposals=[file.model_copy(update={"rows": [row(1, title=HOSTILE)]})]), size=(90, 30))
    shown = "".join(reader.screen() + reader.screen())
    reader.presses("nextFile", "acceptFile")
    shown += "".join(reader.screen())
    assert not {"\x1b", "\u202e", "\x07"} & {*shown}
    assert "␛[2Ja<U+202E>b␇" in shown


def test_only_what_is_in_sight_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    line = HunkText.line
    monkeypatch.setattr(HunkText, "line", lambda text, sign, each: made.append(each) or line(text, sign, each))
    big = "".join(f"value = {n}\n" for n in range(100_000))
    reader = Reader(state(proposals=[proposed(changed(1, 1, big), path="/w/a.py", base_text=BASE)]), size=(90, 26))
    reader.screen()
    reader.presses("down", "bottom", "up")
    assert any("value = 999" in each for each in reader.screen())
    assert len(made) < 10 * review_page_text.CHUNK
