"""Run commands in a sandbox that the kernel enforces.

Which tier of sandbox works here is found out once per process by trying (`self_test.py`); what a command sees is
determined for each command (`filesystem_view.py`). Neither the model nor a workspace can influence either.
"""

import asyncio
import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from amanu.config import SandboxSettings as Settings
from amanu.core.place import SCRATCH, WORKSPACE, Place
from amanu.core.requirements import NamedPath, SandboxRequirements
from amanu.home import Home
from amanu.sandbox import bubblewrap, landlock, seatbelt, seccomp
from amanu.sandbox.command_records import CommandRecord, CommandRecords, prior_state
from amanu.sandbox.entry_shell import EntryShell, plain_entry_shell
from amanu.sandbox.filesystem_view import FilesystemView, filesystem_view
from amanu.sandbox.layers.command_layer import CommandLayer, command_layer
from amanu.sandbox.layers.layer import Layer, LayerError, outermost_roots
from amanu.sandbox.layers.layer import clean as clean_layers
from amanu.sandbox.layers.redo import finish_left
from amanu.sandbox.layers.trial import layer_fault
from amanu.sandbox.loader_settings import loader_settings, without_loader_settings
from amanu.sandbox.network_attempts import NO_RESOLVER, network_attempts
from amanu.sandbox.process_records import ProcessRecords
from amanu.sandbox.protected_scan import Identity, identity
from amanu.sandbox.quarantine import QuarantineResult
from amanu.sandbox.secret_files import identities, restore_secrets
from amanu.sandbox.self_test import Launch, Proof, Tier, prove
from amanu.sandbox.start_gate import StartGate, start_gate
from amanu.sandbox.temp_folders import TemporaryFolders
from amanu.sandbox.toolchains import is_inside
from amanu_protocol.items import CommandSandbox

log = logging.getLogger(__name__)

_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_proofs: dict[tuple[int, Tier], Proof] = {}
"""By user and highest tier. What a machine allows a user does not change while the process runs."""


class SandboxError(Exception):
    """A command cannot be run in its sandbox. `str()` is a sentence for the model and the user."""


@dataclass(frozen=True)
class SandboxedCommand:
    """How to start a command in its sandbox."""

    argv: list[str]
    environment: dict[str, str]
    folder: str
    """The folder its first process starts in."""
    pass_fds: tuple[int, ...] = ()
    holders: int = 0
    """How many of our processes surround it. They end when the command ends, and the command when they do."""
    start_gate: StartGate | None = None
    workspace_secrets: tuple[Path, ...] = ()
    """Workspace files that hold secrets and cannot be read by the command."""
    hidden: tuple[NamedPath, ...] = ()
    """The paths of `SandboxRequirements.named` that the command does not see."""
    settle: Callable[[], QuarantineResult] = QuarantineResult
    """Undoes what the command did to files that git, editors, shells and agents obey, and returns what that was. To be
    called in a thread once the command has ended; done anyway when the context of `Sandbox.launch` is left."""

    tried_network: Callable[[], bool | None] = lambda: None
    """Whether it has tried the network, which it does not have. None: it is not known."""

    def answered(self) -> AbstractContextManager[None]:
        """A context to stay in while the command runs: the command waits until it is answered. In the event loop."""
        return contextlib.nullcontext() if self.start_gate is None else self.start_gate.answered()


class Sandbox:
    """One per daemon. `home` holds Amanu's own folders, which no command sees. `best` is the highest tier to use."""

    def __init__(self, settings: Settings, home: Home, *, best: Tier = "bubblewrap") -> None:
        self._settings = settings
        self._home = home
        self._best: Tier = best
        self._temporaries = TemporaryFolders(home.runtime / "temporary")
        self._records = CommandRecords(home.state / "sandbox", home.state / "aside")
        self._processes = ProcessRecords(home.state / "commands")
        self._layer_trials: dict[tuple[Identity | None, ...], asyncio.Task[str]] = {}
        self._temporary: dict[tuple[Path, ...], Path] = {}
        self._temporary_exits = ExitStack()
        self._proving: asyncio.Task[Proof] | None = None
        self._undoing: set[asyncio.Task[Any]] = set()
        self._repositories: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()
        self.changes: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext
        """Contexts in which something of Amanu's may change the workspace: what happens meanwhile the user did not
        do."""
        self._cleaned = False

    @asynccontextmanager
    async def repository_lock(self, root: Path) -> AsyncGenerator[None]:
        """Held while commands' changes of the repository in that folder come home: git's own lock does not wait."""
        async with self._repositories.setdefault(root, asyncio.Lock()), self.changes():
            yield

    @asynccontextmanager
    async def changing(self, need: SandboxRequirements) -> AsyncGenerator[None]:
        """A context for a command with those needs: see `changes`. What works on a copy changes nothing."""
        changes = need.place.writes and not need.place.on_copy
        async with self.changes() if changes else contextlib.nullcontext():
            yield

    async def proved(self) -> Proof:
        """Which tier works here. The first call runs the self-test, about 0.1 s without blocking the loop; later calls
        get the same result."""
        if self.proof is None:
            if self._proving is None or self._proving.done():
                self._proving = asyncio.create_task(self._prove())
            await asyncio.shield(self._proving)
        assert self.proof is not None
        return self.proof

    @property
    def proof(self) -> Proof | None:
        """The result of the self-test; None before `proved`."""
        return _proofs.get(self._key)

    @property
    def tier(self) -> Tier:
        return "none" if self.proof is None else self.proof.tier

    @property
    def summary(self) -> str:
        """A sentence for the user: which sandbox commands run in."""
        return "Not known yet." if self.proof is None else self.proof.summary

    async def layer_fault(self, roots: Sequence[Path]) -> str:
        """Why commands in these roots, which are real paths, cannot run in a layer (`SandboxRequirements.layer`), as a
        sentence; "" when they can. It is tried the first time, which takes some 0.1 s. Raises `LayerError` where only
        another try can tell, since the disk is full."""
        if not self._settings.layers:
            return "The setting sandbox.layers is off."
        if (await self.proved()).tier != "bubblewrap":
            return "Without bubblewrap a command cannot be run in a layer."
        key = await asyncio.to_thread(lambda: tuple(map(identity, roots)))
        if key not in self._layer_trials:
            trial = asyncio.create_task(layer_fault(self._home.layers, roots, self._launch_in_layer))
            self._layer_trials[key] = trial
            self._keep(trial)
        try:
            # A cancelled caller does not end the trial: its result counts for the whole daemon.
            return await asyncio.shield(self._layer_trials[key])
        except Exception:
            self._layer_trials.pop(key, None)
            raise

    def create_layer(self, roots: Sequence[Path]) -> Layer:
        """An empty layer over these roots, which are real paths; it is the caller's to remove. Raises `LayerError`,
        `OSError`. Blocking."""
        return Layer.create(self._home.layers, roots)

    def describe(self, place: Place | None) -> CommandSandbox:
        """Describe what holds a command at that place; None: what holds commands in general, whose writing is a matter
        of the mode. Before `proved`, no sandbox is promised."""
        summary = None if place is not None else _FOR_ALL.format(tier=self.tier)
        shown = None if place is None else place.wire()
        place = place or WORKSPACE
        if self.tier == "none" or place.base == "machine":
            why = "no sandbox works here" if self.tier == "none" else "with your permission"
            sentence = f"Not sandboxed ({why}): it can do anything you can."
            return CommandSandbox(
                tier="none",
                writes="everything",
                network=True,
                summary=sentence,
                brief="not sandboxed",
                place=shown,
            )
        return CommandSandbox(
            tier=self.tier,
            writes="workspace" if place.writes else "nothing",
            network=place.reach.network,
            summary=summary or _sentence(self.tier, place),
            brief=_brief(self.tier, place),
            place=shown,
        )

    @asynccontextmanager
    async def launch(
        self,
        argv: Sequence[str],
        need: SandboxRequirements | None,
        roots: Sequence[Path],
        folder: Path,
        handle: int,
        environment: Mapping[str, str],
        entry_shell: EntryShell | None = None,
    ) -> AsyncGenerator[SandboxedCommand]:
        """How to start `argv` in its sandbox, in the folder of that handle; stay in the context until it has ended.
        `roots` are real paths. `entry_shell` runs inside the sandbox. Raises `SandboxError`."""
        need, proof = need or SandboxRequirements(), await self.proved()
        if need.place.base == "machine":
            proof = Proof("none", ())
        stack = ExitStack()
        launch_arguments = (list(argv), need, list(roots), folder, handle, dict(environment), entry_shell)
        preparing = asyncio.create_task(asyncio.to_thread(self._prepare, stack, proof.tier, *launch_arguments))
        try:
            try:
                started = await asyncio.shield(preparing)
            except LayerError as error:
                raise SandboxError(str(error)) from None
            with started.answered():
                yield started
        finally:
            undoing = asyncio.create_task(_undo(preparing, stack))
            self._keep(undoing)
            await asyncio.shield(undoing)

    async def accept(self, path: Path) -> None:
        """Amanu has changed that file, as the user allowed: no running command is to blame for it."""
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._records.accept, path)

    def recorded(self, pid: int, mark: str, need: SandboxRequirements) -> AbstractContextManager[None]:
        """A context to stay in while that command runs: if the daemon is killed meanwhile, the next one ends it, unless
        its sandbox does so at once."""
        ends_itself = self.tier in ("bubblewrap", "landlock") and need.place.base != "machine"
        return contextlib.nullcontext() if ends_itself else self._processes.recorded(pid, mark)

    async def close(self) -> None:
        """Remove temporary folders. No command may be running any more."""
        if self._proving is not None:  # wait for its end, which is near, so that its processes are gone
            await asyncio.gather(self._proving, return_exceptions=True)
        await asyncio.gather(*self._undoing, return_exceptions=True)
        await asyncio.to_thread(self._temporary_exits.close)

    # Inside -----------------------------------------------------------------------------------------

    @property
    def _key(self) -> tuple[int, Tier]:
        return (os.geteuid() if hasattr(os, "geteuid") else 0), self._best

    async def _prove(self) -> Proof:
        if not self._cleaned:
            self._cleaned = True
            await asyncio.to_thread(self._clean)
            # Not awaited: what commands left in layers can be large, and nobody needs the place.
            self._keep(asyncio.create_task(asyncio.to_thread(clean_layers, self._home.layers)))
            await self._processes.sweep()
        proof = await prove(_candidates(self._best), self._launch_in_tier)
        _proofs[self._key] = proof
        log.info("sandbox: %s", proof.summary)
        return proof

    def _keep(self, task: asyncio.Task[Any]) -> None:
        """Keep a task until it is done; `close` waits for it."""
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    def _clean(self) -> None:
        """Clean up what killed daemons left behind. Blocking."""
        self._temporaries.clean()
        finish_left(self._home.layers)
        with contextlib.suppress(OSError), self._records.lock():
            pass

    @asynccontextmanager
    async def _launch_in_tier(
        self, tier: Tier, argv: Sequence[str], root: Path, reads: Sequence[Path]
    ) -> AsyncGenerator[Launch]:
        """Launch for the self-test: as commands are launched, plus what the test itself must read."""
        settings = self._settings.model_copy(update={"read": (*self._settings.read, *map(str, reads))})
        trial = Sandbox(settings, self._home)
        trial._records = CommandRecords(root.parent / "records", root.parent / "aside")  # gone with the stage
        handle = os.open(root, _HANDLE)
        stack = ExitStack()
        try:
            environment = {"PATH": os.defpath, "HOME": os.environ.get("HOME", "/")}
            started = await asyncio.to_thread(
                trial._prepare, stack, tier, list(argv), SandboxRequirements(), [root], root, handle, environment
            )
            with started.answered():
                yield Launch(started.argv, started.environment, started.folder, started.pass_fds)
        finally:
            await asyncio.to_thread(stack.close)
            os.close(handle)
            await trial.close()

    @asynccontextmanager
    async def _launch_in_layer(
        self, argv: Sequence[str], folder: Path, roots: Sequence[Path]
    ) -> AsyncGenerator[Launch]:
        """Launch for the trial of a layer: as commands are launched."""
        need, handle = SandboxRequirements(SCRATCH, layer=folder), await asyncio.to_thread(os.open, roots[0], _HANDLE)
        environment = {"PATH": os.defpath, "HOME": os.environ.get("HOME", "/")}
        try:
            async with self.launch(argv, need, roots, roots[0], handle, environment) as started:
                yield Launch(started.argv, started.environment, started.folder, started.pass_fds)
        except SandboxError as error:
            raise LayerError(str(error)) from None
        finally:
            os.close(handle)

    def _prepare(
        self,
        stack: ExitStack,
        tier: Tier,
        argv: list[str],
        need: SandboxRequirements,
        roots: list[Path],
        folder: Path,
        handle: int,
        environment: dict[str, str],
        entry_shell: EntryShell | None = None,
    ) -> SandboxedCommand:
        """Build the sandboxed command line. What must be undone later is pushed on the stack. Blocking."""
        if need.layer is not None and tier != "bubblewrap":
            raise SandboxError("Without bubblewrap a command cannot be run in a layer.")
        assert need.place.on_copy == (need.layer is not None), need
        reach = need.place.reach
        entry_shell = entry_shell or plain_entry_shell()
        start_folder = f"/proc/self/fd/{handle}"  # exactly the folder that was checked, whatever its name leads to now
        start_folder = start_folder if os.path.exists("/proc/self/fd") else str(folder)  # noqa: PTH110
        if entry_shell is not None and tier != "bubblewrap":
            argv = entry_shell.wrap(argv)
        inherited = () if entry_shell is None else entry_shell.handles
        if tier == "none":
            return SandboxedCommand(argv, environment, start_folder, inherited)
        handles = {root: stack.enter_context(_opened(root)) for root in roots if root != Path("/")}
        _check_inside(handle, handles)
        layer = None
        if need.layer is not None:
            handles = {root: handles[root] for root in outermost_roots(handles)}
            layer = stack.enter_context(command_layer(need.layer, handles))
            view = layer.view(self._view(need, roots, environment), secrets=reach.secrets)
            record, closed = None, list[Path]()
        else:
            view, record, closed = self._begin(stack, tier, need, roots, environment)
        settle = QuarantineResult if record is None else record.settle
        if record is not None and view.workspace_secrets:
            settle = partial(_settle_with_secrets, settle, identities(view.workspace_secrets), roots)
            stack.callback(settle)  # in case the caller gave up waiting and never calls it
        temporary = self._temporary_for(tuple(roots))
        visible_temporary = Path("/tmp") if tier == "bubblewrap" else temporary
        environment |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(visible_temporary))
        if not reach.writes_git:
            # A read-only command must not fail because it cannot refresh the index.
            environment["GIT_OPTIONAL_LOCKS"] = "0"
        plain = SandboxedCommand(
            argv,
            environment,
            start_folder,
            inherited,
            workspace_secrets=view.workspace_secrets,
            hidden=tuple(named for named in need.named if view.hides(named.path, temporary)),
            settle=settle,
        )
        if tier == "seatbelt":
            return replace(plain, argv=seatbelt.command(argv, need, view, temporary))
        if tier == "landlock":
            return _in_landlock(plain, stack, need, view, temporary, closed, record)
        return _in_bubblewrap(plain, stack, need, view, temporary, handles, entry_shell, layer)

    def _begin(
        self, stack: ExitStack, tier: Tier, need: SandboxRequirements, roots: list[Path], environment: Mapping[str, str]
    ) -> tuple[FilesystemView, CommandRecord | None, list[Path]]:
        """Record what is there before the command. Returns what it sees, its record, and the paths too large to record,
        which must be closed to it."""
        if not need.place.writes:
            return self._view(need, roots, environment), None, []
        try:
            with self._records.lock():
                view = self._view(need, roots, environment)
                prior, closed = prior_state(tier, need, view)
                return view, stack.enter_context(self._records.begin(prior)), closed
        except OSError as error:
            raise SandboxError(
                f"The files that git, editors and agents obey could not be recorded in {self._home.state}: "
                f"{error.strerror}. The command was not run. Free some disk space there, or check who owns that folder."
            ) from None

    def _view(self, need: SandboxRequirements, roots: list[Path], environment: Mapping[str, str]) -> FilesystemView:
        return filesystem_view(need, roots, environment, self._settings, self._home)

    def _temporary_for(self, roots: tuple[Path, ...]) -> Path:
        """The temporary folder shared by commands in the same roots: what one leaves in `/tmp`, the next one finds."""
        temporary = self._temporary.get(roots)
        if temporary is None or not temporary.is_dir():
            make = self._temporaries.make(lambda: tempfile.mkdtemp(prefix="amanu-"))
            temporary = self._temporary[roots] = Path(os.path.realpath(self._temporary_exits.enter_context(make)))
        return temporary


def _candidates(best: Tier) -> dict[Tier, str]:
    """The tiers to try, best first, each with why it cannot work here, or "" when it must be tried."""
    candidates: dict[Tier, str] = {}
    if sys.platform == "darwin":
        return {"seatbelt": "" if seatbelt.PROGRAM.exists() else "sandbox-exec is not installed."}
    if sys.platform != "linux":
        return {}
    try:
        seccomp.filter_program(())
        no_filter = ""
    except seccomp.FilterUnavailable as error:
        no_filter = str(error)
    if best == "bubblewrap":
        places = " or ".join(bubblewrap.PLACES[:1])
        candidates["bubblewrap"] = no_filter or (
            "" if bubblewrap.program() else f"bubblewrap is not installed at {places}."
        )
    if best != "none":
        candidates["landlock"] = no_filter or (
            "" if landlock.version() else "This kernel does not support Landlock, or it is turned off."
        )
    return candidates


def _in_landlock(
    plain: SandboxedCommand,
    stack: ExitStack,
    need: SandboxRequirements,
    view: FilesystemView,
    temporary: Path,
    closed: list[Path],
    record: CommandRecord | None,
) -> SandboxedCommand:
    """The plain command behind Landlock and a system call filter. `closed` paths cannot be written."""
    version = landlock.version()
    allowed = seccomp.allowed_families(network=need.place.reach.network, own_namespace=False)
    filter = seccomp.filter_program(
        allowed, alone=False, cuts=landlock.refuses_truncation(version), owners=need.place.writes
    )
    orders = landlock.launcher_orders(need, view, temporary, filter, version, closed, plain.environment, plain.pass_fds)
    spec = stack.enter_context(_bytes(orders))
    # The launcher is our Python, which may not start without what the daemon was started with.
    outer = without_loader_settings(plain.environment) | loader_settings(os.environ)
    # The launcher, which outlives the whole command, keeps the record locked.
    passed = (*plain.pass_fds, spec) if record is None else (*plain.pass_fds, spec, record.handle)
    argv = landlock.command(plain.argv, spec)
    return replace(plain, argv=argv, environment=outer, pass_fds=passed, holders=landlock.HOLDERS)


def _in_bubblewrap(
    plain: SandboxedCommand,
    stack: ExitStack,
    need: SandboxRequirements,
    view: FilesystemView,
    temporary: Path,
    handles: Mapping[Path, int],
    entry_shell: EntryShell | None,
    layer: CommandLayer | None,
) -> SandboxedCommand:
    """The plain command in bubblewrap, over its layer if it has one. `handles` are the opened roots. With an entry
    shell, it waits at a start gate. Raises `SandboxError`."""
    program = bubblewrap.program()
    if program is None:
        raise SandboxError("bubblewrap is no longer installed; restart Amanu.")
    allowed = seccomp.allowed_families(network=need.place.reach.network, own_namespace=True)
    filter = stack.enter_context(_bytes(seccomp.filter_program(allowed)))
    shown = dict(need.pinned if layer is None else layer.shown(need.pinned))
    attempts = stack.enter_context(network_attempts())
    if not need.place.reach.network and os.path.isfile(resolver := os.path.realpath("/etc/resolv.conf")):  # noqa: PTH113
        shown[resolver] = NO_RESOLVER
    pinned = {path: stack.enter_context(_bytes(data)) for path, data in shown.items()}
    inner, gate = plain.argv, None
    if entry_shell is not None:
        gate = stack.enter_context(start_gate(lambda pid: None if need.place.reach.network else attempts.watch(pid)))
        inner = entry_shell.with_step(gate.step).wrap(inner)
    argv = bubblewrap.command(
        program,
        inner,
        need,
        view,
        temporary=temporary,
        folder=Path(os.readlink(plain.folder)),  # noqa: PTH115
        roots=handles,
        pinned=pinned,
        filter=filter,
        as_root=os.geteuid() == 0,
        layer=None if layer is None else layer.binds(),
    )
    outer = without_loader_settings(plain.environment)
    settings = stack.enter_context(_bytes(bubblewrap.variables(loader_settings(plain.environment))))
    argv[1:1] = ["--args", str(settings)]
    inherited = plain.pass_fds if gate is None else (*plain.pass_fds, gate.handle)
    passed = (*inherited, *handles.values(), *pinned.values(), filter, settings)
    if layer is not None:
        argv, passed = [*layer.prefix(), *argv], (*passed, layer.handle)
    return replace(
        plain,
        argv=argv,
        environment=outer,
        pass_fds=passed,
        holders=bubblewrap.HOLDERS,
        start_gate=gate,
        tried_network=attempts.seen,
    )


def _settle_with_secrets(
    settle: Callable[[], QuarantineResult], secrets: Mapping[Path, Identity], roots: list[Path]
) -> QuarantineResult:
    back = restore_secrets(secrets, [root for root in roots if root != Path("/")])
    return QuarantineResult(secrets=tuple(back)).joined(settle())


_FOR_ALL = (
    "Commands run in a sandbox ({tier}), without network access unless you grant it; in your home folder they see only "
    "installed tools."
)


def _sentence(tier: Tier, place: Place) -> str:
    network = "it can use the network" if place.reach.network else "it has no network access"
    return f"Sandboxed ({tier}). {_writes(tier, place)}; {network}; in your home folder it sees only installed tools."


def _writes(tier: Tier, place: Place) -> str:
    if not place.writes:
        return "It can change nothing"
    if place.then == "dropped":
        return "What it changes in the workspace is thrown away"
    if place.on_copy:
        return "What it changes in the workspace is kept apart until it is accepted"
    if tier == "landlock":
        return (
            "It can change the workspace; changes to git's hooks and settings and to editor and agent configuration "
            "files are moved aside when it ends"
        )
    git = "git's hooks and settings" if place.reach.writes_git else ".git"
    return f"It can change the workspace except {git} and editor and agent configuration files"


def _brief(tier: Tier, place: Place) -> str:
    writes = "can change the workspace" if place.writes else "read-only"
    if place.on_copy and place.writes:
        writes = "private copy of the workspace"
    return f"sandboxed ({tier}): {writes}, {'network access' if place.reach.network else 'no network'}"


async def _undo(preparing: asyncio.Task[SandboxedCommand], stack: ExitStack) -> None:
    """Close the stack once `_prepare` has ended, cancelled or not. In a thread, since removing folders on a busy disk
    takes milliseconds."""
    await asyncio.wait({preparing})
    await asyncio.to_thread(stack.close)


@contextlib.contextmanager
def _opened(root: Path):
    if os.path.realpath(root) != str(root):
        raise SandboxError(
            f"{root} no longer leads to the same folder as when the session was opened. Open that folder again."
        )
    try:
        handle = os.open(root, _HANDLE)
    except OSError as error:
        raise SandboxError(f"The folder {root} cannot be opened: {error.strerror}.") from None
    try:
        yield handle
    finally:
        os.close(handle)


def _check_inside(folder: int, roots: Mapping[Path, int]) -> None:
    """Raise `SandboxError` unless one of the opened roots contains exactly the folder that was checked: a root may have
    been replaced for a moment."""
    if not roots or not os.path.exists("/proc/self/fd"):  # noqa: PTH110
        return
    path = Path(os.readlink(f"/proc/self/fd/{folder}"))  # noqa: PTH115
    for root, handle in roots.items():
        if is_inside(path, [root]):
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(path.relative_to(root), dir_fd=handle), os.fstat(folder)):
                    return
    raise SandboxError(f"{path} was replaced by another folder a moment ago, so the command was not run. Try again.")


@contextlib.contextmanager
def _bytes(data: bytes):
    """A handle from which these bytes can be read once."""
    handle = os.memfd_create("amanu")
    try:
        with os.fdopen(os.dup(handle), "wb") as file:
            file.write(data)
        os.lseek(handle, 0, os.SEEK_SET)
        yield handle
    finally:
        os.close(handle)
