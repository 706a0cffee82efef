"""The pictures of the documents, from a real VS Code: run this with `AMANU_SCREENSHOTS=docs` to draw them anew."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.strict_services.http import Say, ToolUse
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
    until,
    workbench,
)

pytestmark = [
    pytest.mark.skipif(not os.environ.get("AMANU_SCREENSHOTS"), reason="draws pictures"),
    *IN_VSCODE,
]
SETTINGS = {
    "workbench.colorTheme": "Dark Modern",
    "workbench.layoutControl.enabled": False,
    "window.commandCenter": False,
    "editor.minimap.enabled": False,
}
TOTAL = '''"""What a cart comes to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    name: str
    price: float
    count: int = 1


def total(lines: list[Line]) -> float:
    """The sum of all lines."""
    return sum(line.price * line.count for line in lines)


def discounted(amount: float, percent: int) -> float:
    """What is left of it after the discount."""
    return round(amount * (100 - percent) / 100, 2)


def shipping(amount: float) -> float:
    """Free of charge from 50 on."""
    return 0.0 if amount >= 50 else 4.9
'''
PARSER = '''"""Lines of a cart from text: `name;price;count`."""

from .total import Line


def parse(text: str) -> list[Line]:
    rows = (row.split(";") for row in text.splitlines())
    return [Line(name, float(price), int(count)) for name, price, count in rows]
'''
TEST = """from cart.total import Line, total


def test_total() -> None:
    assert total([Line("pen", 1.1, 3)]) == 3.3000000000000003
"""
FILES = {"src/cart/total.py": TOTAL, "src/cart/parser.py": PARSER, "tests/test_total.py": TEST}
NEW = {
    "src/cart/total.py": TOTAL.replace(
        "import dataclass\n",
        'import dataclass\nfrom decimal import ROUND_HALF_UP, Decimal\n\nCENT = Decimal("0.01")\n',
    )
    .replace("price: float", "price: Decimal")
    .replace("total(lines: list[Line]) -> float", "total(lines: list[Line]) -> Decimal")
    .replace(
        "sum(line.price * line.count for line in lines)", "sum((each.price * each.count for each in lines), CENT * 0)"
    )
    .replace("discounted(amount: float, percent: int) -> float", "discounted(amount: Decimal, percent: int) -> Decimal")
    .replace(
        "    return round(amount * (100 - percent) / 100, 2)",
        "    left = amount * (100 - percent) / 100\n    return left.quantize(CENT, rounding=ROUND_HALF_UP)",
    ),
    "src/cart/parser.py": PARSER.replace("from .total", "from decimal import Decimal\n\nfrom .total").replace(
        "float(price)", "Decimal(price)"
    ),
    "tests/test_total.py": TEST.replace("from cart", "from decimal import Decimal\n\nfrom cart")
    .replace("1.1, 3", 'Decimal("1.10"), 3')
    .replace("3.3000000000000003", 'Decimal("3.30")'),
}
ANSWER = """Totals are exact now: every amount is a `Decimal`, and [discounted](src/cart/total.py:22) rounds half up to
the cent.

```python
>>> total([Line("pen", Decimal("1.10"), 3)])
Decimal('3.30')
```

| | before | now |
|---|---:|---:|
| 3 × 1.10 | 3.3000000000000003 | 3.30 |
| 10 % off 0.25 | 0.22 | 0.23 |
"""
SHIPPING = '''def shipping(amount: Decimal, country: str = "DE") -> Decimal:
    """Free of charge from 50 on, within the country."""
    abroad = country != "DE"
    if amount >= 50 and not abroad:
        return Decimal(0)
    return Decimal("12.90") if abroad else Decimal("4.90")'''
REWRITE = f"<before>\n\n</before>\n<rewrite>\n{SHIPPING}\n</rewrite>\n<after>\n\n</after>"
FETCH = "git fetch origin && git log --oneline -5 origin/main"
SCRIPT = [
    Say(text="I look at how totals are added up.", calls=[ToolUse("read_file", {"path": path}) for path in FILES]),
    Say(
        text="Floats lose the cents. I use `Decimal` from the parser to the total.",
        calls=[ToolUse("write_file", {"path": path, "content": text}) for path, text in NEW.items()],
    ),
    Say(text=ANSWER),
    Say(text=[REWRITE[at : at + 12] for at in range(0, len(REWRITE), 12)], delay=0.4),
    Say(text="I look at what is upstream.", calls=[ToolUse("run_shell_command", {"command": FETCH})]),
    Say(text=["I begin with the parser. "] * 40, delay=1),
]


async def test_the_pictures_of_the_documents(window: Path) -> None:
    folder = window / "work"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for words in (
        ["init"],
        ["add", "."],
        ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-m", "A cart"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    async with (
        service("anthropic", SCRIPT) as (_, environment),
        workbench(window, environment, settings=SETTINGS) as page,
    ):
        await page.set_viewport_size({"width": 1400, "height": 860})
        key = page.keyboard
        chat = await open_chat(page)
        await widen(page, 430)
        await chat.locator("select.mode").select_option("acceptEdits")
        await open_file(page, "total.py")
        await send(chat, "Totals are a cent off now and then. Use Decimal.")
        await answered(chat, "10 % off")
        await until(chat.locator(".changes:visible", has_text="3 files").count, 1)
        await page.locator(".editor-instance .view-line").first.click()
        await key.press("Control+Home")
        for _ in range(2):
            await key.press("Control+Alt+j")
        await page.locator('.statusbar-item [aria-label="Ln 12, Col 1"]').wait_for(timeout=SECONDS)
        await page.mouse.move(5, 500)
        await shoot(page, "vscode")

        await chat.locator(".changes button.primary").click()
        await until(page.locator(".codelens-decoration a", has_text="Keep").count, 0)
        await page.locator(".editor-instance .view-line").first.click()
        await key.press("Control+End")
        for _ in range(3):
            await key.press("Shift+ArrowUp")
        await key.press("Control+i")
        await page.locator(".quick-input-widget .quick-input-title").wait_for(timeout=SECONDS)
        await key.type("Decimal, and dearer abroad")
        await key.press("Enter")
        await page.locator(".review-widget", has_text="country !=").wait_for(timeout=SECONDS)
        await shoot(page, "vscode-inline")
        added = page.locator(".modified-in-monaco-diff-editor .view-line", has_text="abroad")
        await added.first.wait_for(timeout=SECONDS)
        await key.press("Control+Alt+y")

        await command(page, "Amanu: New Session")
        await chat.locator(".welcome:visible").wait_for(timeout=SECONDS)
        await send(chat, "What is new upstream?")
        await asked(chat)
        await command(page, "Amanu: New Session")
        await chat.locator(".welcome:visible").wait_for(timeout=SECONDS)
        await send(chat, "Read prices with a comma, too")
        await answered(chat, "I begin with")
        await command(page, "Amanu: Sessions")
        await until(chat.locator(".sessions li").count, 3)
        await shoot(page, "vscode-sessions")


async def widen(page: Any, width: int) -> None:
    """Drag the edge of the side bar with the chat."""
    box = await page.locator(".part.auxiliarybar").bounding_box()
    sides = "all => all.map(each => each.getBoundingClientRect()).map(({x, width, height}) => [height, x + width / 2])"
    found = await page.locator(".monaco-sash.vertical").evaluate_all(sides)
    edges = [x for height, x in found if height > 300]
    await page.mouse.move(min(edges, key=lambda x: abs(x - box["x"])), 300)
    await page.mouse.down()
    await page.mouse.move(1400 - width, 300, steps=5)
    await page.mouse.up()
