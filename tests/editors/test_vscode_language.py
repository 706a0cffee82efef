"""What VS Code's own language servers know, asked by the daemon's tools, in a real VS Code; and what the user looks
at, as the model hears it."""

import json
from pathlib import Path

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, open_chat, open_file, send, service, shows, workbench

pytestmark = IN_VSCODE

SHOP = """\
export function subtotal(prices: number[]): number {
  return prices.reduce((sum, price) => sum + price, 0);
}

export const total: string = subtotal([1, 2]);
"""
CALLS = [
    ToolUse("get_diagnostics", {"path": "shop.ts"}),
    ToolUse("find_definition", {"path": "shop.ts", "line": 5, "symbol": "subtotal"}),
    ToolUse("find_references", {"path": "shop.ts", "line": 1, "symbol": "subtotal"}),
    ToolUse("list_symbols", {"path": "shop.ts"}),
    ToolUse("inspect_symbol", {"path": "shop.ts", "line": 5, "symbol": "subtotal", "show": "hover"}),
    ToolUse("inspect_symbol", {"path": "shop.ts", "line": 1, "symbol": "subtotal", "show": "incoming_calls"}),
]
USE = 'import { subtotal } from "./shop";\n\nexport const none = () => subtotal([]);\n'
RENAME = ToolUse("rename_symbol", {"path": "shop.ts", "line": 5, "symbol": "subtotal", "new_name": "sumOf"})


async def test_language_servers_answer(lived_in: Path) -> None:
    folder = lived_in / "work"
    (folder / "shop.ts").write_text(SHOP)
    (folder / "use.ts").write_text(USE)
    (folder / "tsconfig.json").write_text("{}\n")  # files that are not open are of the project only with one
    script = [
        Say(text="I ask the editor.", calls=CALLS),
        Say(text="I rename it.", calls=[RENAME]),
        Say(text="So that is it."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await open_file(page, "shop.ts")
        await page.locator(".squiggly-error").first.wait_for(timeout=2 * SECONDS)  # the server is up
        await chat.locator(".looking", has_text="shop.ts").wait_for(timeout=SECONDS)
        await chat.locator("select.mode").select_option("acceptEdits")
        await send(chat, "What is wrong?")
        await answered(chat, "So that is it")
        first, second, _ = (json.loads(request.body) for request in served.requests)
        heard = json.dumps(first["messages"])
        assert "shop.ts" in heard
        assert "not assignable" in heard  # the file's problem goes along
        results = [block["content"] for block in second["messages"][-1]["content"] if block["type"] == "tool_result"]
        diagnostics, definition, references, symbols, hover, calls = results
        assert "not assignable" in diagnostics
        assert "shop.ts:1" in definition
        assert "shop.ts:5" in references
        assert "subtotal" in symbols and "total" in symbols
        assert "prices: number[]" in hover
        assert "use.ts:3: " in calls and "none" in calls
        assert (folder / "use.ts").read_text() == USE.replace("subtotal", "sumOf")
        await shows(page, "sumOf([1, 2])")
        assert not served.refused
