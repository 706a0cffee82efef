"""The tool that runs a command with bash in the workspace, and ends every process the command leaves behind.

`preview` reads what the command line would do (`amanu/shell`), so that policy decides on that; `run` starts it in the
sandbox, in the very folder that was checked, and reports what became of it (`report.py`).
"""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from amanu.core.command import Ask, Command, CommandContext, Reading
from amanu.core.protected_paths import npmrc_holds_token
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import Blocked, CallContext, Need, Outcome, Params, Preview, Subject, ToolError
from amanu.sandbox.process_records import MARK
from amanu.system.tasks import run_to_completion
from amanu.text.display import one_line, visible
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu.tools.shell.blocked import Attempt, find_blocked
from amanu.tools.shell.command_process import CHANGED, CommandLauncher, CommandPlan, CommandProcess
from amanu.tools.shell.command_result import CommandResults, CommandStreams
from amanu.tools.shell.deletions import Count, dry_clean, removed_by_rm, would_remove
from amanu.tools.shell.file_identity import fingerprint, identity, read_contents
from amanu.tools.shell.git_looks import git_prints, latest_commits
from amanu.tools.shell.job import Job, JobEnd, check_pattern
from amanu.tools.shell.job_report import report
from amanu.tools.shell.layer_changes import LayerChanges
from amanu.tools.shell.layer_review import LayerReview, with_notes
from amanu.tools.shell.output import LiveOutput
from amanu.tools.shell.report import CommandEnd, file_list
from amanu.tools.shell.session_layer import SessionLayer
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import BlobRef, DraftRun, Grant, Line

_SHOW_EVERY = 0.1  # seconds between two pieces of live output
_READY_SECONDS, _BRIEF_SECONDS = 30.0, 2.0
"""How long to wait for a background command if the call does not say: for it to be ready; and, where nothing says when
that is, for it to fail at once."""
_LONGEST = 64 * 1024  # characters of a command; nobody can judge a longer one
_NO_ROOM = (
    "The disk that holds the command's private copy of the workspace ({folder}) is full. Free some space, then run the "
    "command again."
)
_DRAFTED_JOB = (
    "The command runs on a private copy of the workspace, with the drafted text as it was when the command started, "
    "but without drafted binary files and what earlier commands built. It does not see later changes, and what it "
    "writes is not kept."
)
_WITHOUT_DRAFT = "This command saw only what the user has accepted, not the draft."
PLANNING = "This is plan mode: until the user has approved the plan, nothing that commands change is kept."
_THROWN_AWAY = "Plan mode: what this command changed in the workspace was thrown away."
PLAN_INSTEAD = "Make it a step of the plan, and call exit_plan_mode when the plan is complete."


class RunShellCommandParams(Params):
    command: str = Field(min_length=1)
    description: str | None = Field(default=None, description="What it does, in a short sentence for the user.")
    path: str | None = Field(default=None, description="Folder to run it in. Default: the workspace root.")
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        description="Default: 1800; at most 300 for commands that only read; no limit for others with background.",
    )
    background: bool = Field(
        default=False,
        description="Keep it running after this call and return its id; until, port, wait_s and tty are for this.",
    )
    until: str | None = Field(default=None, max_length=500, description="Return when its output matches this regex.")
    port: int | None = Field(default=None, ge=1, le=65_535, description="Return when it listens on this port.")
    wait_s: float | None = Field(
        default=None, gt=0, le=300, description="Longest wait for either. Default: 30; at most 300."
    )
    tty: bool = Field(default=False, description="Give it a terminal.")
    network: bool = Field(default=False, description="It needs the network, which is off otherwise.")
    outside: bool = Field(
        default=False,
        description="It cannot work in the sandbox: it needs a service's socket (docker), the user's keys (gh, ssh) "
        "or to write outside the workspace.",
    )
    secrets: bool = Field(default=False, description="It needs files with secrets (.env, keys), hidden otherwise.")
    reason: str | None = Field(default=None, description="Why it needs network, outside or secrets; the user is asked.")


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
        "Runs a command with `bash -c` and returns its output and exit code. It must end by itself, and what it leaves "
        "running (`&`) is ended; run servers, watchers and REPLs with background=true. Output beyond 30,000 characters "
        "is cut in the middle. Use the file and search tools instead of cat, sed, find and grep."
    )
    params = RunShellCommandParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._mask = environment.secrets.mask_output
        self._sandbox = environment.sandbox
        self._trusted = environment.trusted
        self._read_only = environment.read_only
        self._drafting = environment.drafting
        self._launcher = CommandLauncher(environment)
        self._results = CommandResults(environment, self._launcher)
        self._layer = environment.layer
        self._proposals = environment.proposals
        self._review = LayerReview(environment)

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Run {_short(str(arguments.get('command', 'a command')))}"

    async def preview(self, params: RunShellCommandParams, call: CallContext) -> Preview:
        if call.ran is not None and isinstance(changes := call.ran.changes, LayerChanges):
            return await self._preview_changes(params, call.ran, changes, call)
        asked, params = _requested(params), _with_needs(params, call.blocked)
        if "\0" in params.command or not params.command.strip():
            raise ToolError("The command is empty or contains a NUL character, so no shell can run it.")
        if not params.background and (params.until is not None or params.port is not None or params.tty):
            raise ToolError("until, port and tty are for background commands: add background=true.")
        await check_pattern(params.until)
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
        if asked:
            lines.append(f"It asks {asked}" + (f": {visible(params.reason)}" if params.reason else "."))
        lines.append(f"In: {visible(str(folder))}")
        lines += _background_lines(params)
        if (built := await asyncio.to_thread(lambda: self._layer.built)) and not self._read_only():
            names = file_list([self._workspace.display_path(path) for path in built])
            lines.append(f"These files of earlier commands are moved into the workspace, too: {names}")
        if self._sandbox is not None:
            await self._sandbox.proved()
        analysis = await asyncio.to_thread(self._analyze, params, folder, call)
        self._check_mode(params, analysis.reading)
        subject, *also = self._subjects(params, analysis.reading)
        wants = self._wants(params, analysis.reading)
        offered = replace(analysis.need, network="network" in wants, unsandboxed="unsandboxed" in wants)
        running = "Run in the background:" if params.background else "Run"
        layered = await self._layer.works()
        draft = layered and self._may_be_drafted(analysis.reading, call)
        trial = self._may_be_tried(params, analysis.reading, call, draft=draft)
        if trial and self._layer.unknown:
            raise ToolError(self._layer.unknown)
        only_reads = analysis.reading.effect == "none"
        is_apart = trial or draft or ((only_reads or self._read_only()) and not params.background)
        in_layer = layered and is_apart
        is_discarded = in_layer and self._read_only() and not only_reads
        need, offered = (replace(access, discarded=is_discarded) for access in (analysis.need, offered))
        return Preview(
            title=f"{running} {_short(params.command)}",
            subject=subject,
            extra_subjects=tuple(also),
            detail="\n".join(lines),
            reads=frozenset([str(folder)]),
            digest=analysis.digest,
            requirements=need,
            sandbox=None if self._sandbox is None else self._sandbox.describe(offered),
            grants=self._grants(),
            likely_grants=wants,
            command=params.command,
            trial=trial,
            in_layer=in_layer,
            sees_edits=in_layer and not _keeps_history(analysis.reading),
            draft=draft,
            notes=await self._deletion_notes(analysis.reading, folder) if not draft else (),
            blocked="" if call.blocked is None else _described(call.blocked),
        )

    async def _deletion_notes(self, reading: Reading, folder: Path) -> tuple[Line, ...]:
        """How much it deletes, where that is easily known."""
        if reading.unclear is not None:
            return ()
        guard = self._workspace.guard
        paths = await asyncio.to_thread(removed_by_rm, reading.commands, folder, guard.inside)
        if (clean := dry_clean(reading.commands)) is not None and self._grants():
            paths = [*paths, *would_remove(await git_prints(self._launcher, clean, folder), folder)]
        count = Count()
        await asyncio.to_thread(lambda: [count.add(path) for path in paths if not count.is_over])
        said = count.sentence()
        return (Line(tone="warning", text=said),) if said else ()

    async def _preview_changes(
        self, params: RunShellCommandParams, outcome: Outcome, changes: LayerChanges, call: CallContext
    ) -> Preview:
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        analysis = await asyncio.to_thread(self._analyze, params, folder, call)
        commands = [subject for subject in self._subjects(params, analysis.reading) if subject.effect == "run"]
        return await self._review.preview(_short(params.command), outcome, changes, commands, call)

    def _may_be_tried(self, params: RunShellCommandParams, reading: Reading, call: CallContext, *, draft: bool) -> bool:
        has_sandbox = self._sandbox is not None and self._sandbox.tier != "none"
        foreground = params.model_copy(update={"background": False}) if draft else params
        return has_sandbox and call.blocked is None and is_worth_trying(foreground, reading.commands)

    def _may_be_drafted(self, reading: Reading, call: CallContext) -> bool:
        """Whether what it changes is drafted, wherever the layer can hold that."""
        too_much = call.blocked is not None and "write" in call.blocked.needs
        return self._drafting() and not (too_much or _keeps_history(reading))

    def with_command(self, arguments: Mapping[str, JsonValue], command: str) -> dict[str, JsonValue]:
        """What the model says of its own line need not be true of the user's."""
        return {name: value for name, value in arguments.items() if name != "description"} | {"command": command}

    async def preview_again(self, params: RunShellCommandParams, call: CallContext) -> Preview | None:
        """Programs, scripts and folders may have changed by now."""
        if call.ran is not None and call.ran.changes is not None:
            return await self._review.preview_again(call)
        return await self.preview(params, call)

    def _analyze(self, params: RunShellCommandParams, folder: Path, call: CallContext) -> _Analysis:
        """Blocking: it looks at the files that the command would run. The parser of command lines is imported with the
        first one, for it is a tenth of all our code."""
        from amanu.shell.analyze import read
        from amanu.shell.self_edits import rewritten

        real = self._workspace.guard.real(folder)
        reading = read(params.command, self._command_context(real, call))
        reading = _with_asks(reading, self._asks(params))
        scripts = {path for command in reading.commands for path in command.runs}
        pinned = scripts - rewritten(reading.commands)
        stored, digests = read_contents(scripts)
        try:
            status = real.stat()
        except OSError:
            raise ToolError(CHANGED) from None
        need = self._requirements(reading, pinned, stored, status)
        programs = {command.program for command in reading.commands if command.program}
        programs.update((reading.argv or ())[:1])
        # What the commands do was found out by looking at files once more, so it is part of what was approved.
        judged = repr(
            [(command.effect, command.reads, command.git) for command in reading.commands] + [reading.unclear]
        )
        place = f"{real} {need.folder_identity}"
        digest = fingerprint(
            [
                place,
                need.writes,
                *sorted(call.blocked.needs if call.blocked else ()),
                json.dumps(reading.argv),
                *map(identity, sorted(programs)),
                *digests,
                judged,
            ]
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
                for name, value in self._launcher.child_environment(MARK, SandboxRequirements()).items()
                if not name.startswith("GIT_")
            },
            may_read=may_read,
            trusted=self._trusted(),
            sandboxed=self._sandbox is not None and self._sandbox.tier != "none",
        )

    def _requirements(
        self, reading: Reading, pinned: Collection[str], stored: dict[str, bytes], folder: os.stat_result
    ) -> SandboxRequirements:
        """What the sandbox must allow. `pinned`: files that must stay as they were approved; `stored`: path → content
        of those that are small enough."""
        from amanu.shell.git import writes_settings

        effective = [command for command in reading.commands if command.effect != "none"]
        read_only = self._read_only()
        only_git = reading.unclear is None and bool(effective) and all(command.git for command in effective)
        return SandboxRequirements(
            readable=self._workspace.guard.readable_folders,
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
            raise ToolError(f"{PLANNING} It has no network, and nothing runs outside it. {PLAN_INSTEAD}")
        sandboxed = self._sandbox is not None and self._sandbox.tier != "none"
        if reading.effect != "none" and not sandboxed:
            raise ToolError(
                f"{PLANNING} No sandbox works on this machine, so only commands that are known to change nothing "
                f"can run. {PLAN_INSTEAD}"
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
        has_sandbox = self._sandbox is not None and self._sandbox.tier != "none"
        return ("network", "unsandboxed") if has_sandbox and not self._read_only() else ()

    async def reject(self, params: RunShellCommandParams, call: CallContext, reason: str) -> str | None:
        if call.ran is not None and isinstance(changes := call.ran.changes, LayerChanges):
            return await self._review.reject(changes, call, reason)
        return None

    async def run(self, params: RunShellCommandParams, call: CallContext) -> Outcome:
        if call.ran is not None and isinstance(changes := call.ran.changes, LayerChanges):
            return await self._review.apply(call.ran, changes, call)
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        call.require_reviewed(folder)
        need = (call.preview and call.preview.requirements) or SandboxRequirements()
        plan = CommandPlan(
            params.command,
            folder,
            need,
            by_user=call.by_user,
            still_valid=call.still_valid,
            background=params.background,
            tty=params.tty,
        )
        drafted = call.preview is not None and call.preview.draft and need.trial
        if params.background and drafted:
            return await self._run_in_background(params, plan, call, self._layer.apart())
        if params.background:
            if works_there := need.unsandboxed or need.writes == "workspace":
                await self._bring_built(call)
            return _in_place(await self._run_in_background(params, plan, call), params, works_there)
        in_layer = call.preview is not None and call.preview.in_layer
        if in_layer and need.discarded:
            return await self._run_and_discard(params, plan, call)
        if in_layer and need.trial:
            return await self._run_in_layer(params, plan, call)
        if in_layer and need.writes == "nothing" and await self._layer.shows_more(call):
            async with self._layer.command(call) as layered:
                return await self._run(params, replace(plan, need=replace(need, layer=layered.folder)), call)
        if works_there := need.unsandboxed or need.writes == "workspace":
            await self._bring_built(call)
        return _in_place(await self._run(params, plan, call), params, works_there)

    async def _bring_built(self, call: CallContext) -> None:
        """A command that was allowed to work on the workspace finds what earlier ones built; the question named it."""
        await self._layer.bring_home(await asyncio.to_thread(lambda: self._layer.built), call, None)

    async def _run_in_layer(self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext) -> Outcome:
        """Run it on the session's private copy of the workspace. The outcome contains its changes; those of a blocked
        run are discarded, except ignored files."""
        keeps_history = call.preview is not None and not call.preview.sees_edits
        drafted = call.preview is not None and call.preview.draft
        async with self._layer.command(call, as_saved=keeps_history, draft=drafted and call.agent is None) as layered:
            need = replace(plan.need, writes="workspace", layer=layered.folder, git=keeps_history)
            outcome = await self._run(params, replace(plan, need=need), call)
            if outcome.is_error and await asyncio.to_thread(layered.lacks_room):
                outcome = with_notes(outcome, [_NO_ROOM.format(folder=layered.folder)])
            commits = await latest_commits(self._launcher, plan.folder, layered.folder) if keeps_history else None
            changes = await layered.read()
            changes.git.commits = commits or {}
            changes.git.only_git = await self._runs_only_git(params, call)
            reason = _unreviewable(changes, keeps_history=keeps_history)
            if outcome.blocked is not None or reason:
                await layered.take_back()
        if drafted and outcome.blocked is None and not reason:
            outcome = await self._review.settle_draft(outcome, changes)
            if not changes.edits:  # it ran on what the draft is now
                await self._proposals.note_run(_draft_run(params, outcome))
                await self._layer.note_drafted()
            return replace(outcome, changes=changes) if changes.needs_decision else outcome
        if outcome.blocked is None and not reason:
            outcome = await self._review.settle(outcome, changes, call)
            if keeps_history and self._proposals.has_draft:
                outcome = with_notes(outcome, [_WITHOUT_DRAFT])
            return replace(outcome, changes=changes) if changes.needs_decision else outcome
        await asyncio.to_thread(changes.folder.remove)
        return replace(outcome, blocked=outcome.blocked or Blocked(frozenset({"write"}), reason))

    async def _run_and_discard(self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext) -> Outcome:
        """Run it on a private copy of the workspace that is thrown away."""
        keeps_history = call.preview is not None and not call.preview.sees_edits
        async with self._layer.discarded(call, as_saved=keeps_history) as layer:
            need = replace(plan.need, writes="workspace", layer=layer.folder, git=keeps_history)
            outcome = await self._run(params, replace(plan, need=need), call)
            return with_notes(outcome, [_THROWN_AWAY] if await layer.has_changes() else [])

    async def _runs_only_git(self, params: RunShellCommandParams, call: CallContext) -> bool:
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        reading = (await asyncio.to_thread(self._analyze, params, folder, call)).reading
        effective = [command for command in reading.commands if command.effect != "none"]
        return reading.unclear is None and bool(effective) and all(command.git for command in effective)

    async def _run(self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext) -> Outcome:
        need = plan.need
        unsaved = [] if need.layer is not None else await self._workspace.unsaved()
        total = params.timeout_s or self._limits.shell_total
        if need.writes == "nothing" and not need.trial:
            total = min(total, self._limits.shell_read_only)
        streams, end = CommandStreams(self._environment), CommandEnd()
        async with self._launcher.launched(plan, end) as process:
            await self._follow(process, streams, call, total, end)
        outcome = await self._results.outcome(streams, end, unsaved, plan)
        return replace(outcome, blocked=await self._find_blocked(streams, end, plan, call))

    async def _find_blocked(
        self, streams: CommandStreams, end: CommandEnd, plan: CommandPlan, call: CallContext
    ) -> Blocked | None:
        """What the sandbox blocked and the user can allow."""
        if self._sandbox is None or not self._grants() or end.stop_reason or streams.merged.binary:
            return None
        text, _ = await asyncio.to_thread(streams.merged.text, self._limits.shell_model)
        roots = [path for root in self._workspace.roots for path in (root, self._workspace.guard.real(root))]
        attempt = Attempt(
            text,
            end.failed,
            self._sandbox.describe(plan.need),
            trial=plan.need.trial,
            command=plan.command,
            connects=call.preview is not None and "network" in call.preview.likely_grants,
            unseen=[str(path) for path in end.unseen],
            roots=[*roots, Path("/tmp"), Path("/dev"), Path("/proc")],
        )
        return await asyncio.to_thread(find_blocked, attempt)

    async def _run_in_background(
        self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext, layer: SessionLayer | None = None
    ) -> Outcome:
        """Start it as a job and wait until it is ready. A cancelled call ends the job: it belongs to the session only
        once the model knows of it. With a `layer` it runs in that, which ends with it."""
        limit = params.timeout_s
        if plan.need.writes == "nothing" and not plan.by_user:
            limit = min(limit or self._limits.shell_read_only, self._limits.shell_read_only)

        async def run(job: Job) -> JobEnd:
            end = CommandEnd()
            async with _placed(plan, layer, call) as placed, self._launcher.launched(placed, end) as process:
                end.stop_reason = await job.follow(process, limit, self._limits.shell_endless)
            return await self._job_end(job, end, plan)

        jobs = self._environment.jobs
        sandbox = None if self._sandbox is None else self._sandbox.describe(plan.need)
        title = one_line(_short(params.command))
        job = await jobs.start(call.call_id, title, run, sandbox=sandbox, tty=params.tty)
        waits = params.until is not None or params.port is not None
        try:
            seconds = params.wait_s or (_READY_SECONDS if waits else _BRIEF_SECONDS)
            reached = await job.wait(seconds, until=params.until, port=params.port)
            first = _not_ready(params, seconds) if waits and reached == "timeout" else ""
            first = first if layer is None else " ".join(filter(None, [first, _DRAFTED_JOB]))
            return await report(job, jobs, self._limits.shell_model, first=first, in_call=True)
        except asyncio.CancelledError:
            await run_to_completion(job.stop("with its call"))
            raise

    async def _job_end(self, job: Job, end: CommandEnd, plan: CommandPlan) -> JobEnd:
        output = await asyncio.to_thread(job.output.kept)
        text = output.decode("utf-8", "replace")
        notes = await self._results.notes(text, end, plan)
        details = "\n".join(notes) + await self._results.put_aside(end)
        blob: BlobRef | None = None
        with contextlib.suppress(AmanuError):  # a full disk: the output is in memory still
            blob = await self._environment.blobs.put_blob(output) if output else None
        return JobEnd(end.code, end.exit_note(), details, blob, end.failed)

    async def _follow(
        self, process: CommandProcess, streams: CommandStreams, call: CallContext, total: float, end: CommandEnd
    ) -> None:
        """Collect and show output until the shell has ended, or must be ended: then `end` has the reason."""
        output, live = streams.merged, LiveOutput(self._limits.shell_live, self._mask)

        def take(data: bytes, is_error: bool) -> None:
            streams.add(data, is_error)
            live.add(data)

        started = last_output = time.monotonic()
        size = 0
        reading = asyncio.create_task(process.read(take))
        waiting = asyncio.create_task(process.process.wait())
        try:
            while process.process.returncode is None:  # `wait` also waits for whoever inherited the pipe
                await asyncio.wait({waiting}, timeout=_SHOW_EVERY)
                current_time = time.monotonic()
                if output.size > size:
                    last_output, size = current_time, output.size
                if not output.binary and (text := live.take()):
                    call.output(text)
                if process.process.returncode is None:
                    end.stop_reason = self._exceeded_limit(
                        current_time - started, current_time - last_output, total, size
                    )
                if end.stop_reason:
                    return
            await process.drain(reading)
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


def is_worth_trying(params: RunShellCommandParams, commands: Iterable[Command]) -> bool:
    """Whether a call may be tried before anybody is asked. Not one that asks for more by itself, and not what probably
    waits a minute for a network that is not there."""
    asks = params.background or params.network or params.outside or params.secrets
    return not asks and not any(command.network and not _fails_at_once(command) for command in commands)


@asynccontextmanager
async def _placed(plan: CommandPlan, layer: SessionLayer | None, call: CallContext) -> AsyncGenerator[CommandPlan]:
    """The plan for the time that the command runs in that layer, which is gone afterwards."""
    if layer is None:
        yield plan
        return
    try:
        async with layer.command(call) as layered:
            layered.forget()
            yield replace(plan, need=replace(plan.need, writes="workspace", layer=layered.folder))
    finally:
        await layer.close()


def _in_place(outcome: Outcome, params: RunShellCommandParams, works_there: bool) -> Outcome:
    """The outcome of a command that ran in the workspace itself, if it did: nobody knows what it changed there."""
    return replace(outcome, not_undone=[f"what `{_short(params.command)}` changed"]) if works_there else outcome


def _draft_run(params: RunShellCommandParams, outcome: Outcome) -> DraftRun:
    return DraftRun(
        command=one_line(_short(params.command)), ended=one_line(outcome.line), failed=outcome.is_error, current=True
    )


def _short(command: str) -> str:
    first, *further_lines = command.strip().splitlines()
    short = first if len(first) <= 80 else first[:79] + "…"
    return f"{short} … and {len(further_lines)} more line{'s' * (len(further_lines) != 1)}" if further_lines else short


def _background_lines(params: RunShellCommandParams) -> list[str]:
    """What there is to know of a command in the background, for the user."""
    if not params.background:
        return []
    lines = ["It keeps running after this call until it ends, you or the model stop it, or the session is closed."]
    if not (params.network or params.outside):
        lines.append("If it is a server, your browser can reach it only if you allow it with network access.")
    return lines


def _not_ready(params: RunShellCommandParams, seconds: float) -> str:
    awaited = [f"nothing in its output matches {params.until!r}"] if params.until is not None else []
    awaited += [f"nothing listens on port {params.port}"] if params.port is not None else []
    return f"Not ready after {seconds:g} s: {' and '.join(awaited)}. It is still running."


def _requested(params: RunShellCommandParams) -> str:
    """What the call asks the user for, to follow "It asks"."""
    requests = {
        "to run outside the sandbox": params.outside,
        "for the network": params.network and not params.outside,
        "for the workspace's files that hold secrets": params.secrets,
    }
    return " and ".join(request for request, is_requested in requests.items() if is_requested)


_LACKS: Mapping[Need, str] = {
    "write": "to run on the workspace itself",
    "network": "network access",
    "unsandboxed": "access that the sandbox denies",
    "secrets": "files that hold secrets",
}


def _with_needs(params: RunShellCommandParams, blocked: Blocked | None) -> RunShellCommandParams:
    """The call, asking for what the sandbox blocked as well."""
    needs = frozenset[Need]() if blocked is None else blocked.needs
    asked: dict[str, bool] = {
        "network": params.network or "network" in needs,
        "outside": params.outside or "unsandboxed" in needs,
        "secrets": params.secrets or "secrets" in needs,
    }
    return params.model_copy(update=asked) if needs else params


def _described(blocked: Blocked) -> str:
    needs = " and ".join(lack for need, lack in _LACKS.items() if need in blocked.needs)
    return f"needs {needs} ({one_line(blocked.evidence)})"


_FAILS_AT_ONCE = frozenset({"git", "gh", "curl", "wget", "ssh", "uv"})
"""Programs that notice at once that there is no network; npm and pip try again for a minute."""


def _fails_at_once(command: Command) -> bool:
    return command.program is not None and command.program.rpartition("/")[2] in _FAILS_AT_ONCE


def _keeps_history(reading: Reading) -> bool:
    """Whether it may change the git repository. Such a line must see only saved text and accepted edits."""
    return any(command.git and command.effect != "none" and not command.looks for command in reading.commands)


def _unreviewable(changes: LayerChanges, *, keeps_history: bool) -> str:
    """Why what a command changed cannot be decided on afterwards; "" when it can. A line without a git command had
    unsaved text laid in, which must not get into git's history, nor be decided on by rules that name git commands."""
    if changes.git.refused or (changes.git.files and not keeps_history):
        return f"it changed .git/{changes.git.refused or changes.git.files[0].name.removeprefix('.git/')}"
    return changes.refused


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
