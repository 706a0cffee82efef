"""The service of a run, and the folders its subjects work in."""

import asyncio
import base64
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.plan import Plan
from bench.service import Seen
from bench.subject import Place, Subject
from bench.subjects.environment import ROOT


class Stage:
    """`async with Stage() as stage:` — a running service (on `port`) and a temporary folder, in `parent` if given."""

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent

    async def __aenter__(self) -> "Stage":
        self.folder = Path(tempfile.mkdtemp(prefix="amanu-bench-", dir=self._parent))
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.service",
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.port = int(await self._process.stdout.readline())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        await self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def place(self, subject: Subject, workspace: Path) -> Place:
        home = self.folder / "homes" / subject.name.replace(" ", "-")
        home.mkdir(parents=True, exist_ok=True)
        return Place(home, workspace, f"http://127.0.0.1:{self.port}")

    async def seen(self) -> list[Seen]:
        """The requests since the last call, those aside from the conversation left out."""
        log: list[dict[str, Any]] = await self._get("/bench/log")
        return [seen for seen in (Seen(**each) for each in log) if not seen.aside]

    async def answer_aside_in(self, seconds: float) -> None:
        """How long the service takes from now on for requests beside the conversation."""
        await self._get(f"/bench/aside/{seconds}")

    async def understand(self, words: Mapping[str, Plan]) -> None:
        """The user's words that stand for a plan each from now on, in the place of those before."""
        told = json.dumps({each: asdict(plan) for each, plan in words.items()})
        await self._get(f"/bench/words/{base64.urlsafe_b64encode(told.encode()).decode()}")

    async def _get(self, path: str) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        writer.close()
        return answer
