"""Run a command in a shell of its own, and see that nothing of it is left."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex

from pydantic import Field

from amanu.core.command import Ask, CommandContext, Reading
from amanu.core.protected_paths import npmrc_holds_token
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.sandbox.git_dirs import hooks_of
from amanu.sandbox.quarantine import QuarantineResult
from amanu.sandbox.rlimits import KernelLimits, limits, way_in
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
from amanu.tools.shell.script_watch import ScriptWatch
from amanu.workspace.text_file import FileText
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Grant

_SHOW_EVERY = 0.1  # seconds between two pieces of live output
_DRAIN = 0.3  # seconds for what is still in the pipe when the shell has ended
_CHUNK = 1 << 16
_NAMED = 20  # files in a note
_LONGEST = 64 * 1024  # characters of a command; nobody can judge a longer one
_CHANGED = (
    "What this would run was changed or replaced at the moment it was to start, so it was not run. Call again: it is "
    "decided on anew."
)
_SWAPPED = (
    "A script or file of settings that this runs was changed or replaced while it ran: what ran may not be what was "
    "approved."
)
_NOT_RUN = (126, 127)
"""Exit codes of a shell that could not run what was named."""
_NO_MEMORY = re.compile(r"cannot allocate|memoryerror|out of memory|bad_alloc|memory exhausted", re.I)
_NEW = "New in a new folder, and obeyed by git, editors, shells or agents there: {names}. Look before working there."
_ASIDE = (
    "Put aside, for git, editors, shells or agents would obey it: {names}. It lies in {folder}, which no tool reads. "
    "Propose what is wanted with write_file: the user is asked."
)
_BACK = (
    "Put back as before, for commands may not change what git, editors, shells or agents obey: {names}. What was made "
    "of it lies in {folder}, which no tool reads; propose what is wanted with write_file: the user is asked."
)
_SECRETS = "Moved back to where they were, for they hold secrets and the user was not asked about this: {names}."
_FAILED = "Could not be put aside or back, and git, editors, shells or agents may obey it: {names}. Tell the user."
_ENDED_SWAPPED = "It was ended: a script or file of settings that this runs was changed or replaced while it started."
_SKIPPED = (
    "these git hooks of the repository were skipped where the command would run them, for the folder is not trusted "
    "and no sandbox without network held the command."
)
_SET = {
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


class RunShellCommandParams(Params):
    command: str = Field(min_length=1, description="The command, run as `bash -c`.")
    description: str | None = Field(default=None, description="What it does, in a short sentence for the user.")
    path: str | None = Field(default=None, description="Folder to run it in. Default: the workspace root.")
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        description="Seconds the command may take in all. Default: 1800; at most 300 where it only looks.",
    )
    network: bool = Field(
        default=False, description="It needs the network, which is closed otherwise; the user is asked for it."
    )
    outside: bool = Field(
        default=False,
        description="It cannot work in the sandbox: it needs a service's socket (docker), the user's keys (gh, ssh) or "
        "to write elsewhere; the user is asked.",
    )
    secrets: bool = Field(
        default=False, description="It needs files that hold secrets (.env, keys), hidden otherwise; the user is asked."
    )
    reason: str | None = Field(default=None, description="Why it needs that, for the user.")


@dataclass
class _Ended:
    """How a command came to its end."""

    code: int | None = None
    why: str = ""
    """"" when it ended by itself."""
    left_over: int = 0
    """Processes it had left running."""
    swapped: bool = False
    """A file that it runs was changed or replaced meanwhile."""
    memory: int | None = None
    """Bytes each of its processes might have; None: not limited."""
    settled: QuarantineResult = field(default_factory=QuarantineResult)
    """See `SandboxedCommand.settle`."""
    unseen: Sequence[Path] = ()
    """See `SandboxedCommand`."""


@dataclass(frozen=True)
class _Understood:
    reading: Reading
    need: SandboxRequirements
    digest: str


class RunShellCommand(SessionTool[RunShellCommandParams]):
    name = "run_shell_command"
    effect = "run"
    description = (
        "Runs a command with bash in the workspace and returns its output (stdout and stderr together) and exit code. "
        "Nobody can answer questions: pass flags such as --yes. It must end by itself; what it leaves running in the "
        "background is ended with it. Output beyond 30,000 characters is cut in the middle. Use the file and search "
        "tools instead of cat, sed, find and grep."
    )
    params = RunShellCommandParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._mask = environment.secrets.mask_output
        self._sandbox = environment.sandbox
        self._trusted = environment.trusted

    async def preview(self, params: RunShellCommandParams, call: CallContext) -> Preview:
        if "\0" in params.command or not params.command.strip():
            raise ToolError("The command holds a NUL character, or nothing at all; no shell can run it.")
        if len(params.command) > _LONGEST:
            raise ToolError(f"The command is longer than {_LONGEST:,} characters; write a script and run that.")
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        if not await asyncio.to_thread(folder.is_dir):
            raise ToolError(f"There is no folder {self._workspace.display_path(folder)} to run the command in.")
        lines = [visible(params.command)]
        if params.description:
            lines.append(f"The model says: {visible(params.description)}")
        if asked_for := _requested(params):
            lines.append(f"It asks {asked_for}" + (f": {visible(params.reason)}" if params.reason else "."))
        lines.append(f"In: {visible(str(folder))}")
        if self._sandbox is not None:
            await self._sandbox.proved()
        understood = await asyncio.to_thread(self._understand, params, folder, call)
        subject, *also = self._subjects(params, understood.reading)
        first, *further_lines = params.command.strip().splitlines()
        short = first if len(first) <= 80 else first[:79] + "…"
        suffix = f" … and {len(further_lines)} more line{'s' * (len(further_lines) != 1)}" if further_lines else ""
        return Preview(
            title=f"Run {short}{suffix}",
            subject=subject,
            also=tuple(also),
            detail="\n".join(lines),
            reads=frozenset([str(folder)]),
            digest=understood.digest,
            need=understood.need,
            sandbox=None if self._sandbox is None else self._sandbox.describe(understood.need),
            grants=self._grants(),
            wants=self._wants(params, understood.reading),
        )

    async def again(self, params: RunShellCommandParams, call: CallContext) -> Preview:
        """Programs, scripts and folders may be others by now."""
        return await self.preview(params, call)

    def _understand(self, params: RunShellCommandParams, folder: Path, call: CallContext) -> "_Understood":
        """Takes as long as files take to look at; for a thread."""
        real = self._workspace.guard.real(folder)

        def may_read(path: Path) -> bool:
            inside = self._workspace.guard.inside(path)
            if inside is None:
                return False
            if path.name == ".npmrc" and not npmrc_holds_token(str(path)):
                return True  # as a command sees it, too
            return bool(call.allowed([Subject(self.name, "read", self._workspace.relative(inside))]))

        surroundings = CommandContext(
            folder=real,
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
        reading = read(params.command, surroundings)
        if asks := self._asks(params):
            # What only looks needs nothing of it, unless nothing else is there to need it.
            plain = all(command.effect == "none" for command in reading.commands)
            wants = (
                replace(command, asks=asks) if plain or command.effect != "none" else command
                for command in reading.commands
            )
            reading = replace(reading, commands=tuple(wants))
        runs = {path for command in reading.commands for path in command.runs}
        held = runs - rewritten(reading.commands)
        kept, seen = read_contents(runs)
        try:
            place = real.stat()
        except OSError:
            raise ToolError(_CHANGED) from None
        effective = [each for each in reading.commands if each.effect != "none"]
        only_git = reading.unclear is None and bool(effective) and all(each.git for each in effective)
        need = SandboxRequirements(
            writes="nothing" if reading.effect == "none" else "workspace",
            git=any(each.git for each in reading.commands),
            settings=only_git and all(writes_settings(each.words) for each in effective),
            checkout=only_git,
            borrowing=self._trusted(),
            pinned={path: data for path, data in kept.items() if path in held},
            argv=reading.argv,
            folder_identity=(place.st_dev, place.st_ino),
            watched=tuple(sorted(held)),
        )
        programs = sorted({*(each.program for each in reading.commands if each.program), *(reading.argv or ())[:1]})
        # What is executed was found by a look of its own: it is part of what was approved, too.
        judged = repr([(each.effect, each.reads, each.git) for each in reading.commands] + [reading.unclear])
        started = json.dumps(reading.argv)
        digest = fingerprint([f"{real} {need.folder_identity}", started, *map(identity, programs), *seen, judged])
        return _Understood(reading, need, digest)

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
        reads = dict.fromkeys(path for each in reading.commands for path in each.reads)
        for path in reads:
            inside = self._workspace.guard.inside(Path(path))
            if inside is not None:
                subjects.append(Subject(self.name, "read", self._workspace.relative(inside)))
        return subjects

    def _asks(self, params: RunShellCommandParams) -> frozenset[Ask]:
        """What the call asks the user for, as far as it is withheld."""
        asks: set[Ask] = set()
        asks |= {"network"} if params.network else set()
        asks |= {"unsandboxed"} if params.outside and self._grants() else set()
        asks |= {"secrets"} if params.secrets else set()
        return frozenset(asks)

    def _wants(self, params: RunShellCommandParams, reading: Reading) -> tuple[Grant, ...]:
        """Of `_grants`, what it will hardly work without."""
        if not self._grants():
            return ()
        if params.outside:
            return ("unsandboxed",)
        return ("network",) if params.network or any(each.network for each in reading.commands) else ()

    def _grants(self) -> tuple[Grant, ...]:
        """Where nothing holds a command, there is nothing to let it out of."""
        return () if self._sandbox is None or self._sandbox.tier == "none" else ("network", "unsandboxed")

    async def run(self, params: RunShellCommandParams, call: CallContext) -> Outcome:
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        call.hold_to(folder)
        output = CommandOutput(self._limits.shell_stored, self._mask)
        unsaved = await self._workspace.unsaved()
        mark = f"AMANU_COMMAND={token_hex(8)}"
        need = (call.preview and call.preview.need) or SandboxRequirements()
        total = params.timeout_s or self._limits.shell_total
        if need.writes == "nothing":
            total = min(total, self._limits.shell_read_only)
        argv = list(need.argv) if need.argv is not None else [self._bash(), "-c", params.command]
        environment = self._child_environment(mark, need)
        # Nobody was asked: it may not take the machine's memory. What only looks needs little.
        kernel = limits(None if call.by_user else 4 if need.writes == "nothing" else 2)
        ended = _Ended(memory=kernel.memory)
        with self._opened_folder(folder) as handle:
            status = os.fstat(handle)
            if need.folder_identity not in (None, (status.st_dev, status.st_ino)):
                raise ToolError(_CHANGED)
            async with self._sandboxed(argv, need, folder, handle, environment, kernel) as started:
                identities = await asyncio.to_thread(_identities, need)
                if not await call.still():  # the last moment that is ours; it took some to build the sandbox
                    raise ToolError(_CHANGED)
                process = await self._start(started, mark)
                ended.unseen = started.unseen
                with ScriptWatch(need.watched, identities, process.pid) as watch:
                    try:
                        await self._follow(process, output, call, total, ended)
                    finally:
                        ended.left_over = await run_to_completion(_end_processes(process, mark, started.holders))
                ended.settled = await asyncio.to_thread(started.settle)
        ended.code = process.returncode
        ended.swapped = watch.swapped or await asyncio.to_thread(_identities, need) != identities
        if watch.swapped:
            ended.why = _ENDED_SWAPPED
        return await self._outcome(output, ended, unsaved, need, folder)

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
        """How to start it, in the very folder that was checked, whatever its name leads to now."""
        bash = self._find_bash()
        limiter = None if bash is None else way_in(bash, kernel)
        if self._sandbox is None:
            argv = argv if limiter is None else limiter.to(argv)
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
        ended: _Ended,
    ) -> None:
        """Take in and show output until the shell has ended, or has to be ended."""
        assert process.stdout is not None
        live = LiveOutput(self._limits.shell_live, self._mask)
        started = last_output = time.monotonic()
        size = 0
        reading = asyncio.create_task(_read(process.stdout, output, live))
        waiting = asyncio.create_task(process.wait())
        try:
            while process.returncode is None:  # `wait` also waits for whoever inherited the pipe
                await asyncio.wait({waiting}, timeout=_SHOW_EVERY)
                time_now = time.monotonic()
                if output.size > size:
                    last_output, size = time_now, output.size
                if not output.binary and (text := live.take()):
                    call.output(text)
                if process.returncode is None:
                    ended.why = self._exceeded_limit(time_now - started, time_now - last_output, total, size)
                if ended.why:
                    return
            await asyncio.wait({reading}, timeout=_DRAIN)
        finally:
            for task in (reading, waiting):
                task.cancel()
            if not output.binary and (text := live.take(last=True)):
                call.output(text)

    def _exceeded_limit(self, ran: float, silent: float, total: float, size: int) -> str:
        if ran > total:
            return f"It was ended after {total:g} s, its time limit."
        if silent > self._limits.shell_inactivity:
            return f"It was ended after {self._limits.shell_inactivity:g} s without output."
        if size > self._limits.shell_endless:
            return f"It was ended after {size:,} bytes of output."
        return ""

    async def _outcome(
        self, output: CommandOutput, ended: _Ended, unsaved: Sequence[FileText], need: SandboxRequirements, folder: Path
    ) -> Outcome:
        sandbox = None if self._sandbox is None else self._sandbox.describe(need)
        blob = None
        if output.binary:
            text, user = (
                f"[binary output, {output.size:,} bytes, not shown]",
                f"Binary output, {output.size:,} bytes.",
            )
            cut = True
        else:
            text, cut = await asyncio.to_thread(output.text, self._limits.shell_model)
            user, cut_user = await asyncio.to_thread(output.tail, self._limits.shell_user)
            cut = cut or cut_user
        notes = [_exit(ended)]
        if cut:
            try:
                blob = await self._environment.blobs.put_blob(await asyncio.to_thread(output.masked))
            except AmanuError as error:  # what it did is done: how it ended must be heard all the same
                notes.append(f"The whole output was not kept: {error}")
        if blob is not None and not output.binary:
            notes.append(f'All of it: read_output(id="{blob.blob_id[:ID_LENGTH]}").')
        if ended.left_over and not ended.why:
            notes.append(f"{ended.left_over} processes it had left in the background were ended.")
        if ended.swapped:
            notes.append(_SWAPPED)
        found = ended.settled
        texts = await asyncio.to_thread(found.texts)
        settled = {_ASIDE: found.aside, _BACK: found.back, _NEW: found.new, _FAILED: found.failed}
        for said, paths in {**settled, _SECRETS: found.secrets}.items():
            if paths:
                notes.append(
                    said.format(names=_named([self._display_path(each) for each in paths]), folder=found.folder)
                )
        home = self._environment.variables.get("HOME")
        if need.git and not self._runs_hooks(need):
            hooks = await asyncio.to_thread(hooks_of, folder, Path(home) if home else None)
            notes += [f"{', '.join(hooks)}: {_SKIPPED}"] if hooks else []
        if unsaved:
            named = _named([self._workspace.display_path(each.path) for each in unsaved])
            notes.append(f"Unsaved in the editor, so the command saw older text: {named}.")
        failed = bool(ended.why) or ended.code != 0
        if ended.memory is not None and _NO_MEMORY.search(text):
            notes.append(
                f"As nobody was asked about it, each process had at most {ended.memory / (1 << 30):.1f} GiB of memory."
            )
        held = () if need.unsandboxed else tuple(map(os.path.basename, need.pinned))
        unseen = [self._display_path(each) for each in ended.unseen]
        if failed and sandbox is not None and not output.binary and (asked := denial_hint(text, sandbox, held, unseen)):
            notes.append(asked)
        if ended.code in _NOT_RUN and sandbox is not None and sandbox.tier != "none" and not output.binary:
            roots = [way for each in self._workspace.roots for way in (each, self._workspace.guard.real(each))]
            missing = await asyncio.to_thread(missing_program_hint, text, roots, folder)
            notes += [] if missing is None else [missing]
        foot = "\n".join(notes)
        body = text.rstrip("\n") or "[no output]"
        shown = f"{user.rstrip()}\n{foot}".lstrip()
        made = "".join(
            f"\n\n[{one_line(self._display_path(path))}, put aside:]\n{self._mask(each)}"
            for path, each in texts.items()
        )
        return Outcome(f"{body}{made}\n\n{foot}", shown, blob, is_error=failed, sandbox=sandbox)

    def _display_path(self, path: Path) -> str:
        """A real path as the model knows it; what is there may be a link to anywhere."""
        folder = self._workspace.guard.inside(path.parent)
        return str(path) if folder is None else self._workspace.display_path(folder / path.name)

    def _child_environment(self, mark: str, need: SandboxRequirements) -> dict[str, str]:
        name, _, value = mark.partition("=")
        services = need.writes != "nothing" and (self._sandbox is None or self._sandbox.describe(need).network)
        variables, settings = self._environment.variables, self._environment.settings
        variables_kept = without_secrets(
            variables, settings.key_variables, settings.shell.pass_environment, services=services
        )
        environment = {**variables_kept, **_SET, name: value}
        if need.writes == "nothing":
            return {**without_git_settings(environment), **LOOKING}
        return environment if self._trusted() else without_git_settings(environment, hooks=self._runs_hooks(need))

    def _runs_hooks(self, need: SandboxRequirements) -> bool:
        """Hooks are the repository's code: where the user does not trust it, they run in a sandbox without network, as
        part of the command that was allowed, and nowhere else."""
        if need.writes == "nothing":
            return False
        return self._trusted() or (self._sandbox is not None and self._sandbox.describe(need).network is False)

    def _bash(self) -> str:
        if (bash := self._find_bash()) is None:
            raise ToolError("There is no bash on this machine; commands cannot be run.")
        return bash

    def _find_bash(self) -> str | None:
        """Never one that the workspace brings along."""
        for bash in ("/bin/bash", "/usr/bin/bash", shutil.which("bash", path=self._environment.variables.get("PATH"))):
            if bash and Path(bash).is_absolute() and os.access(bash, os.X_OK):
                real = Path(bash).resolve()
                if not any(root.resolve() in real.parents for root in self._workspace.roots):
                    return bash
        return None


def _requested(params: RunShellCommandParams) -> str:
    """What the call asks the user for, in words."""
    requests = {
        "to run outside the sandbox": params.outside,
        "for the network": params.network and not params.outside,
        "for the files of the workspace that hold secrets": params.secrets,
    }
    return " and ".join(request for request, is_requested in requests.items() if is_requested)


def _named(paths: Sequence[str]) -> str:
    named = ", ".join(map(one_line, paths[:_NAMED]))
    return f"{named} and {len(paths) - _NAMED} more" if len(paths) > _NAMED else named


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


def _exit(ended: _Ended) -> str:
    if ended.why:
        return ended.why
    code = ended.code
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"Ended by signal {signal.Signals(-code).name}."
    return f"Exit code: {code}"
