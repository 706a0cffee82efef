"""The place of a command: where it runs, what it finds there, and what becomes of what it writes, as one value.

`permissions/placing.py` decides it, `tools/shell/places.py` opens it, the sandbox enforces it, and the protocol and the
audit log say it.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal

from amanu_protocol.items import CommandPlace, Grant

Base = Literal["machine", "workspace", "copy", "fork"]
"""`machine`: outside the sandbox · `workspace`: the workspace itself · `copy`: the session's private copy of it, a
layer that later commands find again · `fork`: a layer that began as a copy of that one, for a sub-agent or for this
command alone."""

Finds = Literal["disk", "saved", "session"]
"""`disk`: the workspace's files · `saved`: the same, on a private copy · `session`: also unsaved text, undecided
edits and the draft."""

Then = Literal["stays", "proposed", "drafted", "dropped"]
"""The fate of what it writes; `dropped` also for a command that only reads there."""

Git = Literal["none", "files", "checkout", "settings"]
"""The part of git's own files that it may write; each level includes those before it. `files`: the index, objects and
refs, never hooks · `checkout`: protected files that differ between branches (`protected_paths.CHECKED_OUT`), for lines
that hold only git commands · `settings`: remotes, branches and submodules, as git itself changes them."""

_IN_PLACE: tuple[Base, ...] = ("machine", "workspace")


@dataclass(frozen=True)
class Reach:
    """Access beyond the files of the workspace."""

    network: bool = False
    secrets: bool = False
    """It may read the workspace's files that hold secrets (`.env`, keys): the user was asked, or one of their rules
    names the command."""
    git: Git = "none"

    @property
    def writes_git(self) -> bool:
        """Whether it may write the index, objects and refs."""
        return self.git != "none"

    @property
    def checks_out(self) -> bool:
        """Whether it may write protected files that differ between branches."""
        return self.git in ("checkout", "settings")


@dataclass(frozen=True)
class Place:
    """Raises `ValueError` for an impossible combination."""

    base: Base = "workspace"
    writes: bool = True
    """It may write in the workspace, or in its copy of it. False: nothing but temporary files."""
    finds: Finds = "disk"
    then: Then = "stays"
    reach: Reach = field(default_factory=Reach)
    tried: bool = False
    """Nobody was asked: what the sandbox blocks becomes a question."""

    def __post_init__(self) -> None:
        reach = self.reach
        if self.base in _IN_PLACE:
            right = (self.finds, self.then) == ("disk", "stays")
        else:
            right = self.finds != "disk" and self.then != "stays"
            right = right and reach.git in (("none", "files") if self.finds == "saved" else ("none",))
        if not self.writes:
            right = right and reach.git == "none" and self.then in ("stays", "dropped")
        if self.base == "machine":
            right = right and reach.network and reach.secrets
        if self.tried:
            right = right and not (reach.network or reach.secrets) and not (self.base == "workspace" and self.writes)
        if not right:
            raise ValueError(f"There is no such place: {self}")

    @property
    def on_copy(self) -> bool:
        """Whether the command runs on a private copy of the workspace, in a layer."""
        return self.base not in _IN_PLACE

    @property
    def only_looks(self) -> bool:
        """Whether it is meant to change nothing; not so if it is only tried where it can change nothing."""
        return not (self.writes or self.tried)

    @property
    def words(self) -> str:
        """The place for the user, an adverbial: "on a private copy of the workspace; what it changes is proposed"."""
        parts = [_BASES[self.base]]
        if not self.writes:
            parts[0] += ", with nothing writable" if self.base != "machine" else ""
        elif self.on_copy:
            parts.append(f"what it changes is {_ENDS[self.then]}")
        if self.finds == "saved":
            parts.append("it sees only saved text and accepted edits")
        if self.base != "machine" and self.reach.network:
            parts.append("with network access")
        return "; ".join(parts)

    @classmethod
    def read(cls, place: CommandPlace) -> "Place":
        reach = Reach(network=place.network, secrets=place.secrets, git=place.git)
        return cls(place.base, place.writes, place.finds, place.then, reach, place.tried)

    def wire(self) -> CommandPlace:
        reach = self.reach
        return CommandPlace(
            base=self.base,
            writes=self.writes,
            finds=self.finds,
            then=self.then,
            network=reach.network,
            secrets=reach.secrets,
            git=reach.git,
            tried=self.tried,
            words=self.words,
        )


WORKSPACE = Place()
READ_ONLY = Place(writes=False)
MACHINE = Place("machine", reach=Reach(network=True, secrets=True))

LOOK = Place("copy", writes=False, finds="session", then="dropped")
"""A command that only reads finds what the session shows."""
SCRATCH = Place("fork", finds="session", then="dropped")
"""A layer for one command."""


def outside(*, acts: bool, git: Git) -> Place:
    """The place outside the sandbox. `git`: how much of git's own files the line may write."""
    return replace(MACHINE, writes=acts, reach=replace(MACHINE.reach, git=git if acts else "none"))


@dataclass(frozen=True)
class Placing:
    """The places of one command."""

    tried: Place | None
    """Before anybody is asked; None: it is not tried."""
    approved: Place
    """Once it is approved, with no extra grants."""
    acts: bool = True
    """It has an effect, or may have one."""

    def granted(self, grants: Collection[Grant], *, secrets: bool) -> Place:
        """Return where it runs once it is approved with these grants."""
        place = self.approved
        if "unsandboxed" in grants or place.base == "machine":
            return outside(acts=self.acts, git=place.reach.git)
        return replace(place, reach=replace(place.reach, network="network" in grants, secrets=secrets))


_BASES: dict[Base, str] = {
    "machine": "outside the sandbox",
    "workspace": "in the workspace",
    "copy": "on a private copy of the workspace",
    "fork": "on a private copy of its own",
}
_ENDS: dict[Then, str] = {"stays": "kept", "proposed": "proposed", "drafted": "drafted", "dropped": "thrown away"}
