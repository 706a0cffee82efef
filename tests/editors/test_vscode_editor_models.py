"""Models of another extension in a real VS Code: chosen without any key, asked through VS Code, tools and all."""

from pathlib import Path

import pytest

from support.vscode import SECONDS, VSCODE, answered, open_view, ready, send, shoot, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]
PROVIDER = Path(__file__).parents[1] / "support" / "model_provider"


async def test_a_model_of_another_extension_answers_without_a_key(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("forty-two")
    async with workbench(tmp_path, {}, extension=PROVIDER) as page:
        chat = await open_view(page)
        await ready(page)
        await chat.locator("button.model").click()
        rows = page.locator(".quick-input-list .monaco-list-row")
        await rows.filter(has_text="Reader 1").click(timeout=SECONDS)
        await shoot(page, "lm-1")
        await send(chat, "What does the file say?")
        await shoot(page, "lm-2")
        await answered(chat, "It says: ")
        await shoot(page, "lm-3")
