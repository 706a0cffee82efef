"""What streams into VS Code's chat view: is it drawn as smoothly as plain text? Part of `bench.faces`.

The real bundle in a real Chromium, with the real highlighter behind it: a block of code and a paragraph, each as one
block, and plain prose as the measure, at the pace of a quick model.
"""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.page import ROOT, SEND, answer, events, open_page, opened, state

PACE = 2400
"""Characters a second."""
FRAME = 33.0
RATIO = 1.3
LONGEST = 100.0


def prose(size: int) -> str:
    """Short paragraphs without markup."""
    paragraph = "The till adds up what is in the cart and rounds the sum to cents, once, at the end of it all. " * 4
    return (f"{paragraph.strip()}\n\n" * (size // len(paragraph) + 1))[:size]


def code(size: int) -> str:
    source = (ROOT / "bench" / "faces.py").read_text() + (ROOT / "bench" / "streaming.py").read_text()
    return f"```python\n{(source * (size // len(source) + 1))[:size]}"


def paragraph(size: int) -> str:
    sentence = "The **till** reads `cart.py:12`, adds up *all* of [the cart](src/cart.py) and rounds once. "
    return (sentence * (size // len(sentence) + 1))[:size]


def table(size: int) -> str:
    rows = "".join(f"| `item{n}` | what it **is** | {n} |\n" for n in range(size // 32 + 1))
    return f"| name | meaning | price |\n|:--|---|--:|\n{rows}"[:size]


CASES = (
    ("plain text, 30 KB", prose(30_000)),
    ("a code block, 30 KB", code(30_000)),
    ("a paragraph, 50 KB", paragraph(50_000)),
    ("a table, 15 KB", table(15_000)),
)


def measure(browser: Any) -> str:
    """A table with a row for each case."""
    with highlighter() as ask:
        figures = [(name, *stream(browser, ask, text)) for name, text in CASES]
    base = figures[0][1]
    lines = [
        "| what streams | frame p95, ms | of plain text's | longest task, ms | coloured |",
        "|---|---|---|---|---|",
    ]
    for name, frame, task, coloured in figures:
        good = (frame <= FRAME or frame <= RATIO * base) and task <= LONGEST
        cells = (
            name if good else f"**{name}: missed**",
            f"{frame:.1f}",
            f"{frame / base:.2f}",
            f"{task:.0f}",
            coloured,
        )
        lines.append(f"| {' | '.join(cells)} |")
    goal = f"Goal: frame p95 ≤ {FRAME:g} ms or ≤ {RATIO} × plain text's, longest task ≤ {LONGEST:g} ms."
    return f"{PACE:,} characters a second. {goal}\n\n" + "\n".join(lines) + "\n"


def stream(browser: Any, ask: Any, text: str) -> tuple[float, float, str]:
    """Milliseconds of the 95th frame of a hundred, of the longest task, and how many lines have their colours."""
    page = open_page(browser, paint=ask)
    opened(page, state([]))
    page.evaluate(SEND, events(1, {"kind": "itemStarted", "item": answer("streamed", "")}))
    frames, tasks = page.evaluate(
        """async ([text, pace]) => {
          const frames = [], tasks = [0];
          const observer = new PerformanceObserver(list => tasks.push(...list.getEntries().map(task => task.duration)));
          observer.observe({entryTypes: ['longtask']});
          const begin = performance.now();
          let last = begin, sent = 0, seq = 2;
          const frame = now => {
            frames.push(now - last);
            last = now;
            if (sent < text.length) requestAnimationFrame(frame);
          };
          requestAnimationFrame(frame);
          while (sent < text.length) {
            await new Promise(done => setTimeout(done, 16));
            const end = Math.min(text.length, Math.floor((performance.now() - begin) * pace / 1000));
            const event = {kind: 'itemDelta', itemId: 'streamed', text: text.slice(sent, end)};
            window.dispatchEvent(new MessageEvent('message',
              {data: {type: 'events', events: [event], seq: seq++}, origin: window.origin}));
            sent = end;
          }
          await new Promise(done => setTimeout(done, 500));
          observer.disconnect();
          return [frames.slice(5), tasks];
        }""",
        [text, PACE],
    )
    drawn = page.evaluate("() => document.querySelector('.list > .card.answer').textContent.length")
    if drawn < len(text) * 0.3:
        raise AssertionError("what streams in is not drawn: the figures would mean nothing")
    lines = page.locator(".code .line").count()
    coloured = page.locator(".code .line:has(span)").count()
    page.close()
    return sorted(frames)[len(frames) * 95 // 100], max(tasks), f"{coloured} of {lines} lines" if lines else ""


@contextmanager
def highlighter() -> Generator[Any]:
    """Asks the highlighter of the extension, which is given as a function."""
    node = Path(sys.executable).parent / "node"
    command = [str(node), str(ROOT / "bench" / "highlighter.mjs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            stdin.write(json.dumps({"id": request["request"], **request}) + "\n")
            stdin.flush()
            return {"type": "painted", "request": request["request"], **json.loads(stdout.readline())}

        try:
            yield ask
        finally:
            process.kill()
