"""Run a command in a shell of its own, and see that nothing of it is left."""

import asyncio
import contextlib
import os
import secrets
import shlex
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from amanu.tools.base import CallContext, Outcome, Params, Preview, Subject, Tool, ToolError
from amanu.tools.limits import Limits
from amanu.tools.output import Live, Output
from amanu.tools.processes import end_all, without_secrets
from amanu.tools.read_output import ID_LENGTH
from amanu.tools.visible import one_line, visible
from amanu.workspace.files import FileText
from amanu.workspace.proposals import unbroken
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import BlobRef

PutBlob = Callable[[bytes], Awaitable[BlobRef]]

_SHOW_EVERY = 0.1  # seconds between two pieces of live output
_DRAIN = 0.3  # seconds for what is still in the pipe when the shell has ended
_CHUNK = 1 << 16
_NAMED = 20  # unsaved files
_LONGEST = 64 * 1024  # characters of a command; nobody can judge a longer one
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
    description: str | None = Field(default=None, description="What it does, in a short sentence for the person.")
    path: str | None = Field(default=None, description="Folder to run it in. Default: the workspace root.")
    timeout_s: float | None = Field(
        default=None, gt=0, le=86_400, description="Seconds the command may take in all. Default: 1800."
    )


@dataclass
class _Ended:
    """How a command came to its end."""

    code: int | None = None
    why: str = ""
    """"" when it ended by itself."""
    left: int = 0
    """Processes it had left running."""


class RunShellCommand(Tool[RunShellCommandParams]):
    name = "run_shell_command"
    effect = "run"
    description = (
        "Runs a command with bash in the workspace and returns its output (stdout and stderr together) and exit code. "
        "Nobody can answer questions: pass flags such as --yes. It must end by itself; what it leaves running in the "
        "background is ended with it. Output beyond 30,000 characters is cut in the middle. Use the file and search "
        "tools instead of cat, sed, find and grep."
    )
    params = RunShellCommandParams

    def __init__(
        self,
        workspace: Workspace,
        put_blob: PutBlob,
        environment: Mapping[str, str],
        limits: Limits,
        key_variables: Collection[str],
    ) -> None:
        self._workspace = workspace
        self._put_blob = put_blob
        self._environment = environment
        self._key_variables = key_variables
        self._limits = limits

    async def preview(self, params: RunShellCommandParams, call: CallContext) -> Preview:
        if "\0" in params.command or not params.command.strip():
            raise ToolError("The command holds a NUL character, or nothing at all; no shell can run it.")
        if len(params.command) > _LONGEST:
            raise ToolError(f"The command is longer than {_LONGEST:,} characters; write a script and run that.")
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        if not await asyncio.to_thread(folder.is_dir):
            raise ToolError(f"There is no folder {self._workspace.shown(folder)} to run the command in.")
        lines = [visible(params.command)]
        if params.description:
            lines.append(f"The model says: {visible(params.description)}")
        lines.append(f"In: {visible(str(folder))}")
        first, *more = params.command.strip().splitlines()
        short = first if len(first) <= 80 else first[:79] + "…"
        rest = f" … and {len(more)} more line{'s' * (len(more) != 1)}" if more else ""
        return Preview(
            title=f"Run {short}{rest}",
            subject=Subject(self.name, self.effect, self._as_typed(params.command, folder)),
            detail="\n".join(lines),
            reads=frozenset([str(folder)]),
        )

    def _as_typed(self, command: str, folder: Path) -> str:
        """What one would type in the first root: a rule for a command is for that command in that folder."""
        if folder == self._workspace.roots[0]:
            return command
        there = self._workspace.relative(folder) if self._workspace.roots[0] in folder.parents else str(folder)
        return f"cd {shlex.quote(there)} && {command}"

    async def run(self, params: RunShellCommandParams, call: CallContext) -> Outcome:
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        call.hold_to(folder)
        total = min(params.timeout_s or self._limits.shell_total, 86_400)
        output = Output(self._limits.shell_kept)
        unsaved = await self._workspace.unsaved()
        mark = f"AMANU_COMMAND={secrets.token_hex(8)}"
        with self._workspace.guard.folder(folder) as handle:
            process = await self._start(params.command, folder, handle, mark)
        ended = _Ended()
        try:
            await self._follow(process, output, call, total, ended)
        finally:
            ended.left = await unbroken(_end(process, mark))
        ended.code = process.returncode
        return await self._outcome(output, ended, unsaved)

    async def _start(self, command: str, folder: Path, handle: int, mark: str) -> asyncio.subprocess.Process:
        there = f"/proc/self/fd/{handle}"  # the very folder that was checked, whatever its name leads to now
        try:
            return await asyncio.create_subprocess_exec(
                self._bash(),
                "-c",
                command,
                cwd=there if os.path.exists("/proc/self/fd") else folder,  # noqa: PTH110, ASYNC240
                env=self._child_environment(mark),
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
        output: Output,
        call: CallContext,
        total: float,
        ended: _Ended,
    ) -> None:
        """Take in and show output until the shell has ended, or has to be ended."""
        assert process.stdout is not None
        live = Live(self._limits.shell_live)
        started = heard = time.monotonic()
        size = 0
        reading = asyncio.create_task(_read(process.stdout, output, live))
        waiting = asyncio.create_task(process.wait())
        try:
            while process.returncode is None:  # `wait` also waits for whoever inherited the pipe
                await asyncio.wait({waiting}, timeout=_SHOW_EVERY)
                now = time.monotonic()
                if output.size > size:
                    heard, size = now, output.size
                if not output.binary and (text := live.take()):
                    call.output(text)
                if process.returncode is None:
                    ended.why = self._limit(now - started, now - heard, total, size)
                if ended.why:
                    return
            await asyncio.wait({reading}, timeout=_DRAIN)
        finally:
            for task in (reading, waiting):
                task.cancel()
            if not output.binary and (text := live.take(last=True)):
                call.output(text)

    def _limit(self, ran: float, silent: float, total: float, size: int) -> str:
        if ran > total:
            return f"It was ended after {total:g} s, its time limit."
        if silent > self._limits.shell_inactivity:
            return f"It was ended after {self._limits.shell_inactivity:g} s without output."
        if size > self._limits.shell_endless:
            return f"It was ended after {size:,} bytes of output."
        return ""

    async def _outcome(self, output: Output, ended: _Ended, unsaved: Sequence[FileText]) -> Outcome:
        blob = None
        if output.binary:
            text, person = (
                f"[binary output, {output.size:,} bytes, not shown]",
                f"Binary output, {output.size:,} bytes.",
            )
            cut = True
        else:
            text, cut = await asyncio.to_thread(output.text, self._limits.shell_model)
            person, cut_person = await asyncio.to_thread(output.tail, self._limits.shell_person)
            cut = cut or cut_person
        if cut:
            blob = await self._put_blob(output.kept)
        notes = [_exit(ended)]
        if blob is not None and not output.binary:
            notes.append(f'All of it: read_output(id="{blob.blob_id[:ID_LENGTH]}").')
        if ended.left and not ended.why:
            notes.append(f"{ended.left} processes it had left in the background were ended.")
        if unsaved:
            named = ", ".join(one_line(self._workspace.shown(each.path)) for each in unsaved[:_NAMED])
            more = f" and {len(unsaved) - _NAMED} more" if len(unsaved) > _NAMED else ""
            notes.append(f"Unsaved in the editor, so the command saw older text: {named}{more}.")
        foot = "\n".join(notes)
        body = text.rstrip("\n") or "[no output]"
        shown = f"{person.rstrip()}\n{foot}".lstrip()
        return Outcome(f"{body}\n\n{foot}", shown, blob, is_error=bool(ended.why) or ended.code != 0)

    def _child_environment(self, mark: str) -> dict[str, str]:
        name, _, value = mark.partition("=")
        return {**without_secrets(self._environment, self._key_variables), **_SET, name: value}

    def _bash(self) -> str:
        """Never one that the workspace brings along."""
        for found in ("/bin/bash", "/usr/bin/bash", shutil.which("bash", path=self._environment.get("PATH"))):
            if found and Path(found).is_absolute() and os.access(found, os.X_OK):
                real = Path(found).resolve()
                if not any(root.resolve() in real.parents for root in self._workspace.roots):
                    return found
        raise ToolError("There is no bash on this machine; commands cannot be run.")


async def _read(stream: asyncio.StreamReader, output: Output, live: Live) -> None:
    while data := await stream.read(_CHUNK):
        output.add(data)
        live.add(data)


async def _end(process: asyncio.subprocess.Process, mark: str) -> int:
    left = await end_all(process.pid, mark)
    await process.wait()
    transport = getattr(process, "_transport", None)  # asyncio keeps the pipe open until its far end is closed
    if transport is not None:
        transport.close()
    return left


def _exit(ended: _Ended) -> str:
    if ended.why:
        return ended.why
    code = ended.code
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"Ended by signal {signal.Signals(-code).name}."
    return f"Exit code: {code}"
