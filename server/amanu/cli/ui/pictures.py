"""Pictures for a prompt: from the clipboard, or files whose paths are pasted. Each stands in the composer as a word,
and goes with the prompt that has it."""

import base64
import re
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from amanu.system.image_info import media_type, whole
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ImageAttachment

MOST_BYTES = 5 * 1024 * 1024 // 4 * 3
"""The most bytes of one that the daemon takes (`context/images.py`)."""
MOST_KEPT = 20
_WORD = re.compile(r"\[picture (\d+)\]")
_PATHS = re.compile(r"\S[^\r\n]*\.(?:png|jpe?g|gif|webp)['\"]?\s*", re.IGNORECASE)
_LONGEST_PATHS = 4096


class Pictures:
    """Those of one chat. They keep their numbers: a prompt that could not be sent, or is sent again, has its own."""

    def __init__(self) -> None:
        self._attachments: dict[int, ImageAttachment] = {}
        self._count = 0

    def add(self, name: str, data: bytes) -> str:
        """The word for a picture. Raises `AmanuError` for what no model takes."""
        kind = media_type(data)
        if kind is not None and len(data) > MOST_BYTES:
            limit = f"models accept at most {MOST_BYTES / 2**20:.2f} MiB"
            raise AmanuError("invalidParams", f"{name} is too big: {limit}.", hint="Scale it down or crop it.")
        if kind is None or not whole(data):
            raise AmanuError(
                "invalidParams", f"{name} is no whole PNG, JPEG, GIF or WebP picture.", hint="Save it again as PNG."
            )
        self._count += 1
        encoded = base64.b64encode(data).decode("ascii")
        self._attachments[self._count] = ImageAttachment(name=name, media_type=kind, data=encoded)
        if len(self._attachments) > MOST_KEPT:
            del self._attachments[min(self._attachments)]
        return f"[picture {self._count}]"

    def named(self, text: str) -> list[ImageAttachment]:
        """The pictures whose words stand in a prompt, each once."""
        numbers = dict.fromkeys(int(found) for found in _WORD.findall(text))
        return [self._attachments[number] for number in numbers if number in self._attachments]


def pasted_paths(text: str) -> Sequence[Path]:
    """The files that a paste consists of, if it may be pictures that were dragged here: absolute paths, quoted or
    escaped as a shell wants them, or addresses of files."""
    if len(text) > _LONGEST_PATHS or not _PATHS.fullmatch(text):
        return ()
    try:
        paths = [_path(word) for word in shlex.split(text)]
    except ValueError:
        return ()
    return [path for path in paths if path is not None] if None not in paths else ()


def _path(word: str) -> Path | None:
    if word.startswith("file://"):
        parts = urlsplit(word)
        return Path(unquote(parts.path)) if parts.netloc in ("", "localhost") else None
    if not word.startswith(("/", "~/")):
        return None
    try:
        return Path(word).expanduser()
    except RuntimeError:  # nobody knows whose home
        return None


def read_picture(path: Path) -> bytes | None:
    """The bytes of a picture, or of the beginning of one that is too big; None for any other file. Blocking."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would hold us for ever
            return None
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
    return data if media_type(data) is not None else None
