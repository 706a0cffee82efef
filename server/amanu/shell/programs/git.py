"""git commands that only read. Options: git 2.39, from its manuals.

Left out everywhere: `-c` except for appearance, `--exec-path=`, `-p`, `--output`, `--ext-diff`, `--textconv`, `-O`, and
everything that uses the network. The repository's configuration must be harmless (`shell/repository.py`), and so must
the environment.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from amanu.core.protected_paths import is_secret
from amanu.shell import paths
from amanu.shell.call import Harmless, NotHarmless, ProgramCall, Word
from amanu.shell.options import ParsedOptions, names, parse, table
from amanu.shell.repository import Repository, repository
from amanu.shell.spec import Judge

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

_HARMLESS_VARIABLES = re.compile(
    r"GIT_(?:(?:SSL|HTTP|CURL|PROXY|SSH|LFS|AUTHOR|COMMITTER|PS1)_\w+|SSH|PAGER|EDITOR|SEQUENCE_EDITOR|ASKPASS|"
    r"TERMINAL_PROMPT|MERGE_AUTOEDIT|PROMPT_DISABLE|DISCOVERY_ACROSS_FILESYSTEM)"
)
"""Harmless GIT_ environment variables: they concern the network, which a read-only command does not use; authorship;
and prompts and pagers, which nobody sees here. All others move git elsewhere (GIT_DIR), start programs
(GIT_EXTERNAL_DIFF), set anything (GIT_CONFIG_…) or write files (GIT_TRACE)."""
_GLOBAL = table(
    "-C=text --no-pager --no-optional-locks --literal-pathspecs --no-replace-objects --glob-pathspecs -c=text "
    "--icase-pathspecs --no-advice"
)
_SETTINGS = re.compile(
    r"(color\.[\w.]+|core\.quote[pP]ath|log\.date|diff\.(noprefix|renames))=[\w-]*|core\.pager=(cat)?"
)

_REVISIONS = (
    "--all --branches?= --tags?= --remotes?= --not --max-count= -n= --skip= --since= --after= --until= --before= "
    "--author= "
    "--committer= --grep= --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F --fixed-strings -P "
    "--perl-regexp --merges --no-merges --first-parent --reverse --date-order --author-date-order --topo-order "
    "--exclude= --left-right --cherry-pick --cherry-mark --cherry --left-only --right-only --boundary --full-history "
    "--simplify-merges --ancestry-path --walk-reflogs -g --no-walk --min-parents= --max-parents="
)
_DIFFERENCES = (
    "-p -u --patch -s --no-patch -U= --unified= --raw --patch-with-raw --minimal --patience --histogram "
    "--diff-algorithm= "
    "--stat?= --compact-summary --numstat --shortstat --dirstat?= --summary --patch-with-stat -z --name-only "
    "--name-status "
    "--color?= --no-color --color-moved?= --word-diff?= --word-diff-regex= --color-words?= --no-renames --check "
    "--full-index "
    "--binary --abbrev?= -B?= -M?= --find-renames?= -C?= --find-copies?= --find-copies-harder -D -l= --diff-filter= "
    "-S= -G= "
    "--pickaxe-all --pickaxe-regex -R --relative?= -a --text -w --ignore-all-space -b --ignore-space-change "
    "--ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines -I= --inter-hunk-context= -W --function-context "
    "--exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules?= --submodule?= --src-prefix= --dst-prefix= "
    "--no-prefix --line-prefix= --ita-invisible-in-index -m -c --cc --combined-all-paths --no-diff-merges "
    "--diff-merges= "
    "--no-relative"
)
_LOG = (
    f"{_REVISIONS} {_DIFFERENCES} --oneline --graph --no-graph --decorate?= --no-decorate --decorate-refs= --format= "
    "--pretty?= --abbrev-commit --no-abbrev-commit --date= --relative-date --follow --source --stat-width= -L= "
    "--parents "
    "--children --no-notes --notes?= --full-diff --encoding= --clear-decorations --no-expand-tabs --log-size "
    "--no-mailmap --mailmap --use-mailmap --no-use-mailmap"
)
_LIST = (
    "--format= --sort= --contains= --no-contains= --merged= --no-merged= --points-at= -i --ignore-case --color?= "
    "--no-color --column?= --no-column"
)


def writes_settings(argv: Sequence[str | None]) -> bool:
    """Whether this is a git command that changes remotes, branches or submodules in git's settings, and nothing else
    there."""
    if len(argv) < 2 or argv[1] is None or argv[1] not in _WRITES_SETTINGS or None in argv:
        return False
    verbs = _WRITES_SETTINGS[argv[1]]
    return verbs is None or next((word for word in argv[2:] if word and not word.startswith("-")), "") in verbs


@dataclass(frozen=True)
class _Look:
    """The grammar of one git subcommand. `shows`: it prints the content of files, so all of them must be readable."""

    why: str
    options: str = ""
    shows: bool = False
    digits: bool = False
    operands: int = 1000
    check: Callable[[ParsedOptions, ProgramCall], None] | None = None
    may_show_tokens: bool = False
    """It prints URLs from the configuration."""


def _requires(*names: str) -> Callable[[ParsedOptions, ProgramCall], None]:
    """A check that one of these options is given, without which operands create something."""

    def check(parsed: ParsedOptions, call: ProgramCall) -> None:
        if parsed.operands and not parsed.has(*names):
            raise NotHarmless(f"git {call.arguments[0].value} with a name creates something.")

    return check


def _requires_verb(*verbs: str, bare: bool) -> Callable[[ParsedOptions, ProgramCall], None]:
    """A check that the first operand is one of these verbs; `bare`: it may also be missing."""

    def check(parsed: ParsedOptions, call: ProgramCall) -> None:
        verb = parsed.operands[0].value if parsed.operands else None
        if (verb is None and not (bare and not parsed.operands)) or (verb is not None and verb not in verbs):
            raise NotHarmless(f"git {call.arguments[0].value} {verb or ''} is not known to be read-only.")

    return check


def _config(parsed: ParsedOptions, call: ProgramCall) -> None:
    names = [word.value or "" for word in parsed.operands]
    if parsed.operands_after_dashes is not None:
        raise NotHarmless("git config treats -- as a value to set.")  # measured, 2.39
    if not parsed.has("--get", "--get-all", "--get-regexp", "--list", "-l") and len(names) != 1:
        raise NotHarmless("git config with a name and a value changes the configuration.")
    plain = names and re.fullmatch(r"(user|core|init|branch|color|push|pull|remote)\.[\w./-]+", names[0])
    if not (plain or (parsed.has("--list", "-l") and parsed.has("--name-only", "--local"))):
        raise NotHarmless("git's configuration may contain tokens.")


def _describe(parsed: ParsedOptions, call: ProgramCall) -> None:
    if parsed.has("--dirty", "--broken"):
        raise NotHarmless("git describe --dirty rewrites the index.")


def _symbolic(parsed: ParsedOptions, call: ProgramCall) -> None:
    if len(parsed.operands) != 1:
        raise NotHarmless("git symbolic-ref with two names changes a reference.")


LOOKS: Mapping[str, _Look] = {
    "status": _Look(
        "Shows what changed.",
        "-s --short -b --branch --show-stash --porcelain?= --long -v -u?= --untracked-files?= --ignored?= -z "
        "--column?= "
        "--no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?= --ignore-submodules?=",
    ),
    "log": _Look("Shows commits.", _LOG, digits=True, shows=True),
    "show": _Look("Shows commits and files.", _LOG, digits=True, shows=True),
    "whatchanged": _Look("Shows commits.", _LOG, digits=True, shows=True),
    "diff": _Look(
        "Shows what changed.",
        f"{_DIFFERENCES} --cached --staged --merge-base --base --ours --theirs -1 -2 -3 -0",
        shows=True,
    ),
    "shortlog": _Look(
        "Counts commits.",
        f"{_REVISIONS.replace('-n= ', '')} -s --summary -n --numbered -e --email --group= --format=",
        digits=True,
    ),
    "blame": _Look(
        "Shows who wrote the lines.",
        "-L= -l -t -s -e -w -b -c -f -n -p -M?= -C?= --show-email --show-name --show-number --root --porcelain "
        "--line-porcelain --date= --since= --first-parent --abbrev= --ignore-rev= --color-lines --color-by-age "
        "--reverse",
        shows=True,
    ),
    "grep": _Look(
        "Searches files tracked by git.",
        "-i -v -w -x -n -l -L -c -h -H -E -F -G -P -o -q -p -W -I -a -A= -B= -C= -e= --ignore-case --invert-match "
        "--word-regexp --line-number --files-with-matches --files-without-match --name-only --count --extended-regexp "
        "--fixed-strings --perl-regexp --only-matching --quiet --show-function --function-context --heading --break "
        "--color?= --no-color --cached --max-depth= --and --or --not --all-match --column --full-name -r "
        "--no-index-not -z --null --text --context= --after-context= --before-context= --max-count= -m=",
        shows=True,
        digits=True,
    ),
    "ls-files": _Look(
        "Lists files tracked by git.",
        "-c -d -o -i -s -u -k -m -z -t -v -f -x= --cached --deleted --others --ignored --stage --unmerged --modified "
        "--exclude= --exclude-standard --error-unmatch --full-name --directory --no-empty-directory --abbrev?= "
        "--deduplicate --format=",
    ),
    "ls-tree": _Look(
        "Lists files of a commit.",
        "-d -r -t -l -z --name-only --name-status --long --full-name --full-tree --abbrev?= --object-only --format=",
    ),
    "cat-file": _Look("Shows an object of git.", "-t -s -p -e", shows=True),
    "rev-parse": _Look(
        "Shows what a name refers to.",
        "--verify -q --quiet --short?= --abbrev-ref?= --symbolic --symbolic-full-name --all --branches?= --tags?= "
        "--remotes?= "
        "--show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-git-dir "
        "--is-inside-work-tree --is-bare-repository --is-shallow-repository --show-superproject-working-tree "
        "--show-object-format --git-path= --sq --not --default= --disambiguate= --path-format= --local-env-vars",
    ),
    "rev-list": _Look(
        "Lists commits.",
        f"{_REVISIONS} --count --objects --oneline --format= --pretty?= --abbrev-commit --parents --children "
        "--timestamp "
        "--header --date= --disk-usage?=",
        digits=True,
    ),
    "describe": _Look(
        "Names a commit by a tag.",
        "--all --tags --contains --abbrev?= --candidates= --exact-match --long --match= --exclude= --always "
        "--first-parent "
        "--dirty?= --broken?=",
        check=_describe,
    ),
    "name-rev": _Look("Names a commit.", "--tags --refs= --exclude= --all --name-only --always --no-undefined"),
    "merge-base": _Look("Finds a common ancestor.", "-a --all --octopus --is-ancestor --independent --fork-point"),
    "for-each-ref": _Look("Lists branches and tags.", f"{_LIST} --count= --shell --perl --python --tcl", operands=1000),
    "show-ref": _Look(
        "Lists branches and tags.", "--head --heads --tags -d -s -q --verify --hash?= --abbrev?= --quiet"
    ),
    "show-branch": _Look(
        "Shows branches.", "-a -r --all --remotes --current --topo-order --list --merge-base --sha1-name"
    ),
    "cherry": _Look("Lists commits.", "-v --abbrev?="),
    "range-diff": _Look("Compares commits.", f"{_DIFFERENCES} --creation-factor= --no-dual-color", shows=True),
    "diff-tree": _Look(
        "Shows what changed.", f"{_DIFFERENCES} -r -t --root --no-commit-id --pretty?= --stdin -v", shows=True
    ),
    "diff-files": _Look("Shows what changed.", f"{_DIFFERENCES} -q", shows=True),
    "diff-index": _Look("Shows what changed.", f"{_DIFFERENCES} --cached --merge-base", shows=True),
    "count-objects": _Look("Counts objects.", "-v -H --verbose --human-readable", operands=0),
    "check-ignore": _Look("Shows which files are ignored.", "-q -v -n -z --quiet --verbose --non-matching --no-index"),
    "check-attr": _Look("Shows attributes.", "-a --all --cached -z"),
    "check-ref-format": _Look("Checks a name.", "--branch --normalize --allow-onelevel"),
    "symbolic-ref": _Look("Shows what a name refers to.", "-q --short --quiet", check=_symbolic),
    "branch": _Look(
        "Lists branches.",
        f"-a -r -v -l --list --all --remotes --verbose --show-current --abbrev?= --no-abbrev {_LIST}",
        check=_requires("--list", "-l"),
    ),
    "tag": _Look("Lists tags.", f"-l --list -n?= {_LIST}", check=_requires("--list", "-l")),
    "remote": _Look(
        "Lists remotes.", "-v --verbose --all --push", check=_requires_verb("get-url", bare=True), may_show_tokens=True
    ),
    "stash": _Look(
        "Lists stashed changes.",
        "--oneline -p --stat --name-only --name-status --format= --date=",
        check=_requires_verb("list", "show", bare=False),
        shows=True,
        digits=True,
    ),
    "reflog": _Look(
        "Shows where branches were.",
        f"{_LOG}",
        check=_requires_verb("show", "exists", bare=True),
        digits=True,
        shows=True,
    ),
    "worktree": _Look(
        "Lists worktrees.", "--porcelain -v -z --verbose", check=_requires_verb("list", bare=False), operands=1
    ),
    "notes": _Look("Lists notes.", "", check=_requires_verb("list", "show", bare=True)),
    "config": _Look(
        "Shows a setting of git.",
        "--get --get-all --get-regexp --list -l --name-only --local --global --system --worktree --show-origin "
        "--show-scope "
        "-z --null --type= --bool --int --path --default=",
        check=_config,
        may_show_tokens=True,
    ),
    "var": _Look("Shows a setting of git.", operands=1),  # not -l: all of the configuration, which may hold tokens
    "version": _Look("Shows its version.", "--build-options", operands=0),
    "help": _Look("Shows its commands.", "-a -g --all --guides", operands=0),
}


def _git(call: ProgramCall) -> Harmless:
    call = beyond_globals(call)
    if not call.arguments:
        return Harmless("Shows git's help.")
    name = call.arguments[0].value
    if name in ("--version", "--help", "-v", "-h") and len(call.arguments) == 1:
        return Harmless("Shows its version or its help.")
    look = LOOKS.get(name or "")
    if look is None:
        raise NotHarmless(f"git {name or ''} is not known to be read-only.")
    _check_environment(call)
    parsed = _parse_look(look, call)
    if len(parsed.operands) > look.operands:
        raise NotHarmless(f"git {name} is not known to be read-only with that many arguments.")
    if look.check is not None:
        look.check(parsed, call)
    if name in ("version", "help"):
        return Harmless(look.why)
    repo = repository(call.context.folder, call.context.roots)
    if look.may_show_tokens and repo.tokens:
        raise NotHarmless("The repository's configuration may contain tokens.")
    _check_runs_nothing(parsed)
    if _shows_content(name or "", look, parsed):
        _check_content(name or "", parsed, repo, call)
    elif name in _COMPARE and not parsed.has("--cached", "--staged"):
        _read_index(repo)
    return Harmless(look.why, (str(repo.top),))


_COMPARE = ("status", "diff", "diff-files", "diff-index")
"""They look at workspace files, and so into submodules, whatever they print."""
_MERGES = names("off none on m first-parent 1 separate c combined cc dense-combined")
"""Values of --diff-merges. Not remerge, which repeats the merge in a folder among the objects."""


def _check_runs_nothing(parsed: ParsedOptions) -> None:
    """Raises `NotHarmless` for option values that make git start a program or write."""
    formats = parsed.values("--format", "--pretty", "--group", "--sort")
    if any(value is None or "%G" in value or "signature" in value for value in formats):
        raise NotHarmless("To show signatures, git runs gpg.")
    if any(name == "--submodule" and (value is None or value.value != "short") for name, value, _ in parsed.options):
        raise NotHarmless(
            "To show changes in a submodule, git starts another git there, which obeys the submodule's configuration."
        )
    if any(value not in _MERGES for value in parsed.values("--diff-merges")):
        raise NotHarmless("To show how a merge was resolved, git repeats the merge and writes the result.")


_NAMES = ("--name-only", "--name-status", "--stat", "--shortstat", "--numstat", "--summary", "--compact-summary")
_PATCH = tuple(
    sorted(
        names(
            "-p -u --patch -U --unified -L -c --cc -W --function-context --word-diff --word-diff-regex "
            "--color-words -m --raw -S -G --patch-with-stat --patch-with-raw --binary --full-diff --check "
            "--diff-merges"
        )
    )
)


def _shows_content(name: str, look: _Look, parsed: ParsedOptions) -> bool:
    """Whether the command prints the content of files."""
    if not look.shows or parsed.has(*_PATCH):
        return look.shows
    if name == "cat-file":
        return not parsed.has("-t", "-s", "-e")
    return name in ("grep", "blame") or not (
        name in ("log", "reflog", "stash", "whatchanged") or parsed.has(*_NAMES, "-s")
    )


def beyond_globals(call: ProgramCall) -> ProgramCall:
    """The call without the options before the subcommand; `-C` changes its folder. Raises `NotHarmless` for options
    that matter."""
    while call.arguments and (first := call.arguments[0].value or "-").startswith("-"):
        if first in ("--version", "--help", "-v", "-h"):
            return call
        takes = _GLOBAL.get(first)
        if takes is None:
            raise NotHarmless(
                f"git {call.arguments[0].value or ''} before the subcommand is not known to be read-only."
            )
        if takes.arity:
            value = call.arguments[1].value if len(call.arguments) > 1 else None
            if value is None or (first == "-c" and not _SETTINGS.fullmatch(value)):
                raise NotHarmless("git -c changes git's configuration for this command.")
            if first == "-C":
                folder = paths.real(value, call.context)
                if not paths.inside(folder, call.context):
                    raise NotHarmless(f"{folder} is outside the workspace.")
                call = replace(call, context=replace(call.context, folder=folder))
        call = call.without_first(2 if takes.arity else 1)
    return call


def _parse_look(look: _Look, call: ProgramCall) -> ParsedOptions:
    arguments_call = call.without_first(1)
    for word in arguments_call.arguments:  # an option that takes a value may be the last: `git branch --merged`
        if word.several:
            raise NotHarmless("The arguments of git are only known when it runs.")
    arguments = arguments_call.arguments
    last = arguments[-1].value if arguments else None
    if last in ("--contains", "--no-contains", "--merged", "--no-merged", "--points-at"):
        arguments = (*arguments[:-1], Word(f"{last}=HEAD"))
    parsed = parse(replace(arguments_call, arguments=arguments), table(f"{look.options} -h"), digits=look.digits)
    if parsed.operands_after_dashes is None and any(word.value is None for word in parsed.operands):
        raise NotHarmless("The arguments of git are only known when it runs.")
    return parsed


def _check_environment(call: ProgramCall) -> None:
    for name, value in call.context.environment.items():
        if name.startswith("GIT_") and not _HARMLESS_VARIABLES.fullmatch(name) and LOOKING.get(name) != value:
            raise NotHarmless(f"The environment variable {name} changes what git does.")


def _check_content(name: str, parsed: ParsedOptions, repo: Repository, call: ProgramCall) -> None:
    """Raises `NotHarmless` when a named or tracked file may not be read, since the command could print it."""
    if not paths.inside(repo.top, call.context):
        raise NotHarmless(f"The repository at {repo.top} reaches beyond the workspace.")
    for word in parsed.operands:
        text = word.value
        if text is None:
            raise NotHarmless("What git would show is only known when it runs.")
        for path in {text, text.partition(":")[2].partition(":")[0] or text}:
            for base in (call.context.folder, repo.top):
                if not call.context.may_read(Path(os.path.normpath(base / path))):
                    raise NotHarmless(f"Reading {path} needs approval.")
        if (
            name == "diff"
            and text.startswith(("/", "..", "~"))
            and not paths.inside(paths.real(text, call.context), call.context)
        ) and not re.match(r"\.\.\.?\w", text):
            raise NotHarmless(f"{text} is outside the workspace.")
    for tracked in _tracked_secrets(_read_index(repo)):
        if not call.context.may_read(repo.top / tracked):
            raise NotHarmless(f"Git tracks {tracked} and could show it; reading it needs approval.")


_SECRET = re.compile(
    rb"\.env|\.pem|\.key|\.p12|\.pfx|\.jks|\.ppk|id_[rde]|credentials|netrc|npmrc|pypirc|pgpass|service.account|client_secret",
    re.IGNORECASE,
)
"""Parts of the names of secret files as found in repositories."""


def _tracked_secrets(index: bytes) -> Iterator[str]:
    """The paths in an index of files that hold secrets."""
    for match in _SECRET.finditer(index):
        begin, end = index.rfind(b"\0", 0, match.start()) + 1, index.find(b"\0", match.end())
        name = index[max(begin, match.start() - 1000) : end if end >= 0 else None].decode(errors="replace")
        name = re.split(r"[^\w./@ +-]", name)[-1]
        if is_secret(name):
            yield name


_LARGEST_INDEX = 8 << 20  # bytes
_SUBMODULE = b"\0\0\xe0\0"  # the mode of an entry, gitformat-index(5)


def _read_index(repo: Repository) -> bytes:
    """The bytes of the repository's index, in which names are plain text (not in version 4). Raises `NotHarmless` when
    it has a submodule: git would start another git there, which obeys the submodule's configuration."""
    if any(entry.name.startswith("sharedindex.") for entry in repo.folder.iterdir()):
        raise NotHarmless("Part of git's index is in another file, so the files git tracks could not be checked.")
    try:
        with (repo.folder / "index").open("rb") as file:
            data = file.read(_LARGEST_INDEX + 1)
    except OSError:
        return b""
    if len(data) > _LARGEST_INDEX or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        raise NotHarmless(
            "Git's index is too large or of an unknown version, so the files git tracks could not be checked."
        )
    if _SUBMODULE in data:
        raise NotHarmless("The repository has submodules, and git obeys their configurations too.")
    return data


PROGRAMS: Mapping[str, Judge] = {"git": _git}
