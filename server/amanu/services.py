"""What the daemon's sessions share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.checkers.checkers import Checkers
from amanu.config import Settings
from amanu.consent import Consent
from amanu.models.availability import Availability
from amanu.workspace.overlay import Overlay

if TYPE_CHECKING:
    from amanu.models.registry import Registry
    from amanu.session import Session


@dataclass(frozen=True)
class Services:
    """One per process."""

    settings: Settings
    registry: "Registry"
    overlay: Overlay
    consent: Consent
    checkers: Checkers
    commands: Path
    """The folder of the user's own commands."""
    memory: Path
    """The user's own memory file."""
    mask: Callable[[str], str] = lambda text: text
    """Takes all known keys out of a text."""
    headless: bool = False
    """Nobody is there to ask: what would be asked is denied."""
    until_done: bool = False
    """A turn ends when the model says with `finish_task` that the task is done, not when it stops."""
    changed: Callable[["Session"], None] = lambda session: None
    """Called when what a list of sessions shows has changed."""
    availability: Availability = field(default_factory=Availability)
    """Of models; what one session finds out, the others need not."""
