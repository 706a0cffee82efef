"""The tool that runs a command with bash in the workspace, and ends every process the command leaves behind.

`preview` reads what the command line would do (`amanu/shell`), so that policy decides on that; `run` starts it in the
sandbox, in the very folder that was checked, and reports what became of it (`report.py`).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from amanu.core.command import Reading
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import CallContext, CommandPreview, Outcome, Preview, ToolError
from amanu.permissions.placing import PlacingFacts, placing
from amanu.permissions.policy import drafts
from amanu.shell.pipes import last_pipe
from amanu.text.display import all_files, one_line, unbroken, visible
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu.tools.shell.background_run import BackgroundRuns
from amanu.tools.shell.command_analysis import CommandAnalysis, CommandAnalyzer
from amanu.tools.shell.command_params import TOOL, RunShellCommandParams, is_worth_trying
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan
from amanu.tools.shell.command_question import background_lines, blocked_line, request_line, short_line
from amanu.tools.shell.deletions import Count, dry_clean, removed_by_rm, would_remove
from amanu.tools.shell.foreground_command import ForegroundCommand
from amanu.tools.shell.foreground_run import ForegroundRuns
from amanu.tools.shell.git_looks import git_prints
from amanu.tools.shell.job import check_pattern
from amanu.tools.shell.layer_changes import LayerChanges
from amanu.tools.shell.layer_review import LayerReview, with_notes
from amanu.tools.shell.layered_commands import LayeredCommands
from amanu.tools.shell.movable_run import MovableRuns
from amanu.tools.shell.same_changes import are_same
from amanu_protocol.items import Line

_MOST_RUNS = 3
"""The most runs of a command whose repository changes each time before its changes are applied."""
_LONGEST = 64 * 1024  # characters of a command; nobody can judge a longer one


class RunShellCommand(SessionTool[RunShellCommandParams]):
    name = TOOL
    effect = "run"
    description = (
        "Runs a command with `bash -c` and returns its output and exit code. It must end by itself, and what it leaves "
        "running (`&`) is ended; run servers, watchers and REPLs with background=true. Output beyond 30,000 characters "
        "is cut in the middle. Use the file and search tools instead of cat, sed, find and grep."
    )
    params = RunShellCommandParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._sandbox = environment.sandbox
        self._read_only = environment.read_only
        self._layer = environment.layer
        self._review = LayerReview(environment)
        self._launcher = CommandLauncher(environment)
        self._analyzer = CommandAnalyzer(environment, self._launcher)
        self._foreground = ForegroundRuns(environment, self._launcher)
        self._movable = MovableRuns(environment, self._foreground)
        self._background = BackgroundRuns(environment, self._launcher)
        self._layered = LayeredCommands(environment, self._analyzer, self._foreground, self._review)

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Run {short_line(str(arguments.get('command', 'a command')))}"

    async def preview(self, params: RunShellCommandParams, call: CallContext) -> Preview:
        if call.ran is not None and isinstance(changes := call.ran.changes, LayerChanges):
            return await self._preview_changes(params, call.ran, changes, call)
        asked, params = request_line(params), params.with_needs(call.blocked)
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
        lines: list[str] = []
        if params.description:
            lines.append(f"The model says: {visible(params.description)}")
        if asked:
            lines.append(f"It asks {asked}" + (f": {visible(params.reason)}" if params.reason else "."))
        lines.append(f"In: {visible(str(folder))}")
        lines += background_lines(params)
        if (built := await asyncio.to_thread(lambda: self._layer.built)) and not self._read_only():
            names = all_files([self._workspace.display_path(path) for path in built])
            lines.append(f"These files of earlier commands are moved into the workspace, too: {names}")
        if self._sandbox is not None:
            await self._sandbox.proved()
        analysis = await asyncio.to_thread(self._analyzer.analyze, params, folder, call)
        self._analyzer.check_mode(params, analysis.reading)
        subject, *also = self._analyzer.subjects(params, analysis.reading)
        wants = self._analyzer.wants(params, analysis)
        running = "Run in the background:" if params.background else "Run"
        places = placing(await self._facts(params, analysis, call))
        if self._layer.unknown and (places.tried is not None or call.edited):
            raise ToolError(self._layer.unknown)
        likely = places.granted(wants, secrets=False)
        is_apart = places.approved.on_copy and drafts(self._environment.mode())
        return Preview(
            title=f"{running} {short_line(params.command)}",
            subject=subject,
            extra_subjects=tuple(also),
            detail=visible(params.command),
            reads=frozenset([str(folder)]),
            digest=analysis.digest,
            command=CommandPreview(
                params.command,
                places,
                replace(analysis.need, place=places.approved),
                self._analyzer.allowable,
                wants,
                "" if call.blocked is None else blocked_line(call.blocked),
            ),
            sandbox=None if self._sandbox is None else self._sandbox.describe(likely),
            notes=(
                *(Line(tone="plain", text=unbroken(line)) for line in lines),
                *(() if is_apart else await self._deletion_notes(analysis.reading, folder)),
            ),
        )

    def with_command(self, arguments: Mapping[str, JsonValue], command: str) -> dict[str, JsonValue]:
        """What the model says of its own line need not be true of the user's."""
        return {name: value for name, value in arguments.items() if name != "description"} | {"command": command}

    async def preview_again(self, params: RunShellCommandParams, call: CallContext) -> Preview | None:
        """Programs, scripts and folders may have changed by now."""
        if call.ran is not None and call.ran.changes is not None:
            return await self._review.preview_again(call)
        return await self.preview(params, call)

    async def reject(self, params: RunShellCommandParams, call: CallContext, reason: str) -> str | None:
        if call.ran is not None and isinstance(changes := call.ran.changes, LayerChanges):
            return await self._review.reject(changes, call, reason)
        return None

    async def run(self, params: RunShellCommandParams, call: CallContext) -> Outcome:
        if call.ran is not None and isinstance(changes := call.ran.changes, LayerChanges):
            return await self._bring_home(params, call.ran, changes, call)
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        call.require_reviewed(folder)
        command = None if call.preview is None else call.preview.command
        need = SandboxRequirements() if command is None else command.requirements
        plan = CommandPlan(
            params.command,
            folder,
            need,
            mode=self._environment.mode(),
            by_user=call.by_user,
            still_valid=call.still_valid,
            names_network="network" in call.likely_grants,
            background=params.background,
            tty=params.tty,
            pipe=() if params.background else await asyncio.to_thread(last_pipe, params.command),
        )
        if need.place.on_copy and need.place.writes and need.place.then != "dropped" and not params.background:
            with self._environment.jobs.waited_for(self._in_foreground(params, plan, call)):
                return await self._layered.run(params, plan, call)
        works_there = need.place.writes and not need.place.on_copy
        if works_there or need.place.base == "machine":
            await self._bring_built(call)
        if params.background:
            return _in_place(await self._background.start(params, plan, call), params, works_there)
        command = self._in_foreground(params, plan, call)
        with self._environment.jobs.waited_for(command):
            return _in_place(await self._movable.run(params, plan, call, command), params, works_there)

    def _in_foreground(self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext) -> ForegroundCommand:
        sandbox = None if self._sandbox is None else self._sandbox.describe(plan.need.place)
        return ForegroundCommand(call.call_id, one_line(short_line(params.command)), sandbox)

    async def _deletion_notes(self, reading: Reading, folder: Path) -> tuple[Line, ...]:
        """How much it deletes, where that is easily known."""
        if reading.unclear is not None:
            return ()
        guard = self._workspace.guard
        paths = await asyncio.to_thread(removed_by_rm, reading.commands, folder, guard.inside)
        if (clean := dry_clean(reading.commands)) is not None and not self._read_only():
            paths = [*paths, *would_remove(await git_prints(self._launcher, clean, folder) or "", folder)]
        count = Count()
        await asyncio.to_thread(lambda: [count.add(path) for path in paths if not count.is_over])
        said = count.sentence()
        return (Line(tone="warning", text=said),) if said else ()

    async def _bring_home(
        self, params: RunShellCommandParams, outcome: Outcome, changes: LayerChanges, call: CallContext
    ) -> Outcome:
        """Bring what it changed into the workspace. If the repository has changed since, the command is run again: the
        yes holds if it changes the same; otherwise the user is asked about what it changes now."""
        for _ in range(_MOST_RUNS):
            applied = await self._review.apply(short_line(params.command), outcome, changes, call)
            if applied is not None:
                return applied
            try:
                again = await self._layered.run_again(params, changes, call)
            except ToolError:
                await self._review.withdraw(call)
                raise
            new = again.changes
            if not (isinstance(new, LayerChanges) and await asyncio.to_thread(are_same, changes, new)):
                break
            outcome, changes = again, new
            await self._review.propose_again(changes, call)
        else:
            raise ToolError(await self._review.withdraw(call))
        why = await self._review.withdraw(call)
        if isinstance(new, LayerChanges):
            return replace(again, changes=replace(new, asked_again=True))
        title = f"Run {short_line(params.command)}: nothing changed"
        return replace(with_notes(again, [why]), is_error=True, title=title)

    async def _preview_changes(
        self, params: RunShellCommandParams, outcome: Outcome, changes: LayerChanges, call: CallContext
    ) -> Preview:
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        analysis = await asyncio.to_thread(self._analyzer.analyze, params, folder, call)
        commands = [subject for subject in self._analyzer.subjects(params, analysis.reading) if subject.effect == "run"]
        return await self._review.preview(short_line(params.command), outcome, changes, commands, call)

    async def _facts(self, params: RunShellCommandParams, analysis: CommandAnalysis, call: CallContext) -> PlacingFacts:
        works = await self._layer.works()
        has_sandbox = self._sandbox is not None and self._sandbox.tier != "none"
        return PlacingFacts(
            self._environment.mode(),
            "none" if not has_sandbox else "layers" if works else "in place",
            analysis.line,
            background=params.background,
            worth_trying=is_worth_trying(params, analysis.reading.commands),
            blocked=frozenset() if call.blocked is None else call.blocked.needs,
            edited=call.edited,
            by_agent=call.agent is not None,
        )

    async def _bring_built(self, call: CallContext) -> None:
        """A command that was allowed to work on the workspace finds what earlier ones built; the question named it."""
        await self._layer.bring_home(await asyncio.to_thread(lambda: self._layer.built), call, None)


def _in_place(outcome: Outcome, params: RunShellCommandParams, works_there: bool) -> Outcome:
    """The outcome of a command that ran in the workspace itself, if it did: nobody knows what it changed there."""
    return replace(outcome, not_undone=[f"what `{short_line(params.command)}` changed"]) if works_there else outcome
