"""TOML files of the user's own: what is changed in one leaves the rest as they wrote it, comments and all."""

from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from amanu.storage.errors import storage_error
from amanu.storage.files import write_whole
from amanu_protocol.errors import AmanuError


def read_document(path: Path) -> tomlkit.TOMLDocument:
    """The file; empty when there is none. Raises `AmanuError`: invalidParams when it is not TOML, storageError."""
    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return tomlkit.document()
    except OSError as error:
        raise storage_error(error, path) from error
    except (TOMLKitError, ValueError) as error:
        raise AmanuError("invalidParams", f"{path} is not valid TOML: {error}.", hint="Fix it first.") from None


def write_document(path: Path, document: tomlkit.TOMLDocument) -> None:
    """Replace the file, durably. Raises `AmanuError` (storageError)."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, tomlkit.dumps(document).encode())
    except OSError as error:
        raise storage_error(error, path) from error
