"""A JSON object in a file that only its user can read: keys, sign-ins, consent."""

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, cast

from amanu_protocol.errors import AmanuError


class PrivateFile:
    """The file at `path`, reread whenever it changes on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_at: tuple[int, int, int] | None = None
        self._content: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Its content, the same object until the file changes; empty if there is no file. Raises `AmanuError`:
        storageError, and permissionDenied for a file that others can read."""
        try:
            status = self.path.stat()
        except OSError:
            if self._read_at is not None:
                self._read_at, self._content = None, {}
            return self._content
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if version != self._read_at:
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise AmanuError(
                    "permissionDenied",
                    f"{self.path} can be read by others, so it is not used.",
                    hint=f"Run: chmod 600 {self.path}",
                )
            self._content = read_private(self.path)
            self._read_at = version
        return self._content

    def write(self, value: dict[str, Any]) -> None:
        """See `write_private`."""
        write_private(self.path, value)
        self._read_at = None


def read_private(path: Path) -> dict[str, Any]:
    """The JSON object in the file; empty if there is no file. Raises `AmanuError` (storageError)."""
    try:
        value: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # without the cause: it may quote the file
        raise AmanuError("storageError", f"{path} cannot be read ({type(error).__name__}).") from None
    if not isinstance(value, dict):
        raise AmanuError("storageError", f"{path} does not hold a JSON object.")
    return cast("dict[str, Any]", value)


def write_private(path: Path, value: dict[str, Any]) -> None:
    """Replace the file as a whole, mode 0600, folder 0700. Raises `AmanuError` (storageError)."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp makes it 0600
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(value, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise AmanuError("storageError", f"{path} cannot be written: {error.strerror}.") from error
