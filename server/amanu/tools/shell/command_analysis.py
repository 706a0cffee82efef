"""What a command line would do, what its sandbox must allow, and what policy decides on."""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from amanu.core.command import Ask, Command, CommandContext, Reading
from amanu.core.place import MACHINE, WORKSPACE, Git
from amanu.core.protected_paths import npmrc_holds_token
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import CallContext, Subject, ToolError
from amanu.permissions.placing import LineFacts
from amanu.sandbox.git_dirs import remote_addresses
from amanu.sandbox.process_records import MARK
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.command_params import TOOL, RunShellCommandParams
from amanu.tools.shell.command_process import CHANGED, CommandLauncher
from amanu.tools.shell.file_identity import fingerprint, identity, read_contents
from amanu_protocol.items import Grant

PLANNING = "This is plan mode: until the user has approved the plan, nothing that commands change is kept."
PLAN_INSTEAD = "Make this a step of the plan, and call exit_plan_mode when the plan is complete."


@dataclass(frozen=True)
class CommandAnalysis:
    """A command line as it was understood, the access it has wherever it runs, and the digest of all that is decided
    on."""

    reading: Reading
    line: LineFacts
    need: SandboxRequirements
    digest: str
    logs_in: bool
    """It probably needs the user's keys, or the socket of a service (`shell/logins.py`)."""

    @property
    def only_adds(self) -> bool:
        """Whether all that has an effect is `git add`, in this folder and without settings of its own."""
        return _is_only_git(self.reading) and all(
            command.looks or command.words[:2] == ("git", "add") for command in _effective(self.reading)
        )


class CommandAnalyzer:
    """Of the commands of one session."""

    def __init__(self, environment: ToolEnvironment, launcher: CommandLauncher) -> None:
        self._workspace = environment.workspace
        self._sandbox = environment.sandbox
        self._trusted = environment.trusted
        self._read_only = environment.read_only
        self._launcher = launcher

    def analyze(self, params: RunShellCommandParams, folder: Path, call: CallContext) -> CommandAnalysis:
        """Blocking: it looks at the files that the command would run. The parser of command lines is imported with the
        first one, for it is a tenth of all our code."""
        from amanu.shell.analyze import read
        from amanu.shell.logins import logs_in
        from amanu.shell.named_paths import called_programs, named_paths
        from amanu.shell.self_edits import rewritten

        real = self._workspace.guard.real(folder)
        context = self._command_context(real, call)
        reading = read(params.command, context)
        reading = _with_asks(reading, self._asks(params))
        scripts = {path for command in reading.commands for path in command.runs}
        pinned = scripts - rewritten(reading.commands)
        stored, digests = read_contents(scripts)
        try:
            status = real.stat()
        except OSError:
            raise ToolError(CHANGED) from None
        need = replace(
            self._requirements(reading, pinned, stored, status),
            programs=called_programs(reading, context),
            named=named_paths(params.command, reading, context),
        )
        programs = {command.program for command in reading.commands if command.program}
        programs.update((reading.argv or ())[:1])
        # What the commands do was found out by looking at files once more, so it is part of what was approved.
        judged = repr(
            [(command.effect, command.reads, command.git) for command in reading.commands] + [reading.unclear]
        )
        where = f"{real} {need.folder_identity}"
        digest = fingerprint(
            [
                where,
                "workspace" if reading.effect != "none" and not self._read_only() else "nothing",
                *sorted(call.blocked.needs if call.blocked else ()),
                json.dumps(reading.argv),
                *map(identity, sorted(programs)),
                *digests,
                judged,
            ]
        )
        # A try has told already what it lacks.
        is_online = any(command.git and command.network for command in reading.commands)
        is_login = call.blocked is None and logs_in(reading.commands, remote_addresses(real) if is_online else ())
        return CommandAnalysis(reading, _line_facts(reading), need, digest, is_login)

    def subjects(self, params: RunShellCommandParams, reading: Reading) -> list[Subject]:
        """Each command of the line, each file it is known to read, and the line itself where not all of it is
        understood."""
        # A loop over known words runs the same command again and again.
        subjects = [Subject(TOOL, "run", command.text, command=command) for command in dict.fromkeys(reading.commands)]
        if reading.unclear is not None or not subjects:
            because = reading.unclear or ""
            subjects.append(Subject(TOOL, "run", params.command, unclear=True, because=because))
        reads = dict.fromkeys(path for command in reading.commands for path in command.reads)
        for path in reads:
            inside = self._workspace.guard.inside(Path(path))
            if inside is not None:
                subjects.append(Subject(TOOL, "read", self._workspace.relative(inside)))
        return subjects

    def wants(self, params: RunShellCommandParams, analysis: CommandAnalysis) -> tuple[Grant, ...]:
        """Those of `allowable` that the command probably needs."""
        if not self.allowable:
            return ()
        if params.outside or analysis.logs_in:
            return ("unsandboxed",)
        is_online = params.network or any(command.network for command in analysis.reading.commands)
        return ("network",) if is_online else ()

    @property
    def allowable(self) -> tuple[Grant, ...]:
        """What the user may allow besides; nothing without a sandbox, since nothing holds it then."""
        has_sandbox = self._sandbox is not None and self._sandbox.tier != "none"
        return ("network", "unsandboxed") if has_sandbox and not self._read_only() else ()

    def check_mode(self, params: RunShellCommandParams, reading: Reading) -> None:
        """Raises `ToolError` for what a mode in which commands are read-only does not allow."""
        if not self._read_only():
            return
        online = any(command.network and command.effect != "none" for command in reading.commands)
        if params.network or params.outside or online:
            raise ToolError(
                f"{PLANNING} Commands have no network access and cannot run outside the sandbox. {PLAN_INSTEAD}"
            )
        sandboxed = self._sandbox is not None and self._sandbox.tier != "none"
        if reading.effect != "none" and not sandboxed:
            raise ToolError(
                f"{PLANNING} No sandbox works on this machine, so only commands that are known to change nothing "
                f"can run. {PLAN_INSTEAD}"
            )

    def _command_context(self, real_folder: Path, call: CallContext) -> CommandContext:
        def may_read(path: Path) -> bool:
            inside = self._workspace.guard.inside(path)
            if inside is None:
                return False
            if path.name == ".npmrc" and not npmrc_holds_token(str(path)):
                return True  # as a command sees it, too
            return bool(call.allowed([Subject(TOOL, "read", self._workspace.relative(inside))]))

        has_sandbox = self._sandbox is not None and self._sandbox.tier != "none"
        need = SandboxRequirements(WORKSPACE if has_sandbox else MACHINE)
        return CommandContext(
            folder=real_folder,
            roots=self._workspace.guard.real_roots,
            # What has no effect is run with git's variables taken out.
            environment={
                name: value
                for name, value in self._launcher.child_environment(MARK, need).items()
                if not name.startswith("GIT_")
            },
            may_read=may_read,
            trusted=self._trusted(),
            sandboxed=has_sandbox,
        )

    def _requirements(
        self, reading: Reading, pinned: Collection[str], stored: dict[str, bytes], folder: os.stat_result
    ) -> SandboxRequirements:
        """What the sandbox must allow. `pinned`: files that must stay as they were approved; `stored`: path → content
        of those that are small enough."""
        return SandboxRequirements(
            readable=self._workspace.guard.readable_folders,
            tracked_keys=reading.unclear is None
            and all(command.git or (command.effect == "none" and not command.reads) for command in reading.commands),
            borrowing=self._trusted(),
            pinned={path: data for path, data in stored.items() if path in pinned},
            argv=reading.argv,
            folder_identity=(folder.st_dev, folder.st_ino),
            watched=tuple(sorted(pinned)),
        )

    def _asks(self, params: RunShellCommandParams) -> frozenset[Ask]:
        """What the call asks the user for and does not have yet."""
        requests: dict[Ask, bool] = {
            "network": params.network,
            "unsandboxed": params.outside and bool(self.allowable),
            "secrets": params.secrets,
        }
        return frozenset(ask for ask, is_requested in requests.items() if is_requested)


def _line_facts(reading: Reading) -> LineFacts:
    commands = reading.commands
    changes_repository = any(command.git and command.effect != "none" and not command.looks for command in commands)
    return LineFacts(reading.effect != "none", _git_access(reading), changes_repository)


def _git_access(reading: Reading) -> Git:
    """Return the part of git's own files that the line must be able to write."""
    from amanu.shell.git import writes_settings

    if not any(command.git for command in reading.commands):
        return "none"
    if not _is_only_git(reading):
        return "files"
    return "settings" if all(writes_settings(command.words) for command in _effective(reading)) else "checkout"


def _effective(reading: Reading) -> list[Command]:
    return [command for command in reading.commands if command.effect != "none"]


def _is_only_git(reading: Reading) -> bool:
    effective = _effective(reading)
    return reading.unclear is None and bool(effective) and all(command.git for command in effective)


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
