"""What a command that has ended comes to: the texts for the model and the user, and the fields for the model."""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import JsonValue

from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import Outcome
from amanu.sandbox.git_dirs import hooks_of
from amanu.text.display import file_list, one_line
from amanu.tools.environment import ToolEnvironment
from amanu.tools.files.read_output import ID_LENGTH
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan
from amanu.tools.shell.denial_hints import denial_hint, hidden_hint, missing_program_hint, network_hint
from amanu.tools.shell.job import JobEnd
from amanu.tools.shell.job_output import JobOutput
from amanu.tools.shell.output import TO_LOOK_AT_BINARY, CommandOutput
from amanu.tools.shell.report import CommandEnd
from amanu.workspace.text_file import FileText
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import BlobRef, CommandSandbox

_NOT_RUN = (126, 127)
"""Exit codes of a shell that could not run the program it was given."""
_HOOKS_SKIPPED = (
    "these git hooks of the repository were skipped where the command would have run them, because the folder is not "
    "trusted and the command did not run in a sandbox without network."
)
_KEPT = 512 * 1024  # bytes kept of each of stdout and stderr: more than is ever shown


class CommandStreams:
    """All that a command prints: in the order in which it came, and each stream by itself."""

    def __init__(self, environment: ToolEnvironment) -> None:
        mask = environment.secrets.mask_output
        self.merged = CommandOutput(environment.limits.shell_stored, mask)
        self._limit = environment.limits.shell_model
        self._single = {False: CommandOutput(_KEPT, mask), True: CommandOutput(_KEPT, mask)}

    def add(self, data: bytes, is_error: bool) -> None:
        self.merged.add(data)
        self._single[is_error].add(data)

    def texts(self) -> tuple[str, str, bool]:
        """(stdout, stderr, whether something is missing), together within the limit. Blocking."""
        errors, cut_errors = self._single[True].text(self._limit // 2)
        output, cut_output = self._single[False].text(self._limit - len(errors))
        return output, errors, cut_output or cut_errors


class CommandResults:
    """Words the results of one session's commands."""

    def __init__(self, environment: ToolEnvironment, launcher: CommandLauncher) -> None:
        self._environment = environment
        self._workspace = environment.workspace
        self._sandbox = environment.sandbox
        self._limits = environment.limits
        self._mask = environment.secrets.mask_output
        self._launcher = launcher

    async def outcome(
        self, streams: CommandStreams, end: CommandEnd, unsaved: Sequence[FileText], plan: CommandPlan
    ) -> Outcome:
        """The result of a command that ran in the foreground."""
        output = streams.merged
        text, user_text, is_cut = await self._readable_output(output)
        notes = [end.exit_note()]  # first: the audit log takes for ours only what follows it
        blob: BlobRef | None = None
        if is_cut:
            try:
                blob = await self._environment.blobs.put_blob(await asyncio.to_thread(output.masked))
            except AmanuError as error:  # the command has run: how it ended must be reported all the same
                notes.append(f"The full output could not be stored: {error}")
        if blob is not None and not output.binary:
            which = "Full output" if output.is_stored_whole else f"Its first {blob.size:,} of {output.size:,} bytes"
            notes.append(f'{which}: read_output(id="{blob.blob_id[:ID_LENGTH]}").')
        notes += await self.notes(text, end, plan, binary=output.binary)
        notes += self._unsaved_note(unsaved)
        footer = "\n".join(notes)
        body = text.rstrip("\n") or "[no output]"
        put_aside = await self.put_aside(end)
        for_user = f"{user_text.rstrip()}\n{footer}".lstrip()
        fields: dict[str, JsonValue] = {}
        if not output.binary:
            stdout, stderr, truncated = await asyncio.to_thread(streams.texts)
            fields = {"exit_code": end.code, "stdout": stdout, "stderr": stderr}
            fields |= {"duration_s": round(end.seconds, 1), "truncated": truncated}
            if explained := f"{put_aside}\n\n{footer}".strip() if put_aside else "\n".join(self._beyond_code(notes)):
                fields["notes"] = explained
        return Outcome(
            f"{body}{put_aside}\n\n{footer}",
            for_user,
            blob,
            is_error=end.failed,
            sandbox=None if self._sandbox is None else self._sandbox.describe(plan.need.place),
            fields=fields,
            summary=end.summary(user_text),
            warns=bool(end.hidden_failures),
        )

    async def job_end(self, job_output: JobOutput, end: CommandEnd, plan: CommandPlan) -> JobEnd:
        """The end of a command that ran in the background."""
        output = await asyncio.to_thread(job_output.kept)
        text = output.decode("utf-8", "replace")
        notes = await self.notes(text, end, plan)
        details = "\n".join(notes) + await self.put_aside(end)
        blob: BlobRef | None = None
        with contextlib.suppress(AmanuError):  # a full disk: the output is in memory still
            blob = await (self._environment.jobs.keep or self._environment.blobs.put_blob)(output) if output else None
        return JobEnd(end.code, end.exit_note(), details, blob, end.failed)

    async def notes(self, text: str, end: CommandEnd, plan: CommandPlan, *, binary: bool = False) -> list[str]:
        """What there is to say of a command that printed `text`, besides how it ended."""
        notes = [*end.process_notes(), *end.quarantine_notes(self._display_path)]
        notes += await self._skipped_hooks(plan.need, plan.folder)
        sandbox = None if self._sandbox is None else self._sandbox.describe(plan.need.place)
        if memory_note := end.memory_note(text):
            notes.append(memory_note)
        tried_network = end.tried_network and sandbox is not None and not sandbox.network
        if tried_network:
            notes.append(network_hint(read_only=self._environment.read_only()))
        if sandbox is not None and not binary:
            notes += await self._hints(text, end, plan.need, sandbox, plan.folder)
        return notes

    async def put_aside(self, end: CommandEnd) -> str:
        """A few short texts that were put aside, so that the model can propose them; "" for none."""
        return "".join(
            f"\n\n[{one_line(self._display_path(path))}, put aside:]\n{self._mask(content)}"
            for path, content in (await asyncio.to_thread(end.quarantine.texts)).items()
        )

    def _beyond_code(self, notes: Sequence[str]) -> Sequence[str]:
        """The notes without the first if that is only the exit code."""
        return notes[1:] if notes[0].startswith("Exit code: ") else notes

    def _unsaved_note(self, unsaved: Sequence[FileText]) -> Sequence[str]:
        if not unsaved:
            return ()
        names = file_list([self._workspace.display_path(file.path) for file in unsaved])
        return (f"Unsaved in the editor, so the command saw an older version: {names}.",)

    async def _readable_output(self, output: CommandOutput) -> tuple[str, str, bool]:
        """(text for the model, text for the user, whether one of them lacks something)."""
        if output.binary:
            size = f"{output.size:,} bytes"
            return f"[binary output, {size}, not shown. {TO_LOOK_AT_BINARY}]", f"Binary output, {size}.", True
        text, is_cut = await asyncio.to_thread(output.text, self._limits.shell_model)
        user_text, is_user_cut = await asyncio.to_thread(output.tail, self._limits.shell_user)
        if is_user_cut:
            user_text = f"[… the end of {output.size:,} bytes …]\n{user_text}"
        return text, user_text, is_cut or is_user_cut

    async def _skipped_hooks(self, need: SandboxRequirements, folder: Path) -> list[str]:
        if not need.place.reach.writes_git or self._launcher.runs_hooks(need.place):
            return []
        home = self._environment.variables.get("HOME")
        hooks = await asyncio.to_thread(hooks_of, folder, Path(home) if home else None)
        return [f"{', '.join(hooks)}: {_HOOKS_SKIPPED}"] if hooks else []

    async def _hints(
        self, text: str, end: CommandEnd, need: SandboxRequirements, sandbox: CommandSandbox, folder: Path
    ) -> Iterable[str]:
        """What the model can do about a failure that looks like the sandbox's doing."""
        hints = [hidden_hint(text, end, read_only=self._environment.read_only())]
        if hints[0] is None and end.failed:
            protected = () if need.place.base == "machine" else tuple(map(os.path.basename, need.pinned))
            unseen = [self._display_path(path) for path in end.unseen]
            hints.append(denial_hint(text, sandbox, protected, unseen, tried_network=end.tried_network))
        if end.code in _NOT_RUN and sandbox.tier != "none":
            roots = [path for root in self._workspace.roots for path in (root, self._workspace.guard.real(root))]
            hints.append(await asyncio.to_thread(missing_program_hint, text, roots, folder))
        return filter(None, hints)

    def _display_path(self, path: Path) -> str:
        """A real path as the model knows it. Its last part is not resolved: it may be a link to anywhere."""
        folder = self._workspace.guard.inside(path.parent)
        return str(path) if folder is None else self._workspace.display_path(folder / path.name)
