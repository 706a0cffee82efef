"""Find the git repository a folder belongs to, and check that its configuration is harmless. The files are read here
and not by git, since git would obey them (git-config(1), gitrepository-layout(5)).

A configuration is harmless when all its keys are on a list. Other keys may name a program (`core.fsmonitor`,
`diff.*.command`, `filter.*`, `gpg.program` …), a file, or another configuration.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from amanu.shell.call import NotHarmless
from amanu.shell.paths import may_hold_tokens

_LARGEST = 256 * 1024  # bytes of a configuration
_KEYS = re.compile(
    r"""core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol
          |safecrlf|abbrev|quotepath|compression|sparsecheckout|sparsecheckoutcone|longpaths|preloadindex|commentchar
          |whitespace|untrackedcache|protecthfs|protectntfs|checkstat|trustctime|hookspath|editor|multipackindex
          |commitgraph|bigfilethreshold|fscache|packedgitlimit|packedgitwindowsize)
    |remote\..+\.(url|fetch|pushurl|push|tagopt|prune|prunetags|mirror|gh-resolved|skipdefaultupdate)
    |remote\.pushdefault
    |branch\..+\.(remote|merge|rebase|description|pushremote|vscode-merge-base|github-pr-owner-number|gk-.+
          |gh-merge-base)
    |branch\.(autosetuprebase|autosetupmerge|sort)
    |user\.(name|email|signingkey|useconfigonly)|author\..+|committer\..+
    |(push|pull|init|color|advice|fetch|rebase|rerere|gc|pack|index|gui|status|checkout|clone|transfer|receive)\.[\w.-]+
    |color\..+|commit\.(gpgsign|verbose|cleanup|template)|tag\.(gpgsign|sort|forcesignannotated)
    |merge\.(ff|conflictstyle|renamelimit|renames|stat|log|autostash)
    |diff\.(algorithm|renames|renamelimit|mnemonicprefix|noprefix|colormoved|context|indentheuristic|submodule
          |ignoresubmodules|statgraphwidth|interhunkcontext|wserrorhighlight|autorefreshindex)
    |log\.(date|decorate|abbrevcommit|follow|excludedecoration)|blame\.(date|showroot|showemail|blankboundary|coloring)
    |submodule\.(active|recurse|fetchjobs)|submodule\..+\.(url|active|update|branch|ignore|shallow)
    |lfs\.(repositoryformatversion|.+\.(access|locksverify))|extensions\.(worktreeconfig|objectformat|refstorage)
    |versionsort\..+|help\.autocorrect|url\..+\.(insteadof|pushinsteadof)|github\.[\w.-]+|gitlab\.[\w.-]+""",
    re.VERBOSE,
)
"""Keys with which a read-only git command starts no program, reads no other file and uses no network. core.hooksPath
is included for husky: hooks are not run (see LOOKING in shell/programs/git.py)."""

_HEAD = re.compile(r"ref: refs/[^\s\0]+\n?|(?:[0-9a-f]{40}|[0-9a-f]{64})\n?")
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(=.*)?", re.DOTALL)


@dataclass(frozen=True)
class Repository:
    """A git repository whose configuration is harmless."""

    top: Path
    """The folder that holds `.git`."""
    folder: Path
    """The folder that `.git` is or points to."""
    common: Path
    """The folder with the configuration; differs from `folder` in linked worktrees."""
    tokens: bool
    """Its configuration may contain passwords."""


def repository(start: Path, roots: tuple[Path, ...]) -> Repository:
    """The repository git would find from `start`. Raises `NotHarmless` when there is none, or it is not harmless."""
    for folder in (start, *start.parents):
        git = folder / ".git"
        if git.is_symlink():
            raise NotHarmless(f"{git} is a symbolic link.")
        # Git accepts a HEAD that is a dangling link, so only its existence is checked.
        if os.path.lexists(folder / "HEAD") and any(
            os.path.lexists(folder / name) for name in ("objects", "commondir")
        ):
            raise NotHarmless(f"{folder} itself looks like a git repository, and git would obey its configuration.")
        if os.path.lexists(git):
            return _check_repository(folder, git, roots)
    raise NotHarmless(f"There is no git repository at {start}.")


def _check_repository(top: Path, git: Path, roots: tuple[Path, ...]) -> Repository:
    folder = git
    if git.is_file():  # a worktree or a submodule
        line = _text(git).strip()
        if not line.startswith("gitdir: ") or "\n" in line:
            raise NotHarmless(f"{git} is not a link that git writes.")
        folder = Path(os.path.realpath(top / line.removeprefix("gitdir: ")))
        worktree = folder.parent.name == "worktrees" and (
            folder.parent.parent.name == ".git" or _points_back(folder, git)
        )
        if not (worktree or (".git" in folder.parts and "modules" in folder.parts)):
            raise NotHarmless(f"{git} points to {folder}.")
        if not any(root == up for up in folder.parents for root in roots) and not (
            worktree and _points_back(folder, git)
        ):
            raise NotHarmless(f"{git} points to {folder}, which is outside the workspace.")
    elif not git.is_dir():
        raise NotHarmless(f"{git} is not a folder.")
    common = folder
    if (folder / "commondir").exists():
        if folder == git:
            raise NotHarmless(f"{git} keeps its configuration elsewhere.")
        common = Path(os.path.realpath(folder / _text(folder / "commondir").strip()))
        if common != folder.parent.parent:
            raise NotHarmless(f"{git} keeps its configuration in {common}.")
    # Git skips a folder it does not accept as a repository, and takes the next one above it.
    if (
        not (common / "objects").is_dir()
        or not (common / "refs").is_dir()
        or not _HEAD.fullmatch(_text(folder / "HEAD"))
    ):
        raise NotHarmless(f"{git} is not a complete repository.")
    for checked in (folder, common, common / "objects", common / "objects" / "pack"):
        _no_links(checked)
    for name in ("config", "config.worktree"):
        for config in {common / name, folder / name}:
            if config.is_symlink():
                raise NotHarmless(f"{config} is a symbolic link.")
            if config.exists():
                _harmless(config)
    alternates = common / "objects" / "info" / "alternates"
    if alternates.exists():
        raise NotHarmless(f"{alternates} names more folders that git would read.")
    return Repository(top, folder, common, may_hold_tokens(common / "config"))


def _no_links(folder: Path) -> None:
    """Raise `NotHarmless` when an entry of the folder is a symbolic link. Hooks are not run, so they may be one."""
    try:
        with os.scandir(folder) as entries:
            link = next((entry for entry in entries if entry.is_symlink() and entry.name != "hooks"), None)
    except OSError:
        return
    if link is not None:
        raise NotHarmless(f"{link.path} is a symbolic link.")


def _points_back(folder: Path, git: Path) -> bool:
    """Whether the worktree's folder names this `.git` file in return, as it does when git made it."""
    try:
        return Path(_text(folder / "gitdir").strip()) == git
    except NotHarmless:
        return False


def _harmless(config: Path) -> None:
    for key in keys(_text(config)):
        if not _KEYS.fullmatch(key):
            raise NotHarmless(
                f"The repository's configuration sets {key}, which may start a program or point elsewhere."
            )


def keys(text: str) -> list[str]:
    """The keys a configuration sets: section and key in lower case, the subsection as it is. Raises `NotHarmless` for
    text that git would not write: a continued line could hide a key."""
    keys_set: list[str] = []
    section = ""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if "\0" in line or "\r" in line or len(line) > 4096:
            raise NotHarmless("The repository's configuration contains unexpected characters.")
        remaining = line.strip()
        while found_section := _SECTION.match(remaining):
            name, sub = found_section.groups()
            section = f"{name.lower()}.{sub}." if sub is not None else f"{name.lower()}."
            remaining = remaining[found_section.end() :].strip()
        if not remaining or remaining[0] in "#;":
            continue
        entry = _KEY.fullmatch(remaining)
        if entry is None or not section or remaining.endswith("\\") or remaining.count('"') % 2:
            raise NotHarmless(f"Amanu does not understand line {number} of the repository's configuration.")
        keys_set.append(section + entry[1].lower())
    return keys_set


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise NotHarmless(f"{path} is not a regular file.")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise NotHarmless(f"{path} cannot be read: {error.strerror}.") from None
    if len(data) > _LARGEST:
        raise NotHarmless(f"{path}is too large to check.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotHarmless(f"{path} is not a text file.") from None
