"""The bench that counts questions: what it rests on."""

from pathlib import Path
from typing import Literal

import pytest
from bench.questions import corpus, project
from bench.questions.agent import Question
from bench.questions.corpus import Line
from bench.questions.page import Pass, Run, page, without_places
from bench.questions.services import Services
from bench.questions.trial import Ending, Outcome


def test_each_command_is_there_once() -> None:
    texts = [line.text for line in corpus.load()]
    assert len(texts) == len(set(texts)) >= 120


def test_a_project_is_made_as_it_was(tmp_path: Path) -> None:
    with Services(tmp_path) as services:
        made = project.make(tmp_path / "place", services)
        before = made.left()
        (made.root / "shop" / "cart.py").write_text("changed")
        (made.root / "README.md").unlink()
        (made.root / "new" / "deep").mkdir(parents=True)
        (made.root / "new" / "deep" / "file").touch()
        (made.root / "tests" / "test_cart.py").rename(made.root.parent / "beside")
        (made.remote / "HEAD").write_text("ref: refs/heads/other\n")
        assert made.left() != before
        made.reset()
        assert made.left() == before
        assert not (made.root.parent / "beside").exists() and not (made.root / "new").exists()


@pytest.mark.parametrize(("when", "row"), [("before", "| 1 | 0 | 1 of 2, 50.0 %"), ("after", "| 0 | 1 | 1 of 2")])
def test_the_page_counts_a_command_once(when: Literal["before", "after"], row: str) -> None:
    ending, other = Ending("0", "a"), Ending("1", "a")
    asked = [Question(when, "Why.", ("network",)), Question("after", "Why.", ())]
    outcomes = [
        Outcome(Line("test", "a | b", ()), asked, 1, ending, 0.1, "", ending),
        Outcome(Line("test", "c", ()), [], 1, other, 0.1, "", ending),
    ]
    text = page(Run([Line("test", "go test", ("go",))], [Pass("ask", "bubblewrap", outcomes, 1.0)]))
    assert row in text and "**missed**" in text
    assert "`a | b` — " in text and "`c` — exit 1, not 0" in text and "`go test`: needs go" in text


def test_the_page_names_no_folder_of_the_machine() -> None:
    text = "cannot write /home/me/q-1/place0/shop/a.txt, nor /home/me/q-1/daemon"
    assert without_places(text, Path("/home/me/q-1")) == "cannot write …/shop/a.txt, nor …/daemon"
