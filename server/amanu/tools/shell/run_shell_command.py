"""The tool that runs a command with bash in the workspace, and ends every process the command leaves behind.

`preview` reads what the command line would do (`amanu/shell`), so that policy decides on that; `run` starts it in the
sandbox, in the very folder that was checked, and reports what became of it (`report.py`).
"""

import asyncio
import contextlib
import json
import os
import shutil
import time
from collections.abc import AsyncGenerator, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from pydantic import Field

from amanu.core.command import Ask, CommandContext, Reading
from amanu.core.protected_paths import npmrc_holds_token
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.sandbox.git_dirs import hooks_of
from amanu.sandbox.rlimits import KernelLimits, limited_entry_shell, limits
from amanu.sandbox.sandbox import SandboxedCommand, SandboxError
from amanu.shell.analyze import read
from amanu.shell.programs.git import LOOKING, writes_settings
from amanu.shell.self_edits import rewritten
from amanu.system.process_tree import end_all, without_git_settings, without_secrets
from amanu.system.tasks import run_to_completion, start_process, wait_killed
from amanu.text.display import one_line, visible
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu.tools.files.read_output import ID_LENGTH
from amanu.tools.shell.denial_hints import denial_hint, missing_program_hint
from amanu.tools.shell.file_identity import fingerprint, identity, read_contents
from amanu.tools.shell.output import CommandOutput, LiveOutput
from amanu.tools.shell.report import STOPPED_SWAPPED, CommandEnd, file_list
from amanu.tools.shell.script_watch import ScriptWatch
from amanu.workspace.text_file import FileText
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import BlobRef, CommandSandbox, Grant

_SHOW_EVERY = 0.1  # seconds between two pieces of live output
_DRAIN = 0.3  # seconds for what is still in the pipe when the shell has ended
_CHUNK = 1 << 16
_LONGEST = 64 * 1024  # characters of a command; nobody can judge a longer one
_CHANGED = (
    "What this command would run was changed or replaced just before it started, so it was not run. Call again: the "
    "command is decided on anew."
)
_PLANNING = (
    "This is plan mode: until the user has approved the plan, commands run in a sandbox that lets them change nothing."
)
_PLAN_INSTEAD = "Leave it to a step of the plan, and call exit_plan_mode when the plan is complete."
_NOT_RUN = (126, 127)
"""Exit codes of a shell that could not run the program it was given."""
_HOOKS_SKIPPED = (
    "these git hooks of the repository were skipped where the command would have run them, because the folder is not "
    "trusted and the command did not run in a sandbox without network."
)
COMMAND_VARIABLES = {
    "AMANU": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GH_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
"""Set for every command: nobody can page, answer a prompt or see colors."""


class RunShellCommandParams(Params):
    command: str = Field(min_length=1, description="The command, run as `bash -c`.")
    description: str | None = Field(default=None, description="What it does, in a short sentence for the user.")
    path: str | None = Field(default=None, description="Folder to run it in. Default: the workspace root.")
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        description="Time limit in seconds. Default: 1800; at most 300 for commands that only read.",
    )
    network: bool = Field(default=False, description="It needs the network, which is off otherwise; the user is asked.")
    outside: bool = Field(
        default=False,
        description="It cannot work in the sandbox, because it needs a service's socket (docker), the user's keys "
        "(gh, ssh) or to write outside the workspace; the user is asked.",
    )
    secrets: bool = Field(
        default=False, description="It needs files with secrets (.env, keys), hidden otherwise; the user is asked."
    )
    reason: str | None = Field(default=None, description="Why it needs network, outside or secrets, for the user.")


@dataclass(frozen=True)
class _Analysis:
    """What a command line would do, what its sandbox must allow, and the digest of all that was decided on."""

    reading: Reading
    need: SandboxRequirements
    digest: str


class RunShellCommand(SessionTool[RunShellCommandParams]):
    name = "run_shell_command"
    effect = "run"
    description = (
        "Runs a command with bash in the workspace and returns its output (stdout and stderr together) and exit code. "
        "Nobody can answer prompts: pass flags such as --yes. It must end by itself; background processes are ended "
        "with it. Output beyond 30,000 characters is cut in the middle. Use the file and search "
        "tools instead of cat, sed, find and grep."
    )
    params = RunShellCommandParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._mask = environment.secrets.mask_output
        self._sandbox = environment.sandbox
        self._trusted = environment.trusted
        self._read_only = environment.read_only

    async def preview(self, params: RunShellCommandParams, call: CallContext) -> Preview:
        if "\0" in params.command or not params.command.strip():
            raise ToolError("The command is empty or contains a NUL character, so no shell can run it.")
        if len(params.command) > _LONGEST:
            raise ToolError(f"The command is longer than {_LONGEST:,} characters. Write it to a script and run that.")
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        if not await asyncio.to_thread(folder.is_dir):
            raise ToolError(
                f"The folder {self._workspace.display_path(folder)} does not exist, so the command cannot run in it."
            )
        lines = [visible(params.command)]
        if params.description:
            lines.append(f"The model says: {visible(params.description)}")
        if request := _requested(params):
            lines.append(f"It asks {request}" + (f": {visible(params.reason)}" if params.reason else "."))
        lines.append(f"In: {visible(str(folder))}")
        if self._sandbox is not None:
            await self._sandbox.proved()
        analysis = await asyncio.to_thread(self._analyze, params, folder, call)
        self._check_mode(params, analysis.reading)
        subject, *also = self._subjects(params, analysis.reading)
        first, *further_lines = params.command.strip().splitlines()
        short = first if len(first) <= 80 else first[:79] + "…"
        suffix = f" … and {len(further_lines)} more line{'s' * (len(further_lines) != 1)}" if further_lines else ""
        return Preview(
            title=f"Run {short}{suffix}",
            subject=subject,
            extra_subjects=tuple(also),
            detail="\n".join(lines),
            reads=frozenset([str(folder)]),
            digest=analysis.digest,
            requirements=analysis.need,
            sandbox=None if self._sandbox is None else self._sandbox.describe(analysis.need),
            grants=self._grants(),
            likely_grants=self._wants(params, analysis.reading),
        )

    async def preview_again(self, params: RunShellCommandParams, call: CallContext) -> Preview:
        """Programs, scripts and folders may have changed by now."""
        return await self.preview(params, call)

    def _analyze(self, params: RunShellCommandParams, folder: Path, call: CallContext) -> _Analysis:
        """Blocking: it looks at the files that the command would run."""
        real = self._workspace.guard.real(folder)
        reading = read(params.command, self._command_context(real, call))
        reading = _with_asks(reading, self._asks(params))
        scripts = {path for command in reading.commands for path in command.runs}
        pinned = scripts - rewritten(reading.commands)
        stored, digests = read_contents(scripts)
        try:
            status = real.stat()
        except OSError:
            raise ToolError(_CHANGED) from None
        need = self._requirements(reading, pinned, stored, status)
        programs = {command.program for command in reading.commands if command.program}
        programs.update((reading.argv or ())[:1])
        # What the commands do was found out by looking at files once more, so it is part of what was approved.
        judged = repr(
            [(command.effect, command.reads, command.git) for command in reading.commands] + [reading.unclear]
        )
        place = f"{real} {need.folder_identity}"
        digest = fingerprint(
            [place, need.writes, json.dumps(reading.argv), *map(identity, sorted(programs)), *digests, judged]
        )
        return _Analysis(reading, need, digest)

    def _command_context(self, real_folder: Path, call: CallContext) -> CommandContext:
        def may_read(path: Path) -> bool:
            inside = self._workspace.guard.inside(path)
            if inside is None:
                return False
            if path.name == ".npmrc" and not npmrc_holds_token(str(path)):
                return True  # as a command sees it, too
            return bool(call.allowed([Subject(self.name, "read", self._workspace.relative(inside))]))

        return CommandContext(
            folder=real_folder,
            roots=self._workspace.guard.real_roots,
            # What has no effect is run with git's variables taken out.
            environment={
                name: value
                for name, value in self._child_environment("AMANU_COMMAND=", SandboxRequirements()).items()
                if not name.startswith("GIT_")
            },
            may_read=may_read,
            trusted=self._trusted(),
        )

    def _requirements(
        self, reading: Reading, pinned: Collection[str], stored: dict[str, bytes], folder: os.stat_result
    ) -> SandboxRequirements:
        """What the sandbox must allow. `pinned`: files that must stay as they were approved; `stored`: path → content
        of those that are small enough."""
        effective = [command for command in reading.commands if command.effect != "none"]
        read_only = self._read_only()
        only_git = reading.unclear is None and bool(effective) and all(command.git for command in effective)
        return SandboxRequirements(
            writes="nothing" if reading.effect == "none" or read_only else "workspace",
            git=not read_only and any(command.git for command in reading.commands),
            settings=not read_only and only_git and all(writes_settings(command.words) for command in effective),
            checkout=only_git and not read_only,
            borrowing=self._trusted(),
            pinned={path: data for path, data in stored.items() if path in pinned},
            argv=reading.argv,
            folder_identity=(folder.st_dev, folder.st_ino),
            watched=tuple(sorted(pinned)),
        )

    def _check_mode(self, params: RunShellCommandParams, reading: Reading) -> None:
        """Raises `ToolError` for what a mode in which commands are read-only does not allow."""
        if not self._read_only():
            return
        online = any(command.network and command.effect != "none" for command in reading.commands)
        if params.network or params.outside or online:
            raise ToolError(f"{_PLANNING} It has no network, and nothing runs outside it. {_PLAN_INSTEAD}")
        sandboxed = self._sandbox is not None and self._sandbox.tier != "none"
        if reading.effect != "none" and not sandboxed:
            raise ToolError(
                f"{_PLANNING} No sandbox works on this machine, so only commands that are known to change nothing "
                f"can run. {_PLAN_INSTEAD}"
            )

    def _subjects(self, params: RunShellCommandParams, reading: Reading) -> list[Subject]:
        """Each command of the line, each file it is known to read, and the line itself where not all of it is
        understood."""
        # A loop over known words runs the same command again and again.
        subjects = [
            Subject(self.name, "run", command.text, command=command) for command in dict.fromkeys(reading.commands)
        ]
        if reading.unclear is not None or not subjects:
            because = reading.unclear or ""
            subjects.append(Subject(self.name, "run", params.command, unclear=True, because=because))
        reads = dict.fromkeys(path for command in reading.commands for path in command.reads)
        for path in reads:
            inside = self._workspace.guard.inside(Path(path))
            if inside is not None:
                subjects.append(Subject(self.name, "read", self._workspace.relative(inside)))
        return subjects

    def _asks(self, params: RunShellCommandParams) -> frozenset[Ask]:
        """What the call asks the user for and does not have yet."""
        requests: dict[Ask, bool] = {
            "network": params.network,
            "unsandboxed": params.outside and bool(self._grants()),
            "secrets": params.secrets,
        }
        return frozenset(ask for ask, is_requested in requests.items() if is_requested)

    def _wants(self, params: RunShellCommandParams, reading: Reading) -> tuple[Grant, ...]:
        """Those of `_grants` that the command probably needs."""
        if not self._grants():
            return ()
        if params.outside:
            return ("unsandboxed",)
        return ("network",) if params.network or any(command.network for command in reading.commands) else ()

    def _grants(self) -> tuple[Grant, ...]:
        """What the user may allow besides; nothing without a sandbox, since nothing holds it then."""
        held = self._sandbox is not None and self._sandbox.tier != "none"
        return ("network", "unsandboxed") if held and not self._read_only() else ()

    async def run(self, params: RunShellCommandParams, call: CallContext) -> Outcome:
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        call.require_reviewed(folder)
        output = CommandOutput(self._limits.shell_stored, self._mask)
        unsaved = await self._workspace.unsaved()
        mark = f"AMANU_COMMAND={token_hex(8)}"
        need = (call.preview and call.preview.requirements) or SandboxRequirements()
        total = params.timeout_s or self._limits.shell_total
        if need.writes == "nothing":
            total = min(total, self._limits.shell_read_only)
        argv = list(need.argv) if need.argv is not None else [self._bash(), "-c", params.command]
        environment = self._child_environment(mark, need)
        # Without the user's approval a command may not take the machine's memory; one that only reads needs little.
        kernel = limits(None if call.by_user else 4 if need.writes == "nothing" else 2)
        end = CommandEnd(memory=kernel.memory)
        with self._opened_folder(folder) as handle:
            status = os.fstat(handle)
            if need.folder_identity not in (None, (status.st_dev, status.st_ino)):
                raise ToolError(_CHANGED)
            async with self._sandboxed(argv, need, folder, handle, environment, kernel) as started:
                identities = await asyncio.to_thread(_identities, need)
                if not await call.still_valid():  # the last moment before it starts; building the sandbox took a while
                    raise ToolError(_CHANGED)
                process = await self._start(started, mark)
                end.unseen = started.workspace_secrets
                with ScriptWatch(need.watched, identities, process.pid) as watch:
                    try:
                        await self._follow(process, output, call, total, end)
                    finally:
                        end.left_over = await run_to_completion(_end_processes(process, mark, started.holders))
                end.quarantine = await asyncio.to_thread(started.settle)
        end.code = process.returncode
        end.was_swapped = watch.swapped or await asyncio.to_thread(_identities, need) != identities
        if watch.swapped:
            end.stop_reason = STOPPED_SWAPPED
        return await self._outcome(output, end, unsaved, need, folder)

    @contextlib.contextmanager
    def _opened_folder(self, folder: Path) -> Generator[int]:
        with contextlib.ExitStack() as stack:
            try:
                handle = stack.enter_context(self._workspace.guard.folder(folder))
            except OSError:
                raise ToolError(_CHANGED) from None
            yield handle

    @contextlib.asynccontextmanager
    async def _sandboxed(
        self,
        argv: list[str],
        need: SandboxRequirements,
        folder: Path,
        handle: int,
        environment: dict[str, str],
        kernel: KernelLimits,
    ) -> AsyncGenerator[SandboxedCommand]:
        """How to start the command in the very folder that was checked (`handle`), wherever its name leads now."""
        bash = self._find_bash()
        limiter = None if bash is None else limited_entry_shell(bash, kernel)
        if self._sandbox is None:
            argv = argv if limiter is None else limiter.wrap(argv)
            folder_path = f"/proc/self/fd/{handle}"
            yield SandboxedCommand(argv, environment, folder_path if os.path.exists("/proc/self/fd") else str(folder))  # noqa: PTH110, ASYNC240
            return
        roots = [self._workspace.guard.real(root) for root in self._workspace.roots]
        try:
            async with self._sandbox.launch(argv, need, roots, folder, handle, environment, limiter) as started:
                yield started
        except SandboxError as error:
            raise ToolError(str(error)) from None

    async def _start(self, started: SandboxedCommand, mark: str) -> asyncio.subprocess.Process:
        try:
            return await start_process(
                lambda process: _end_processes(process, mark, started.holders),
                *started.argv,
                cwd=started.folder,
                env=started.environment,
                pass_fds=started.pass_fds,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                limit=_CHUNK,
            )
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror or error}.") from None

    async def _follow(
        self,
        process: asyncio.subprocess.Process,
        output: CommandOutput,
        call: CallContext,
        total: float,
        end: CommandEnd,
    ) -> None:
        """Collect and show output until the shell has ended, or must be ended: then `end` has the reason."""
        assert process.stdout is not None
        live = LiveOutput(self._limits.shell_live, self._mask)
        started = last_output = time.monotonic()
        size = 0
        reading = asyncio.create_task(_read(process.stdout, output, live))
        waiting = asyncio.create_task(process.wait())
        try:
            while process.returncode is None:  # `wait` also waits for whoever inherited the pipe
                await asyncio.wait({waiting}, timeout=_SHOW_EVERY)
                current_time = time.monotonic()
                if output.size > size:
                    last_output, size = current_time, output.size
                if not output.binary and (text := live.take()):
                    call.output(text)
                if process.returncode is None:
                    end.stop_reason = self._exceeded_limit(
                        current_time - started, current_time - last_output, total, size
                    )
                if end.stop_reason:
                    return
            await asyncio.wait({reading}, timeout=_DRAIN)
        finally:
            for task in (reading, waiting):
                task.cancel()
            if not output.binary and (text := live.take(last=True)):
                call.output(text)

    def _exceeded_limit(self, elapsed: float, silent: float, total: float, size: int) -> str:
        """Why the command must be ended after so many seconds and bytes; "" when it may go on."""
        if elapsed > total:
            return f"The command was ended after {total:g} s, its time limit."
        if silent > self._limits.shell_inactivity:
            return f"The command was ended after {self._limits.shell_inactivity:g} s without output."
        if size > self._limits.shell_endless:
            return f"The command was ended after {size:,} bytes of output."
        return ""

    async def _outcome(
        self,
        output: CommandOutput,
        end: CommandEnd,
        unsaved: Sequence[FileText],
        need: SandboxRequirements,
        folder: Path,
    ) -> Outcome:
        text, user_text, is_cut = await self._readable_output(output)
        notes = [end.exit_note()]  # first: the audit log takes for ours only what follows it
        blob: BlobRef | None = None
        if is_cut:
            try:
                blob = await self._environment.blobs.put_blob(await asyncio.to_thread(output.masked))
            except AmanuError as error:  # the command has run: how it ended must be reported all the same
                notes.append(f"The full output could not be stored: {error}")
        if blob is not None and not output.binary:
            notes.append(f'Full output: read_output(id="{blob.blob_id[:ID_LENGTH]}").')
        notes += end.process_notes()
        notes += end.quarantine_notes(self._display_path)
        notes += await self._skipped_hooks(need, folder)
        if unsaved:
            names = file_list([self._workspace.display_path(file.path) for file in unsaved])
            notes.append(f"Unsaved in the editor, so the command saw an older version: {names}.")
        sandbox = None if self._sandbox is None else self._sandbox.describe(need)
        if memory_note := end.memory_note(text):
            notes.append(memory_note)
        if sandbox is not None and not output.binary:
            notes += await self._hints(text, end, need, sandbox, folder)
        footer = "\n".join(notes)
        body = text.rstrip("\n") or "[no output]"
        put_aside = "".join(
            f"\n\n[{one_line(self._display_path(path))}, put aside:]\n{self._mask(content)}"
            for path, content in (await asyncio.to_thread(end.quarantine.texts)).items()
        )
        for_user = f"{user_text.rstrip()}\n{footer}".lstrip()
        return Outcome(f"{body}{put_aside}\n\n{footer}", for_user, blob, is_error=end.failed, sandbox=sandbox)

    async def _readable_output(self, output: CommandOutput) -> tuple[str, str, bool]:
        """(text for the model, text for the user, whether one of them lacks something)."""
        if output.binary:
            size = f"{output.size:,} bytes"
            return f"[binary output, {size}, not shown]", f"Binary output, {size}.", True
        text, is_cut = await asyncio.to_thread(output.text, self._limits.shell_model)
        user_text, is_user_cut = await asyncio.to_thread(output.tail, self._limits.shell_user)
        return text, user_text, is_cut or is_user_cut

    async def _skipped_hooks(self, need: SandboxRequirements, folder: Path) -> list[str]:
        if not need.git or self._runs_hooks(need):
            return []
        home = self._environment.variables.get("HOME")
        hooks = await asyncio.to_thread(hooks_of, folder, Path(home) if home else None)
        return [f"{', '.join(hooks)}: {_HOOKS_SKIPPED}"] if hooks else []

    async def _hints(
        self, text: str, end: CommandEnd, need: SandboxRequirements, sandbox: CommandSandbox, folder: Path
    ) -> Iterable[str]:
        """What the model can do about a failure that looks like the sandbox's doing."""
        hints: list[str | None] = []
        if end.failed:
            protected = () if need.unsandboxed else tuple(map(os.path.basename, need.pinned))
            unseen = [self._display_path(path) for path in end.unseen]
            hints.append(denial_hint(text, sandbox, protected, unseen))
        if end.code in _NOT_RUN and sandbox.tier != "none":
            roots = [path for root in self._workspace.roots for path in (root, self._workspace.guard.real(root))]
            hints.append(await asyncio.to_thread(missing_program_hint, text, roots, folder))
        return filter(None, hints)

    def _display_path(self, path: Path) -> str:
        """A real path as the model knows it. Its last part is not resolved: it may be a link to anywhere."""
        folder = self._workspace.guard.inside(path.parent)
        return str(path) if folder is None else self._workspace.display_path(folder / path.name)

    def _child_environment(self, mark: str, need: SandboxRequirements) -> dict[str, str]:
        name, _, value = mark.partition("=")
        services = need.writes != "nothing" and (self._sandbox is None or self._sandbox.describe(need).network)
        variables, settings = self._environment.variables, self._environment.settings
        inherited = without_secrets(
            variables, settings.key_variables, settings.shell.pass_environment, services=services
        )
        environment = {**inherited, **COMMAND_VARIABLES, name: value}
        if need.writes == "nothing":
            return {**without_git_settings(environment), **LOOKING}
        return environment if self._trusted() else without_git_settings(environment, hooks=self._runs_hooks(need))

    def _runs_hooks(self, need: SandboxRequirements) -> bool:
        """Hooks are the repository's code: unless the user trusts it, they run only as part of an allowed command in a
        sandbox without network."""
        if need.writes == "nothing":
            return False
        return self._trusted() or (self._sandbox is not None and self._sandbox.describe(need).network is False)

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


def _requested(params: RunShellCommandParams) -> str:
    """What the call asks the user for, to follow "It asks"."""
    requests = {
        "to run outside the sandbox": params.outside,
        "for the network": params.network and not params.outside,
        "for the workspace's files that hold secrets": params.secrets,
    }
    return " and ".join(request for request, is_requested in requests.items() if is_requested)


def _with_asks(reading: Reading, asks: frozenset[Ask]) -> Reading:
    """The reading with what the call asks for at each command that may need it: those with an effect, or all when none
    has one."""
    if not asks:
        return reading
    is_read_only = all(command.effect == "none" for command in reading.commands)
    commands = (
        replace(command, asks=asks) if is_read_only or command.effect != "none" else command
        for command in reading.commands
    )
    return replace(reading, commands=tuple(commands))


def _identities(need: SandboxRequirements) -> list[str]:
    return [identity(path) for path in need.watched]


async def _read(stream: asyncio.StreamReader, output: CommandOutput, live: LiveOutput) -> None:
    while data := await stream.read(_CHUNK):
        output.add(data)
        live.add(data)


async def _end_processes(process: asyncio.subprocess.Process, mark: str, holders: int) -> int:
    left_over = await end_all(process.pid, mark, holders)
    await wait_killed(process)
    return left_over
