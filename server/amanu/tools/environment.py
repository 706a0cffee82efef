"""What a session's tools work with. Every tool is created as `SomeTool(environment)`."""

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from amanu.checks.editor_feedback import EditorFeedback
from amanu.config import Settings
from amanu.core.conversation import Picture
from amanu.core.plan_mode import PlanMode
from amanu.core.questions import UserQuestions
from amanu.core.tool import P, Tool
from amanu.permissions.policy import is_read_only
from amanu.proposals.proposals import Proposals
from amanu.sandbox.sandbox import Sandbox
from amanu.storage.file_store import FileStore
from amanu.text.redaction import Secrets
from amanu.tools.limits import ToolLimits
from amanu.tools.shell.jobs import Jobs
from amanu.tools.shell.session_layer import SessionLayer
from amanu.web.fetch import PageFetcher
from amanu.web.search import SearchService
from amanu.workspace.overlay import CodePlace, Renaming
from amanu.workspace.search import Search
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import BlobRef, Mode, Todo


class Blobs(Protocol):
    """Stores output that is too long to show. Implemented by `storage/journal.py`."""

    async def put_blob(self, data: bytes) -> BlobRef: ...

    async def find_blob(self, beginning: str) -> bytes: ...


class ShownPictures(Protocol):
    """Takes what a tool shows the model. Implemented by `context/images.py`. Raises `AmanuError` for what no model
    takes, and when there is no more room."""

    async def show(self, name: str, data: bytes) -> Picture: ...

    async def show_document(self, name: str, data: bytes, pages: int) -> Picture:
        """A PDF document of so many pages."""
        ...


@dataclass(frozen=True)
class ToolEnvironment:
    """Belongs to one session."""

    workspace: Workspace
    proposals: Proposals
    blobs: Blobs
    variables: Mapping[str, str]
    """Environment variables for commands: the client's, not the daemon's."""
    settings: Settings = field(default_factory=Settings)
    secrets: Secrets = field(default_factory=Secrets)
    """Masked in what commands print."""
    sandbox: Sandbox | None = None
    """What commands run in; None: no sandbox."""
    trusted: Callable[[], bool] = lambda: False
    """Whether the user trusts the workspace at this moment."""
    mode: Callable[[], Mode] = lambda: "ask"
    """The mode that holds at this moment."""
    plan_mode: PlanMode | None = None
    """None: there is no session."""
    headless: bool = False
    """Nobody is there to ask."""
    feedback: EditorFeedback | None = None
    """Reports what edits do to the findings of the user's editor; None: there is no editor."""
    rename: Callable[[CodePlace, str], Awaitable[Renaming | None]] | None = None
    """Asks a language server that the daemon runs for its checks to give the symbol there a new name, for when no
    editor answers; the answer None: none runs."""
    set_todos: Callable[[Sequence[Todo]], None] = lambda todos: None
    """Replaces the session's to-do list."""
    pictures: ShownPictures | None = None
    """What models are shown; None: there is no model."""
    session_layer: SessionLayer | None = None
    """The layer of the session's commands; None: one of this environment's own."""
    jobs: Jobs = field(default_factory=Jobs)
    """The session's background commands."""
    pages: PageFetcher = field(default_factory=PageFetcher)
    search_service: SearchService | None = None
    """Searches the web, if the user has named one."""
    model_searches: bool = False
    """The service of the session's model searches the web."""
    questions: UserQuestions | None = None
    """Asks the user; None: nobody is there."""

    def read_only(self) -> bool:
        """Whether nothing that commands change may be kept at this moment."""
        return is_read_only(self.mode())

    @cached_property
    def limits(self) -> ToolLimits:
        shell = self.settings.shell
        return ToolLimits(shell_inactivity=shell.inactivity_seconds, shell_total=shell.total_seconds)

    @cached_property
    def layer(self) -> SessionLayer:
        if self.session_layer is not None:
            return self.session_layer
        store = FileStore(Path(tempfile.gettempdir()) / f"amanu-files-{token_hex(8)}")
        return SessionLayer(self.workspace, self.proposals, self.sandbox, store)

    @cached_property
    def search(self) -> Search:
        return Search(self.workspace)


class SessionTool(Tool[P]):
    """A tool that works with its session's environment."""

    def __init__(self, environment: ToolEnvironment) -> None:
        self._environment = environment
        self._workspace = environment.workspace
        self._limits = environment.limits

    def path_title(self, verb: str, arguments: Mapping[str, Any]) -> str:
        """A `title_of` for a call about one path."""
        path = arguments.get("path")
        return f"{verb} {self._workspace.as_written(path)}" if isinstance(path, str) else self.name
