import io
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.cli.code_colours import coloured
from amanu.cli.console import PlainConsole, RichConsole, Span
from amanu.cli.diff import DiffView, show_diff, show_proposal
from amanu.cli.render import Renderer
from amanu.workspace.diagnostics import with_summary
from amanu_protocol.base import LineRange
from amanu_protocol.events import EventMessage, ProposalChanged
from amanu_protocol.items import Check, Finding, Proposal, Row, RowKind, RowVersion
from support.fake_daemon import state as session_state
from support.sample_events import hunk, proposed

WRONG = Finding(
    lines=LineRange.numbered(3, 3), severity="error", message="Undefined name\nx", source="ruff", code="F821"
)
CRLF = "one\r\ntwo\r\nthree\r\n"


@pytest.mark.parametrize(
    ("proposal", "expected"),
    [
        (
            proposed(hunk(1, new_text="zw\u200dei\u3164\ufe0f\n")),
            "── a.txt (edit) +1 −1\n@@ -1,3 +1,3 @@\n one\n-two\n+zw<U+200D>ei<U+3164><U+FE0F>\n three\n",
        ),
        (
            proposed(hunk(1), hunk(2, 2, old_text="three\n", new_text="drei")),
            "── a.txt (edit) +1 −1\n"
            "@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"
            "@@ -1,3 +1,3 @@\n one\n two\n-three\n+drei\n",
        ),
        (
            proposed(
                hunk(at=0, old_text="", new_text="a\nb\n"),
                change="create",
                base_text="",
                added=2,
                removed=0,
            ),
            "── a.txt (new file) +2 −0\n@@ -0,0 +1,2 @@\n+a\n+b\n",
        ),
        (
            proposed(hunk(at=2, old_text="", new_text="more\n")),
            "── a.txt (edit) +1 −1\n@@ -1,3 +1,4 @@\n one\n two\n+more\n three\n",
        ),
        (
            proposed(hunk(at=0, old_text="", new_text="more\n")),
            "── a.txt (edit) +1 −1\n@@ -1,3 +1,4 @@\n+more\n one\n two\n three\n",
        ),
        (
            proposed(
                hunk(at=6, old_text="7\n", new_text=""),
                base_text="".join(f"{n}\n" for n in range(1, 20)),
            ),
            "── a.txt (edit) +1 −1\n@@ -4,7 +4,6 @@\n 4\n 5\n 6\n-7\n 8\n 9\n 10\n",
        ),
        (
            proposed(
                hunk(at=0, old_text="one\n", new_text="", state="rejected"),
                base_text="one\n",
                change="delete",
            ),
            "── a.txt (deletes) +1 −1\n@@ -1,1 +0,0 @@ · rejected\n-one\n",
        ),
        (
            proposed(
                hunk(at=0, old_text="a\nb\n", new_text="a\nb\n"),
                change="rename",
                new_path="/w/b\n.txt",
                base_text="a\nb\n",
            ),
            "── rename a.txt → b␊.txt\n",
        ),
        (
            proposed(
                hunk(at=0, old_text="a\nb\n", new_text="a\nc\x1b\n", state="applied"),
                change="rename",
                new_path="/w/b.txt",
                base_text="a\nb\n",
            ),
            "── rename a.txt → b.txt (and edit)\napplied\n@@ -1,2 +1,2 @@\n a\n-b\n+c␛\n",
        ),
        (
            proposed(*(hunk(n, state="rejected", reason=why) for n, why in enumerate("aab"))),
            "── a.txt (edit) +1 −1\n"
            "@@ -1,3 +1,3 @@ · rejected · a\n one\n-two\n+zwei\n three\n"
            "@@ -1,3 +1,3 @@ · rejected\n one\n-two\n+zwei\n three\n"
            "@@ -1,3 +1,3 @@ · rejected · b\n one\n-two\n+zwei\n three\n",
        ),
        (
            proposed(hunk(old_text="two\r\n", new_text="zwei\r\n"), base_text=CRLF),
            "── a.txt (edit) +1 −1\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n",
        ),
        (
            proposed(hunk(old_text="two\r\n", new_text="two\n"), base_text=CRLF),
            "── a.txt (edit) +1 −1\n@@ -1,3 +1,3 @@\n one␍\n-two␍\n+two\n three␍\n",
        ),
        (
            proposed(
                hunk(state="rejected", reason="not\nso", edited_by_user=True, new_text="\u202ex\n"),
                final_newline=False,
                path="/elsewhere/b.txt",
            ),
            "── /elsewhere/b.txt (edit) +1 −1  no newline at the end\n"
            "@@ -1,3 +1,3 @@ · rejected · your text · not so\n one\n-two\n+<U+202E>x\n three\n",
        ),
    ],
)
def test_diff(proposal: Proposal, expected: str) -> None:
    out = io.StringIO()
    show_proposal(PlainConsole(out), proposal, ["/w"])
    assert out.getvalue() == expected


CODE = proposed(
    hunk(
        old_text="    return None\n",
        new_text='    return "\ttwo"  # 2\n\tx = 1\n',
    ),
    base_text="def f():\n    return None\n\nf()\n",
    path="/w/a.py",
)


def on_terminal(show: Callable[[RichConsole], object], *, colour: bool = True) -> list[str]:
    """The lines on a terminal, each style by its name: "<red>…</>"."""
    out = io.StringIO()
    show(RichConsole(out, colour=colour, width=100))
    names = {
        "0": "/",
        "1": "bold",
        "2": "dim",
        "91": "red",
        "32": "green",
        "33": "yellow",
        "95": "magenta",
        "36": "cyan",
    }
    return re.sub(r"\x1b\[(\d+)m", lambda match: f"<{names[match[1]]}>", out.getvalue()).splitlines()


def test_a_terminal_shows_numbers_and_the_colours_of_added_code() -> None:
    assert on_terminal(lambda console: show_proposal(console, CODE, ["/w"]))[1:] == [
        "<cyan>@@ -1,4 +1,5 @@</>",
        "<dim>   1 </><dim>  </><dim>def f():</>",
        "<dim>   2 </><red>- </><red>    return None</>",
        '<dim>   2 </><green>+ </>    <magenta>return</> <yellow>"    two"</>  <dim># 2</>',
        "<dim>   3 </><green>+ </>    x = <cyan>1</>",
        "<dim>   4 </><dim>  </><dim></>",
        "<dim>   5 </><dim>  </><dim>f()</>",
    ]


def test_without_colours_there_are_numbers_and_signs() -> None:
    lines = on_terminal(lambda console: show_proposal(console, CODE, ["/w"]), colour=False)
    assert [line.replace("<dim>", "").replace("</>", "") for line in lines[2:5]] == [
        "   1   def f():",
        "   2 -     return None",
        '   2 +     return "    two"  # 2',
    ]


UNIFIED = """\
--- a/a.py
+++ b/a.py
@@ -9,2 +9,2 @@
-x = 1
--- y
+x = 2
++++ y
@@ -20 +20 @@
-x
\\ No newline at end of file
+y
--- a/notes.unknown
+++ b/notes.unknown
@@ -1,1 +0,0 @@
-return
@@ -9999,1 +9998,2 @@
 one
+two
"""


def test_a_diff_as_the_daemon_made_it_has_numbers_too() -> None:
    assert on_terminal(lambda console: show_diff(console, UNIFIED)) == [
        "<bold>--- a/a.py</>",
        "<bold>+++ b/a.py</>",
        "<cyan>@@ -9,2 +9,2 @@</>",
        "<dim>   9 </><red>- </><red>x = 1</>",
        "<dim>  10 </><red>- </><red>-- y</>",
        "<dim>   9 </><green>+ </>x = <cyan>2</>",
        "<dim>  10 </><green>+ </>+++ y",
        "<cyan>@@ -20 +20 @@</>",
        "<dim>  20 </><red>- </><red>x</>",
        "<dim>     </><dim>\\ </><dim> No newline at end of file</>",
        "<dim>  20 </><green>+ </>y",
        "<bold>--- a/notes.unknown</>",
        "<bold>+++ b/notes.unknown</>",
        "<cyan>@@ -1,1 +0,0 @@</>",
        "<dim>   1 </><red>- </><red>return</>",
        "<cyan>@@ -9999,1 +9998,2 @@</>",
        "<dim> 9998 </><dim>  </><dim>one</>",
        "<dim> 9999 </><green>+ </><green>two</>",
    ]


def test_a_long_line_goes_on_behind_its_gutter() -> None:
    line = f"x = '{'日' * 20}' + " + "y" * 120
    lines = on_terminal(lambda console: show_diff(console, f"--- a/a.py\n+++ b/a.py\n@@ -0,0 +1 @@\n+{line}\n"))
    assert lines[3:] == [
        f"<dim>   1 </><green>+ </>x = <yellow>'{'日' * 20}'</> + {'y' * 44}",
        f"<dim>     ┊ </>{'y' * 76}",
    ]


@pytest.mark.parametrize("name", ["a.py", "a.ts", "a.rs", "a.md", "a.html", "a.sh", "Makefile", "a.json", "a.c"])
@given(st.lists(st.text(alphabet="ab \t\"'`#/*<>{}()[]\\$=\ufeff\u2028\r\x0b\x0c\ud800日🙂", max_size=20), max_size=8))
def test_colours_change_no_character(name: str, lines: list[str]) -> None:
    rows = coloured(lines, name)
    assert rows is None or [_joined(row) for row in rows] == (lines or [""])


def _joined(row: Sequence[Span]) -> str:
    return "".join(text for _, text in row)


def created(lines: int, change: str = "create") -> Proposal:
    text = "".join(f"x = {n}\n" for n in range(lines))
    whole = hunk(at=0, old_text="", new_text=text)
    if change == "delete":
        whole = hunk(at=0, old_text=text, new_text="")
    counts = {"added": lines, "removed": 0} if change == "create" else {"added": 0, "removed": lines}
    base_text = "" if change == "create" else text
    return proposed(whole, change=change, base_text=base_text, **counts, path="/w/a.py")


@pytest.mark.parametrize(
    ("proposal", "view", "shown", "last"),
    [
        (created(41), DiffView(), 41, "+x = 40"),
        (created(39), DiffView(shortened=True), 39, "+x = 38"),
        (created(40), DiffView(shortened=True), 40, "+x = 39"),
        (created(41), DiffView(shortened=True), 30, "  … 11 more lines"),
        (created(41), DiffView(shortened=True, hint="Ctrl-O"), 30, "  … 11 more lines; Ctrl-O shows all"),
        (created(99, "delete"), DiffView(shortened=True), 30, "  … 69 more lines"),
    ],
)
def test_a_long_file_is_shortened_only_where_nothing_is_asked(
    proposal: Proposal, view: DiffView, shown: int, last: str
) -> None:
    out = io.StringIO()
    show_proposal(PlainConsole(out), proposal, ["/w"], view=view)
    lines = out.getvalue().splitlines()
    assert sum(line.startswith(("+", "-")) for line in lines) == shown
    assert lines[-1] == last


def test_a_very_long_diff_has_no_colours_as_they_take_time() -> None:
    lines = on_terminal(lambda console: show_proposal(console, created(10_000), ["/w"]))
    assert lines[-1] == "<dim>10000 </><green>+ </><green>x = 9999</>"


BYTES = RowVersion(kind="file", size=2)


@pytest.mark.parametrize(
    ("kind", "path", "after", "title", "expected"),
    [
        (
            "file",
            "/w/new\nline.bin",
            BYTES,
            "new binary file, 2 bytes",
            "new<U+000A>line.bin (new binary file, 2 bytes)",
        ),
        ("file", "/w/gpj\u202e.bin", BYTES, "new", "gpj<U+202E>.bin (new)"),
        ("file", "/w/a\u200bb\x1b[2J.bin", BYTES, "new", "a<U+200B>b<U+001B>[2J.bin (new)"),
        ("folder", "/w/a\u2066", RowVersion(kind="folder"), "new folder", "a<U+2066> (new folder)"),
        ("link", "/w/l", RowVersion(kind="link", target="x"), "link to \u202ex\ny", "l (link to <U+202E>x y)"),
    ],
)
def test_what_the_name_of_a_row_hides_is_shown(
    kind: RowKind, path: str, after: RowVersion, title: str, expected: str
) -> None:
    row = Row(row_id="r1", kind=kind, path=path, after=after, title=title, state="pending", digest="", turn_id="t")
    out = io.StringIO()
    show_proposal(PlainConsole(out), proposed().model_copy(update={"files": [], "rows": [row]}), ["/w"])
    assert out.getvalue() == f"── {expected}\n"


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (Check(checker="ruff", about="proposed", state="done"), "  ruff, a.txt: nothing new\n"),
        (
            Check(checker="ruff", about="proposed", state="done", added=[WRONG], fixed=2),
            "  ruff, a.txt: adds 1 error, fixes 2\n    3: error: Undefined name · x (ruff F821)\n",
        ),
        (
            Check(checker="Code", about="applied", state="done", added=[WRONG] * 7),
            "  Code, a.txt: adds 7 errors now that it is applied\n"
            + "    3: error: Undefined name · x (ruff F821)\n" * 5
            + "    … and 2 more\n",
        ),
        (
            Check(checker="pyright", about="proposed", state="failed", message="It ended\x1b[31m."),
            "  pyright, a.txt: could not check: It ended.\n",
        ),
        (Check(checker="pyright", about="proposed", state="running"), ""),
    ],
)
def test_a_verdict_comes_once_below_what_it_is_about(check: Check, expected: str) -> None:
    out = io.StringIO()
    check = with_summary(check)
    renderer = Renderer(PlainConsole(out))
    state = session_state(proposals=[proposed()])
    event = ProposalChanged(proposal=proposed(checks=[check]))
    message = EventMessage(session_id="s", epoch=1, seq=1, at=0, event=event)
    renderer.show(message, state)
    assert out.getvalue() == "", "nothing of a proposal that was not shown"
    renderer.show_diff("p", state)
    shown = out.getvalue()
    renderer.show(message, state)
    renderer.show(message, state)
    assert out.getvalue() == shown + expected


def test_a_conflict_in_what_was_shown_before_is_named() -> None:
    out = io.StringIO()
    renderer = Renderer(PlainConsole(out))
    renderer.show_diff("p", session_state(proposals=[proposed(hunk(1))]))
    out.truncate(out.seek(0))
    in_conflict = proposed(hunk(1, state="conflicted", reason="It is\x1b[31m gone."))
    renderer.show_diff("p", session_state(proposals=[in_conflict]))
    assert out.getvalue() == "  1 hunk: 1 conflicted\n  a.txt: It is gone.\n"
