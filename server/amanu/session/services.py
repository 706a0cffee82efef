"""The services that all sessions of a process share."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from amanu.checks.runner import Checkers
from amanu.config import Settings
from amanu.home import Home
from amanu.mcp.model import McpServers
from amanu.mcp.servers import Servers
from amanu.models.availability import Availability
from amanu.models.catalogue import Catalogue
from amanu.models.credentials import Credentials
from amanu.models.registry import ModelRegistry
from amanu.permissions import policy
from amanu.permissions.rule_store import RuleStore
from amanu.permissions.trust_store import TrustStore
from amanu.sandbox.sandbox import Sandbox
from amanu.session.plugins import plugin_servers
from amanu.storage.audit_log import AuditLog
from amanu.system import logs
from amanu.text.redaction import Secrets
from amanu.web.fetch import PageFetcher
from amanu.web.search import SEARCH_KEYS
from amanu.workspace.file_events import FileEvents
from amanu.workspace.git.staged import StagedFiles
from amanu.workspace.overlay import Overlay
from amanu.workspace.watcher import WorkspaceWatcher
from amanu_protocol.state import SessionState


@dataclass(frozen=True)
class Services:
    """One per process, made by `make_services`."""

    home: Home
    settings: Settings
    secrets: Secrets
    """Texts that must not be shown, logged or sent."""
    auth: Credentials
    registry: ModelRegistry
    overlay: Overlay
    watching: WorkspaceWatcher
    events: FileEvents
    staged: StagedFiles
    rules: RuleStore
    trust: TrustStore
    checkers: Checkers
    sandbox: Sandbox
    audit: AuditLog
    """The audit log of all sessions."""
    headless: bool = False
    """Nobody is there to ask: what needs approval is denied, naming the rule that would allow it."""
    until_done: bool = False
    """A turn ends when the model calls `finish_task`, not when it stops."""
    on_session_changed: Callable[[SessionState], None] = lambda state: None
    """Called when what a list of sessions shows of that one has changed."""
    on_rules_changed: Callable[[], None] = lambda: None
    """Called when a rule was saved that holds beyond one session."""
    availability: Availability = field(default_factory=Availability)
    """Which models are unavailable: what one session finds out, the others know."""
    pages: PageFetcher = field(default_factory=PageFetcher)
    """Fetches pages of the web, and keeps the latest."""
    mcp: McpServers | None = None
    """The MCP servers of all sessions; None: there are none."""

    def with_callbacks(self, changed: Callable[[SessionState], None], rules_changed: Callable[[], None]) -> "Services":
        """The same services, with these callbacks."""
        return dataclasses.replace(self, on_session_changed=changed, on_rules_changed=rules_changed)


def make_services(home: Home, settings: Settings, *, headless: bool = False, until_done: bool = False) -> Services:
    """The services of the user whose `home` it is; see `Services` for the flags."""
    secrets = Secrets()
    logs.use_secrets(secrets)
    watching, events = WorkspaceWatcher(), FileEvents()
    auth = Credentials(home.auth, secrets)
    if (engine := settings.web.search) is not None and engine in SEARCH_KEYS:
        auth.expect(engine, SEARCH_KEYS[engine])
    sandbox = Sandbox(settings.sandbox, home)
    staged = StagedFiles(events.watch if FileEvents.are_here() else watching.watch)
    sandbox.changes = staged.own
    return Services(
        home,
        settings,
        secrets,
        auth,
        ModelRegistry(settings, auth, home.local_models, Catalogue(home.catalogue)),
        Overlay(watching.watch, events.watch if FileEvents.are_here() else None),
        watching,
        events,
        staged,
        RuleStore(home.config, settings),
        TrustStore(home.config / "trust.json", home.state / "trust", policy.unasked, home.private),
        Checkers(settings.checks, sandbox, settings.key_variables),
        sandbox,
        AuditLog(home.audit, secrets, settings.history.keep_audit_mb),
        headless=headless,
        until_done=until_done,
        pages=PageFetcher(settings.web.allow_hosts),
        mcp=Servers(
            home, sandbox, key_variables=settings.key_variables, of_plugins=partial(plugin_servers, home.plugins)
        ),
    )
