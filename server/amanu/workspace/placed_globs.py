"""Globs as models and people write them, for the files of a workspace.

What exists as it is written is that file or folder, whatever signs are in its name (`app/[id]/*`); only the rest is a
glob. So is a link, or the path of a root, that a glob begins with. Of what cannot be looked up (`**/[id]/*`) the files
that fit as it is written come first.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.workspace.globs import glob_pattern
from amanu.workspace.path_guard import bare, without_file_scheme
from amanu.workspace.workspace import Workspace

_SPECIAL = re.compile(r"([*?\[\]{}\\])")
_FIRST_SPECIAL = re.compile(r"(?<!\\)[\[{]")
_MEANT_BY_ITSELF = re.compile(r"[\[\]{},]")
_ALL = "/**"
_AT_ONCE = 500  # names that are compared until one of them fits
_NAMES = re.compile(r"[\w.*+@{},-]+", re.ASCII)
"""Globs for names that ripgrep reads as we do; its `?` is a byte."""


@dataclass(frozen=True)
class PlacedGlob:
    """A glob below a folder of a root."""

    root: Path
    start: Path
    """A resolved folder in which all files that may fit are."""
    folder: str
    """The path of the file or folder that it begins with, relative to the root; "" for the root itself."""
    written: str
    """The same as it was written: links are not followed."""
    rest: str
    """The glob below it, "" for itself. One without `/` at its beginning fits names in any folder."""

    @property
    def base(self) -> Path:
        """The resolved folder that it begins with: what rules are asked about."""
        base = self.root / self.folder
        return base if self.rest else base.parent

    def shown(self, name: str) -> str:
        """A file of the root as whoever wrote the glob names it."""
        return self.written + name[len(self.folder) :] if self.written != self.folder else name

    def matching(self, names: Sequence[str]) -> Sequence[str]:
        """The names, relative to the root, that fit."""
        if not self.rest:
            return [self.folder]
        skip = len(self.folder) + 1 if self.folder else 0
        if skip:
            names = [name for name in names if name.startswith(f"{self.folder}/")]
        if self.rest == _ALL:
            return names
        rest, forms = _composed(self.rest), names
        if not rest.isascii():
            skip, forms = len(_composed(self.folder)) + 1 if self.folder else 0, [*map(_composed, names)]
        if special := _FIRST_SPECIAL.search(rest):
            literal = glob_pattern(_MEANT_BY_ITSELF.sub(r"\\\g<0>", rest))
            pairs = [(name, form) for name, form in zip(names, forms, strict=True) if special[0] in form]
            if found := [name for name, form in pairs if literal.fullmatch(form, skip)]:
                return found
        pattern = glob_pattern(rest)
        if forms is names:
            return [name for name in names if pattern.fullmatch(name, skip)]
        return [name for name, form in zip(names, forms, strict=True) if pattern.fullmatch(form, skip)]


def place(workspace: Workspace, text: str, folder: Path | None = None) -> list[PlacedGlob]:
    """The glob below that resolved folder, or below every root. Raises `ToolError` where it leads out."""
    text = without_file_scheme(bare(text))
    for root, real in sorted(zip(workspace.guard.roots, workspace.guard.real_roots, strict=True), reverse=True):
        for above in (root, real):
            if text == str(above) or text.startswith(f"{above}/"):
                return [_placed(workspace, text[len(str(above)) :] or "/", root)]
    texts = [text, text.replace("\\", "/")] if re.search(r"\\[\w*.]", text) else [text]
    places = [(each, text) for each in ([folder] if folder is not None else workspace.roots) for text in texts]
    if folder is None and len(workspace.roots) > 1:  # a path may begin with the name of one of several roots
        roots = {root.name: root for root in workspace.roots}
        places += [(roots[name], rest) for name, _, rest in (text.partition("/") for text in texts) if name in roots]
    return [placed for each, text in places for placed in _below(workspace, text or "*", each)]


def _below(workspace: Workspace, text: str, folder: Path) -> Iterator[PlacedGlob]:
    name = text.removeprefix("./")
    if "/" in name and name.strip("/"):
        yield _placed(workspace, name, folder)
        return
    index, relative = workspace.guard.locate(folder)
    inside = relative.as_posix() if relative.parts else ""
    if name.strip("./"):  # in any folder
        yield PlacedGlob(workspace.guard.roots[index], folder, inside, inside, name)
    if not name.strip("./") or _is_there(workspace, folder, name):
        yield _placed(workspace, name, folder)


def _placed(workspace: Workspace, text: str, folder: Path) -> PlacedGlob:
    """A glob for paths relative to the folder."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    taken = list[str]()
    for part in parts:
        names = (part, re.sub(r"\\(.)", r"\1", part)) if "\\" in part else (part,)
        name = next((name for name in names if _is_there(workspace, folder, "/".join((*taken, name)))), None)
        if name is None:
            break
        taken.append(name)
    base = workspace.resolve(str(folder.joinpath(*taken))) if taken else folder
    index, relative = workspace.guard.locate(base)
    root = workspace.guard.roots[index]
    start = folder if folder in (base, *base.parents) else root
    rest = "".join(f"/{part}" for part in parts[len(taken) :])
    if (text.endswith("/") and rest) or (not rest and workspace.guard.real(base).is_dir()):
        rest += _ALL
    inside = relative.as_posix() if relative.parts else ""
    above = Path(os.path.normpath(folder.joinpath(*taken)))
    written = above.relative_to(root).as_posix() if root in above.parents else inside
    return PlacedGlob(root, start, inside, inside if _composed(written) == _composed(inside) else written, rest)


def _is_there(workspace: Workspace, folder: Path, name: str) -> bool:
    if set(name.rpartition("/")[2]) == {"*"}:
        return False
    path = workspace.guard.real(folder) / name
    if os.path.lexists(path) or name.isascii():
        return os.path.lexists(path)
    try:
        return os.path.lexists(workspace.guard.real(workspace.resolve(str(folder / name))))
    except ToolError:
        return False


def _composed(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


class Include:
    """The files that count in a search below a folder: globs parted by commas, folders, suffixes; `!` excludes."""

    def __init__(self, workspace: Workspace, text: str, folder: Path) -> None:
        root = workspace.root_of(folder)
        self._wanted: list[PlacedGlob] = []
        self._unwanted: list[PlacedGlob] = []
        for part in _parts(text):
            placed = self._unwanted if part.startswith("!") else self._wanted
            for glob in _spellings(part.removeprefix("!")):
                for base in dict.fromkeys((root, folder)):
                    if workspace.guard.real(base).is_dir() or base == root:
                        placed += place(workspace, glob, base)

    def matching(self, names: Sequence[str]) -> frozenset[str]:
        """The names, relative to the root, that count."""
        wanted = _matching(self._wanted, names) if self._wanted else frozenset(names)
        return wanted - _matching(self._unwanted, names)

    def fits(self, names: Sequence[str]) -> bool:
        """Whether one of the names counts."""
        return any(self.matching(names[start : start + _AT_ONCE]) for start in range(0, len(names), _AT_ONCE))

    def name_globs(self) -> list[str]:
        """Globs such that the name of every file that counts fits one; empty where there are none."""
        globs: list[str] = []
        for placed in self._wanted:
            glob = placed.rest.removeprefix("/**/")
            if not _NAMES.fullmatch(glob) or glob.count("{") != glob.count("}"):
                return []
            globs += [glob, _SPECIAL.sub(r"\\\1", glob)] if "{" in glob else [glob]
        return globs


def _matching(globs: Iterable[PlacedGlob], names: Sequence[str]) -> frozenset[str]:
    return frozenset(name for glob in globs for name in glob.matching(names))


def _parts(text: str) -> Iterator[str]:
    """`*.ts, *.tsx` → both; a comma in braces or brackets parts nothing. Also all of it, which may be a name."""
    depth, part, parts = 0, "", list[str]()
    for at, character in enumerate(text):
        depth += (character in "{([") - (character in "})]")
        parts_here = character in ",;|" or (character.isspace() and text[at + 1 : at + 2] in ("*", ".", "!"))
        if parts_here and depth <= 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    yield from dict.fromkeys(part for part in (*parts, part.strip(), text.strip()) if part and part.strip("!"))


def _spellings(glob: str) -> Iterator[str]:
    """The meanings that the glob of an include may have."""
    yield glob
    if re.fullmatch(r"\.\w[\w.]*", glob):  # .tsx
        yield f"*{glob}"
    elif re.fullmatch(r"\w{1,8}", glob):  # tsx
        yield f"*.{glob}"
    elif re.fullmatch(r"[^/*?\[{]+/", glob.removeprefix("./")):  # a folder anywhere
        yield f"**/{glob.removeprefix('./')}"
    if "|" in glob:  # *.(ts|tsx)
        yield re.sub(r"[@+?*]?\(([^()]*)\)", lambda inner: f"{{{inner[1].replace('|', ',')}}}", glob)
    if re.search(r"\{[^{}]*\s[^{}]*\}", glob):  # *.{ts, tsx}
        yield re.sub(r"\s+", "", glob)
