"""What is kept of old work, and for how long: `[history]` of the settings. Nothing of a session that is open goes."""

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from amanu.config import HistorySettings
from amanu.storage import preimages
from amanu.storage.preimages import TurnPreimages
from amanu_protocol.errors import AmanuError

DAY_MS = 24 * 3600 * 1000
_MB = 1024 * 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Removal:
    """Turns of a session whose pre-images go."""

    folder: Path
    turn_ids: frozenset[str]
    position: int
    """Of the session's last record: if there are more by then, it is left alone."""

    def apply(self) -> None:
        """Do it. Blocks; never fails."""
        try:
            freed = preimages.remove(self.folder, self.turn_ids, self.position)
        except AmanuError as error:
            log.warning("Old pre-images stay. %s", error)
        else:
            log.info("pre-images of %d turns removed from %s: %d bytes", len(self.turn_ids), self.folder, freed)


def removals(sessions: Path, history: HistorySettings, current_time: int) -> list[Removal]:
    """What of the pre-images below the folder of all sessions is too old or too much. Blocks; never fails."""
    if not history.keep_preimages_days and not history.keep_preimages_mb:
        return []
    candidates: list[TurnPreimages] = []
    with contextlib.suppress(FileNotFoundError):
        for folder in sorted(sessions.iterdir()):
            try:
                candidates += preimages.survey(folder)
            except AmanuError as error:
                log.warning("Pre-images cannot be looked at. %s", error)
    return excess(candidates, history, current_time)


def excess(candidates: Iterable[TurnPreimages], history: HistorySettings, current_time: int) -> list[Removal]:
    """Which of them go: those that are too old, then the oldest of those that are too much together. `now` in
    milliseconds since the epoch."""
    oldest = current_time - history.keep_preimages_days * DAY_MS if history.keep_preimages_days else 0
    bytes_left = history.keep_preimages_mb * _MB if history.keep_preimages_mb else None
    counted: set[tuple[Path, str]] = set()
    going: dict[tuple[Path, int], set[str]] = {}
    newest_first = sorted(
        candidates,
        key=lambda candidate: (not candidate.needed, -candidate.timestamp, str(candidate.folder), candidate.turn_id),
    )
    for each in newest_first:  # what cannot go takes its room first
        blobs = {(each.folder, blob_id): size for blob_id, size in each.blobs.items()}
        size = sum(size for blob, size in blobs.items() if blob not in counted)
        if not each.needed and (each.timestamp < oldest or (bytes_left is not None and size > max(bytes_left, 0))):
            going.setdefault((each.folder, each.position), set()).add(each.turn_id)
            if bytes_left is not None and each.timestamp >= oldest:
                bytes_left = 0  # nor does what is older stay
            continue
        counted |= blobs.keys()
        bytes_left = None if bytes_left is None else bytes_left - size
    return [Removal(folder, frozenset(turn_ids), position) for (folder, position), turn_ids in going.items()]
