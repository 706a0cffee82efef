"""Where an edit goes: exactly there, or nowhere. Each rung of the ladder, what it keeps and what it refuses."""

import time

import pytest

from amanu.core.tool import ToolError
from amanu.tools.edits.match import replace_text

PY = "def f():\n    if x:\n        return 1\n    return 2\n\n\ndef g():\n    return 2\n"
CLASS = (
    "class Reader:\n    def open(self):\n        first = self.begin()\n        return first\n\n"
    "    def close(self):\n        self.finish()\n        return None\n"
)


def check(text: str, old: str, new: str, expected: str, how: str | None = None, everywhere: bool = False) -> None:
    """`expected` is the file afterwards, or part of the refusal. `how`: what is forgiven."""
    try:
        edited = replace_text(text, old, new, replace_all=everywhere, path="f")
    except ToolError as error:
        assert expected in str(error)
        assert "Nothing was changed" in str(error)
    else:
        assert edited.text == expected
        assert how is None or edited.forgiven == how


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\nb\nc\n", "b", "B", "a\nB\nc\n"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("a $1 b", "$1", "\\1 $0", "a \\1 $0 b"),
        ("\ufeffa\nb\n", "a", "A", "\ufeffA\nb\n"),
        ("a\fb\x85c\u2028d\n", "b", "B", "a\fB\x85c\u2028d\n"),
        # final newline, added and removed
        ("a\nb", "b", "b\n", "a\nb\n"),
        ("a\nb\n", "b\n", "b", "a\nb"),
        ("a\r\nb", "b", "b\n", "a\r\nb\r\n"),
        ("a\nb\n", "b", "b\r\nc", "a\nb\nc\n"),
        ("a\r\nb\r\n", "b\n", "b", "a\r\nb"),
        # a line that begins behind its indentation
        ("    a = 1\n", "a = 1", "a = 2", "    a = 2\n"),
        ("    a = 1\n", "a = 1", "a = 2\n    b = 3", "    a = 2\n    b = 3\n"),
        ("    a = 1\n", "a = 1", "if x:\n        a = 2", "    if x:\n        a = 2\n"),
        ("    a = 1\n", "a = 1", "if x:\n    a = 2", "how far to indent the rest of new_text is uncertain"),
        ("    a = 1\n", "a = 1", "a = 2\nb = 3", "how far to indent the rest of new_text is uncertain"),
        # refusals
        ("x x", "x", "y", "2 times (at lines 1, 1)"),
        ("aaa", "aa", "b", "2 times"),
        (PY, "return 2", "return 3", "2 times (at lines 4, 8)"),
        ("", "a", "b", "is not in f"),
        ("new_name_here = 1\n", "old_name = 1", "new_name_here = 1", "has new_text already"),
    ],
)
def test_exact(text: str, old: str, new: str, expected: str) -> None:
    check(text, old, new, expected, "")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "a\nX\nb", "a\r\nX\r\nb\r\nc\r\n"),
        ("a\nb\nc\n", "a\r\nb\r\n", "a\r\nX\r\nb\r\n", "a\nX\nb\nc\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "A\nb\nC\n", "A\r\nb\nC\r\n"),
        ("a\rb\rc", "a\nb\n", "a\nB\n", "a\rB\rc"),
        ("one a\r\nb two\r\n", "a\nb", "A\nB", "one A\r\nB two\r\n"),
        ("a\nb", "b\n", "B\n", "a\nB"),  # no final newline, and so it stays
        ("a\r\nb\r\na\nb\n", "a\nb\n", "x\n", "2 times (at lines 1, 3)"),
    ],
)
def test_line_ends(text: str, old: str, new: str, expected: str) -> None:
    check(text, old, new, expected, "")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\nb\nc\n", "a \nb  \n", "A\nB\n", "A\nB\nc\n"),
        ("a  \nb\t\nc\n", "a\nb\n", "A\nB\n", "A  \nB\t\nc\n"),  # two blanks are a line break in Markdown
        ("keep  \nb \n", "keep\nb\n", "keep\nB\n", "keep  \nB \n"),
        ("a  \nb\nc\n", "a\nb\n", "b\na\n", "b\na  \nc\n"),  # moved, and as the file has it
        ("call(a)  \nnext(b)\n", "a)\nnext", "A)\nnext", "call(A)  \nnext(b)\n"),
        ("ma \nx\n", "a\nx", "y", "is not in f"),  # inside a word
        ("a b\n", "a \n", "x", "is not in f"),
        ("a\n", " \n", "b", "is not in f"),
        ("  long enough\n    long enough\n", "long enough \n", "b\n", "2 times (at lines 1, 2)"),
    ],
)
def test_blanks_at_line_ends(text: str, old: str, new: str, expected: str) -> None:
    check(text, old, new, expected, "blanks at line ends")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        # to the right, to the left
        (PY, "if x:\n    return 1\n", "if y:\n    z()\n    return 1\n",
         PY.replace("    if x:\n", "    if y:\n        z()\n")),
        (PY, "        def g():\n            return 2\n", "        def g():\n            return 3\n",
         PY.replace("def g():\n    return 2", "def g():\n    return 3")),
        ("\t\tif a:\n\t\t\tb\n", "if a:\n\tb", "if a:\n\n\tc", "\t\tif a:\n\n\t\t\tc\n"),
        # only old_text is wrong
        (PY, "if x:\n    return 1\n", "    if y:\n        return 0\n", PY.replace("if x", "if y").replace("1", "0")),
        # tabs and spaces, and levels of another width, as the file has them
        ("a:\n\tb:\n\t\tc\n", "a:\n    b:\n        c\n", "a:\n    b:\n        d\n", "a:\n\tb:\n\t\td\n"),
        ("a:\n  b:\n    c\n", "a:\n\tb:\n\t\tc\n", "a:\n\tb:\n\t\tc\n\t\t\td\n", "a:\n  b:\n    c\n      d\n"),
        (PY, "def f():\n  if x:\n    return 1\n", "def f():\n  if x:\n    return 3\n", PY.replace("1", "3")),
        # a blank line needs no indentation
        ("  a = 1\n\n  b = 2\n", "a = 1\n\nb = 2\n", "a = 1\n\nb = 3\n", "  a = 1\n\n  b = 3\n"),
        # refusals
        ("    x\n", "      x \n", "y\n", "is not in f"),  # a short line is at another depth another line
        ("if a:\n  b()\n   c()\n", "if a:\n    b()\n    c()\n", "x\n", "Line 2 of old_text differs: the file"),
        ("  a:\n    b()\n", "\t\ta:\n\t\t\tb()\n", "\t\ta:\n\t\t\t\tc()\n", "is not in f"),
    ],
)  # fmt: skip
def test_indentation(text: str, old: str, new: str, expected: str) -> None:
    check(text, old, new, expected, "indentation")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ('a = "x"\nb = 1\n', 'a = \\"x\\"\\nb = 1', 'a = \\"y\\"\\nb = 1', 'a = "y"\nb = 1\n'),
        ('print("a\\n")\n', 'print(\\"a\\\\n\\")', 'print(\\"b\\\\n\\")', 'print("b\\n")\n'),
        ('a = "x"\nb = 1\n', 'a = \\"x\\"\nb = 1\n', 'a = \\"y\\"\nb = 1\n', 'a = "y"\nb = 1\n'),
        ('a = "x"\n', 'a = \\"x\\"', 'a = "y"', 'a = "y"\n'),
        ("a\tb\n", "a\\tb", "a\\tc", "a\tc\n"),
        ("if (a < b && c) {\n", "if (a &lt; b &amp;&amp; c) {", "if (a &lt; b) {", "if (a < b) {\n"),
        ("say('x')\n", "say(\\'x\\')", "say(\\'it\\'s 'x'\\')", "is not in f"),  # new_text half so
    ],
)
def test_escapes(text: str, old: str, new: str, expected: str) -> None:
    check(text, old, new, expected, "escapes")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("say “hi” – now\n", 'say "hi" - now', 'say "hi" - later', "say “hi” – later\n"),
        ("say 'hi'\nend\n", "say ‘hi’\nend", "say ‘hi’\nEND", "say 'hi'\nEND\n"),
        ("a\u00a0b = 1\n", "a b = 1", "a b = 2", "a\u00a0b = 2\n"),
        ("cafe\u0301 = 1\n", "café = 1", "café = 2", "cafe\u0301 = 2\n"),
        ("wait… then\n", "wait... then", "wait... now", "wait… now\n"),
        ("（ａ） = 1\n", "(a) = 1", "(a) = 2", "（ａ） = 2\n"),
        ("a\u200bb = 1\n", "ab = 1", "ab = 2", "a\u200bb = 2\n"),
        ("x = “y”\n", 'x = "y"', 'x = "z"', "x = “z”\n"),
        ("wait… then\n", "wait... then", "wait. then", "the file and old_text differ"),  # half of a character changed
    ],
)
def test_characters_that_look_alike(text: str, old: str, new: str, expected: str) -> None:
    check(text, old, new, expected, "characters that look alike")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected", "how"),
    [
        ("a = call(b, c)\n", "a = call( b,c )\n", "a = call( b,d )\n", "a = call(b, d)\n", "blanks inside lines"),
        ("return  value\n", "return value + 0", "x", "is not in f", ""),
        ("foobar\n", "foo bar", "x", "is not in f", ""),
        ("return_value()\n", "return value()\n", "x\n", "is not in f", ""),
        (PY, "\n    if x:\n        return 1\n\n", "\n    if x:\n        return 7\n\n", PY.replace("1", "7"),
         "blank lines around it"),
        (PY, "2\t    if x:\n3\t        return 1\n", "    if x:\n        return 7\n", PY.replace("1", "7"),
         "line numbers"),
        (PY, "3\t        return 1\n", "        return 7\n", PY.replace("1", "7"), "line numbers"),  # a line alone
        (PY, "   2→    if x:\n   3→        return 1\n", "   2→    if x:\n   3→        return 7\n",
         PY.replace("1", "7"), "line numbers"),
        (PY, "2: if x:\n3:     return 1\n", "2: if x:\n3:     return 7\n", PY.replace("1", "7"), "line numbers"),
        (PY, "2:     if x:\n7:         return 1\n", "2:     if x:\n", "is not in f", ""),  # not one after the other
    ],
)  # fmt: skip
def test_read_otherwise(text: str, old: str, new: str, expected: str, how: str) -> None:
    check(text, old, new, expected, how)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("class Reader:\n    ...\n        self.finish()\n", "class Writer:\n    ...\n        self.finish()\n",
         CLASS.replace("Reader", "Writer")),
        ("    def close(self):\n        # ... existing code ...\n        return None\n",
         "    def close(self):\n        # ... existing code ...\n        return 1\n", CLASS.replace("None", "1")),
        # the texts before and behind are changed, what is between stays
        ("    def open(self):\n    // …\n        return first\n",
         "    def start(self):\n    // …\n        return first or 0\n",
         CLASS.replace("open", "start").replace("return first", "return first or 0")),
        # an end that is there twice, of which one is in the block
        ("    def open(self):\n...\n        return", "x\n...\n        return", "is not in f"),
        # one is left out in new_text: what it stood for would be deleted
        ("class Reader:\n    ...\n        self.finish()\n", "class Writer:\n        self.finish()\n", "is not in f"),
        ("class Reader:\n    ...\n", "class Writer:\n    ...\n", "is not in f"),
    ],
)  # fmt: skip
def test_lines_left_out(old: str, new: str, expected: str) -> None:
    check(CLASS, old, new, expected, "lines left out")


def test_an_end_that_is_there_twice_is_taken_in_its_block() -> None:
    text = "def a():\n    one()\n    return 0\n\ndef b():\n    two()\n    return 0\n"
    changed = "def b():\n    ...\n    return 9\n"
    check(text, changed.replace("9", "0"), changed, text[:-2] + "9\n", "lines left out")
    check(text, "def a():\n    ...\n    return 0\n", "def a():\n    ...\n    return 9\n", text.replace("0", "9", 1))
    twice = "def a():\n    if x:\n        return 0\n    y()\n        return 0\n"
    check(twice, "def a():\n...\n        return 0\n", "def a():\n...\n        return 9\n", "2 times")


DRIFT = (
    "def transfer(source, target, amount):\n    balance = source.balance()\n    check_the_amount(balance, amount)\n"
    "    source.withdraw(amount)\n    target.deposit(amount)\n    return balance - amount\n"
)


@pytest.mark.parametrize(
    ("slip", "edit", "expected"),
    [
        # a slip of the pen, in a line that stays
        (("balance = source.balance()", "balance = source.balnace()"), ("deposit(a", "deposit(2 * a"), True),
        # blank lines, two lines that changed places
        (("    source.withdraw", "\n    source.withdraw"), ("source, target", "source, goal"), True),
        (("    source.withdraw(amount)\n    target.deposit(amount)\n",
          "    target.deposit(amount)\n    source.withdraw(amount)\n"), ("source, target", "source, goal"), True),
        # a line left out, one too many: so a text differs from its twin
        (("    balance = source.balance()\n", ""), ("deposit(a", "deposit(2 * a"), False),
        (("    check_the", "    log(amount)\n    check_the"), ("deposit(a", "deposit(2 * a"), False),
        # the edit touches it
        (("balance = source.balance()", "balance = source.balnace()"), ("balance = s", "money = s"), False),
        (("    balance = source.balance()\n", ""), ("amount):\n", "amount):\n    new_line()\n"), False),
        # another text, not a slip: a digit, a name, a short word, an operator, two of them
        (("balance - amount", "balance + amount"), ("deposit(a", "deposit(2 * a"), False),
        (("source.balance()", "target.balance()"), ("deposit(a", "deposit(2 * a"), False),
        (("source.balance()", "source.balances()"), ("deposit(a", "deposit(2 * a"), False),
        (("transfer(", "transfer2("), ("deposit(a", "deposit(2 * a"), False),
        (("check_the", "check_tha"), ("deposit(a", "deposit(2 * a"), False),
        (("    balance = source.balance()\n    check_the_amount(balance, amount)\n", ""), ("deposit(a", "d(a"), False),
    ],
)  # fmt: skip
def test_small_differences(slip: tuple[str, str], edit: tuple[str, str], expected: bool) -> None:
    text = f"import this\n\n{DRIFT}\nlast = 1\n"
    assert slip[0] in DRIFT
    old = DRIFT.replace(*slip)
    new = old.replace(*edit)
    assert old != new
    check(text, old, new, text.replace(*edit) if expected else "Line ", "small differences")


def test_a_slip_is_no_proof_where_a_twin_is_near() -> None:
    old = DRIFT.replace("balance()", "balnace()")
    check(DRIFT + DRIFT.replace("amount)", "sum)", 1), old, old.replace("deposit", "give"), "is not in f")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected", "count"),
    [
        ("x x", "x", "y", "y y", 2),
        ("one  \ntwo\none\ntwo\n", "one\ntwo \n", "1\n2\n", "1  \n2\n1\n2\n", 2),
        ("if a:\n    go(first)\nelse:\n        go(first)\n", "  go(first)  \n", "  stop(it)\n",
         "if a:\n    stop(it)\nelse:\n        stop(it)\n", 2),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb", "a\nc", "a\r\nc\r\na\r\nc\r\n", 2),
    ],
)  # fmt: skip
def test_everywhere(text: str, old: str, new: str, expected: str, count: int) -> None:
    edited = replace_text(text, old, new, replace_all=True, path="f")
    assert (edited.text, edited.count) == (expected, count)


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("if z:\n    return 1\n", "Line 1 of old_text differs: the file has `if x:`, old_text has `if z:`."),
        (
            "    if x:\n        return 3\n",
            "Line 2 of old_text differs: the file has `return 1`, old_text has `return 3`.",
        ),
        ("    if x:\n        return 3\n", "     2      if x:\n     3          return 1\n"),
        ("nothing of it at all", "Read the file and copy the text exactly"),
        ("def g():\n    return 2\n    return 3\n", "old_text has 1 lines more than the file there."),
    ],
)
def test_a_refusal_says_what_is_there_instead(old: str, told: str) -> None:
    check(PY, old, "new", told)


def test_an_edit_that_would_change_nothing_is_refused() -> None:
    check("say “hi”\n", 'say "hi"', "say “hi”", "would not change the file")


def test_millions_of_places_take_no_time() -> None:
    """The thread that looks lets nobody else work meanwhile."""
    before = time.process_time()
    with pytest.raises(ToolError, match="2000000 times"):
        replace_text("b" * 10_000_000, "bbbbb", "x", replace_all=False, path="a")
    assert time.process_time() - before < 1
