"""Runs one hook: in the sandbox, with JSON on its standard input, for a limited time, and leaves nothing running."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from amanu.core.requirements import SandboxRequirements
from amanu.hooks.model import PLUGIN_VARIABLES, HookRun, HookView
from amanu.hooks.pins import own_files
from amanu.sandbox.entry_shell import plain_entry_shell
from amanu.sandbox.process_records import MARK
from amanu.sandbox.rlimits import limited_entry_shell, limits
from amanu.sandbox.sandbox import Sandbox, SandboxError
from amanu.system.process_tree import end_all, without_git_settings, without_secrets
from amanu.system.tasks import run_to_completion, start_process, wait_killed
from amanu.workspace.workspace import Workspace

MAX_OUTPUT = 1 << 20
"""Bytes kept of each stream; the rest is read and dropped."""
MAX_RUNNING = 8
"""Hooks at the same time, in one session."""
_CHUNK = 1 << 16
_DRAIN = 0.3  # seconds for what is still in the pipe when the hook has ended
_MEMORY_PARTS = 4  # of the machine's memory, as other commands that run without a question

NO_SANDBOX = "No sandbox works on this machine, and hooks are not started without one (setting sandbox.without)."


@dataclass(frozen=True)
class HookPlace:
    """Where the hooks of a session run, and what they get to know."""

    sandbox: Sandbox
    workspace: Workspace
    environment: Mapping[str, str]
    key_variables: Collection[str]
    session_id: str
    transcript: str = ""
    """Path of the session's journal; hooks cannot read it, but expect the field."""
    permission_mode: str = "default"
    """The session's mode in Claude Code's words."""
    now: str = ""
    """The time, ISO 8601."""
    without_sandbox: bool = False
    """The user accepts that commands run without a sandbox where none works."""

    @property
    def home(self) -> str:
        return self.environment.get("HOME", "")


class HookRunner:
    """Runs the hooks of one session."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_RUNNING)

    async def run(self, view: HookView, place: HookPlace, stdin: bytes) -> HookRun:
        """Run a hook to its end. Never raises but when cancelled, and then it has been ended."""
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
        mark = f"{MARK}{token_hex(8)}"
        async with AsyncExitStack() as stack:
            handle = await asyncio.to_thread(os.open, folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, handle)
            need = await asyncio.to_thread(_requirements, view, place)
            roots = [place.workspace.guard.real(root) for root in place.workspace.roots]
            entry = limited_entry_shell(bash.bash, limits(_MEMORY_PARTS))
            launched = await stack.enter_async_context(
                place.sandbox.launch(argv, need, roots, folder, handle, _environment(view, place, mark), entry)
            )
            # The tiers that cannot show a hook the bytes that were agreed to: the last moment to compare them.
            if changed := await asyncio.to_thread(_changed, view):
                return None, f"{changed} was changed just before it started."
            process = await start_process(
                lambda process: _end(process, mark, launched.holders),
                *launched.argv,
                cwd=launched.folder,
                env=launched.environment,
                pass_fds=launched.pass_fds,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=_CHUNK,
            )
            with place.sandbox.recorded(process.pid, mark, need):
                try:
                    in_time = await _follow(process, stdin, out, err, hook.timeout)
                    code = process.returncode
                finally:
                    await run_to_completion(_end(process, mark, launched.holders))
            if not in_time:
                return None, f"It was stopped after {hook.timeout:g} s, its time limit."
            is_killed = code is None or code < 0 or code == _KILLED
            return code, "It was killed." if is_killed else ""


_KILLED = 128 + signal.SIGKILL
"""What a sandbox reports of a command that was killed."""


class _Kept:
    """The beginning of a stream."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.lost = False

    def add(self, data: bytes) -> None:
        room = MAX_OUTPUT - len(self._data)
        self._data += data[:room]
        self.lost = self.lost or len(data) > room

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


async def _follow(process: asyncio.subprocess.Process, stdin: bytes, out: _Kept, err: _Kept, seconds: float) -> bool:
    """Feed and read it until its first process has ended, whoever else holds its pipes. False when the time is up."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    tasks = [
        asyncio.create_task(_write(process.stdin, stdin)),
        asyncio.create_task(_read(process.stdout, out)),
        asyncio.create_task(_read(process.stderr, err)),
    ]
    waiting = asyncio.create_task(process.wait())
    until = time.monotonic() + seconds
    try:
        while process.returncode is None:  # `wait` also waits for whoever inherited the pipe
            remaining = until - time.monotonic()
            if remaining <= 0:
                return False
            await asyncio.wait({waiting}, timeout=min(0.1, remaining))
        await asyncio.wait(tasks[1:], timeout=_DRAIN)
        return True
    finally:
        for task in (*tasks, waiting):
            task.cancel()


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError):  # it does not read it
        stream.write(data)
        await stream.drain()
        stream.close()


async def _read(stream: asyncio.StreamReader, kept: _Kept) -> None:
    while data := await stream.read(_CHUNK):
        kept.add(data)


async def _end(process: asyncio.subprocess.Process, mark: str, holders: int) -> None:
    """End it and all it started. Returns when they are gone."""
    await end_all(process.pid, mark, holders)
    await wait_killed(process)


def _requirements(view: HookView, place: HookPlace) -> SandboxRequirements:
    """What a hook may do: read the workspace, as it was agreed to where its own files are concerned; write nothing but
    temporary files; no network unless it declares it."""
    hook = view.hook
    readable = own_files(hook, place.workspace, place.home)
    if hook.source.plugin is not None:
        readable.append(hook.source.plugin)
    return SandboxRequirements(
        writes="nothing",
        network=hook.network,
        unsandboxed=hook.outside,
        readable=tuple(readable),
        pinned=dict(view.contents),
    )


def _environment(view: HookView, place: HookPlace, mark: str) -> dict[str, str]:
    """No key, nothing that makes a shell or git run something; and the variables that hooks rely on."""
    source = view.hook.source
    inherited = without_git_settings(without_secrets(place.environment, place.key_variables))
    own = without_secrets(view.hook.environment, place.key_variables)
    name, _, value = mark.partition("=")
    told = {
        "CLAUDE_PROJECT_DIR": str(source.folder),
        "GEMINI_PROJECT_DIR": str(source.folder),
        "GEMINI_CWD": str(source.folder),
        "GEMINI_SESSION_ID": place.session_id,
        **dict.fromkeys(PLUGIN_VARIABLES if source.plugin is not None else (), str(source.plugin)),
    }
    return {**inherited, **own, **told, "AMANU": "1", "NO_COLOR": "1", name: value}


def _changed(view: HookView) -> str:
    """The file that no longer holds what was agreed to; "" for none."""
    for path, data in view.contents.items():
        try:
            if Path(path).read_bytes() != data:
                return path
        except OSError:
            return path
    return ""
