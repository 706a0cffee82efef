"""What a patch says: both forms, with what models leave out or add; and what is said of one that says nothing clear."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.tools.edits.patch import named_file, parse_patch
from amanu.tools.edits.patch_lines import FilePatch
from amanu.workspace.diff import unified

OWN = "*** Begin Patch\n{}\n*** End Patch\n"


def said(file: FilePatch) -> str:
    """A file of a patch in short: `update a -> b @heading/-two+zwei|+end$`."""
    out = f"{file.kind} {file.path}" + (f" -> {file.new_path}" if file.new_path else "")
    for hunk in file.hunks:
        out += " " + "".join(f"@{each}/" for each in hunk.headings) + "|".join("".join(each) for each in hunk.lines)
        out += f"#{hunk.start}" if hunk.start is not None else ""
        out += "$" if hunk.at_end else ""
        out += "<" if hunk.bare_before else ""
        out += ">" if hunk.bare_after else ""
    return out


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (OWN.format("*** Update File: a.py\n@@ def f():\n one\n-two\n+zwei"),
         ["update a.py @def f():/ one|-two|+zwei"]),
        ("*** Update File: a.py\n-two\n+zwei", ["update a.py -two|+zwei"]),  # no marks around it
        ("```diff\n*** Begin Patch\n*** Update File: a\n-x\n```", ["update a -x"]),
        ("apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF", ["delete a"]),
        (OWN.format("*** Update File: a\n@@ class A\n@@   def f\n-x\n@@\n-y"), ["update a @class A/@def f/-x -y"]),
        (OWN.format("*** Update File: a\n@@ -3,2 +3 @@ def f\n-x\n y"), ["update a @def f/-x| y#3"]),
        (OWN.format("*** Update File: a\n one\n\n-two\n\n\n@@\n-x"), ["update a  one| |-two -x"]),  # blanks between
        (OWN.format("*** Update File: a\n*** Move to: b c\n-x"), ["update a -> b c -x"]),
        (OWN.format("*** Update File: a\n*** Move to: b"), ["update a -> b"]),
        (OWN.format("*** Update File: a\n x\n+y\n*** End of File"), ["update a  x|+y$"]),
        (OWN.format("*** Add File: a\n+one\n+\n+two"), ["add a +one|+|+two"]),
        (OWN.format("*** Add File: a\n+one\n\n+two\n\n*** Add File: b"), ["add a +one|+|+two", "add b"]),
        (OWN.format("*** Update File: a\n \n-\n+"), ["update a  |-|+"]),
        (OWN.format("*** update file: a\n-x"), ["update a -x"]),
        (OWN.format("*** Update File: a\n-x").replace("\n", "\r\n"), ["update a -x"]),
        (OWN.format("*** Update File: a\n-*** End Patch\n+@@"), ["update a -*** End Patch|+@@"]),
        (OWN.format("*** Update File: a\n\tx\n-y"), ["update a  \tx|-y"]),
        # git
        ("--- a/x y.py\n+++ b/x y.py\n@@ -1,9 +1,7 @@ def f():\n one\n-two\n+zwei\n",
         ["update x y.py @def f():/ one|-two|+zwei#1"]),
        ("--- x\t2024-01-01 10:00\n+++ x\t2024-01-01 10:01\n@@ @@\n-a\n+b", ["update x -a|+b"]),
        ("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", ["update x -a|+b#1"]),
        ("Sure:\n\ndiff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n", ["update x -> y"]),
        ("diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b",
         ["update x -> y -a|+b#1"]),
        ("diff --git a/x b/x\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a",
         ["add x +a#0"]),
        ("diff --git a/no end b/no end\nnew file mode 100644\n", ["add no end"]),
        ("diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a", ["delete x -a#1"]),
        ("--- a/x\n+++ /dev/null\n", ["delete x"]),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a", ["update x -a|+a#1$<"]),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", ["update x -a|+a#1$>"]),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a\n+++ b\n-c\n@@ -9 +9 @@\n-d", ["update x --- a|+++ b|-c#1 -d#9"]),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-b\n", ["update x -a#1", "update y -b#1"]),
        ('--- "a/caf\\303\\251"\n+++ "b/caf\\303\\251"\n@@ @@\n-a', ["update café -a"]),
        ("*** Begin Patch\n--- a/x\n+++ b/x\n@@ @@\n-a\n*** End Patch", ["update x -a"]),
    ],
)  # fmt: skip
def test_what_it_says(patch: str, expected: list[str]) -> None:
    assert [said(file) for file in parse_patch(patch)] == expected


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("", "names no file"),
        ("replace one by two", "names no file"),
        (OWN.format(""), "names no file"),
        (OWN.format("*** Update File: a"), "the section for a has no changes"),
        (OWN.format("*** Update File:\n-x"), "Line 2 of the patch, '*** Update File:': the path is missing"),
        (OWN.format("*** Update File: a\n*** Move to:\n-x"), "Line 3"),
        (
            OWN.format("*** Update File: a\n-x\nonce more"),
            "Line 4 of the patch, 'once more': a line of a hunk",
        ),
        (OWN.format("*** Add File: a\n+x\ny"), "Line 4 of the patch, 'y': every line of a new file must begin"),
        (OWN.format("*** Delete File: a\n-x"), "Line 3 of the patch, '-x': expected '*** Update"),
        (OWN.format("*** Update File: a\n@@ def f\n*** Delete File: b"), "Line 4"),
        ("*** Update File: a\n@@", "The patch ends too early: the hunk before it has no lines"),
        ("@@ -1 +1 @@\n-a\n+b", "Line 1 of the patch, '@@ -1 +1 @@': no file was named"),
        ("--- a/x\n+++ b/y\n@@ @@\n-a", "it names two files, x and y"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755", "Line 2 of the patch, 'old mode 100644': permission"),
        ("diff --git a/x b/x\nnew file mode 120000\n", "permission"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "copies"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "only text"),
        ("--- /dev/null\n+++ b/x\n@@ @@\n+a\n b", "every line begins with '+'"),
        ("diff --git a/x b/x\nindex 1..2\n", "the section for x has no changes"),
    ],
)
def test_what_is_wrong_is_named(patch: str, told: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_patch(patch)
    assert told in str(caught.value) and "Nothing was changed" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("*** Update File: a b.py", ("update", "a b.py")),
        ("*** Add File: a", ("add", "a")),
        ("*** Delete File: a", ("delete", "a")),
        ("*** Update File:", None),  # still being written
        ("*** Move to: b", None),
        ("*** Begin Patch", None),
        ("--- a/x", ("update", "x")),
        ("+++ b/x\t2024", ("update", "x")),
        ("--- /dev/null", None),
        ("+one", None),
        (" *** Update File: a", None),
    ],
)
def test_the_file_a_line_names(line: str, expected: tuple[str, str] | None) -> None:
    assert named_file(line) == expected


LINES = st.lists(st.sampled_from(["one", "two", "", "  three", "-- x", "++ y", "@@ z", "*** End", "\\ w"]), max_size=8)


@given(LINES, LINES)
def test_a_true_diff_is_read_as_what_it_says(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (["first", *old, "x"], ["first", *new, "x"]))
    diff = unified("a", before, after, context=99)
    if diff:
        [file] = parse_patch(diff)
        assert "".join(f"{line}\n" for hunk in file.hunks for line in hunk.side("-")) == before
        assert "".join(f"{line}\n" for hunk in file.hunks for line in hunk.side("+")) == after


@given(st.text(alphabet='*@+- \\abcEndUpdateFile:/\n\r\t"', max_size=200))
def test_nonsense_is_an_error_to_act_on(text: str) -> None:
    try:
        parse_patch(text)
    except ToolError as error:
        assert str(error)
