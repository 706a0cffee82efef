"""What drawing costs in the editors, for short sessions and long ones: `make bench-faces` writes `bench/faces.md`.

VS Code's chat view: the real bundle in a real Chromium, alone in its page; the extension's side is played. For sessions
of 20, 200 and 2,000 items (all in the view, as after scrolling up to the beginning): how long opening takes, what
the page costs per streamed delta and per finished tool call (script, style and layout), memory and nodes.
Neovim: the plugin in a headless Neovim, without a daemon (`bench/neovim.lua`).
The ratio to the shortest session is what must stay near one.
A review of many changes: in the daemon, a real VS Code and Neovim (`bench/reviews.py`, `bench/review_in_vscode.py`).
"""

import importlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from amanu_protocol.items import SubAgent
from bench import reviews, streaming
from bench.page import ROOT, SEND, answer, events, open_page, opened, state

OUTPUT = Path(__file__).with_name("faces.md")
HEAD = f"""<!-- `make bench-faces`; {platform.system()} {platform.machine()} -->

# What drawing costs in the editors

Generated. Absolute figures move with the machine; compare lines: a long session must cost what a short one does.
"""
SIZES = (20, 200, 2000)
DELTAS = 400
CALLS = 100


def main() -> int:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("Chromium is needed.", file=sys.stderr)
        return 1
    page = f"{HEAD}\n## VS Code\n\n{vscode(chromium)}\n## Neovim\n\n{neovim()}\n## A review\n\n{review()}"
    print(page)
    OUTPUT.write_text(page)
    return 0


def neovim() -> str:
    script = str(ROOT / "bench" / "neovim.lua")
    command = [str(Path(sys.executable).parent / "nvim"), "--clean", "--headless", "-l", script]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return f"```\n{found.stdout.strip() or found.stderr.strip()}\n```\n"


def review() -> str:
    figures = importlib.import_module("bench.review_in_vscode").vscode()  # needs what the tests of VS Code need
    return reviews.table([*figures, *reviews.daemon()])


def vscode(chromium: str) -> str:
    """A table with a row for each size, and one of what streams."""
    sys.path.append(str(ROOT / ".tools" / "playwright"))
    with importlib.import_module("playwright.sync_api").sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        measure(browser, SIZES[0])  # the first page pays for starting
        rows = [measure(browser, size) for size in SIZES]
        streamed = streaming.measure(browser)
        browser.close()
    head = (
        "items",
        "open, ms",
        "per delta, ms",
        "per tool call, ms",
        "per read, ms",
        "per agent's call, ms",
        "heap, MB",
        "nodes",
        "cards",
    )
    lines = [head, ("---",) * len(head), *rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{table}\n### While it streams\n\n{streamed}"


def measure(browser: Any, size: int) -> tuple[str, ...]:
    """One session of that many items in a page of its own."""
    page = open_page(browser)
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable")
    items = [item(at) for at in range(size)]
    until_drawn = opened(page, state(items))
    page.evaluate(SEND, events(1, {"kind": "itemStarted", "item": answer("streamed", "")}))
    deltas = cost(cdp, page, [{"kind": "itemDelta", "itemId": "streamed", "text": WORDS[n % 7]} for n in range(DELTAS)])
    if "till" not in page.locator(".list > .card").last.inner_text():
        raise AssertionError("what streams in is not in sight: the figures would mean nothing")
    kinds = ("save_memory", "read_file")  # a row each, and all in one row
    calls, reads = (
        cost(cdp, page, [{"kind": "itemCompleted", "item": tool(f"{kind}{n}", kind)} for n in range(CALLS)])
        for kind in kinds
    )
    running = {**tool("run"), "tool": "run_agent", "state": "executing"}
    page.evaluate(SEND, events(1, {"kind": "itemStarted", "item": running}))
    page.evaluate(SEND, events(1, {"kind": "agentChanged", "agent": AGENT}))
    work = [{**tool(f"work{n}", "save_memory"), "agentId": AGENT["agentId"]} for n in range(CALLS)]
    nested = cost(cdp, page, [{"kind": "itemCompleted", "item": each} for each in work])
    if page.locator(".list > .card.agent .items > .tool").count() == 0:
        raise AssertionError("what the sub-agent does is not in sight: the figures would mean nothing")
    cdp.send("HeapProfiler.enable")
    cdp.send("HeapProfiler.collectGarbage")
    found = metrics(cdp)
    cards = page.evaluate("() => document.querySelectorAll('.list > .card').length")
    page.close()
    return (
        f"{size:,}",
        f"{until_drawn:.0f}",
        f"{1000 * deltas / DELTAS:.2f}",
        f"{1000 * calls / CALLS:.2f}",
        f"{1000 * reads / CALLS:.2f}",
        f"{1000 * nested / CALLS:.2f}",
        f"{found['JSHeapUsedSize'] / 1e6:.1f}",
        f"{found['Nodes']:,.0f}",
        str(cards),
    )


def cost(cdp: Any, page: Any, happening: list[dict[str, Any]]) -> float:
    """Seconds of script, style and layout for these events, each in a frame of its own."""
    before = metrics(cdp)
    page.evaluate(
        """async messages => {
          for (const message of messages) {
            window.dispatchEvent(new MessageEvent('message', {data: message, origin: window.origin}));
            await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
          }
        }""",
        [events(2 + at, event) for at, event in enumerate(happening)],
    )
    after = metrics(cdp)
    return sum(after[name] - before[name] for name in ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration"))


def metrics(cdp: Any) -> dict[str, float]:
    return {each["name"]: each["value"] for each in cdp.send("Performance.getMetrics")["metrics"]}


WORDS = ("I look ", "at the ", "**till** ", "first.\n\n", "- `cart.py`\n", "then ", "its tests. ")


def item(at: int) -> dict[str, Any]:
    """Answers, thoughts and tool calls in turn, as a session has them."""
    if at % 3 == 0:
        return answer(f"i{at}", f"Step **{at}**: {'words ' * 60}")
    if at % 3 == 1:
        return {"kind": "thought", "itemId": f"i{at}", "turnId": "t", "subject": f"Thought {at}", "text": "so " * 80}
    return tool(f"i{at}")


def tool(item_id: str, name: str = "read_file") -> dict[str, Any]:
    return {
        "kind": "toolCall",
        "itemId": item_id,
        "turnId": "t",
        "tool": name,
        "title": f"Read {item_id}.py",
        "effect": "read",
        "arguments": {"path": f"{item_id}.py"},
        "state": "succeeded",
        "output": "a line of a file\n" * 40,
        "blob": None,
        "summary": "40 lines",
        "proposalId": None,
        "decision": None,
        "error": None,
        "sandbox": None,
        "agentId": None,
    }


AGENT = SubAgent(
    agent_id="agent-1",
    name="investigator",
    description="look at the till",
    session_id="child",
    tool_call_id="run",
    state="running",
    started_at=0,
    summary="Running: 1 step",
).model_dump(by_alias=True, mode="json")


if __name__ == "__main__":
    sys.exit(main())
