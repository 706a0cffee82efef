"""The tutorials, played line by line."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.required_programs import needs
from support.running_daemon import signal_daemon
from support.tutorial import Command, File, Reader, steps, whole

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tutorials"
PAGES = sorted(page.stem for page in FOLDER.glob("*.md") if page.name != "README.md")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    needs("bwrap")
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True, mode=0o700)
    read = json.dumps([str(ROOT), sys.prefix, sys.base_prefix])  # where the clone is hidden from commands
    (config / "config.toml").write_text(f"[sandbox]\nread = {read}\n")
    yield Reader(tmp_path)
    signal_daemon()


@pytest.mark.layers
@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_says_is_what_one_sees(name: str, reader: Reader) -> None:
    reader.plays((FOLDER / f"{name}.md").read_text("utf-8"))


def test_the_index_lists_them() -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"]({name}.md)" in index for name in PAGES) and len(PAGES) == 5


PAGE = """A file. Save this as `a.py`:

```python
x = 1
```

Then

```console
$ cat a.py
x = 1
$ amanu chat
…
Sure? › y
```
"""


def test_a_page_is_files_and_commands_with_what_they_show() -> None:
    chat = Command("amanu chat", ["…", "Sure? › y"])
    assert steps(PAGE) == [File("a.py", "x = 1\n"), Command("cat a.py", ["x = 1"]), chat]


@pytest.mark.parametrize(
    ("page", "shown", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a"], "a\nb\n", False),
        (["a", "…"], "a\nb\nc\n", True),
        (["…", "c"], "a\nb\nc\n", True),
        (["…", "b"], "a\nb\nc\n", False),
        (["✓ Run  5 ms", "in … now"], "✓ Run  1.2 s\nin /tmp/x now\n", True),
        (["✓ Run  5 ms"], "✓ Run\n", False),
        (["a.b"], "axb\n", False),
    ],
)
def test_a_command_shows_all_that_the_page_says_and_nothing_else(page: list[str], shown: str, same: bool) -> None:
    assert bool(re.fullmatch(whole(page), shown)) == same
