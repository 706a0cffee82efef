"""Find out which sandbox works here. Each tier is tested by attempting what it must prevent (`escape_attempts.py`) on
files, sockets and a process of our own, in a folder made for the test. A tier that allows one of these attempts, or in
which nothing works, is not used.
"""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amanu.system.process_tree import start_time
from amanu.system.tasks import start_process

Tier = Literal["bubblewrap", "landlock", "seatbelt", "none"]

_SECONDS = 10.0  # for one tier; some 0.1 s is usual
_MUST_WORK = ("spawn", "write root")
_MUST_FAIL = (
    *("write outside", "cut outside", "read canary", "write hook", "tcp", "udp", "local socket", "abstract socket"),
    "ptrace",
)
_MUST_FAIL_IN: dict[Tier, tuple[str, ...]] = {
    "bubblewrap": (*_MUST_FAIL, "signal", "see", "remount", "namespace", "outlive"),
    "landlock": (*_MUST_FAIL, "remount", "namespace"),
    "seatbelt": tuple(attempt for attempt in _MUST_FAIL if attempt not in ("abstract socket", "ptrace")),
}
_SAID = 300  # characters of what a tier said when it could not start
_CONTAINER = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman put into each container."""
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


@dataclass(frozen=True)
class Launch:
    """How to start the escape attempts."""

    argv: list[str]
    environment: dict[str, str]
    folder: str
    pass_fds: tuple[int, ...]


InTier = Callable[[Tier, Sequence[str], Path, Sequence[Path]], AbstractAsyncContextManager[Launch]]
"""Tier, command line, root, and what else must be readable → how to start it in that tier."""


@dataclass(frozen=True)
class TierFinding:
    """The result of testing one tier."""

    tier: Tier
    fault: str = ""
    """Why it is not used, as a sentence; "" when it is used."""
    open: tuple[str, ...] = ()
    """Attempts that it does not prevent, and need not."""


@dataclass(frozen=True)
class Proof:
    """Which tier works here, and the result of each test."""

    tier: Tier
    findings: tuple[TierFinding, ...]
    """Best first, up to the one that is used."""

    @property
    def summary(self) -> str:
        """A sentence for the user."""
        faults = " ".join(f"{finding.tier}: {finding.fault}" for finding in self.findings if finding.fault)
        if self.tier == "none":
            return f"No sandbox works here. {faults}".strip()
        opened = next((finding.open for finding in self.findings if finding.tier == self.tier), ())
        gaps = f", which does not prevent: {', '.join(opened)}" if opened else ""
        return f"Commands run in {self.tier}{gaps}.{' Not used: ' + faults if faults else ''}"

    @property
    def advice(self) -> str:
        """What the user can do to get a better sandbox; "" when there is no better one."""
        if self.tier == "bubblewrap" or sys.platform != "linux":
            return ""
        fault = next((finding.fault for finding in self.findings if finding.tier == "bubblewrap"), "")
        if "bubblewrap is not installed" in fault:
            return "Install bubblewrap (sudo apt install bubblewrap) and restart Amanu."
        if any(mark.exists() for mark in _CONTAINER):
            return (
                "Amanu runs in a container. For bubblewrap, start the container with --security-opt seccomp=unconfined "
                "--security-opt systempaths=unconfined (with Podman unmask=ALL instead), and where the host has "
                "AppArmor --security-opt apparmor=unconfined."
            )
        with contextlib.suppress(OSError):
            if _APPARMOR.read_text().strip() == "1":
                return (
                    "Ubuntu's AppArmor allows user namespaces only to programs with a profile. Run sudo apt install "
                    "apparmor-profiles, link bwrap-userns-restrict into /etc/apparmor.d, and reload AppArmor."
                )
        return "Install bubblewrap 0.8 or newer and allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)."


async def prove(candidates: Mapping[Tier, str], in_tier: InTier) -> Proof:
    """Test the tiers in order until one works. `candidates`: tier → why it cannot work, or ""."""
    findings: list[TierFinding] = []
    for tier, fault in candidates.items():
        findings.append(TierFinding(tier, fault) if fault else await _try(tier, in_tier))
        if not findings[-1].fault:
            return Proof(tier, tuple(findings))
    return Proof("none", tuple(findings))


async def _try(tier: Tier, in_tier: InTier) -> TierFinding:
    base = await asyncio.to_thread(lambda: Path(os.path.realpath(tempfile.mkdtemp(prefix="amanu-proof-"))))
    try:
        with _stage(base) as (orders, happened):
            result = await _run(tier, in_tier, base / "root", orders)
            if isinstance(result, str):
                return TierFinding(tier, result)
            grows = await _still_growing(base / "root" / "inside")
            observed = ("outlive", "write hook")  # observed from outside at the end
            succeeded = {act for act, how in result.items() if how == "done" and act not in observed} | happened()
            succeeded |= {"outlive"} if grows else set[str]()
    except (OSError, TimeoutError) as error:
        return TierFinding(tier, f"The self-test could not run: {error or type(error).__name__}.")
    finally:
        await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)
    missing = [act for act in _MUST_WORK if act not in succeeded]
    if missing:
        return TierFinding(tier, f"Commands cannot work in it; this failed: {', '.join(missing)}.")
    let = [act for act in _MUST_FAIL_IN[tier] if act in succeeded]
    if let:
        return TierFinding(tier, f"It did not prevent: {', '.join(let)}.")
    return TierFinding(tier, open=tuple(sorted(succeeded - {*_MUST_WORK})))


async def _run(tier: Tier, in_tier: InTier, root: Path, orders: Mapping[str, Any]) -> dict[str, str] | str:
    """The outcome of each attempt, or a sentence why there is none."""
    acts = Path(__file__).with_name("escape_attempts.py")
    argv = [sys.executable, "-I", "-S", str(acts), json.dumps(orders)]
    reads = [acts, *map(Path, dict.fromkeys((sys.base_prefix, sys.prefix)))]
    async with in_tier(tier, argv, root, reads) as launch, asyncio.timeout(_SECONDS):
        process = await start_process(
            _kill,
            *launch.argv,
            env=launch.environment,
            cwd=launch.folder,
            pass_fds=launch.pass_fds,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            output, errors = await process.communicate()
        except BaseException:
            await _kill(process)
            raise
    try:
        return json.loads(output)
    except ValueError:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        return f"It could not be set up: {last[0][:_SAID].rstrip('.')}."


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process. Its children end when the sandbox is taken down, which is not awaited."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()


@contextmanager
def _stage(base: Path) -> Generator[tuple[dict[str, Any], Callable[[], set[str]]]]:
    """Files and sockets to attack: yields the attempts with their targets, and a function that tells which of them
    succeeded, as seen from outside."""
    root, outside, hook = base / "root", base / "outside", base / "root" / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    (root / ".git" / "config").touch()
    (root / "inside").touch()
    outside.touch()
    name = f"\0amanu-{secrets.token_hex(8)}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        local.bind(str(base / "socket"))
        listeners = [tcp, local]
        orders: dict[str, Any] = {
            "spawn": ["spawn"],
            "write root": ["write", str(root / "inside")],
            "outlive": ["outlive", str(root / "inside")],
            "cut outside": ["truncate", str(outside)],
            "write outside": ["change", str(outside)],
            "read canary": ["read", str(outside)],
            "write hook": ["write", str(hook)],
            "tcp": ["tcp", tcp.getsockname()[1]],
            "udp": ["udp", udp.getsockname()[1]],
            "local socket": ["local", str(base / "socket")],
            "signal": ["signal_", os.getpid(), start_time(os.getpid())],
            "see": ["see", os.getpid(), start_time(os.getpid())],
            "ptrace": ["ptrace"],
            "remount": ["remount", str(outside)],
            "namespace": ["namespace"],
        }
        if sys.platform == "linux":
            abstract.bind(name)
            listeners.append(abstract)
            orders["abstract socket"] = ["local", name]
        for listener in (*listeners, udp):
            if listener is not udp:
                listener.listen()
            listener.setblocking(False)

        def happened() -> set[str]:
            acts = {"write outside"} if outside.stat().st_size else set[str]()
            acts |= {"write hook"} if hook.exists() else set[str]()
            for act, listener in (("tcp", tcp), ("local socket", local), ("abstract socket", abstract)):
                with contextlib.suppress(OSError):
                    listener.accept()[0].close()
                    acts.add(act)
            with contextlib.suppress(OSError):
                udp.recv(1)
                acts.add("udp")
            return acts

        yield orders, happened


async def _still_growing(beats: Path) -> bool:
    """Whether a process that should have ended with the command still writes."""
    await asyncio.sleep(0.01)
    earlier_size = os.stat(beats).st_size  # noqa: PTH116
    await asyncio.sleep(0.08)
    return os.stat(beats).st_size != earlier_size  # noqa: PTH116
