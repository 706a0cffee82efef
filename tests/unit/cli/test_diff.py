import io

import pytest

from amanu.cli.diff import show_proposal
from amanu.cli.paper import PlainPaper
from amanu_protocol.items import Proposal
from unit.cli.stories import hunk, proposed

CRLF = "one\r\ntwo\r\nthree\r\n"


@pytest.mark.parametrize(
    ("proposal", "expected"),
    [
        (
            proposed(hunk(1), hunk(2, old_start=3, old_text="three\n", new_text="drei", new_start=3)),
            "── a.txt (edit) +1 −1\n"
            "@@ -2,1 +2,1 @@\n one\n-two\n+zwei\n three\n"
            "@@ -3,1 +3,1 @@\n one\n two\n-three\n+drei\n",
        ),
        (
            proposed(
                hunk(old_start=1, old_lines=0, old_text="", new_text="a\nb\n", new_start=1, new_lines=2),
                change="create",
                base_text="",
                added=2,
                removed=0,
            ),
            "── a.txt (new file) +2 −0\n@@ -1,0 +1,2 @@\n+a\n+b\n",
        ),
        (
            proposed(hunk(old_start=3, old_lines=0, old_text="", new_text="more\n")),
            "── a.txt (edit) +1 −1\n@@ -3,0 +2,1 @@\n one\n two\n+more\n three\n",
        ),
        (
            proposed(hunk(old_text="two\r\n", new_text="zwei\r\n"), base_text=CRLF),
            "── a.txt (edit) +1 −1\n@@ -2,1 +2,1 @@\n one\n-two\n+zwei\n three\n",
        ),
        (
            proposed(hunk(old_text="two\r\n", new_text="two\n"), base_text=CRLF),
            "── a.txt (edit) +1 −1\n@@ -2,1 +2,1 @@\n one␍\n-two␍\n+two\n three␍\n",
        ),
        (
            proposed(
                hunk(state="rejected", reason="not\nso", edited_by_person=True, new_text="\u202ex\n"),
                final_newline=False,
                path="/elsewhere/b.txt",
            ),
            "── /elsewhere/b.txt (edit) +1 −1  no newline at the end\n"
            "@@ -2,1 +2,1 @@ · rejected · your text · not so\n one\n-two\n+<U+202E>x\n three\n",
        ),
    ],
)
def test_diff(proposal: Proposal, expected: str) -> None:
    out = io.StringIO()
    show_proposal(PlainPaper(out), proposal, ["/w"])
    assert out.getvalue() == expected
