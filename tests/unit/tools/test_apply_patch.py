"""Patches on real files: what they make of the bytes, all files or none, and what is refused."""

from pathlib import Path

import pytest

from amanu.core.tool import CallContext, ToolError
from amanu.tools.edits.patch import parse_patch
from amanu.tools.edits.patch_apply import apply_hunks
from support.tool_harness import ToolHarness, hunks

TEXT = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return x\n"


@pytest.mark.parametrize(
    ("text", "body", "expected"),
    [
        ("one\ntwo\nthree\n", " one\n-two\n+zwei\n three", "one\nzwei\nthree\n"),
        ("one\ntwo\n", "-one", "two\n"),
        ("one\ntwo\n", " two\n+three", "one\ntwo\nthree\n"),
        ("one\ntwo\n", "+zero\n one", "zero\none\ntwo\n"),
        ("one\n", "-one", ""),
        ("one\ntwo\nthree\n", "-one\n+1\n@@\n-three\n+3", "1\ntwo\n3\n"),
        ("one\ntwo\nthree\n", "-three\n+3\n@@\n-one\n+1", "1\ntwo\n3\n"),  # hunks out of order
        ("a\nb\nc\n", " a\n+1\n b\n@@\n b\n+2\n c", "a\n1\nb\n2\nc\n"),  # a line that stays is context of both
        (TEXT, "@@ def b():\n-    x = 1\n+    x = 2", TEXT[:40] + TEXT[40:].replace("1", "2")),
        (TEXT, "@@ -99,1 +99,1 @@\n def b():\n-    x = 1\n+    x = 2", TEXT[:40] + TEXT[40:].replace("1", "2")),
        (TEXT, "-    return x\n+    return 0\n*** End of File", TEXT[:40] + TEXT[40:].replace("return x", "return 0")),
        ("one\n", "+two\n*** End of File", "one\ntwo\n"),
        ("one", "+two\n*** End of File", "one\ntwo"),
        # line ends: those of the file
        ("one\r\ntwo\r\n", " one\n-two\n+zwei\n+drei", "one\r\nzwei\r\ndrei\r\n"),
        ("one\r\ntwo\nthree\r\n", " one\n-two\n+zwei", "one\r\nzwei\nthree\r\n"),
        ("one\rtwo\r", "-two\n+zwei", "one\rzwei\r"),
        ("one  \ntwo\n", " one\n-two\n+zwei", "one  \nzwei\n"),  # blanks at line ends stay, too
        # the final newline: as it is unless the patch says so
        ("one\ntwo", "-two\n+zwei", "one\nzwei"),
        ("one\ntwo", " two\n+three", "one\ntwo\nthree"),
        ("one\ntwo", "-two\n\\ No newline at end of file\n+two", "one\ntwo\n"),
        ("one\ntwo\n", "-two\n+two\n\\ No newline at end of file", "one\ntwo"),
        ("one\ntwo", "-one\n+1\n two\n\\ No newline at end of file", "1\ntwo"),
        ("one\ntwo", "-two\n\\ No newline at end of file\n+zwei\n\\ No newline at end of file", "one\nzwei"),
    ],
)  # fmt: skip
def test_hunks(text: str, body: str, expected: str) -> None:
    [file] = parse_patch(f"*** Update File: a\n{body}\n")
    assert apply_hunks(text, file.hunks, "a").text == expected


@pytest.mark.parametrize(
    ("text", "body", "told"),
    [
        ("one\n", "-two\n+2", ["Hunk 1 of 1 (line 2 of the patch)", "not in a"]),
        (TEXT, "-    x = 1\n+    x = 2", ["2 times", "lines 2, 7"]),
        (TEXT, "@@ def b():\n-def a():\n+def c():", ["old_text is not in a"]),
        ("one\n", "+two", ["only added lines"]),
        ("a\nb\nc\n", "-a\n-b\n+x\n@@\n-b\n-c\n+y", ["Hunk 2 overlaps hunk 1"]),
        ("a\nb\n", "-x\n@@\n-a\n+1\n@@\n-y", ["Hunk 1 of 3", "Hunk 3 of 3"]),
    ],
)
def test_hunks_that_fit_nowhere_or_twice(text: str, body: str, told: list[str]) -> None:
    [file] = parse_patch(f"*** Update File: a\n{body}\n")
    with pytest.raises(ToolError) as caught:
        apply_hunks(text, file.hunks, "a")
    assert all(each in str(caught.value) for each in told)


FILES = {"a.py": "one\ntwo\n", "src/b.py": "three\nfour\n", "gone.py": "five\n", ".env": "KEY=s3cr3t\n"}
ALL = """*** Begin Patch
*** Update File: a.py
-two
+zwei
*** Update File: src/b.py
 three
+drei
*** Add File: new/c.py
+vier
*** Delete File: gone.py
*** End Patch
"""


async def test_several_files_by_one_call(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, FILES)
    call = harness.context()
    preview = await harness.preview("apply_patch", {"patch": ALL, "explanation": "Numbers\nin  German."}, call=call)
    names = ["a.py", "src/b.py", "new/c.py", "gone.py"]
    assert preview.title == "Change 4 files: a.py, src/b.py, new/c.py, gone.py"
    assert [each.text for each in (preview.subject, *preview.extra_subjects)] == names
    assert {each.tool for each in (preview.subject, *preview.extra_subjects)} == {"apply_patch"}
    assert preview.writes == preview.reads == {str(harness.root / name) for name in names}
    assert preview.detail.startswith("The model says: Numbers in German.\n\na.py  +1 −1\nsrc/b.py  +1 −0\n")
    assert "new/c.py  +1 −0  new\ngone.py  +0 −1  deleted" in preview.detail
    assert harness.on_disk("a.py") == b"one\ntwo\n"
    call.preview = preview
    outcome = await harness.tools["apply_patch"].run(None, call)
    assert outcome.for_model == (
        "Applied to a.py: line 2.\n\nApplied to src/b.py: line 2.\n\nCreated new/c.py.\n\nDeleted gone.py."
    )
    assert outcome.for_user.splitlines() == [f"{name}: 1 applied" for name in names]
    assert [harness.on_disk(name) for name in names[:3]] == [b"one\nzwei\n", b"three\ndrei\nfour\n", b"vier\n"]
    assert not (tmp_path / "gone.py").exists()


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("*** Update File: src/b.py\n-nine\n+9", ["File 2 of 3 (src/b.py)", "Hunk 1 of 1", "not in src/b.py"]),
        ("*** Update File: none.py\n-x", ["File 2 of 3 (none.py)", "There is no file none.py"]),
        ("*** Delete File: nope.py", ["There is no file nope.py"]),
        ("*** Delete File: src", ["folder"]),
        ("*** Add File: src/b.py\n+x", ["src/b.py already exists"]),
        ("*** Update File: ../x\n-x", ["outside the workspace"]),
        ("*** Update File: gone.py\n-five", ["An earlier part removes gone.py"]),
        ("*** Update File: a.py\n+# … existing code …\n one", ["left out"]),
        ("*** Update File: a.py\n-two\n*** Delete File: a.py", ["File 3 of 4 (a.py)", "An earlier part edits a.py"]),
        ("*** Update File: src/b.py\n*** Move to: a.py", ["a.py already exists"]),
        ("*** Update File: src/b.py\n*** Move to: src", ["src is a folder", "src/b.py"]),
        ("*** Update File: src/b.py\n*** Move to: src/b.py", ["is already"]),
        ("*** Update File: src/b.py\n*** Move to: ../b.py", ["outside"]),
        ("*** Update File: src/b.py\n*** Move to: a.py/x", ["not a folder"]),
        ("*** Update File: .env\n-KEY=x", ["File 2 of 3 (.env)", "needs the user's approval"]),
        ("*** Update File: src/b.py\n-x\n*** Update File: a.py\n-y", ["2 parts", "File 2 of 4", "File 3 of 4"]),
    ],
)  # fmt: skip
async def test_all_of_it_or_nothing(tmp_path: Path, part: str, told: list[str]) -> None:
    harness = ToolHarness(tmp_path, FILES)
    call = harness.context()
    call.allowed = lambda subjects: [each for each in subjects if each.text != ".env"]
    patch = f"*** Begin Patch\n*** Delete File: gone.py\n{part}\n*** Update File: a.py\n-two\n+zwei\n*** End Patch"
    with pytest.raises(ToolError) as caught:
        await harness.run("apply_patch", {"patch": patch}, call=call)
    said = str(caught.value)
    assert all(each in said for each in told) and "Nothing was changed" in said and "s3cr3t" not in said
    assert {name: harness.on_disk(name).decode() for name in FILES} == FILES
    assert harness.versions == []


async def test_a_file_named_twice_is_edited_twice(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, FILES)
    patch = "*** Update File: a.py\n-two\n+zwei\n*** Add File: n\n+x\n*** Update File: ./a.py\n-zwei\n+deux\n"
    await harness.run("apply_patch", {"patch": patch + "*** Update File: n\n-x\n+y\n"})
    assert (harness.on_disk("a.py"), harness.on_disk("n")) == (b"one\ndeux\n", b"y\n")
    assert len(harness.versions[-1].files) == 2


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("--- a/a.py\n+++ b/a.py\n@@ -7,9 +7,9 @@\n one\n-two\n+zwei\n", {"a.py": "one\nzwei\n"}),
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", {"n": "x"}),
        ("--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-five\n", {"gone.py": None}),
        ("diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n", {"gone.py": None}),
        ("--- a/a.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n", None),
    ],
)
async def test_diffs_as_git_writes_them(tmp_path: Path, patch: str, expected: dict[str, str | None] | None) -> None:
    harness = ToolHarness(tmp_path, FILES)
    if expected is None:
        with pytest.raises(ToolError, match="not all of its lines"):
            await harness.run("apply_patch", {"patch": patch})
        return
    await harness.run("apply_patch", {"patch": patch})
    found = {
        path.relative_to(harness.root).as_posix(): path.read_text()
        for path in harness.root.rglob("*")
        if path.is_file()
    }
    assert found == {name: text for name, text in {**FILES, **expected}.items() if text is not None}


async def test_each_hunk_says_what_it_is_for(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, FILES)
    call: CallContext = harness.context()
    await harness.preview("apply_patch", {"patch": ALL, "explanation": f"why \u202e{'x' * 500}"}, call=call)
    said = {hunk.explanation for hunk in hunks(harness.versions[-1])}
    assert len(said) == 1 and all(each.startswith("why <U+202E>xxx") and len(each) == 200 for each in said)
