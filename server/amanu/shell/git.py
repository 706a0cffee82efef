"""What git commands do: which only print, which need the network, and what a rule would remember of them.

A command that prints runs without a question in a folder you trust, whatever git is configured to do there, and in
others where the whole line runs in a read-only sandbox (`analyze.py`). It is run with the settings overridden
(`LOOKING`) with which git would start programs or write.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from amanu.shell import files
from amanu.shell.call import NotHarmless, ProgramCall, names
from amanu.shell.harmless import given_option

LOOKING: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_COUNT": "7",
    **{
        f"GIT_CONFIG_{part}_{index}": text
        for index, setting in enumerate(
            (
                ("diff.autoRefreshIndex", "false"),
                ("core.fsmonitor", "false"),
                ("core.hooksPath", "/dev/null"),
                ("log.showSignature", "false"),
                ("protocol.allow", "never"),
                ("diff.submodule", "short"),  # other values start git in a folder with settings of its own
                ("status.submoduleSummary", "false"),
            )
        )
        for part, text in zip(("KEY", "VALUE"), setting, strict=True)
    },
}
"""The environment that keeps a read-only git command read-only: without it, `status` and `diff` rewrite the index
(measured with 2.39; GIT_OPTIONAL_LOCKS alone stops `status`, not `diff`)."""

_WRITES_SETTINGS: Mapping[str, frozenset[str] | None] = {
    "submodule": names("add init update sync deinit set-url set-branch absorbgitdirs"),
    "remote": names("add remove rm rename set-url set-branches"),
    "branch": None,
    "init": None,
}
"""Commands that change git's settings in a way git provides, and which of their verbs do; None: they have no verbs.
`git config` is not among them, since it can set anything."""

UNTRUSTED = "In a folder you do not trust, git may be configured to run programs."
_PLAIN_GLOBALS = names("--no-pager --no-optional-locks --no-replace-objects --literal-pathspecs --no-advice")
_PLAIN_SETTING = re.compile(r"(?:color\.[\w.]+|core\.quote[pP]ath|log\.date|diff\.(?:noprefix|renames))=[\w-]*")
_NOT_WITH = (
    "--output --ext-diff --textconv --filters --no-index --untracked --recurse-submodules --submodule --remerge-diff "
    "--diff-merges --help --open-files-in-pager --show-signature --batch --batch-check --batch-command --exec --eol -O"
)
"""Options of any command that prints with which it writes, starts a program, or reads what git does not track."""
_SIGNATURE = re.compile(r"%G|signature")
"""What makes git run gpg in a format."""


@dataclass(frozen=True)
class _Look:
    """How a command of git only prints."""

    why: str
    not_with: str = ""
    verbs: frozenset[str] | None = None
    """The first operands with which it only prints; None: any."""
    lists_with: str = ""
    """Options without which an operand is the name of something it creates."""
    shows: bool = False
    """It prints the content of files, or of settings. Where no sandbox works it is asked about, since either may
    contain secrets."""
    shows_with: str = ""
    """It does so with these options."""


_PATCH = (
    "-p -u -U -L -c -m -G -S -W --cc --patch --unified --patch-with-stat --patch-with-raw --word-diff --color-words "
    "--function-context --binary --full-diff --check"
)
_ONLY_NAMES = names("--stat --shortstat --numstat --name-only --name-status")
_CHANGES = _Look("Shows what changed.", shows=True, shows_with=_PATCH)
_REFERENCES = _Look("Lists branches and tags.")
_NAMES = _Look("Shows what a name refers to.")

LOOKS: Mapping[str, _Look] = {
    **dict.fromkeys(names("diff show range-diff diff-tree diff-files diff-index whatchanged"), _CHANGES),
    **dict.fromkeys(names("for-each-ref show-ref show-branch"), _REFERENCES),
    **dict.fromkeys(names("rev-parse name-rev merge-base check-ref-format"), _NAMES),
    "status": _Look("Shows what changed."),
    "log": _Look("Shows commits.", shows_with=_PATCH),
    "shortlog": _Look("Counts commits."),
    "rev-list": _Look("Lists commits."),
    "cherry": _Look("Lists commits."),
    "describe": _Look("Names a commit by a tag.", "--dirty --broken"),
    "blame": _Look("Shows who wrote the lines.", shows=True),
    "grep": _Look("Searches files tracked by git.", shows=True),
    "cat-file": _Look("Shows an object of git.", shows=True),
    "ls-files": _Look("Lists files tracked by git."),
    "ls-tree": _Look("Lists files of a commit."),
    "count-objects": _Look("Counts objects."),
    "check-ignore": _Look("Shows which files are ignored."),
    "check-attr": _Look("Shows attributes."),
    "branch": _Look(
        "Lists branches.",
        "-d -D -m -M -c -C -f -u -t --delete --move --copy --force --set-upstream-to --unset-upstream --track "
        "--edit-description --create-reflog",
        lists_with="-l --list --contains --no-contains --merged --no-merged --points-at",
    ),
    "tag": _Look(
        "Lists tags.",
        "-d -a -s -u -f -m -F -e -v --delete --annotate --sign --local-user --force --message --file --edit --verify",
        lists_with="-l --list -n --contains --no-contains --merged --no-merged --points-at",
    ),
    "remote": _Look("Lists remotes.", verbs=names("get-url"), shows=True),
    "stash": _Look("Lists stashed changes.", verbs=names("list show"), shows_with=_PATCH),
    "reflog": _Look("Shows where branches were.", verbs=names("show exists"), shows_with=_PATCH),
    "worktree": _Look("Lists worktrees.", verbs=names("list")),
    "notes": _Look("Lists notes.", verbs=names("list show")),
    "version": _Look("Shows its version."),
}
_ALONE = names("remote reflog notes")
"""Commands with verbs that print when they get none."""

_WHY: Mapping[str, str] = {
    "add": "Stages changes.",
    "commit": "Creates a commit.",
    "push": "Pushes commits to another repository.",
    "pull": "Fetches commits and merges them.",
    "fetch": "Fetches commits.",
    "clone": "Clones a repository.",
    "checkout": "Switches the workspace's files to another state.",
    "switch": "Switches the workspace's files to another branch.",
    "restore": "Discards changes to files.",
    "reset": "Moves the branch and may discard changes to files.",
    "clean": "Deletes untracked files.",
    "stash": "Stashes changes.",
    "merge": "Merges another branch.",
    "rebase": "Rewrites the commits of a branch.",
    "cherry-pick": "Applies a commit to this branch.",
    "revert": "Creates a commit that undoes another.",
    "rm": "Deletes files and stages the deletion.",
    "mv": "Moves files and stages the move.",
    "branch": "Creates, moves or deletes a branch.",
    "tag": "Creates or deletes a tag.",
    "config": "Changes or shows git's configuration, which can name programs.",
    "init": "Creates a repository.",
}
_OVERWRITES = "Overwrites or deletes branches of another repository: commits of others may be lost there."
_NETWORK = names("fetch pull push clone ls-remote")
_NEVER_REMEMBERED = names("config clean submodule remote worktree")
_OTHERS_REMEMBERED = names("am apply archive bundle format-patch lfs ls-remote sparse-checkout")
"""More commands that may be remembered. Other names can be aliases or programs in PATH, which a user cannot see."""


def writes_settings(argv: Sequence[str | None]) -> bool:
    """Whether this is a git command that changes remotes, branches or submodules in git's settings, and nothing else
    there."""
    if len(argv) < 2 or argv[1] is None or argv[1] not in _WRITES_SETTINGS or None in argv:
        return False
    verbs = _WRITES_SETTINGS[argv[1]]
    return verbs is None or next((word for word in argv[2:] if word and not word.startswith("-")), "") in verbs


def description(call: ProgramCall) -> tuple[str, tuple[str, ...] | None, bool]:
    """What a command of git does, what a rule would remember of it, and whether it needs the network."""
    try:
        command = _beyond_globals(call)
    except NotHarmless as error:
        return str(error), None, any(word in _NETWORK for word in call.values)
    arguments = command.values
    name = arguments[0] if arguments else None
    if name is None or name.startswith("-"):
        return "What git would do is not certain.", None, False
    network = name in _NETWORK or (name in ("submodule", "remote") and "update" in arguments)
    network = network or arguments[:2] == ("submodule", "add")
    known = name not in _NEVER_REMEMBERED and (name in _WHY or name in LOOKS or name in _OTHERS_REMEMBERED)
    remembered = known and command.context.folder == call.context.folder and None not in arguments
    why = _OVERWRITES if name == "push" and _forces(arguments) else _WHY.get(name, "")
    return why, ("git", name) if remembered else None, network


def _forces(arguments: Sequence[str | None]) -> bool:
    """Whether a push may take commits from the other repository: by an option, or a refspec that begins with `+` or
    names nothing to push."""
    options = [word for word in arguments if word is not None and word.startswith("-")]
    named = [word for word in arguments if word is not None and not word.startswith("-")]
    short = any(not word.startswith("--") and {*"fd"} & {*word[1:]} for word in options)
    long = any(word.startswith(("--force", "--mirror", "--delete", "--prune")) for word in options)
    return short or long or any(word.startswith(("+", ":")) for word in named)


def check(call: ProgramCall) -> tuple[str, tuple[str, ...]]:
    """Why a call of git is harmless, and which files it reads. Raises `NotHarmless`."""
    call = _beyond_globals(call)
    if None in call.values:
        raise NotHarmless("The arguments of git are only known when it runs.")
    name, *words = [word or "" for word in call.values] or ["--help"]
    if name in ("--version", "--help", "-v", "-h") and not words:
        return "Shows its version or its help.", ()
    look = LOOKS.get(name)
    if name == "config":
        look = _look_at_settings(words)
    if look is None:
        raise NotHarmless(f"git {name} may change the repository.")
    _check_words(name, look, words)
    if not call.context.trusted and not call.context.sandboxed:
        raise NotHarmless(UNTRUSTED)
    shows = (look.shows and _ONLY_NAMES.isdisjoint(words)) or given_option(words, look.shows_with) is not None
    if shows and not call.context.sandboxed:
        raise NotHarmless("Git may show secrets that are in tracked files or in the addresses of remotes.")
    if shows:
        _check_files(words, call)
    return look.why, ()


def _check_words(name: str, look: _Look, words: list[str]) -> None:
    operands = [word for word in words if not word.startswith("-")]
    if (option := given_option(words, f"{_NOT_WITH} {look.not_with}")) is not None:
        raise NotHarmless(f"git {name} {option} is not known to be read-only.")
    if any(map(_SIGNATURE.search, words)):
        raise NotHarmless("To show signatures, git runs gpg.")
    if look.lists_with and operands and given_option(words, look.lists_with) is None:
        raise NotHarmless(f"git {name} with a name creates something.")
    alone = not operands and name in _ALONE
    if look.verbs is not None and not alone and not (operands and operands[0] in look.verbs):
        raise NotHarmless(f"git {' '.join([name, *operands[:1]])} is not known to be read-only.")


def _look_at_settings(words: list[str]) -> _Look | None:
    """`git config user.name`: what cannot contain a token."""
    shown = [word for word in words if word not in ("--get", "--local", "--global")]
    plain = len(shown) == 1 and re.fullmatch(r"(?:user|core|init|branch|color|push|pull)\.[\w./-]+", shown[0])
    return _Look("Shows a setting of git.") if plain else None


def _beyond_globals(call: ProgramCall) -> ProgramCall:
    """The call without the options before the subcommand; `-C` changes its folder. Raises `NotHarmless` for options
    that matter."""
    while call.arguments and (first := call.values[0] or "-").startswith("-"):
        value = call.values[1] if len(call.arguments) > 1 else None
        if first in ("--version", "--help", "-v", "-h"):
            return call
        if first in _PLAIN_GLOBALS:
            call = call.without_first(1)
        elif first == "-C" and value is not None:
            folder = files.real(value, call.context)
            if not files.inside(folder, call.context):
                raise NotHarmless(f"{folder} is outside the workspace.")
            call = replace(call, context=replace(call.context, folder=folder)).without_first(2)
        elif first == "-c" and value is not None and _PLAIN_SETTING.fullmatch(value):
            call = call.without_first(2)
        else:
            raise NotHarmless(f"git {call.values[0] or ''} before the subcommand is not known to be read-only.")
    return call


def _check_files(words: list[str], call: ProgramCall) -> None:
    """Raise `NotHarmless` when a word names a file that may not be read: `HEAD:secret`, too, and from any root."""
    texts = {text for word in words for text in (word, word.rpartition(":")[2], word.partition("=")[2]) if text}
    for text in sorted(texts):
        for base in (call.context.folder, *call.context.roots):
            path = Path(os.path.normpath(base / text))
            if not files.inside(path, call.context):
                if os.path.lexists(path):
                    raise NotHarmless(f"{path} is outside the workspace.")
            elif not call.context.may_read(path):
                raise NotHarmless(f"Reading {text} needs approval.", str(path))
