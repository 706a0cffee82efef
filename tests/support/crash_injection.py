"""A decision over four files, broken off at any system call that touches files: killed there, or refused by the system.

`strace` does it (facts of the method: SQLite fails the n-th operation for n = 1, 2, 3 … until a run is clean). After
each a new process recovers: all files are as before or all are as approved, no temporary file is left, and undo brings
back every byte.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amanu.session.record_format import read_event
from amanu.storage.journal import Journal
from amanu_protocol.events import ProposalChanged
from amanu_protocol.items import Proposal
from support.crash_worker import AFTER, BASE, BEFORE, BEGIN, Kept
from support.warm_process import warm

CALLS = (
    *("openat", "openat2", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "close"),
    *(
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "unlink",
        "unlinkat",
        "mkdir",
        "mkdirat",
        "fchmod",
        "fchown",
    ),
    *("read", "pread64", "lseek", "newfstatat", "fstat", "getdents64", "fsetxattr", "flistxattr"),
)
"""What an accept asks the system for, of files."""
REFUSED = ("openat2", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fchmod", "mkdirat", "mkdir")
RENAMES = ("rename", "renameat", "renameat2", "link", "linkat", "unlinkat", "unlink")
ERRORS = ("ENOSPC", "EIO", "EACCES")

Word = Literal["accept", "undo"]


@dataclass(frozen=True)
class Break:
    """At the n-th call of that name since the process began: `how` is "kill" or an error's name."""

    word: Word
    call: str
    nth: int
    how: str

    def __str__(self) -> str:
        return f"{self.word}, {self.how} at {self.call} {self.nth}"


def breaks(word: Word) -> list[Break]:
    """All of them, by one run that is only watched."""
    with tempfile.TemporaryDirectory() as name:
        folder = _folder(Path(name))
        trace = folder / "trace"
        _run(folder, word, "-o", str(trace), "-e", f"trace=access,faccessat,faccessat2,{','.join(CALLS)}")
        before: Counter[str] = Counter()
        after: Counter[str] = Counter()
        counting = before
        for line in trace.read_text(errors="replace").splitlines():
            if BEGIN in line:
                counting = after
            elif found := re.match(r"\d+ +(\w+)\(", line):
                counting[found[1]] += 1
    assert counting is after, "the worker never began"
    made: list[Break] = []
    for call in CALLS:
        for nth in range(before[call] + 1, before[call] + after[call] + 1):
            made.append(Break(word, call, nth, "kill"))
            if call in REFUSED + RENAMES:
                made += [Break(word, call, nth, error) for error in ERRORS]
    return made


def survive(broken: Break) -> str:
    """Run it, recover, and raise `AssertionError` when a promise is broken. What stands now: "before" or "after"."""
    with tempfile.TemporaryDirectory() as name:
        folder = _folder(Path(name))
        how = "signal=SIGKILL" if broken.how == "kill" else f"error={broken.how}"
        said = _run(folder, broken.word, "-o", "/dev/null", "-e", f"inject={broken.call}:{how}:when={broken.nth}")
        if broken.how != "kill":
            assert said.returncode == 0, f"{broken}: the worker died\n{said.stderr[-2000:]}"
        return asyncio.run(_recovered(folder, broken))


async def _recovered(folder: Path, broken: Break) -> str:
    work = folder / "work"
    journal = await Journal.open(folder / "session")
    try:
        known: dict[str, Proposal] = {}
        for record in await journal.records():
            event = read_event(record)
            if isinstance(event, ProposalChanged):
                known[event.proposal.proposal_id] = event.proposal
        kept = Kept(work, journal, 2)
        await kept.proposals.restore(known.values())
        now = _files(work)
        assert now in (BEFORE, AFTER), f"{broken}: a mix {_short(now)}"
        assert (work / "linked.txt").samefile(work / "other name"), f"{broken}: a name was lost"
        stands = "before" if now == BEFORE else "after"
        for proposal_id in known:
            proposal = kept.proposals.get(proposal_id)
            hunks = [hunk for file in proposal.files for hunk in file.hunks]
            applied = {hunk.state == "applied" for hunk in hunks}
            assert applied == {stands == "after"}, f"{broken}: {stands}, but {[hunk.state for hunk in hunks]}"
            left = await kept.proposals.undo(proposal_id, [hunk.hunk_id for hunk in hunks])
            assert stands == "before" or left == [], f"{broken}: {left}"
        assert _files(work) == BEFORE, f"{broken}: undo gives {_short(_files(work))}"
        await kept.proposals.close()
        return stands
    finally:
        await journal.close()


def _folder(folder: Path) -> Path:
    work = folder / "work"
    work.mkdir()
    for name, data in BEFORE.items():
        if name != "other name":
            (work / name).write_bytes(data)
    os.link(work / "linked.txt", work / "other name")
    assert (work / "a.txt").read_text() == BASE
    return folder


def _files(work: Path) -> dict[str, bytes]:
    return {str(each.relative_to(work)): each.read_bytes() for each in _walk(work)}


def _short(files: Mapping[str, bytes]) -> dict[str, str]:
    """For a user: which of the known states each file is in."""
    known = {data: "before" for data in BEFORE.values()} | {AFTER["a.txt"]: "after"}
    return {name: known.get(data, f"{len(data)} bytes") for name, data in files.items()}


def _walk(work: Path) -> Iterator[Path]:
    return (each for each in sorted(work.rglob("*")) if each.is_file())


def _run(folder: Path, word: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A worker, which strace has taken hold of before it begins."""
    strace = shutil.which("strace")
    assert strace is not None
    command = [sys.executable, "-P", str(Path(__file__).with_name("crash_worker.py")), str(folder), word]
    pipe = subprocess.PIPE
    with subprocess.Popen(warm(command), stdin=pipe, stdout=pipe, stderr=pipe, text=True) as worker:
        assert worker.stdout is not None
        pid = worker.stdout.readline().strip()
        tracing = subprocess.Popen([strace, "-f", *options, "-p", pid], stderr=pipe, text=True)
        with tracing:
            assert tracing.stderr is not None
            while "attached" not in (line := tracing.stderr.readline()):
                assert line, "strace cannot take hold of the worker"
            _, said = worker.communicate("go\n", timeout=60)
            tracing.communicate()
    return subprocess.CompletedProcess(command, worker.returncode, "", said)
