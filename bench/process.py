"""A subject's processes: started with a mark in their environment, so that detached ones are found too."""

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

MARK = "BENCH_SUBJECT"
TICK = os.sysconf("SC_CLK_TCK")


class Tree:
    """Everything one subject has running."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._known: set[int] = set()

    async def spawn(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, errors: Path
    ) -> asyncio.subprocess.Process:
        with errors.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *command,
                env=self.marked(environment),
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=1 << 26,
            )

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process that is one of them."""
        return {**environment, MARK: self._mark}

    def pids(self) -> list[int]:
        """The living ones. A process whose parent is one of them belongs too (some clean their environment)."""
        wanted = f"{MARK}={self._mark}".encode()
        parents: dict[int, int] = {}
        found: set[int] = set()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
        grown = True
        while grown:
            children = {pid for pid, parent in parents.items() if parent in found} - found
            found |= children
            grown = bool(children)
        return sorted(found)

    def memory(self) -> float:
        """Megabytes: the proportional set sizes together."""
        total = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1])
        return total / 1024

    def peak(self) -> float:
        """Megabytes: the most that the biggest of them ever had (resident, shared pages included)."""
        most = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        most = max(most, int(line.split()[1]))
        return most / 1024

    def cpu(self) -> float:
        """Seconds used so far, children that ended included."""
        total = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15]))
        return total / TICK

    def own_cpu(self) -> float:
        """The same of the first of them alone, without its children."""
        fields = Path(f"/proc/{self.pids()[0]}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / TICK

    def wakeups(self) -> int:
        """How often their threads went to sleep so far, and woke up again."""
        total = 0
        for pid in self.pids():
            for status in Path(f"/proc/{pid}/task").glob("*/status"):
                with contextlib.suppress(OSError):
                    total += int(status.read_text().rpartition("\nvoluntary_ctxt_switches:")[2].split()[0])
        return total

    def threads(self) -> int:
        return sum(_count(f"/proc/{pid}/task") for pid in self.pids())

    def files(self) -> int:
        """Open file descriptors."""
        return sum(_count(f"/proc/{pid}/fd") for pid in self.pids())

    async def end(self) -> None:
        """Ends every one of them, by force when asking does not help within two seconds."""
        for number, patience in ((signal.SIGTERM, 40), (signal.SIGKILL, 40)):
            for pid in self.pids():
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            for _ in range(patience):
                if not self.pids():
                    return
                await asyncio.sleep(0.05)


def _count(folder: str) -> int:
    try:
        return len(list(Path(folder).iterdir()))
    except OSError:
        return 0  # it has just ended
