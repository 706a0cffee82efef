"""Whatever a file says and a model asks for: one place changes, and nothing else; or the edit is refused."""

import random

import pytest
from bench.edits import ours
from bench.edits.corpus import Edit, edits
from bench.edits.perturb import FOUND, REFUSED
from bench.edits.trial import judge, trials
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.tools.edits.match import TextReplacement, replace_text
from amanu.tools.edits.matching.place import is_in_indentation

piece = st.text(alphabet='ab \t\n\ré“…\\"', max_size=12)
line = st.sampled_from(["a", "  b", "\tc", "", "d ", "    if x:", "return value", "...", "12\ttext", "“quoted”"])
text = st.lists(line, max_size=10).map("\n".join)


def attempt(file: str, old: str, new: str) -> TextReplacement | None:
    try:
        return replace_text(file, old, new, replace_all=False, path="f")
    except ToolError:
        return None


@given(piece, piece.filter(bool), piece, piece)
def test_what_is_there_once_to_the_letter_is_replaced(before: str, old: str, after: str, new: str) -> None:
    file = before + old + after
    edited = attempt(file, old, new)
    # Several lines that begin behind an indentation are taken for whole lines, whose indentation was left out.
    whole = is_in_indentation(before.rpartition("\n")[2]) and ("\n" in old.rstrip("\n") or "\n" in new.rstrip("\n"))
    if file.find(old) == file.rfind(old) and edited is not None and not whole and "\r" not in file + new:
        assert edited.text == before + new + after


@given(st.one_of(text, piece), st.one_of(text, piece).filter(bool), st.one_of(text, piece))
def test_one_place_changes_and_lines_around_it_stay(file: str, old: str, new: str) -> None:
    """Lines that say what `old` says, and those between them, are all that changes."""
    edited = attempt(file, old, new) if old != new else None
    if edited is None:
        return
    assert edited.text != file
    assert edited.count == 1
    lead = next((at for at, (a, b) in enumerate(zip(file, edited.text, strict=False)) if a != b), len(file))
    changed = file[: len(file) - _common_end(file[lead:], edited.text[lead:])][lead:]
    # No more lines change than were asked about (and one for a line end that goes).
    asked = sum(old.count(end) for end in ("\n", "\r", "\\n", "\\r")) + 1
    assert changed.count("\n") + changed.count("\r") <= 2 * asked or "..." in old or "…" in old


def _common_end(one: str, other: str) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[-1 - count] == other[-1 - count]:
        count += 1
    return count


@given(st.lists(st.sampled_from(["a", "  b", "\tc", "", "d "]), min_size=1, max_size=8), st.integers(0, 7), piece)
def test_never_a_silent_wrong_place(lines: list[str], at: int, new: str) -> None:
    """Whatever is forgiven, only lines that say what was asked for are replaced."""
    file = "".join(line + "\n" for line in lines)
    asked = lines[at % len(lines)].strip() + " \n"
    edited = attempt(file, asked, new) if asked.strip() else None
    if edited is None:
        return
    same = [line for line in lines if line.strip() == asked.strip()]
    assert len(same) == 1 and edited.count == 1
    place = lines.index(same[0])
    assert edited.text.startswith("".join(line + "\n" for line in lines[:place]))
    assert edited.text.endswith("".join(line + "\n" for line in lines[place + 1 :]))


_words = st.text(alphabet="abcdefg", min_size=3, max_size=8)
_lines = st.lists(
    st.builds(lambda depth, a, b: f"{'    ' * depth}{a} = {b}('{b}')\n", st.integers(0, 2), _words, _words),
    min_size=3,
    max_size=12,
    unique_by=str.strip,
)


@given(_lines, st.data())
def test_a_fault_of_the_search_text_changes_nothing_about_the_edit(lines: list[str], data: st.DataObject) -> None:
    """Perturbed or not, the edit is the same, or refused; and never refused for what costs no proof."""
    start = data.draw(st.integers(0, len(lines) - 2))
    end = data.draw(st.integers(start + 2, len(lines)))
    row = data.draw(st.integers(0, end - start - 1))
    old = lines[start:end]
    new = [*old[:row], old[row].replace(" = ", " = changed + "), *old[row + 1 :]]
    kept = tuple(at for at in range(len(old)) if abs(at - row) > 1)
    edit = Edit("made up", "Python", "literal", "".join(lines), start, tuple(old), tuple(new), kept)
    name = data.draw(st.sampled_from([*FOUND, *REFUSED]))
    trial = {**FOUND, **REFUSED}[name](random.Random(1), edit)
    if trial is None or (trial.expected is not None and trial.text.count(trial.old) > 0 and name != "nothing"):
        return
    verdict = judge(ours.edit, trial)
    assert verdict in ("right", "refused")
    if name in SURE:
        assert verdict == "right"


SURE = (
    "nothing", "without the last line end", "CRLF in the file", "CRLF in the search text", "file half LF, half CRLF",
    "file without final line end", "blanks at line ends", "escaped", "quotes escaped", "typographic search text",
    "line numbers in the search text", "blank lines around",
)  # fmt: skip


@pytest.fixture(scope="module")
def sample() -> list[Edit]:
    return edits(files=1, each=9)


def test_no_wrong_place_and_no_wrong_text_in_a_sample_of_the_bench(sample: list[Edit]) -> None:
    assert len(sample) >= 20
    wrong = [
        (name, edit.source, edit.kind, trial.old)
        for name, edit, trial in trials(sample)
        if judge(ours.edit, trial) not in ("right", "refused")
    ]
    assert wrong == []


def test_of_what_is_sure_nothing_is_refused(sample: list[Edit]) -> None:
    refused = [
        (name, edit.source, trial.old)
        for name, edit, trial in trials(sample)
        if name in SURE and judge(ours.edit, trial) == "refused"
    ]
    assert refused == []
