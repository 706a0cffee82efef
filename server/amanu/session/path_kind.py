"""The kind of file at a path, judged by names alone: of files that fit equally well a user means a source first."""

import re
from enum import IntEnum
from functools import lru_cache


class PathKind(IntEnum):
    """The lower, the likelier meant."""

    SOURCE = 0
    """Whatever is nothing else."""
    TEST = 1
    DOCS = 2
    """Also examples, and what is in a hidden folder, such as workflows of CI."""
    GENERATED = 3
    """Made by a program, or copied from another project."""


_FOLDERS = {
    **dict.fromkeys(("test", "tests", "__tests__", "spec", "specs", "e2e", "fixtures", "testdata"), PathKind.TEST),
    **dict.fromkeys(("doc", "docs", "documentation", "example", "examples", "samples"), PathKind.DOCS),
    **dict.fromkeys(("vendor", "vendored", "_vendor", "third_party", "third-party", "thirdparty"), PathKind.GENERATED),
    **dict.fromkeys(("generated", "__generated__", "__snapshots__", "node_modules", "dist"), PathKind.GENERATED),
}
_SUFFIXES = {
    **dict.fromkeys(("md", "mdx", "rst", "adoc"), PathKind.DOCS),
    **dict.fromkeys(("lock", "map", "snap"), PathKind.GENERATED),
}
_TEST = re.compile(r"^test_|^conftest\.py$|[._-](?:test|spec)s?\.|(?<=[a-z0-9])Tests?\.")
_GENERATED = (".min", ".generated", ".pb", "_pb2", "-lock")
"""Ends of names without their suffix."""
_REMEMBERED = 1 << 14
"""Folders; a listing names each many times."""


def path_kind(path: str) -> PathKind:
    """Folders end in `/`; one is of the kind of the folder it is in: `tests/` itself is looked for as sources are."""
    if path.endswith("/"):
        return _folder_kind(path[: path.rfind("/", 0, -1) + 1])
    folder, _, name = path.rpartition("/")
    kind, own = _folder_kind(folder), _name_kind(name)
    return own if own > kind else kind


@lru_cache(_REMEMBERED)
def _folder_kind(folder: str) -> PathKind:
    hidden = PathKind.DOCS if "/." in f"/{folder}" else PathKind.SOURCE
    return max(hidden, *(_FOLDERS.get(name, PathKind.SOURCE) for name in folder.lower().split("/")))


def _name_kind(name: str) -> PathKind:
    stem, _, suffix = name.rpartition(".")
    kind = _SUFFIXES.get(suffix.lower(), PathKind.SOURCE)
    if kind is PathKind.SOURCE and ("est" in stem or "spec" in stem) and _TEST.search(name):
        return PathKind.TEST
    return PathKind.GENERATED if stem.endswith(_GENERATED) else kind
