"""What an answer looks like and leads to, in a real VS Code: links to files, tables, code."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.sample_images import png
from support.strict_services.http import Say
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    asked,
    command,
    open_chat,
    open_file,
    send,
    service,
    shoot,
    shows,
    until,
    workbench,
)

pytestmark = IN_VSCODE

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


MARKUP = r"""Press <kbd>Ctrl</kbd>+<kbd>C</kbd>; H<sub>2</sub>O is drawn[^1],
as src/click/utils.py:20 and `utils.py` say, not no.py.

Sorting takes $O(n \log n)$, since

$$
T(n) = \sum_{i=1}^{n} \frac{1}{i}
$$

![the plan](docs/plan.png)

<details>
<summary>A <b>log</b></summary>

- one line

</details>

[^1]: In its note.
"""


async def test_what_models_write_is_drawn(lived_in: Path) -> None:
    for name, content in (("src/click/utils.py", b"x = 1\n" * 40), ("docs/plan.png", png(160, 60))):
        path = lived_in / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    async with service("anthropic", [Say(text=MARKUP)]) as (_, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Show all")
        await answered(chat, "In its note.")
        await chat.locator(".katex-display").wait_for(timeout=SECONDS)
        assert await chat.locator(".answer .katex").count() == 2
        links = chat.locator(".answer a.file")
        await links.nth(1).wait_for(timeout=SECONDS)
        assert await links.all_inner_texts() == ["src/click/utils.py:20", "utils.py"]
        picture = chat.locator("img.workspace")
        await until(lambda: picture.evaluate("each => each.naturalWidth"), 160)
        await shoot(page, "markup")


async def line_of_cursor(page: Any, number: int) -> None:
    await page.locator(".statusbar-item", has_text=f"Ln {number}, Col 1").wait_for(timeout=SECONDS)


async def test_an_answer_leads_to_files(lived_in: Path) -> None:
    folder = lived_in / "work" / "src" / "click"
    folder.mkdir(parents=True)
    (folder / "utils.py").write_text("".join(f"line_{n} = {n}\n" for n in range(1, 101)))
    async with service("anthropic", [Say(text=ANSWER)]) as (_, environment), workbench(lived_in, environment) as page:
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
        await chat.locator(".told", has_text="missing.py does not exist in the workspace.").wait_for(timeout=SECONDS)
        await shoot(page, "answer-1-links")


CODE = """It takes three steps:

1. Read the cart:

   ```python
   # src/till.py
   def total(cart: list[int]) -> float:
       return round(sum(cart), 2)  # once
   ```

2. Show it:

   ```ts src/view.ts
   export const show = (sum: number) => `${sum} €`;
   ```

3. Run what stands in [src/till.py](src/till.py):

   ```bash
   echo "$TOTAL" | sort -n
   ```

| what | rounds |
|:-----|-------:|
| `total` | once |
| `show` | *never* |

- [x] rounding
- [ ] currencies, see `till.py:1`

```json
{ "currency": "EUR", "digits": 2 }
```

```rust
fn main() { println!("{}", 1 + 1); } // done
```

Done, see https://example.org and ~~cents~~.
"""
THEMES = ["Default Dark Modern", "Default Light Modern", "Default High Contrast"]
PICTURES = bool(os.environ.get("AMANU_SCREENSHOTS"))


@pytest.mark.parametrize("theme", THEMES if PICTURES else THEMES[:1])
async def test_code_has_the_colours_of_the_theme_and_goes_to_the_editor(theme: str, lived_in: Path) -> None:
    folder = lived_in / "work" / "src"
    folder.mkdir(parents=True)
    (folder / "till.py").write_text("")
    settings = {"workbench.colorTheme": theme}
    async with (
        service("anthropic", [Say(text=CODE)]) as (_, environment),
        workbench(lived_in, environment, settings=settings) as page,
    ):
        chat = await open_chat(page)
        await send(chat, "How?")
        await answered(chat, "Done, see")
        keyword = chat.locator(".code .line span", has_text="def").first
        colours = ["rgb(86, 156, 214)", "rgb(0, 0, 255)"]  # of dark themes, and of the light one
        await until_coloured(keyword, lambda colour: colour == colours["Light" in theme])
        await chat.locator(".code", has_text="println").locator(".line span").first.wait_for(timeout=SECONDS)
        assert await chat.locator(".code .place").all_inner_texts() == ["src/till.py", "src/view.ts", "", "", ""]
        if PICTURES:
            await pictures(page, theme)

        await command(page, "Preferences: Toggle between Light/Dark Themes")
        await until_coloured(keyword, lambda colour: colour != colours["Light" in theme])

        await open_file(page, "till.py")
        python = chat.locator(".code", has_text="def total")
        await python.get_by_role("button", name="Insert").click()
        await shows(page, "def total(cart: list[int]) -> float:")
        assert (folder / "till.py").read_text() == ""  # an edit the user can undo, and has not saved
        shell = chat.locator(".code", has_text="echo")
        assert await chat.get_by_role("button", name="Terminal").count() == 1
        await shell.get_by_role("button", name="Terminal").click()
        await page.locator(".terminal-wrapper.active .xterm").wait_for(timeout=SECONDS)


BLOCKS = """Round it, in

`src/till.py`:

```python
def total(cart):
    # ... existing code ...
    return round(sum(cart), 2)
```

and test it:

```python tests/test_till.py
from till import total
```

```bash
cat notes.txt
```

Well?
"""
TILL = "import math\n\n\ndef total(cart):\n    check(cart)\n    return sum(cart)\n"
PLACED = """<<<<<<< SEARCH
    return sum(cart)
=======
    return round(sum(cart), 2)
>>>>>>> REPLACE"""


async def test_a_block_is_applied_as_a_proposal_and_run_by_the_rules(lived_in: Path) -> None:
    folder = lived_in / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "till.py").write_text(TILL)
    (folder / "notes.txt").write_text("all is well\n")
    says = [Say(text=BLOCKS), Say(text=PLACED), Say(text="I see it.")]
    async with service("anthropic", says) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "How?")
        await answered(chat, "Well?")
        if PICTURES:
            await pictures(page, "Default Blocks", widths=(180, 300, 700))

        # the block is placed in the file it names, and reviewed like any edit
        block = chat.locator(".code", has_text="def total")
        await block.get_by_role("button", name="Apply to src/till.py").click()
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        await accept.first.wait_for(timeout=SECONDS)
        await shows(page, "return round(sum(cart), 2)")
        await chat.locator(".changes", has_text="1 file").wait_for(timeout=SECONDS)
        assert (folder / "src" / "till.py").read_text() == TILL
        assert await chat.locator(".card.user .text").last.inner_text() == "/apply src/till.py"
        await shoot(page, "block-1-applied")
        await asyncio.sleep(0.6)  # an answer within half a second would not count
        await page.keyboard.press("Control+Alt+y")
        await chat.locator(".changes").wait_for(state="hidden", timeout=SECONDS)
        async with asyncio.timeout(SECONDS / 1000):
            while "round" not in (folder / "src" / "till.py").read_text():
                await command(page, "File: Save All")
        assert "check(cart)" in (folder / "src" / "till.py").read_text()

        # a new file needs no model; by keyboard
        await (
            chat.locator(".code", has_text="import total").locator("[aria-label='Apply to tests/test_till.py']").focus()
        )
        await page.keyboard.press("Enter")
        await shows(page, "from till import total")
        assert not (folder / "tests").exists()
        await shoot(page, "block-2-new-file")
        await (await asked(chat)).click()
        await chat.locator(".changes").wait_for(state="hidden", timeout=SECONDS)
        assert (folder / "tests" / "test_till.py").read_text() == "from till import total\n"

        # a command runs as the rules say, and the model hears of it all
        await chat.locator(".code", has_text="cat notes").get_by_role("button", name="Run it").click()
        await chat.locator(".card.tool", has_text="cat notes.txt").wait_for(timeout=SECONDS)
        await send(chat, "Do you see?")
        await answered(chat, "I see it.")
        await shoot(page, "block-3-run")
        heard = served.requests[-1].body.decode()
        assert "! cat notes.txt" in heard and "all is well" in heard and "/apply tests/test_till.py" in heard
        assert len(served.requests) == 3 and not served.refused


async def until_coloured(part: Any, wanted: Callable[[str], bool]) -> None:
    async with asyncio.timeout(SECONDS / 1000):
        await part.wait_for()
        while not wanted(await part.evaluate("each => getComputedStyle(each).color")):
            await asyncio.sleep(0.05)


async def pictures(page: Any, theme: str, widths: Sequence[int] = (300, 700)) -> None:
    """With the chat that many pixels wide."""
    for width in widths:
        bar = await page.locator(".part.auxiliarybar").bounding_box()
        await page.mouse.move(bar["x"], 400)
        await page.mouse.down()
        await page.mouse.move(bar["x"] + bar["width"] - width, 400, steps=5)
        await page.mouse.up()
        await page.mouse.move(200, 700)
        await shoot(page, f"code-{theme.split()[1].lower()}-{width}")
