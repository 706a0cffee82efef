"""A repository as it is now, read through its opened folder. Everything here blocks and raises `OSError`."""

import os
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from amanu.workspace.git.folder import GitFolder
from amanu.workspace.git.index import Entries, read_index
from amanu.workspace.git.refs import PACKED, SYMBOLIC, parse_packed

INDEX = "index"
_DEPTH = 5
"""The most symbolic refs that git follows, one to the next."""


class Present:
    """The parts of a repository, each read once, when it is first asked for. Reading the index raises `UnknownIndex`,
    and reading packed refs `ValueError`."""

    def __init__(self, folder: GitFolder) -> None:
        self.folder = folder
        self._loose: dict[str, str] = {}

    @cached_property
    def index(self) -> tuple[bytes, int]:
        """The index as bytes, and when it was written, in nanoseconds."""
        try:
            handle = self.folder.open(INDEX)
        except FileNotFoundError:
            return b"", 0
        with open(handle, "rb") as file:  # noqa: PTH123
            return file.read(), os.fstat(handle).st_mtime_ns

    @cached_property
    def entries(self) -> Entries:
        return read_index(self.index[0])

    @cached_property
    def packed_text(self) -> str:
        return (self.folder.read(PACKED) or b"").decode("utf-8", "surrogateescape")

    @cached_property
    def packed(self) -> Mapping[str, str]:
        return parse_packed(self.packed_text)

    def value(self, name: str) -> str:
        """The value of a ref; "" for none."""
        if name not in self._loose:
            self._loose[name] = (self.folder.read(name) or b"").decode("utf-8", "surrogateescape").strip()
        return self._loose[name] or self.packed.get(name, "")

    def resolved(self, name: str, values: Mapping[str, str]) -> str:
        """The commit that a ref leads to, if those refs had these values; "" for none."""
        for _ in range(_DEPTH):
            value = values[name] if name in values else self.value(name)
            if not value.startswith(SYMBOLIC):
                return value
            name = value.removeprefix(SYMBOLIC)
        return ""

    def log(self, name: str) -> bytes | None:
        return self.folder.read(log_name(name))

    def below(self, name: str) -> Iterator[str]:
        """The refs whose names begin with that one and "/"."""
        yield from (path for path in self.folder.files(name) if not path.endswith(".lock"))
        yield from (each for each in self.packed if each.startswith(f"{name}/"))

    def remote_values(self) -> Collection[str]:
        """The commits that remote-tracking refs name."""
        names = {*self.below("refs/remotes")}
        return {self.value(name) for name in names}


def log_name(name: str) -> str:
    return f"logs/{name}"
