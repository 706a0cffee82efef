"""Starts a command in its sandbox, in the very folder that was checked, and ends every process it leaves behind."""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from amanu.core.place import Place
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import ToolError
from amanu.permissions.policy import is_read_only
from amanu.sandbox.entry_shell import EntryShell
from amanu.sandbox.process_records import MARK
from amanu.sandbox.rlimits import limited_entry_shell, limits
from amanu.sandbox.sandbox import SandboxedCommand, SandboxError
from amanu.shell.pipes import PipedCommand
from amanu.system.process_tree import (
    end_all,
    interrupt_all,
    with_untouched_index,
    without_git_settings,
    without_secrets,
)
from amanu.system.tasks import run_to_completion, start_process, wait_killed
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.file_identity import identity
from amanu.tools.shell.pipe_statuses import pipe_statuses
from amanu.tools.shell.report import STOPPED_SWAPPED, CommandEnd
from amanu.tools.shell.script_watch import ScriptWatch
from amanu.tools.shell.terminal import BECOME_CONTROLLING, Terminal
from amanu.tools.shell.waiting_editor import WaitingEditor
from amanu_protocol.items import Mode

CHANGED = (
    "What this command would run was changed or replaced just before it started, so it was not run. Call again: the "
    "command is decided on anew."
)
MODE_CHANGED = (
    "The mode was changed just before this command started, so it was not run. Call again: the command is decided on "
    "anew."
)
_CHUNK = 1 << 16
_DRAIN = 0.3  # seconds for what is still in the pipe when the shell has ended
_INPUT_SECONDS = 5.0  # for a command to read what is typed

COMMAND_VARIABLES = {
    "AMANU": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GH_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
"""Set for every command: nobody can page, edit, answer a prompt or see colors. git keeps the text it proposes, such as
the message of a merge; of other programs nobody knows what they would do with a text that was not edited."""

_EDITORS = {"GH_EDITOR", "HGEDITOR", "JJ_EDITOR", "KUBE_EDITOR", "SUDO_EDITOR", "SVN_EDITOR", "SYSTEMD_EDITOR"}
"""Variables that go before `EDITOR`."""

Take = Callable[[bytes, bool], None]
"""Takes a piece of output; the flag says whether it is from stderr."""


@dataclass(frozen=True)
class CommandPlan:
    """A command as it was decided on."""

    command: str
    folder: Path
    need: SandboxRequirements
    by_user: bool
    """The user decided on it, not a rule."""
    still_valid: Callable[[], Awaitable[bool]]
    """Whether it would still do what was decided on."""
    mode: Mode = "ask"
    """The mode in which the command was decided on."""
    names_network: bool = False
    """Its line names a program that probably uses the network."""
    background: bool = False
    """It goes on after its call: it can be typed into, and what it prints is one stream."""
    tty: bool = False
    """It gets a terminal."""
    pipe: Sequence[PipedCommand] = ()
    """The pipe its line ends with, whose every status is to be known; () for none."""

    @property
    def is_held_short(self) -> bool:
        """Whether it may not run for long in the background: nothing that it writes is kept, and the user was not
        asked."""
        place = self.need.place
        return (place.on_copy or not place.writes) and not self.by_user


class CommandProcess:
    """A running command."""

    def __init__(
        self, process: asyncio.subprocess.Process, mark: str, holders: int, terminal: Terminal | None = None
    ) -> None:
        self.process = process
        self.started = time.monotonic()
        self.editor = WaitingEditor(process.pid, mark)
        self._mark = mark
        self._holders = holders
        self._terminal = terminal

    async def read(self, take: Take) -> None:
        """Pass on what it prints until nobody can print any more."""
        if self._terminal is not None:
            await _read(await self._terminal.reader(), take, is_error=False)
            return
        streams = ((self.process.stdout, False), (self.process.stderr, True))
        await asyncio.gather(*(_read(stream, take, is_error=error) for stream, error in streams if stream is not None))

    async def drain(self, reading: asyncio.Task[None]) -> None:
        """Wait a moment for what is still to be read when it has ended."""
        await asyncio.wait({reading}, timeout=_DRAIN)

    async def write(self, data: bytes) -> None:
        """Type that. Raises `ToolError` when the command does not take it."""
        if self._terminal is None and self.process.stdin is None:
            raise ToolError("The command was started without input, so nothing can be typed into it.")
        try:
            async with asyncio.timeout(_INPUT_SECONDS):
                while self._terminal is not None and data:
                    written = self._terminal.write(data)
                    data = data[written:]
                    if data and not written:
                        await asyncio.sleep(0.05)
                if self.process.stdin is not None:
                    self.process.stdin.write(data)
                    await self.process.stdin.drain()
        except TimeoutError:
            raise ToolError("The command does not read its input, so not all of the text could be typed.") from None
        except (OSError, RuntimeError):
            raise ToolError("The command has closed its input, so nothing can be typed into it.") from None

    async def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        if self._terminal is not None and self._terminal.has_foreground:
            self._terminal.write(b"\x03")
        else:
            await interrupt_all(self.process.pid, self._mark, self._holders)

    async def end(self) -> int:
        """End all its processes. Returns how many it had left running."""
        left_over = await end_all(self.process.pid, self._mark, self._holders)
        await wait_killed(self.process)
        if self._terminal is not None:
            self._terminal.close()
        return left_over


class CommandLauncher:
    """Starts the commands of one session."""

    def __init__(self, environment: ToolEnvironment) -> None:
        self._environment = environment
        self._workspace = environment.workspace
        self._sandbox = environment.sandbox
        self._trusted = environment.trusted

    async def has_sandbox(self) -> bool:
        """Whether a sandbox holds what is started: else nobody may be left unasked."""
        return self._sandbox is not None and (await self._sandbox.proved()).tier != "none"

    @asynccontextmanager
    async def launched(self, plan: CommandPlan, end: CommandEnd) -> AsyncGenerator[CommandProcess]:
        """Start the command; leaving the context ends it, and then `end` says how. Raises `ToolError` when it could not
        be started."""
        need = plan.need
        mark = f"{MARK}{token_hex(8)}"
        environment = self.child_environment(mark, need, tty=plan.tty)
        # Without the user's approval a command may not take the machine's memory; one that only reads needs little.
        kernel = limits(None if plan.by_user else 4 if need.place.only_looks else 2)
        end.memory = kernel.memory
        entry = None if (bash := self._find_bash()) is None else limited_entry_shell(bash, kernel)
        with self._opened_folder(plan.folder) as handle, pipe_statuses(plan.pipe) as statuses:
            line = plan.command if statuses is None else statuses.reported(plan.command)
            argv = list(need.argv) if need.argv is not None else [self._bash(), "-c", line]
            if entry is not None and statuses is not None:
                entry = replace(entry, handles=(statuses.handle,))
            status = os.fstat(handle)
            if need.folder_identity not in (None, (status.st_dev, status.st_ino)):
                raise ToolError(CHANGED)
            async with self._sandboxed(argv, plan, handle, environment, entry) as started:
                identities = await asyncio.to_thread(_identities, need)
                if not await plan.still_valid():  # the last moment before it starts; building the sandbox took a while
                    was_read_only = is_read_only(plan.mode)
                    raise ToolError(CHANGED if self._environment.read_only() == was_read_only else MODE_CHANGED)
                running = await self._start(started, mark, plan)
                end.unseen, end.hidden = started.workspace_secrets, started.hidden
                pid = running.process.pid
                with ScriptWatch(need.watched, identities, pid) as watch, self._recorded(pid, mark, need):
                    try:
                        yield running
                    finally:
                        end.left_over = await run_to_completion(running.end())
                tried_network = started.tried_network()
                end.tried_network = plan.names_network if tried_network is None else tried_network
                end.quarantine = await asyncio.to_thread(started.settle)
            end.pipe, end.pipe_statuses = plan.pipe, () if statuses is None else statuses.read()
        end.code = running.process.returncode
        end.seconds = time.monotonic() - running.started
        # In the hours that a command of the background may run, the user and the model go on editing.
        in_call = not (plan.background or end.outlived_call)
        end.was_swapped = watch.swapped or (in_call and await asyncio.to_thread(_identities, need) != identities)
        if watch.swapped:
            end.stop_reason = STOPPED_SWAPPED

    def child_environment(self, mark: str, need: SandboxRequirements, *, tty: bool = False) -> dict[str, str]:
        """The environment of a command whose processes are marked so."""
        name, _, value = mark.partition("=")
        place = need.place
        services = place.writes and (self._sandbox is None or place.reach.network)
        variables, settings = self._environment.variables, self._environment.settings
        inherited = without_secrets(
            variables, settings.key_variables, settings.shell.pass_environment, services=services
        )
        editors = dict.fromkeys(_EDITORS & inherited.keys(), "false")
        environment = {**inherited, **editors, **COMMAND_VARIABLES, name: value}
        if tty:
            environment["TERM"] = "xterm-256color"
            del environment["NO_COLOR"]
        if place.only_looks:
            from amanu.shell.git import LOOKING

            return {**without_git_settings(environment), **LOOKING}
        if not self._trusted():
            hooks = self.runs_hooks(place)
            environment = without_git_settings(environment, hooks=hooks, logs_in=place.base == "machine")
        return with_untouched_index(environment) if place.on_copy and not place.reach.writes_git else environment

    def runs_hooks(self, place: Place) -> bool:
        """Hooks are the repository's code: unless the user trusts it, they run only as part of an allowed command in a
        sandbox without network."""
        if not place.writes:
            return False
        return self._trusted() or (self._sandbox is not None and not place.reach.network)

    @contextlib.contextmanager
    def _opened_folder(self, folder: Path) -> Generator[int]:
        with contextlib.ExitStack() as stack:
            try:
                handle = stack.enter_context(self._workspace.guard.folder(folder))
            except OSError:
                raise ToolError(CHANGED) from None
            yield handle

    @asynccontextmanager
    async def _sandboxed(
        self, argv: list[str], plan: CommandPlan, handle: int, environment: dict[str, str], limiter: EntryShell | None
    ) -> AsyncGenerator[SandboxedCommand]:
        """How to start the command in the very folder that was checked (`handle`), wherever its name leads now."""
        if limiter is not None and plan.tty:
            limiter = limiter.with_step(BECOME_CONTROLLING)
        if self._sandbox is None:
            argv = argv if limiter is None else limiter.wrap(argv)
            folder_path = f"/proc/self/fd/{handle}"
            yield SandboxedCommand(
                argv,
                environment,
                folder_path if os.path.exists("/proc/self/fd") else str(plan.folder),  # noqa: PTH110, ASYNC240
                () if limiter is None else limiter.handles,
            )
            return
        roots = [self._workspace.guard.real(root) for root in self._workspace.roots]
        try:
            async with (
                self._sandbox.changing(plan.need),
                self._sandbox.launch(argv, plan.need, roots, plan.folder, handle, environment, limiter) as started,
            ):
                yield started
        except SandboxError as error:
            raise ToolError(str(error)) from None

    async def _start(self, started: SandboxedCommand, mark: str, plan: CommandPlan) -> CommandProcess:
        terminal: Terminal | None = None
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            terminal = Terminal() if plan.tty else None
            own = None if terminal is None else terminal.slave
            process = await start_process(
                lambda process: CommandProcess(process, mark, started.holders, terminal).end(),
                *started.argv,
                cwd=started.folder,
                env=started.environment,
                pass_fds=started.pass_fds,
                stdin=own or (pipe if plan.background else nothing),
                stdout=own or pipe,
                stderr=own or (asyncio.subprocess.STDOUT if plan.background else pipe),
                start_new_session=True,
                limit=_CHUNK,
            )
        except OSError as error:
            if terminal is not None:
                terminal.close()
            raise ToolError(f"The command could not be started: {error.strerror or error}.") from None
        return CommandProcess(process, mark, started.holders, terminal)

    def _recorded(self, pid: int, mark: str, need: SandboxRequirements) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._sandbox is None else self._sandbox.recorded(pid, mark, need)

    def _bash(self) -> str:
        if (bash := self._find_bash()) is None:
            raise ToolError("Commands cannot be run: this machine has no bash.")
        return bash

    def _find_bash(self) -> str | None:
        """The path of a bash that is not part of the workspace; None when there is none."""
        for bash in ("/bin/bash", "/usr/bin/bash", shutil.which("bash", path=self._environment.variables.get("PATH"))):
            if bash and Path(bash).is_absolute() and os.access(bash, os.X_OK):
                real = Path(bash).resolve()
                if not any(root.resolve() in real.parents for root in self._workspace.roots):
                    return bash
        return None


def _identities(need: SandboxRequirements) -> list[str]:
    return [identity(path) for path in need.watched]


async def _read(stream: asyncio.StreamReader, take: Take, *, is_error: bool) -> None:
    with contextlib.suppress(OSError):  # a terminal whose last process has ended
        while data := await stream.read(_CHUNK):
            take(data, is_error)
