"""What the model of one session has been shown of the workspace's files, so that it can be told when one is another.

Kept by path, as a digest of the text the model believes to be there: what a tool showed it, or its own edit made of
that. A file that changed before its edit was applied stays in doubt: the model has not seen that change. It is on
record with the results of calls, and so outlives the daemon.
"""

from dataclasses import dataclass
from pathlib import Path

from amanu.core.conversation import Conversation
from amanu.workspace.text_file import FileText, sha256

MAX_FILES = 500
"""Files that are remembered; then those shown longest ago are forgotten."""


@dataclass
class ShownFile:
    digest: str | None
    """Of the text the model knows; None: that there is no such file."""
    source: str = ""
    """The call whose result holds the text; "" when no single result does (an edit, a mention)."""
    state: object = None
    """How the file looked from outside when its text was last compared."""


class ShownFiles:
    def __init__(self) -> None:
        self.files: dict[Path, ShownFile] = {}
        """By resolved path, the last shown last."""
        self.unrecorded: dict[Path, None] = {}
        """Those that are not on record yet."""
        self.generation = 0
        """Of the conversation, when what it does not hold any more was forgotten."""

    def show(self, file: FileText, source: str = "") -> None:
        """The model is shown that text, or a part of it."""
        self._remember(file.path, ShownFile(digest(file), source))

    def edited(self, path: Path, old_file: FileText | None, new_digest: str | None) -> None:
        """An edit by the model left the file with the text of `new_digest` (None: no file). The model knows that text
        if it knew the old one, or knew nothing of the file."""
        previous = self.files.get(path)
        if previous is None or previous.digest == (None if old_file is None else digest(old_file)):
            self._remember(path, ShownFile(new_digest))

    def take_unrecorded(self) -> dict[str, tuple[str | None, str]]:
        """What became known since this was last asked, for the record (`Result.knows`)."""
        fresh, self.unrecorded = self.unrecorded, {}
        return {
            str(path): (entry.digest, entry.source) for path in fresh if (entry := self.files.get(path)) is not None
        }

    def restore(self, conversation: Conversation) -> None:
        """Know what the results in that conversation say, and nothing else."""
        self.files.clear()
        for result in conversation.results():
            for path, (digest, source) in result.known_files.items():
                self._remember(Path(path), ShownFile(digest, source))
        self.unrecorded.clear()
        self.generation = conversation.generation

    def _remember(self, path: Path, entry: ShownFile) -> None:
        self.unrecorded[path] = None
        self.files.pop(path, None)
        self.files[path] = entry
        if len(self.files) > MAX_FILES:
            del self.files[next(iter(self.files))]


def digest(file: FileText) -> str:
    """Of its text, whether an editor has it or the disk."""
    return file.sha256 if file.from_buffer or file.encoding == "utf-8" else _digest(file.text)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass"))
