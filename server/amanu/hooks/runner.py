"""Runs one hook in the sandbox, with JSON on its standard input and for a limited time, and leaves nothing running."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from amanu.core.place import MACHINE, READ_ONLY, Reach
from amanu.core.requirements import SandboxRequirements
from amanu.hooks.model import PLUGIN_VARIABLES, HookRun, HookView
from amanu.hooks.pins import own_files
from amanu.sandbox.entry_shell import plain_entry_shell
from amanu.sandbox.sandbox import Sandbox, SandboxError
from amanu.sandbox.sandboxed_process import Program, SandboxedProcess, running
from amanu.system.process_tree import without_git_settings, without_secrets
from amanu.workspace.workspace import Workspace

MAX_OUTPUT = 1 << 20
"""Bytes kept of each stream; the rest is read and dropped."""
MAX_RUNNING = 8
"""The most hooks that run at the same time in one session."""
_CHUNK = 1 << 16
_DRAIN = 0.3  # seconds for what is still in the pipe when the hook has ended
_MEMORY_PARTS = 4  # of the machine's memory, as other commands that run without a question

NO_SANDBOX = "No sandbox works on this machine, and hooks are not started without one (setting sandbox.without)."


@dataclass(frozen=True)
class HookPlace:
    """The surroundings in which the hooks of a session run, and facts that they are told."""

    sandbox: Sandbox
    workspace: Workspace
    environment: Mapping[str, str]
    key_variables: Collection[str]
    session_id: str
    transcript: str = ""
    """The path of the session's journal; hooks cannot read it, but expect the field."""
    permission_mode: str = "default"
    """The session's mode, in Claude Code's words."""
    now: str = ""
    """The time, in ISO 8601."""
    without_sandbox: bool = False
    """Whether the user accepts that commands run without a sandbox where none works."""

    @property
    def home(self) -> str:
        return self.environment.get("HOME", "")


class HookRunner:
    """Runs the hooks of one session."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_RUNNING)

    async def run(self, view: HookView, place: HookPlace, stdin: bytes) -> HookRun:
        """Run a hook to its end. Raises nothing unless cancelled, and then the hook has been stopped."""
        async with self._slots:
            started = time.monotonic()
            out, err = _Kept(), _Kept()
            code: int | None = None
            try:
                code, failure = await self._run(view, place, stdin, out, err)
            except (SandboxError, OSError, ValueError) as error:
                reason = str(error) if isinstance(error, SandboxError) else getattr(error, "strerror", None) or error
                failure = f"It could not be started: {reason}".rstrip(".") + "."
            seconds = time.monotonic() - started
            if not failure and out.lost:
                failure = f"It printed more than {MAX_OUTPUT:,} bytes."
            return HookRun(view.hook, code, out.text, err.text, seconds, failure)

    async def _run(
        self, view: HookView, place: HookPlace, stdin: bytes, out: "_Kept", err: "_Kept"
    ) -> tuple[int | None, str]:
        hook, folder = view.hook, view.hook.source.folder
        tier = (await place.sandbox.proved()).tier
        if tier == "none" and not hook.outside and not place.without_sandbox:
            return None, NO_SANDBOX
        bash = plain_entry_shell()
        if bash is None:
            return None, "This machine has no /bin/bash."
        argv = [bash.bash, "-c", hook.command] if hook.arguments is None else [hook.command, *hook.arguments]
        need = await asyncio.to_thread(_requirements, view, place)
        roots = [place.workspace.guard.real(root) for root in place.workspace.roots]
        program = Program(argv, folder, roots, _environment(view, place), need, _MEMORY_PARTS)
        async with place.sandbox.changing(need), running(program, place.sandbox) as process:
            in_time = await _follow(process, stdin, out, err, hook.timeout)
            code = process.code
        if not in_time:
            return None, f"It was stopped after {hook.timeout:g} s, its time limit."
        is_killed = code is None or code < 0 or code == _KILLED
        return code, "It was killed." if is_killed else ""


_KILLED = 128 + signal.SIGKILL
"""The exit code that a sandbox reports for a command that was killed."""


class _Kept:
    """The beginning of a stream; the rest is dropped."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.lost = False

    def add(self, data: bytes) -> None:
        bytes_left = MAX_OUTPUT - len(self._data)
        self._data += data[:bytes_left]
        self.lost = self.lost or len(data) > bytes_left

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


async def _follow(process: SandboxedProcess, stdin: bytes, out: _Kept, err: _Kept, seconds: float) -> bool:
    """Feed and read the process until it ends, whoever else holds its pipes. Returns False when the time is up."""
    writing = asyncio.create_task(_write(process.stdin, stdin))
    reading = [asyncio.create_task(_read(process.stdout, out)), asyncio.create_task(_read(process.stderr, err))]
    try:
        in_time = await process.ended(seconds)
        if in_time:
            await asyncio.wait(reading, timeout=_DRAIN)
        return in_time
    finally:
        for task in (writing, *reading):
            task.cancel()


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError):  # the hook does not read it
        stream.write(data)
        await stream.drain()
        stream.close()


async def _read(stream: asyncio.StreamReader, kept: _Kept) -> None:
    while data := await stream.read(_CHUNK):
        kept.add(data)


def _requirements(view: HookView, place: HookPlace) -> SandboxRequirements:
    """The permissions of a hook: it may read the workspace, where its own files are as they were approved; it may write
    only temporary files; it has no network unless it declares that."""
    hook = view.hook
    readable = own_files(hook, place.workspace, place.home)
    if hook.source.plugin is not None:
        readable.append(hook.source.plugin)
    return SandboxRequirements(
        MACHINE if hook.outside else replace(READ_ONLY, reach=Reach(network=hook.network)),
        readable=tuple(readable),
        pinned=dict(view.contents),
    )


def _environment(view: HookView, place: HookPlace) -> dict[str, str]:
    """A hook's variables: no key, nothing that makes a shell or git run something, but those that hooks rely on."""
    source = view.hook.source
    inherited = without_git_settings(without_secrets(place.environment, place.key_variables))
    own = without_secrets(view.hook.environment, place.key_variables)
    told = {
        "CLAUDE_PROJECT_DIR": str(source.folder),
        "GEMINI_PROJECT_DIR": str(source.folder),
        "GEMINI_CWD": str(source.folder),
        "GEMINI_SESSION_ID": place.session_id,
        **dict.fromkeys(PLUGIN_VARIABLES if source.plugin is not None else (), str(source.plugin)),
    }
    return {**inherited, **own, **told, "AMANU": "1", "NO_COLOR": "1"}
