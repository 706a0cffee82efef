"""The time and memory that making text of a big web page takes."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

from bench.run import Failed, Run

SIZE = 5 << 20
"""Bytes of the page."""
_SECTION = """<h2 id="s{n}">Section {n}</h2><p class="text">Some <em>words</em> about <a href="/page/{n}">thing {n}</a>
and <code>call({n})</code>.</p><div style="display:none">hidden</div><script>var x = {n};</script>
<ul><li>one<li>two <b>bold</b><ul><li>deep</ul></ul><pre><code class="language-py">def f(): return {n}</code></pre>
<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>{n}</td><td>some words</td></tr></tbody></table>"""


async def measure(run: Run) -> None:
    sections = (_SECTION.replace("{n}", str(n)) for n in range(SIZE // len(_SECTION)))
    page = f"<!doctype html><title>T</title>{''.join(sections)}".encode()
    for _ in range(run.repeat):
        for subject in run.subjects:
            if subject.name.startswith("Amanu"):
                await run.attempt(subject, "page", partial(_read, run, subject.name, page))


async def _read(run: Run, subject: str, page: bytes) -> None:
    seconds, megabytes = await asyncio.to_thread(_spent, page)
    run.results.add("page", subject, seconds)
    run.results.add("page.memory", subject, megabytes)


def _spent(page: bytes) -> tuple[float, float]:
    """Seconds and megabytes of the program that reads it."""
    about = json.dumps({"charset": "utf-8", "url": "https://site.example/"}).encode()
    with tempfile.TemporaryFile() as file:
        file.write(about + b"\n" + page)
        file.seek(0)
        began = time.monotonic()
        argv = [sys.executable, "-P", "-m", "amanu.web.page_text"]
        process = subprocess.Popen(argv, stdin=file, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Failed(f"the reader ended with {process.returncode}")
    return time.monotonic() - began, usage.ru_maxrss / 1024
