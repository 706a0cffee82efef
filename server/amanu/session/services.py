"""What the daemon's sessions share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.checks.runner import Checkers
from amanu.config import Settings
from amanu.models.availability import Availability
from amanu.permissions.rule_store import Consent
from amanu.permissions.trust_store import Trust
from amanu.sandbox.sandbox import Sandbox
from amanu.storage.audit_log import Audit
from amanu.text.redaction import Secrets
from amanu.workspace.overlay import Overlay

if TYPE_CHECKING:
    from amanu.models.registry import Registry
    from amanu.session.session import Session


@dataclass(frozen=True)
class Services:
    """One per process."""

    settings: Settings
    registry: "Registry"
    overlay: Overlay
    consent: Consent
    trust: Trust
    checkers: Checkers
    sandbox: Sandbox
    commands: Path
    """The folder of the user's own commands."""
    memory: Path
    """The user's own memory file."""
    audit: Audit
    """What was decided and done, of all sessions."""
    private: tuple[Path, ...] = ()
    """Amanu's own folders, which are in no workspace."""
    secrets: Secrets = field(default_factory=Secrets)
    """What must not be told, of this process."""
    learn: Callable[[Mapping[str, str]], None] = lambda environment: None
    """Hides the keys of that environment from now on."""
    headless: bool = False
    """Nobody is there to ask: what would be asked is denied."""
    until_done: bool = False
    """A turn ends when the model says with `finish_task` that the task is done, not when it stops."""
    changed: Callable[["Session"], None] = lambda session: None
    """Called when what a list of sessions shows has changed."""
    rules_changed: Callable[[], None] = lambda: None
    """Called when a rule was kept that holds beyond one session."""
    availability: Availability = field(default_factory=Availability)
    """Of models; what one session finds out, the others need not."""
