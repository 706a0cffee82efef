"""What is wrong with the search text, by name; and what is right to do then.

Each takes a random and an edit and gives the file, the search text, the new text and the file that is right, or None
where the right answer is a refusal. A perturbation of the search text is one of the new text too, as far as that says
the same lines: a model that writes quotes wrong writes them wrong in both.
"""

import html
import json
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.edits.corpus import Edit, unit


@dataclass(frozen=True)
class Trial:
    text: str
    old: str
    new: str
    expected: str | None
    """The file after the edit; None: to be refused."""
    start: int
    """Characters of `text` before the place, and behind it."""
    behind: int


LF = "\n"
Perturbation = Callable[[random.Random, Edit], Trial | None]
"""None: does not apply to this edit."""


def _trial(edit: Edit, old: Sequence[str], new: Sequence[str]) -> Trial | None:
    """The file as it is, the texts changed."""
    before = "".join(edit.lines[: edit.start])
    behind = len(edit.text) - len(before) - len("".join(edit.old))
    if "".join(old) == "".join(edit.old):
        return None
    return Trial(edit.text, "".join(old), "".join(new), edit.expected, len(before), behind)


def _lines(edit: Edit, change: Callable[[str], str]) -> Trial | None:
    return _trial(edit, [change(line) for line in edit.old], [change(line) for line in edit.new])


def _here(
    edit: Edit, there: Sequence[str], after: Sequence[str] | None, old: Sequence[str], new: Sequence[str]
) -> Trial:
    """The file itself says `there` instead of `edit.old`; `after` the edit; None: to be refused."""
    lines = edit.lines
    before, behind = "".join(lines[: edit.start]), "".join(lines[edit.start + len(edit.old) :])
    expected = None if after is None else before + "".join(after) + behind
    return Trial(before + "".join(there) + behind, "".join(old), "".join(new), expected, len(before), len(behind))


def exact(rng: random.Random, edit: Edit) -> Trial | None:
    before = "".join(edit.lines[: edit.start])
    old, new = "".join(edit.old), "".join(edit.new)
    return Trial(edit.text, old, new, edit.expected, len(before), len(edit.text) - len(before) - len(old))


def without_last_line_end(rng: random.Random, edit: Edit) -> Trial | None:
    if not edit.new:
        return None
    return _trial(edit, [*edit.old[:-1], edit.old[-1][:-1]], [*edit.new[:-1], edit.new[-1][:-1]])


def crlf_file(rng: random.Random, edit: Edit) -> Trial | None:
    trial = exact(rng, edit)
    assert trial is not None and trial.expected is not None
    before, behind = edit.text[: trial.start], edit.text[len(edit.text) - trial.behind :]
    return Trial(
        edit.text.replace("\n", "\r\n"),
        trial.old,
        trial.new,
        trial.expected.replace("\n", "\r\n"),
        len(before) + before.count("\n"),
        len(behind) + behind.count("\n"),
    )


def crlf_search(rng: random.Random, edit: Edit) -> Trial | None:
    return _lines(edit, lambda line: line.replace("\n", "\r\n"))


def mixed_line_ends(rng: random.Random, edit: Edit) -> Trial | None:
    """LF before the place, CRLF from there on, and in the search text LF."""
    before = "".join(edit.lines[: edit.start])
    behind = "".join(edit.lines[edit.start + len(edit.old) :]).replace("\n", "\r\n")
    old, new = "".join(edit.old), "".join(edit.new)
    middle = [text.replace("\n", "\r\n") for text in (old, new)]
    return Trial(before + middle[0] + behind, old, new, before + middle[1] + behind, len(before), len(behind))


def no_final_line_end(rng: random.Random, edit: Edit) -> Trial | None:
    """The file ends with the place, without a line end; the search text has one."""
    if not edit.new:
        return None
    before = "".join(edit.lines[: edit.start])
    old, new = "".join(edit.old), "".join(edit.new)
    return Trial(before + old[:-1], old, new, before + new[:-1], len(before), 0)


def trailing_blanks(rng: random.Random, edit: Edit) -> Trial | None:
    blanks = {line: rng.choice(("", " ", "  ", "\t")) for line in edit.old}
    return _lines(edit, lambda line: line[:-1] + blanks.get(line, "") + "\n")


def blanks_in_file(rng: random.Random, edit: Edit) -> Trial | None:
    """Kept lines end in blanks in the file alone."""
    rows = _kept_alone(edit)
    if not rows:
        return None
    return _drift(edit, {row: edit.old[row][:-1] + "  \n" for row in rows})


def _kept_alone(edit: Edit) -> list[int]:
    """Rows of `old` the edit keeps whose line is in `old` and in `new` once."""
    return [row for row in edit.kept if edit.old.count(edit.old[row]) == edit.new.count(edit.old[row]) == 1]


def _drift(edit: Edit, other: dict[int, str]) -> Trial:
    """In the file these rows say something else, before and after."""
    there = [other.get(row, line) for row, line in enumerate(edit.old)]
    named = {edit.old[row]: line for row, line in other.items()}
    return _here(edit, there, [named.get(line, line) for line in edit.new], edit.old, edit.new)


def _indents(lines: Sequence[str]) -> list[str]:
    return [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]


def indentation_lost(rng: random.Random, edit: Edit) -> Trial | None:
    """What all lines have."""
    indents = _indents([*edit.old, *edit.new])
    least = min(indents, key=len, default="")
    if not least or not all(indent.startswith(least) for indent in indents):
        return None
    return _lines(edit, lambda line: line.removeprefix(least))


def indentation_less(rng: random.Random, edit: Edit) -> Trial | None:
    step = unit(edit.lines)
    if not all(indent.startswith(step * 2) for indent in _indents([*edit.old, *edit.new])):
        return None
    return _lines(edit, lambda line: line.removeprefix(step))


def indentation_more(rng: random.Random, edit: Edit) -> Trial | None:
    step = unit(edit.lines)
    return _lines(edit, lambda line: step + line if line.strip() else line)


def _leading(line: str, one: str, other: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    count = 0
    while indent.startswith(one * (count + 1)):
        count += 1
    return other * count + line[len(one) * count :]


def tabs_for_blanks(rng: random.Random, edit: Edit) -> Trial | None:
    step = unit(edit.lines)
    return _lines(edit, lambda line: _leading(line, step, "\t")) if step != "\t" else None


def blanks_for_tabs(rng: random.Random, edit: Edit) -> Trial | None:
    """The file has tabs; the search text blanks."""
    step = unit(edit.lines)
    width = rng.choice(("  ", "    "))
    text = "".join(_leading(line, step, "\t") for line in edit.lines)
    old, new = ([_leading(line, step, "\t") for line in lines] for lines in (edit.old, edit.new))
    tabbed = Edit(edit.source, edit.language, edit.kind, text, edit.start, tuple(old), tuple(new), edit.kept)
    return _lines(tabbed, lambda line: _leading(line, "\t", width))


def half_the_indentation(rng: random.Random, edit: Edit) -> Trial | None:
    step = unit(edit.lines)
    indents = set(_indents([*edit.old, *edit.new]))
    if step != "    " or len({_leading(indent, step, "  ") for indent in indents}) < len(indents):
        return None  # of two depths it makes one: nobody could tell them apart
    return _lines(edit, lambda line: _leading(line, step, "  "))


def first_line_bare(rng: random.Random, edit: Edit) -> Trial | None:
    """Begins behind the indentation of the first line, and has blanks at line ends."""
    if not edit.new or edit.old[0] != edit.new[0] or not edit.old[0][0].isspace() or len(edit.old) < 2:
        return None
    ends = [line[:-1] + " \n" for line in edit.old[1:]]
    return _trial(edit, [edit.old[0].lstrip(), *ends], [edit.new[0].lstrip(), *edit.new[1:]])


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def escaped(rng: random.Random, edit: Edit) -> Trial | None:
    """Once too often: \\n, \\t, \\" and \\\\."""
    return _trial(edit, [_json("".join(edit.old))], [_json("".join(edit.new))])


def escaped_quotes(rng: random.Random, edit: Edit) -> Trial | None:
    return _lines(edit, lambda line: line.replace('"', '\\"'))


def entities(rng: random.Random, edit: Edit) -> Trial | None:
    return _lines(edit, lambda line: html.escape(line, quote=False))


_QUOTES = {"'": "’", '"': "”", "-": "–"}


def curly_search(rng: random.Random, edit: Edit) -> Trial | None:
    """Quotes and dashes of the lines kept are typographic in the search text; what is new is not."""
    common = set(edit.old) & set(edit.new)
    return _lines(edit, lambda line: _replaced(line, _QUOTES) if line in common else line)


def curly_file(rng: random.Random, edit: Edit) -> Trial | None:
    rows = {row: line for row in _kept_alone(edit) if (line := _replaced(edit.old[row], _QUOTES)) != edit.old[row]}
    return _drift(edit, rows) if rows else None


def hard_blanks(rng: random.Random, edit: Edit) -> Trial | None:
    """No-break blanks between words, in the file."""
    rows = {
        row: line
        for row in _kept_alone(edit)
        if (line := re.sub(r"(?<=\w) (?=\w)", "\u00a0", edit.old[row])) != edit.old[row]
    }
    return _drift(edit, rows) if rows else None


def composed(rng: random.Random, edit: Edit) -> Trial | None:
    """An accent in two characters in the file, in one in the search text."""
    rows = [row for row in _kept_alone(edit) if "e" in edit.old[row]]
    if not rows:
        return None
    accented = {edit.old[row]: edit.old[row].replace("e", "é") for row in rows}
    two = {line: unicodedata.normalize("NFD", one) for line, one in accented.items()}
    return _here(
        edit,
        [two.get(line, line) for line in edit.old],
        [two.get(line, line) for line in edit.new],
        [accented.get(line, line) for line in edit.old],
        [accented.get(line, line) for line in edit.new],
    )


def _replaced(text: str, by: dict[str, str]) -> str:
    return "".join(by.get(character, character) for character in text)


def numbered(rng: random.Random, edit: Edit) -> Trial | None:
    """The search text alone, as `cat -n` prints it."""
    return _trial(edit, [f"{edit.start + row + 1:>6}\t{line}" for row, line in enumerate(edit.old)], edit.new)


def numbered_both(rng: random.Random, edit: Edit) -> Trial | None:
    form = rng.choice(("{}: {}", "{} | {}", "L{}: {}", "{:>5}→{}"))
    old, new = (
        [form.format(edit.start + row + 1, line) for row, line in enumerate(lines)] for lines in (edit.old, edit.new)
    )
    return _trial(edit, old, new)


def elided(rng: random.Random, edit: Edit) -> Trial | None:
    """Six to thirty lines more at one side, of which all but the outer two are left out."""
    lines = edit.lines
    count = rng.randrange(6, 30)
    mark = rng.choice(("...\n", "# ... existing code ...\n", "// ... rest of the code ...\n", "    ...\n", "…\n"))
    end = edit.start + len(edit.old)
    if rng.random() < 0.5 and end + count <= len(lines):
        side = ["".join(lines[end + count - 2 : end + count])]
        if not side[0].split("\n")[1].strip():
            return None
        old, new = [*edit.old, mark, *side], [*edit.new, mark, *side]
    elif edit.start >= count:
        side = ["".join(lines[edit.start - count : edit.start - count + 2])]
        old, new = [*side, mark, *edit.old], [*side, mark, *edit.new]
        if not side[0].split("\n")[0].strip():
            return None
    else:
        return None
    if not edit.new:
        return None
    return _trial(edit, old, new)


def blank_lines_around(rng: random.Random, edit: Edit) -> Trial | None:
    return _trial(edit, ["\n", *edit.old, "\n"], ["\n", *edit.new, "\n"]) if edit.new else None


def blank_line_lost(rng: random.Random, edit: Edit) -> Trial | None:
    rows = [row for row in edit.kept if not edit.old[row].strip() and 0 < row < len(edit.old) - 1]
    return _missing(edit, rng.choice(rows)) if rows else None


def line_lost(rng: random.Random, edit: Edit) -> Trial | None:
    """A line between others that the edit does not touch is not in the search text."""
    rows = [row for row in _kept_alone(edit) if 0 < row < len(edit.old) - 1]
    return _missing(edit, rng.choice(rows)) if rows else None


def _missing(edit: Edit, row: int) -> Trial | None:
    behind = row - len(edit.old)
    new = list(edit.new)
    at = row if list(edit.new[: row + 1]) == list(edit.old[: row + 1]) else len(new) + behind
    if not 0 <= at < len(new) or new[at] != edit.old[row]:
        return None
    return _trial(edit, [*edit.old[:row], *edit.old[row + 1 :]], [*new[:at], *new[at + 1 :]])


def line_too_many(rng: random.Random, edit: Edit) -> Trial | None:
    """A line between others that is no more in the file."""
    rows = [row for row in _kept_alone(edit) if 0 < row < len(edit.old) - 1]
    if not rows:
        return None
    gone = edit.old[rng.choice(rows)]
    there, after = ([line for line in lines if line != gone] for lines in (edit.old, edit.new))
    return _here(edit, there, after, edit.old, edit.new)


def lines_swapped(rng: random.Random, edit: Edit) -> Trial | None:
    kept = _kept_alone(edit)
    rows = [row for row in kept if row + 1 in kept and edit.old[row] != edit.old[row + 1]]
    if not rows:
        return None
    row = rng.choice(rows)
    one, other = edit.old[row], edit.old[row + 1]
    swap = {one: other, other: one}
    return _trial(edit, [swap.get(line, line) for line in edit.old], [swap.get(line, line) for line in edit.new])


def blanks_inside(rng: random.Random, edit: Edit) -> Trial | None:
    """Two blanks for one, none before brackets and after commas."""
    kept = set(_kept_alone(edit))

    def other(line: str) -> str:
        indent = line[: len(line) - len(line.lstrip())]
        body = re.sub(r", ", ",", line[len(indent) :])
        return indent + re.sub(r"(?<=\w) (?=\w)", "  ", body, count=1)

    named = {edit.old[row]: other(edit.old[row]) for row in kept}
    return _lines(edit, lambda line: named.get(line, line))


def one_character(rng: random.Random, edit: Edit) -> Trial | None:
    """A letter is missing in a word of a line that is kept."""
    rows = [row for row in _kept_alone(edit) if re.search(r"[a-z]{6,}", edit.old[row])]
    if not rows:
        return None
    row = rng.choice(rows)
    word = rng.choice(list(re.finditer(r"[a-z]{6,}", edit.old[row])))
    at = rng.randrange(word.start() + 1, word.end() - 1)
    slip = {edit.old[row]: edit.old[row][:at] + edit.old[row][at + 1 :]}
    return _lines(edit, lambda line: slip.get(line, line))


def several_at_once(rng: random.Random, edit: Edit) -> Trial | None:
    """Indentation lost, CRLF, blanks at line ends, typographic quotes."""
    trial = indentation_lost(rng, edit) or exact(rng, edit)
    assert trial is not None
    common = {line.strip() for line in edit.old} & {line.strip() for line in edit.new}

    def other(text: str) -> str:
        lines = text.splitlines(keepends=True)
        return "".join(
            (_replaced(line[:-1], _QUOTES) if line.strip() in common else line[:-1]) + " \r\n" for line in lines
        )

    return Trial(
        trial.text, other(trial.old), other(trial.new).replace(" \r", "\r"), trial.expected, trial.start, trial.behind
    )


# To be refused.


def twice(rng: random.Random, edit: Edit) -> Trial | None:
    """The same lines stand at the end of the file again."""
    trial = exact(rng, edit)
    assert trial is not None
    return Trial(edit.text + trial.old, trial.old, trial.new, None, trial.start, trial.behind)


def twice_indented(rng: random.Random, edit: Edit) -> Trial | None:
    """And again, deeper; the search text is indented as neither."""
    step = unit(edit.lines)
    deeper = "".join(step + line if line.strip() else line for line in edit.old)
    old, new = (
        "".join(" " + step * 3 + line if line.strip() else line for line in lines) for lines in (edit.old, edit.new)
    )
    return Trial(edit.text + deeper, old, new, None, 0, 0)


def twice_nearly(rng: random.Random, edit: Edit) -> Trial | None:
    """Twice, each with another slip in it; the search text is as neither."""
    rows = [row for row in _kept_alone(edit) if re.search(r"[a-z]{6,}", edit.old[row])]
    if not rows:
        return None
    row = rng.choice(rows)
    word = next(iter(re.finditer(r"[a-z]{6,}", edit.old[row])))
    one, other = (edit.old[row][:at] + edit.old[row][at + 1 :] for at in (word.start() + 1, word.start() + 3))
    again = "".join(other if at == row else line for at, line in enumerate(edit.old))
    trial = _here(edit, [one if at == row else line for at, line in enumerate(edit.old)], None, edit.old, edit.new)
    return Trial(trial.text + again, trial.old, trial.new, None, trial.start, trial.behind)


def gone(rng: random.Random, edit: Edit) -> Trial | None:
    return _unless_there(_here(edit, [], None, edit.old, edit.new))


def twin_renamed(rng: random.Random, edit: Edit) -> Trial | None:
    """What is there has another name, everywhere."""
    names = [name for name in re.findall(r"\b[a-zA-Z_]\w{3,}\b", "".join(edit.old)) if not name.endswith("_renamed")]
    if not names:
        return None
    name = rng.choice(names)
    there = [re.sub(rf"\b{name}\b", name + rng.choice(("s", "_b", "2", "Other")), line) for line in edit.old]
    return _unless_there(_here(edit, there, None, edit.old, edit.new))


def twin_word(rng: random.Random, edit: Edit) -> Trial | None:
    """What is there says another word of the file in one line."""
    words = sorted(set(re.findall(r"\b[a-z]{4,}\b", edit.text)))
    row = rng.randrange(len(edit.old))
    found = list(re.finditer(r"\b[a-z]{4,}\b", edit.old[row]))
    if not found or not words:
        return None
    here = rng.choice(found)
    other = rng.choice([word for word in words if word != here[0]] or ["other"])
    line = edit.old[row][: here.start()] + other + edit.old[row][here.end() :]
    there = [line if at == row else each for at, each in enumerate(edit.old)]
    return _unless_there(_here(edit, there, None, edit.old, edit.new))


def twin_digit(rng: random.Random, edit: Edit) -> Trial | None:
    """What is there has another digit."""
    text = "".join(edit.old)
    digits = list(re.finditer(r"\d", text))
    if not digits:
        return None
    at = rng.choice(digits).start()
    there = text[:at] + str((int(text[at]) + rng.randrange(1, 10)) % 10) + text[at + 1 :]
    return _unless_there(_here(edit, [there], None, edit.old, edit.new))


def twin_mark(rng: random.Random, edit: Edit) -> Trial | None:
    """What is there compares or computes otherwise."""
    text = "".join(edit.old)
    swaps = {
        "==": "!=",
        "+": "-",
        "<": ">",
        "True": "False",
        "true": "false",
        " and ": " or ",
        "&&": "||",
        " is ": " as ",
    }
    here = [mark for mark in swaps if mark in text]
    if not here:
        return None
    mark = rng.choice(here)
    return _unless_there(_here(edit, [text.replace(mark, swaps[mark])], None, edit.old, edit.new))


def touched_line_differs(rng: random.Random, edit: Edit) -> Trial | None:
    """The very line the edit changes says more in the file than in the search text."""
    rows = [row for row, line in enumerate(edit.old) if line not in edit.new]
    if not rows:
        return None
    row = rng.choice(rows)
    there = [line[:-1] + " plus(more)\n" if at == row else line for at, line in enumerate(edit.old)]
    return _unless_there(_here(edit, there, None, edit.old, edit.new))


def middle_differs(rng: random.Random, edit: Edit) -> Trial | None:
    """First and last line are there; what is between them is something else."""
    if len(edit.old) < 3:
        return None
    other = [
        f"{line[: len(line) - len(line.lstrip())].strip(LF)}something_else({at}){LF}"
        for at, line in enumerate(edit.old)
    ]
    return _unless_there(_here(edit, [edit.old[0], *other[1:-1], edit.old[-1]], None, edit.old, edit.new))


def done_already(rng: random.Random, edit: Edit) -> Trial | None:
    return _unless_there(_here(edit, edit.new, None, edit.old, edit.new))


def _unless_there(trial: Trial) -> Trial | None:
    """The search text must not happen to be there all the same, blanks aside."""
    plain = "\n" + "\n".join(line.strip() for line in trial.text.split("\n")) + "\n"
    asked = "\n".join(line.strip() for line in trial.old.split("\n")).strip()
    return None if asked in plain else trial


FOUND: dict[str, Perturbation] = {
    "nothing": exact,
    "without the last line end": without_last_line_end,
    "CRLF in the file": crlf_file,
    "CRLF in the search text": crlf_search,
    "file half LF, half CRLF": mixed_line_ends,
    "file without final line end": no_final_line_end,
    "blanks at line ends": trailing_blanks,
    "blanks at line ends in the file": blanks_in_file,
    "indentation lost": indentation_lost,
    "indentation a level less": indentation_less,
    "indentation a level more": indentation_more,
    "tabs for spaces": tabs_for_blanks,
    "spaces for tabs": blanks_for_tabs,
    "2 spaces for 4": half_the_indentation,
    "first line begins at its text": first_line_bare,
    "escaped": escaped,
    "quotes escaped": escaped_quotes,
    "HTML entities": entities,
    "typographic search text": curly_search,
    "typographic file": curly_file,
    "no-break spaces in the file": hard_blanks,
    "accents in two characters": composed,
    "line numbers in the search text": numbered,
    "line numbers in both": numbered_both,
    "lines left out (…)": elided,
    "blank lines around": blank_lines_around,
    "a blank line lost": blank_line_lost,
    "blanks inside lines": blanks_inside,
    "a letter lost": one_character,
    "a line lost": line_lost,
    "a line too many": line_too_many,
    "two lines swapped": lines_swapped,
    "indentation, CRLF, blanks and quotes": several_at_once,
}
"""To be found."""
REFUSED: dict[str, Perturbation] = {
    "there twice": twice,
    "there twice, at two depths": twice_indented,
    "there twice, each a letter off": twice_nearly,
    "gone": gone,
    "done already": done_already,
    "a twin with another name": twin_renamed,
    "a twin with another word": twin_word,
    "a twin with another digit": twin_digit,
    "a twin with another operator": twin_mark,
    "the changed line says more": touched_line_differs,
    "other lines between the same": middle_differs,
}
"""To be refused."""
