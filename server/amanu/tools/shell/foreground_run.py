"""One command that its call waits for."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from amanu.core.tool import Blocked, CallContext, Outcome
from amanu.sandbox.layers.disk_floor import DiskFloor
from amanu.sandbox.layers.layer import Layer, LayerRoot
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.blocked import Attempt, find_blocked
from amanu.tools.shell.command_params import RunShellCommandParams
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan, CommandProcess
from amanu.tools.shell.command_result import CommandResults, CommandStreams
from amanu.tools.shell.foreground_command import ForegroundCommand
from amanu.tools.shell.git_looks import look_at_repository
from amanu.tools.shell.job import Job, JobEnd
from amanu.tools.shell.output import LiveOutput
from amanu.tools.shell.report import CommandEnd
from amanu.tools.shell.utf_16 import Utf8Stream
from amanu.workspace.git.refs import RepositoryLook

MOVABLE_SECONDS = 1.0
"""After which the user is shown that a command can be put in the background."""
_SHOW_EVERY = 0.1  # seconds between two pieces of live output
_WAITS = (
    "The command was ended: {editor} waits for somebody to type, but the command has no terminal. Change files with "
    "edit_file or write_file, or with a program that needs no typing, such as sed; pass texts as options, such as "
    "`git commit -m`. If it must be {editor}, run it with background=true and tty=true, and type with write_command."
)


class ForegroundRuns:
    """The foreground commands of one session."""

    def __init__(self, environment: ToolEnvironment, launcher: CommandLauncher) -> None:
        self._environment = environment
        self._workspace = environment.workspace
        self._limits = environment.limits
        self._mask = environment.secrets.mask_output
        self._sandbox = environment.sandbox
        self._read_only = environment.read_only
        self._launcher = launcher
        self._results = CommandResults(environment, launcher)

    async def run(self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext) -> Outcome:
        """Run it to its end. The outcome says what blocked it."""
        outcome = await self.run_movable(params, plan, call, None)
        assert isinstance(outcome, Outcome)
        return outcome

    async def run_movable(
        self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext, command: ForegroundCommand | None
    ) -> Outcome | JobEnd:
        """Do the same with a command that may be put in the background, if it is one; then its end is that of a job."""
        need = plan.need
        unsaved = [] if need.layer is not None else [f for f in await self._workspace.unsaved() if not f.draft]
        total = params.timeout_s or self._limits.shell_total
        if need.place.only_looks:
            total = min(total, self._limits.shell_read_only)
        streams, end = CommandStreams(self._environment), CommandEnd()
        floor = None if need.layer is None or plan.by_user else await asyncio.to_thread(DiskFloor, need.layer)
        async with self._launcher.launched(plan, end) as process:
            if command is not None:
                command.may_move = True
            job = await self._follow(process, streams, call, total, end, floor, command)
            if command is not None and job is not None:
                end.outlived_call = True
                job.take_over(process.started, streams.merged.received())
                command.moved.set()
                seconds = self._limits.shell_read_only if plan.is_held_short else None
                end.stop_reason = await job.follow(process, seconds, self._limits.shell_endless)
        if job is not None:
            return await self._results.job_end(job.output, end, plan)
        outcome = await self._results.outcome(streams, end, unsaved, plan)
        return replace(outcome, blocked=await self._find_blocked(streams, end, plan, call))

    async def look_at_repositories(
        self, layer: Layer, *, changes_repository: bool
    ) -> Mapping[Path, RepositoryLook | None]:
        """The repositories changed in the layer, by root; none for a command that may not change any."""
        if not changes_repository:
            return {}
        roots = await asyncio.to_thread(lambda: [each for each in layer.roots if (each.upper / ".git").exists()])
        return {root.path: await self._look_at(root, layer) for root in roots}

    async def _look_at(self, root: LayerRoot, layer: Layer) -> RepositoryLook | None:
        """The repository in the layer. Tries twice: a machine under load may refuse a mount or a process, and without
        the look the user is asked in vain."""
        look = await look_at_repository(self._launcher, root, layer.folder)
        return look or await look_at_repository(self._launcher, root, layer.folder)

    async def _find_blocked(
        self, streams: CommandStreams, end: CommandEnd, plan: CommandPlan, call: CallContext
    ) -> Blocked | None:
        """What the sandbox blocked and the user can allow."""
        if self._sandbox is None or self._read_only() or end.stop_reason or streams.merged.binary:
            return None
        text, _ = await asyncio.to_thread(streams.merged.text, self._limits.shell_model)
        roots = [path for root in self._workspace.roots for path in (root, self._workspace.guard.real(root))]
        attempt = Attempt(
            text,
            end.failed,
            self._sandbox.describe(plan.need.place),
            may_need_more=plan.need.place.tried or (plan.need.place.on_copy and plan.need.place.writes),
            command=plan.command,
            connects=bool(call.likely_grants),
            unseen=[str(path) for path in end.unseen],
            hidden=end.hidden,
            roots=[*roots, Path("/tmp"), Path("/dev"), Path("/proc")],
        )
        return await asyncio.to_thread(find_blocked, attempt)

    async def _follow(
        self,
        process: CommandProcess,
        streams: CommandStreams,
        call: CallContext,
        total: float,
        end: CommandEnd,
        floor: DiskFloor | None,
        command: ForegroundCommand | None,
    ) -> Job | None:
        """Collect and show output until the shell has ended, or must be ended: then `end` has the reason. Returns the
        job as which it is to go on, if the user puts it in the background."""
        output, live = streams.merged, LiveOutput(self._limits.shell_live, self._mask)
        command = command or ForegroundCommand(call.call_id, "", None)

        utf_8 = {False: Utf8Stream(), True: Utf8Stream()}

        def take(data: bytes, is_error: bool) -> None:
            show(utf_8[is_error].add(data), is_error)

        def show(data: bytes, is_error: bool) -> None:
            streams.add(data, is_error)
            live.add(data)

        started = last_output = time.monotonic()
        size = 0
        offered = False
        reading = asyncio.create_task(process.read(take))
        waiting = asyncio.create_task(process.process.wait())
        wanted = asyncio.create_task(command.wanted.wait())
        try:
            while process.process.returncode is None:  # `wait` also waits for whoever inherited the pipe
                await asyncio.wait({waiting, wanted}, timeout=_SHOW_EVERY, return_when=asyncio.FIRST_COMPLETED)
                current_time = time.monotonic()
                if output.size > size:
                    last_output, size = current_time, output.size
                if not output.binary and (text := live.take()):
                    call.output(text)
                if process.process.returncode is None:
                    silent = current_time - last_output
                    end.stop_reason = self._exceeded_limit(current_time - started, silent, total, size)
                    if editor := await process.editor.after(silent):
                        end.stop_reason = _WAITS.format(editor=editor)
                    if floor is not None and floor.is_reached():
                        end.stop_reason = (
                            f"The command was ended before it filled the disk: {floor.bytes >> 20:,} MB are left."
                        )
                if end.stop_reason:
                    return None
                if command.job is not None:
                    reading.cancel()
                    await asyncio.wait({reading})
                    return command.job
                if command.may_move and not offered and current_time - started >= MOVABLE_SECONDS:
                    offered = True
                    call.movable()
            await process.drain(reading)
            return None
        finally:
            for task in (reading, waiting, wanted):
                task.cancel()
            for is_error, stream in utf_8.items():
                show(stream.finish(), is_error)
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
