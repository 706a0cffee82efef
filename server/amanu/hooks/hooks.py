"""All hooks of a user and of the workspaces that they work in."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from amanu.hooks.config import project_sources, read_source, user_source
from amanu.hooks.model import Hook, HookSource, HookView
from amanu.hooks.pins import HookPins
from amanu.system.file_stamp import FileStamp, file_stamp
from amanu.workspace.workspace import Workspace


@dataclass(frozen=True)
class _Content:
    """The hooks in some files, and the stamps of the files when they were read."""

    stamps: Sequence[FileStamp]
    hooks: Sequence[Hook]


class Hooks:
    """One per process. `config` is the user's configuration folder, `approved` the file of what they approved,
    `of_plugins` takes the folder that the hooks of plug-ins run in, and returns these. Methods block, for a fraction of
    a millisecond if nothing is configured; they raise `AmanuError` (storageError)."""

    def __init__(
        self, config: Path, approved: Path, of_plugins: Callable[[Path], Sequence[Hook]] = lambda folder: ()
    ) -> None:
        self._config = config
        self.pins = HookPins(approved)
        self._of_plugins = of_plugins
        self._read: dict[Sequence[HookSource], _Content] = {}

    def views(self, workspace: Workspace, *, trusted: bool, home: str = "") -> list[HookView]:
        """The hooks of that workspace in the order of configuration, the user's own first; without the workspace's own
        while it is not trusted. `home` is the user's home folder."""
        views = [self.pins.view(hook, workspace, home) for hook in self._hooks(workspace, trusted=trusted)]
        return views if trusted else [_untrusted(view, workspace) for view in views]

    def program_files(self, workspace: Workspace, *, trusted: bool, home: str = "") -> list[Path]:
        """The files that approved hooks run in that workspace, even if they have changed since. None is read: quick
        enough for the event loop."""
        files = [self.pins.program_files(hook, workspace, home) for hook in self._hooks(workspace, trusted=trusted)]
        return [path for paths in files if trusted or not _any_inside(paths, workspace) for path in paths]

    def configured(self, workspace: Workspace, *, trusted: bool) -> bool:
        """Whether any file may configure hooks, plug-ins apart. A few `stat` calls: quick enough for the event loop."""
        return any(source.path.exists() for source in self._sources(workspace, trusted=trusted))

    def unread(self, workspace: Workspace) -> list[str]:
        """The names of the files that would configure hooks if the workspace were trusted."""
        return [source.name for source in project_sources(workspace.roots) if source.path.is_file()]

    def _hooks(self, workspace: Workspace, *, trusted: bool) -> Sequence[Hook]:
        sources = self._sources(workspace, trusted=trusted)
        stamps = [file_stamp(source.path) for source in sources]
        content = self._read.get(sources)
        if content is None or content.stamps != stamps:
            hooks = [hook for source in sources for hook in read_source(source, workspace)]
            content = self._read[sources] = _Content(stamps, hooks)
        own = [hook for hook in content.hooks if hook.source.owner == "user"]
        return [*own, *self._of_plugins(workspace.roots[0]), *content.hooks[len(own) :]]

    def _sources(self, workspace: Workspace, *, trusted: bool) -> Sequence[HookSource]:
        return _sources(self._config, tuple(workspace.roots), trusted=trusted)


@functools.lru_cache(maxsize=64)
def _sources(config: Path, roots: Sequence[Path], *, trusted: bool) -> Sequence[HookSource]:
    """Cached, since several are needed for each prompt and each call."""
    return (user_source(config, roots[0]), *(project_sources(roots) if trusted else ()))


def _untrusted(view: HookView, workspace: Workspace) -> HookView:
    """The hook as it stands when the workspace is not trusted: nothing of the workspace is started."""
    if view.state == "invalid" or not _any_inside([Path(path) for path in view.files], workspace):
        return view
    return replace(view, state="untrusted", reason="It runs files of this folder, which is not trusted.")


def _any_inside(paths: Sequence[Path], workspace: Workspace) -> bool:
    return any(workspace.guard.inside(path) for path in paths)
