"""What an answer looks like and leads to, in a real VS Code: links to files, tables, code."""

from pathlib import Path
from typing import Any

import pytest

from support.strict_services.http import Say
from support.vscode import SECONDS, VSCODE, answered, open_chat, send, service, shoot, shows, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]

ANSWER = """# Where it is

It stands in [src/click/utils.py](src/click/utils.py:40), see `utils.py:60` and [the other](missing.py), not in
[here](/etc/passwd).

## How much

| name | count | share |
|:-----|------:|:-----:|
| one  |     1 |  10 % |
| a longer one | 1000 | 90 % |

---

### In code

`code` in a line of text stays as tall as the text.

```python
def f():
    return "code"
```
"""


async def line_of_cursor(page: Any, number: int) -> None:
    await page.locator(".statusbar-item", has_text=f"Ln {number}, Col 1").wait_for(timeout=SECONDS)


async def test_an_answer_leads_to_files(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "src" / "click"
    folder.mkdir(parents=True)
    (folder / "utils.py").write_text("".join(f"line_{n} = {n}\n" for n in range(1, 101)))
    async with service("anthropic", [Say(text=ANSWER)]) as (_, environment), workbench(tmp_path, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Where?")
        await answered(chat, "In code")
        links = chat.locator(".answer a")
        assert await links.all_inner_texts() == ["src/click/utils.py", "utils.py:60", "the other"]

        # a table is aligned and code no taller than text, as drawn
        sides = "all => all.map((each) => getComputedStyle(each).textAlign)"
        assert await chat.locator(".answer td").evaluate_all(sides) == ["left", "right", "center"] * 2
        size = "each => parseFloat(getComputedStyle(each).fontSize)"
        text = await chat.locator(".answer p").first.evaluate(size)
        for code in (".answer p code", ".answer pre", ".answer pre code"):
            assert 0.85 * text <= await chat.locator(code).last.evaluate(size) < text
        height = "each => each.getBoundingClientRect().height"
        assert await chat.locator(".answer p code").last.evaluate(height) <= 1.5 * text

        await links.nth(0).click()
        await shows(page, "line_40 = 40")
        await line_of_cursor(page, 40)
        await links.nth(1).focus()
        await page.keyboard.press("Enter")
        await line_of_cursor(page, 60)
        await links.nth(2).click()
        await chat.locator(".told", has_text="There is no missing.py in the workspace.").wait_for(timeout=SECONDS)
        await shoot(page, "answer-1-links")
