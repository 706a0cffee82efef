"""Replies × what becomes of the lines. The text outside the lines is never another one."""

import json
from pathlib import Path

import pytest

from amanu.core.tool import ToolError
from amanu.text.redaction import MASK
from amanu.tools.edits.rewrite_lines import LiveRewrite
from amanu.tools.edits.rewrite_text import RewriteTarget, first_prompt, next_prompt, read_reply
from amanu.workspace.text_file import FileText

PY = "import os\n\n\ndef f(a):\n    x = a\n    return x\n\n\ndef g():\n    pass\n"
JS = "class A {\n\tget(a) {\n\t\treturn a;\n\t}\n}\n"
GO = "package a\n\nfunc F() int {\n\treturn 1\n}\n"
CRLF = PY.replace("\n", "\r\n")
MD = "# Title\n\n```sh\nmake\n```\n\nText\n"
BODY = "    return a\n"


def target(text: str, start: int, end: int) -> RewriteTarget:
    """Lines `start` to `end`, 1-based and inclusive."""
    return RewriteTarget(FileText(Path("/w/a.py"), text, ""), start - 1, end)


def marked(text: str, before: str | None = None, after: str | None = None) -> str:
    around = [
        f"<{name}>\n{line}\n</{name}>" for name, line in (("before", before), ("after", after)) if line is not None
    ]
    parts = [*around[:1], f"<rewrite>\n{text}\n</rewrite>", *around[1:]] if before is not None else []
    return "\n".join(parts or [f"<rewrite>\n{text}\n</rewrite>", *around])


@pytest.mark.parametrize(
    ("text", "lines", "reply", "expected"),
    [
        pytest.param(PY, (5, 6), marked("    return a", "def f(a):", ""), BODY, id="as it was asked for"),
        pytest.param(PY, (5, 6), marked("    return a"), BODY, id="without the lines around"),
        pytest.param(PY, (5, 6), f"Sure!\n\n{marked('    return a')}\n\nDone.", BODY, id="with talk around it"),
        pytest.param(PY, (5, 6), f"```python\n{marked('    return a')}\n```", BODY, id="in a fence"),
        pytest.param(PY, (5, 6), marked("```python\n    return a\n```"), BODY, id="a fence between the marks"),
        pytest.param(PY, (5, 6), "```python\n    return a\n```", BODY, id="only a fence"),
        pytest.param(PY, (5, 6), "Here:\n```\n    return a\n```\nBye.", BODY, id="a fence and talk"),
        pytest.param(PY, (5, 6), "<rewrite>    return a</rewrite>", BODY, id="on one line"),
        pytest.param(PY, (5, 6), marked("return a"), BODY, id="indentation lost"),
        pytest.param(PY, (5, 6), marked("if a:\n    return a"), "    if a:\n        return a\n", id="all of it lost"),
        pytest.param(
            PY, (5, 6), marked("if a:\n        return a"), "    if a:\n        return a\n", id="only the first"
        ),
        pytest.param(
            PY, (5, 6), marked("\tif a:\n\t\treturn a"), "    if a:\n        return a\n", id="tabs for spaces"
        ),
        pytest.param(
            PY,
            (5, 6),
            marked("    def f(a):\n        return a", "def f(a):"),
            "    def f(a):\n        return a\n",
            id="deeper",
        ),
        pytest.param(
            PY, (5, 6), marked("def f(a):\n    return a\n"), "    return a\n\n", id="a line around between the marks"
        ),
        pytest.param(PY, (5, 6), marked("    return a", "def  f(a):\n", "\n"), BODY, id="white space around differs"),
        pytest.param(
            PY, (5, 6), marked("    return a", "x\ndef f(a):", "def g():"), BODY, id="blank lines around left out"
        ),
        pytest.param(JS, (3, 3), marked("    return a + 1;"), "\t\treturn a + 1;\n", id="spaces for tabs"),
        pytest.param(
            JS,
            (2, 4),
            marked("  get(a) {\n    return 1;\n  }"),
            "\tget(a) {\n\t\treturn 1;\n\t}\n",
            id="two spaces for tabs",
        ),
        pytest.param(GO, (4, 4), marked("\treturn 2", "func F() int {", "}"), "\treturn 2\n", id="Go"),
        pytest.param(CRLF, (5, 6), marked("    return a"), "    return a\r\n", id="CRLF of the file"),
        pytest.param(PY, (5, 6), marked("    return a").replace("\n", "\r\n"), BODY, id="CRLF of the model"),
        pytest.param(PY, (9, 10), marked("def g():\n    return 1"), "def g():\n    return 1\n", id="at the end"),
        pytest.param(
            PY[:-1], (9, 10), marked("def g():\n    return 1"), "def g():\n    return 1", id="no final line end"
        ),
        pytest.param(PY, (11, 10), marked("x = 1"), "x = 1\n", id="after the last line"),
        pytest.param("", (1, 0), marked("x = 1"), "x = 1\n", id="an empty file"),
        pytest.param(PY, (7, 7), marked("y = 1\n"), "y = 1\n\n", id="a blank line"),
        pytest.param(MD, (3, 5), marked("```sh\nmake all\n```"), "```sh\nmake all\n```\n", id="lines that are a fence"),
        pytest.param(PY, (5, 6), marked("    return '</rewrite>'"), "    return '</rewrite>'\n", id="a mark within"),
    ],
)
def test_what_becomes_of_the_lines(text: str, lines: tuple[int, int], reply: str, expected: str) -> None:
    aimed = target(text, *lines)
    assert read_reply(aimed, reply) == expected
    whole, region = aimed.with_text(expected), "".join(aimed.region)
    head = "".join(aimed.lines[: aimed.start])
    assert whole == head + expected + text[len(head) + len(region) :]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I cannot help with that.", "The model wrote no edit: I cannot help with that."),
        ("It returns its argument.\nNothing else.", "The model wrote no edit: It returns its argument. Nothing else."),
        ("```\na\n```\nor\n```\nb\n```", "The model wrote no edit: ``` a ``` or ``` b ```"),
        ("word " * 200, "word word…"),
        ("<rewrite>\n    return a\n", "cut off"),
        ("<before>\ndef f(a):\n</before>\n<rewrite>\n    ret", "cut off"),
        (marked(""), "empty"),
        (marked("  \n\n"), "empty"),
        (marked("    return a", "def g():", ""), "rewrote other lines"),
        (marked("    return a", "def f(a):", "    pass"), "rewrote other lines"),
    ],
)
def test_no_edit_and_why(reply: str, reason: str) -> None:
    with pytest.raises(ToolError) as error:
        read_reply(target(PY, 5, 8), reply)
    assert reason in str(error.value)


def edited(text: str, line: int, *new: str) -> str:
    """With other lines in the place of that one (1-based)."""
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: line - 1], *new, *lines[line:]])


@pytest.mark.parametrize(
    ("now", "moved", "grown"),
    [
        (PY, (5, 6), (5, 6)),
        ("#\n#\n" + PY, (7, 8), (7, 8)),
        (PY + "#\n", (5, 6), (5, 6)),
        (edited(PY, 5, "    y = a\n"), None, (5, 6)),
        (edited(PY, 5, "    y = a\n", "    x = y\n"), None, (5, 7)),
        (edited(PY, 5), None, (5, 5)),
        (edited(PY, 4, "def f(a, b):\n"), (5, 6), (5, 6)),
        ("nothing of it\n", None, None),
    ],
)
def test_lines_are_found_again(now: str, moved: tuple[int, int] | None, grown: tuple[int, int] | None) -> None:
    aimed = target(PY, 5, 6)
    file = FileText(Path("/w/a.py"), now, "")
    places = [place and (place.start + 1, place.end) for place in (aimed.moved_to(file), aimed.grown_to(file))]
    assert places == [moved, grown]


def test_the_model_is_shown_the_lines_and_a_bounded_part_of_the_file() -> None:
    text = "".join(f"line {number} {'x' * 600 if number == 40 else ''}\n" for number in range(1, 2001))
    prompt = first_prompt(target(text, 1000, 1002), "src/a.py", "Make it shorter.", ["1000: error: bad"], str)
    assert '<lines_to_rewrite path="src/a.py lines 1000-1002">\nline 1000 \nline 1001 \nline 1002 \n' in prompt + "\n"
    assert "line 1 \n" in prompt and "line 999" in prompt and "line 1152" in prompt
    assert "line 500 " not in prompt and "line 1200" not in prompt and "x" * 501 not in prompt
    assert prompt.index("error: bad") < prompt.index("Make it shorter.")
    assert len(prompt) < 12_000


def test_keys_are_hidden() -> None:
    aimed = target("k = 'sk-live-0123456789'\n", 1, 1)

    def mask(text: str) -> str:
        return text.replace("sk-live-0123456789", MASK)

    for prompt in (first_prompt(aimed, "a.py", "x", [], mask), next_prompt(aimed, "a.py", "x", mask)):
        assert MASK in prompt and "sk-live" not in prompt


def test_the_live_edit_shows_what_is_between_the_marks() -> None:
    reply = marked("    return a\n    # ä", "def f(a):", "")
    text = json.dumps({"path": "a.py", "reply": f"Sure.\n{reply}"})
    for size in (1, 7, len(text)):
        live = LiveRewrite(lambda arguments: f"Edit {arguments['path']}")
        shown = "".join(live.feed(text[at : at + size]) for at in range(0, len(text), size))
        assert (live.title, shown) == ("Edit a.py", "+    return a\n+    # ä\n")
