"""Describe commands that have, or may have, an effect: what a rule would remember of them, which files they run, and
whether they need the network.

A rule remembers a prefix: the program and as many words as tell what it does, as in `git commit`, `npm run build`,
`python -m pytest`. A command that means more than a user sees in it has no prefix and needs approval each time:
interpreters without a script, programs that delete, move or download anything, options that name a program (`git -c`,
`rebase --exec`), and uses that destroy work (`git reset --hard`). A program that is in no table has none either.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from amanu.shell import paths
from amanu.shell.call import Judgement, NotHarmless, ProgramCall
from amanu.shell.options import names
from amanu.shell.programs.git import LOOKS, beyond_globals


@dataclass(frozen=True)
class Act:
    """What a command with an effect does, and the prefix a rule would remember; None: none."""

    why: str
    prefix: tuple[str, ...] | None = None
    runs: tuple[str, ...] = ()
    network: bool = False
    git: bool = False
    described: bool = False
    """`why` says what the command does, and not only that this is unknown."""

    def judgement(self, why: str) -> Judgement:
        return Judgement("some", why, self.prefix, (), self.runs, self.network, self.git)


_PYTHON = re.compile(r"python([23](\.\d+t?)?)?|pypy3?")


def is_known(program: str) -> bool:
    """Whether the arguments of a program of that name tell what it does."""
    tables = (_SPECIAL, _ARITY, _SCRIPTED, _NPM)
    return _PYTHON.fullmatch(program) is not None or any(program in program_table for program_table in tables)


def takes_script(program: str) -> bool:
    """Whether the second word of this program's prefix may be a script."""
    return program in _SCRIPTED or _PYTHON.fullmatch(program) is not None


def act(call: ProgramCall) -> Act:
    """Describe a call that has, or may have, an effect."""
    if call.program in _SPECIAL:
        return _SPECIAL[call.program](call)
    if _PYTHON.fullmatch(call.program):
        return _python(call)
    if call.program in _SCRIPTED:
        return _script(call)
    if call.program in _NPM:
        return _npm(call)
    if call.program in _NEVER_REMEMBERED:
        return Act(_NEVER_REMEMBERED[call.program], network=call.program in _FETCHES, described=True)
    arity = _ARITY.get(call.program)
    if arity is None:
        return Act(f"Amanu does not know what {call.program} does.")
    arguments = call.values
    if call.program in ("docker", "podman") and arguments[:1] == ("compose",):
        arity = 3
    for argument in arguments[: arity - 1]:
        if argument is None or argument.startswith("-"):
            return Act(f"What {call.program} would do is not certain.")
    prefix = (call.program, *(argument or "" for argument in arguments[: arity - 1]))
    if len(prefix) < arity or (prefix in _NEVER or prefix[:2] in _NEVER) or _leads_elsewhere(arguments):
        return Act(_describe(prefix), network=_needs_network(prefix))
    return Act(
        _describe(prefix),
        prefix,
        _files(call, _RUNS.get(call.program, "")),
        _needs_network(prefix),
        described=prefix[:2] in _WHY,
    )


_ARITY: Mapping[str, int] = {
    # With sub-commands.
    **dict.fromkeys(
        ("cargo", "go", "pip", "pip3", "terraform", "helm", "rustup", "dotnet", "mvn", "gradle", "deno"), 2
    ),
    **dict.fromkeys(
        ("bundle", "composer", "brew", "apt", "apt-get", "conda", "kubectl", "swift", "flutter", "mix", "zig"), 2
    ),
    **dict.fromkeys(
        ("docker", "podman", "docker-compose", "systemctl", "just", "task", "ninja", "rake", "alembic", "nx"), 2
    ),
    **dict.fromkeys(
        ("ruff", "hatch", "pdm", "pre-commit", "turbo", "vite", "next", "prisma", "drizzle-kit", "wrangler"), 2
    ),
    **dict.fromkeys(("gh", "glab", "aws", "gcloud", "az"), 3),
    # One thing each: tests, linters, formatters, compilers, and what only makes new things.
    **dict.fromkeys(
        ("pytest", "py.test", "tox", "nox", "mypy", "pyright", "pylint", "flake8", "black", "isort", "bandit"), 1
    ),
    **dict.fromkeys(
        ("eslint", "tsc", "prettier", "jest", "vitest", "mocha", "playwright", "cypress", "biome", "webpack"), 1
    ),
    **dict.fromkeys(
        ("rollup", "esbuild", "rubocop", "rspec", "phpunit", "phpstan", "golangci-lint", "gofmt", "goimports"), 1
    ),
    **dict.fromkeys(
        ("rustfmt", "rustc", "clang-format", "clang-tidy", "cmake", "ctest", "gcc", "g++", "cc", "clang"), 1
    ),
    **dict.fromkeys(
        ("shellcheck", "shfmt", "yamllint", "hadolint", "actionlint", "coverage", "cloc", "tokei", "scc"), 1
    ),
    **dict.fromkeys(
        ("mkdir", "touch", "javac", "swiftc", "protoc", "sphinx-build", "pdflatex", "pandoc", "stylelint"), 1
    ),
    **dict.fromkeys(
        ("yamlfmt", "taplo", "typos", "codespell", "vulture", "pyupgrade", "pip-compile", "markdownlint"), 1
    ),
}
"""How many words of the command tell what it does."""

_NEVER: frozenset[tuple[str, ...]] = frozenset(
    {
        *(
            ("docker", verb)
            for verb in ("run", "exec", "rm", "rmi", "system", "volume", "cp", "build", "container", "image")
        ),
        *(("podman", verb) for verb in ("run", "exec", "rm", "rmi", "system", "volume", "cp")),
        *(("kubectl", verb) for verb in ("exec", "delete", "run", "apply", "cp", "debug", "edit", "patch", "proxy")),
        *(("go", verb) for verb in ("run", "generate", "tool", "env", "clean", "install")),
        *(("cargo", verb) for verb in ("run", "install", "login", "publish", "clean")),
        *(("deno", verb) for verb in ("run", "eval", "install", "upgrade", "repl")),
        *(("terraform", verb) for verb in ("destroy", "apply", "import", "state", "console")),
        *(("helm", verb) for verb in ("uninstall", "delete", "upgrade", "install", "plugin")),
        *(("gh", verb) for verb in ("api", "alias", "extension", "auth", "secret", "config", "codespace")),
        *(("aws", verb) for verb in ("configure",)),
        *(("apt", "remove"), ("apt", "purge"), ("apt-get", "remove"), ("apt-get", "purge"), ("brew", "uninstall")),
        *(("systemctl", "stop"), ("systemctl", "disable"), ("bundle", "exec"), ("conda", "run"), ("pdm", "run")),
        *(
            ("docker", "compose", "run"),
            ("docker", "compose", "exec"),
            ("docker", "compose", "rm"),
            ("hatch", "run"),
            ("rustup", "run"),
            ("pip", "config"),
            ("pip3", "config"),
        ),
    }
)

_LEADING_ELSEWHERE = re.compile(
    r"--(config|rulesdir|resolve-plugins-relative-to|plugin|require|exec|toolexec|vettool|target-dir|manifest-path"
    r"|prefix|script-shell|root|index-url|extra-index-url|rootdir|confcutdir|chdir|directory|project|userconfig"
    r"|globalconfig|node-options|checkpoint-action|use-compress-program)(=.*)?|-(exec|toolexec|vettool|C|chdir)(=.*)?"
)
_FETCHES = names("curl wget ssh scp rsync nc ncat telnet ftp sftp ping dig nslookup host traceroute")
_NETWORKED = frozenset(
    {
        *(("pip", verb) for verb in ("install", "download", "index", "wheel", "search")),
        *(("pip3", verb) for verb in ("install", "download", "index", "wheel", "search")),
        *(("cargo", verb) for verb in ("install", "fetch", "update", "add", "search", "publish", "login")),
        *(("go", verb) for verb in ("get", "install", "mod")),
        *(
            ("npm", verb)
            for verb in [
                "install",
                "i",
                "ci",
                "add",
                "update",
                "outdated",
                "view",
                "info",
                "search",
                "publish",
                "audit",
                "login",
            ]
        ),
        *(("pnpm", verb) for verb in ["install", "i", "add", "update", "outdated", "view", "publish", "audit", "dlx"]),
        *(("yarn", verb) for verb in ["install", "add", "upgrade", "outdated", "info", "publish", "audit", "dlx"]),
        *(("docker", verb) for verb in ("pull", "push", "login", "search")),
        *(("composer", verb) for verb in ("install", "update", "require")),
        *(("bundle", verb) for verb in ("install", "update")),
        *(("terraform", verb) for verb in ("init", "plan", "apply")),
        *(("uv", verb) for verb in ("sync", "lock", "add", "pip", "tool")),
        *(("poetry", verb) for verb in ("install", "add", "update", "lock")),
        *(("brew", verb) for verb in ("install", "update", "upgrade")),
        *(("apt", verb) for verb in ("install", "update", "upgrade")),
        *(("apt-get", verb) for verb in ("install", "update", "upgrade")),
    }
)
_RUNS: Mapping[str, str] = {
    "cargo": "Cargo.toml build.rs",
    "pytest": "conftest.py",
    "py.test": "conftest.py",
    "tox": "tox.ini",
    "nox": "noxfile.py",
    "just": "justfile Justfile",
    "task": "Taskfile.yml",
    "rake": "Rakefile",
    "gradle": "build.gradle build.gradle.kts",
    "mvn": "pom.xml",
    "cmake": "CMakeLists.txt",
    "pre-commit": ".pre-commit-config.yaml",
    "docker-compose": "docker-compose.yml compose.yaml",
}
"""Files of the folder that decide what these programs do."""
_WHY: Mapping[tuple[str, ...], str] = {
    ("cargo", "test"): "Builds and runs the tests.",
    ("cargo", "build"): "Builds the project.",
    ("go", "test"): "Builds and runs the tests.",
    ("go", "build"): "Builds the project.",
    ("pip", "install"): "Installs packages from the network.",
    ("pip3", "install"): "Installs packages from the network.",
    ("pytest",): "Runs the tests of the workspace.",
    ("mkdir",): "Creates folders.",
    ("touch",): "Creates files or updates their timestamps.",
}
_NEVER_REMEMBERED: Mapping[str, str] = {
    "rm": "Deletes files.",
    "rmdir": "Deletes folders.",
    "mv": "Moves files.",
    "cp": "Copies files.",
    "ln": "Creates links.",
    "dd": "Writes a file or a device.",
    "tee": "Writes files.",
    "truncate": "Truncates files.",
    "install": "Copies files.",
    "chmod": "Changes file permissions.",
    "chown": "Changes file ownership.",
    "kill": "Ends processes.",
    "pkill": "Ends processes.",
    "killall": "Ends processes.",
    "sudo": "Runs a command as root.",
    "su": "Runs a command as another user.",
    "doas": "Runs a command as root.",
    "eval": "Runs text as a command.",
    "exec": "Replaces the shell with a program.",
    "source": "Runs a script in this shell.",
    ".": "Runs a script in this shell.",
    "curl": "Connects to the network.",
    "wget": "Downloads from the network.",
    "ssh": "Runs a command on another machine.",
    "scp": "Copies files to or from another machine.",
    "rsync": "Copies files, possibly to or from another machine.",
    **dict.fromkeys(
        ("nc", "ncat", "telnet", "ftp", "sftp", "ping", "dig", "nslookup", "host"), "Connects to the network."
    ),
    "crontab": "Changes scheduled jobs.",
    "export": "Sets variables.",
    "yes": "Prints endlessly.",
}
"""Programs that no rule may remember, each with a sentence for the user."""


def _describe(prefix: tuple[str, ...]) -> str:
    sentence = _WHY.get(prefix) or _WHY.get(prefix[:2])
    return sentence or f"{' '.join(prefix)} may change files or run other programs."


def _needs_network(prefix: tuple[str, ...]) -> bool:
    return prefix[:2] in _NETWORKED or prefix[0] in ("gh", "glab", "aws", "gcloud", "az", "kubectl", "helm")


def _leads_elsewhere(arguments: Sequence[str | None]) -> bool:
    """Whether options change more than the prefix shows: to another folder, program or configuration."""
    return any(word is not None and _LEADING_ELSEWHERE.fullmatch(word) for word in arguments)


def _files(call: ProgramCall, names: str) -> tuple[str, ...]:
    """The real paths of those names that are files in the command's folder, and inside the workspace."""
    files: list[str] = []
    for name in names.split():
        try:
            path = paths.real(name, call.context)
        except NotHarmless:
            continue
        if paths.inside(path, call.context) and path.is_file():
            files.append(str(path))
    return tuple(files)


# git

_GIT_WHY: Mapping[str, str] = {
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
_GIT_NETWORK = names("fetch pull push clone ls-remote")
_GIT_NEVER = names(
    "config filter-branch filter-repo bisect difftool mergetool clean gc prune fast-import update-ref "
    "daemon instaweb send-email credential submodule replace remote worktree maintenance hook"
)
"""Never remembered: they run programs, name some, or destroy what git keeps."""
_GIT_OTHERS = names("am apply archive bundle format-patch lfs ls-remote sparse-checkout")
"""More subcommands that may be remembered. Other names can be aliases or programs in PATH, which a user cannot see."""
_GIT_DESTROYS = re.compile(
    r"--hard|--force(-.*)?|--mirror|--delete|--prune|--exec(=.*)?|--upload-pack(=.*)?|--receive-pack(=.*)?"
    r"|--open-files-in-pager(=.*)?|--ext-diff|--textconv|--output(=.*)?|--template(=.*)?|--config(=.*)?|--extcmd(=.*)?"
    r"|--gpg-sign=.*|--strategy(=.*)?|--no-verify|--separate-git-dir(=.*)?|--discard-changes|--git-dir(=.*)?"
    r"|-[a-zA-Z]*[fDxXOcu]\S*|\+.*|ext::.*|:.+|drop|clear|expire|--"
)
_GIT_PLAIN_FLAGS: Mapping[str, frozenset[str]] = {
    # Options that match `_GIT_DESTROYS` but destroy nothing with this subcommand.
    "push": frozenset({"-u"}),
    "add": frozenset({"-u", "--"}),
    "commit": frozenset({"--", "-u"}),
    "stash": frozenset({"-u"}),
    "switch": frozenset({"-c"}),
    "pull": frozenset({"--ff-only"}),
    "log": frozenset({"--"}),
    "diff": frozenset({"--"}),
    "show": frozenset({"--"}),
}


def _git(call: ProgramCall) -> Act:
    try:
        command = beyond_globals(call)
    except NotHarmless as error:
        return Act(str(error), git=True, network=any(word in _GIT_NETWORK for word in call.values))
    arguments = command.values
    if not arguments or arguments[0] is None or arguments[0].startswith("-"):
        return Act("What git would do is not certain.", git=True)
    name = arguments[0]
    network = name in _GIT_NETWORK or (name in ("submodule", "remote") and "update" in arguments)
    network = network or arguments[:2] == ("submodule", "add")
    described = name in _GIT_WHY
    why = _GIT_WHY.get(name, f"git {name} may change the repository.")
    plain = _GIT_PLAIN_FLAGS.get(name, frozenset())
    rest_words = arguments[1:]
    if name == "commit" and "-m" in rest_words:
        rest_words = tuple(
            argument
            for position, argument in enumerate(rest_words)
            if position == 0 or rest_words[position - 1] not in ("-m", "-am")
        )
    unsafe = any(
        argument is None or (argument not in plain and _GIT_DESTROYS.fullmatch(argument)) for argument in rest_words
    )
    moved = command.context.folder != call.context.folder
    if name in _GIT_NEVER or unsafe or moved or not (described or name in LOOKS or name in _GIT_OTHERS):
        return Act(why, None, (), network, True, described)
    return Act(why, ("git", name), (), network, True, described)


# make, npm and the like, python, scripts


def _make(call: ProgramCall) -> Act:
    arguments = list(call.values)
    targets: list[str] = []
    runs = _files(call, "GNUmakefile makefile Makefile")
    while arguments:
        word = arguments.pop(0)
        if word is None or "=" in word:
            return Act("Runs Makefile rules with variables set on the command line.", None, runs, described=True)
        if re.fullmatch(r"-j\d*|-[skiwB]+|--silent|--no-print-directory|--keep-going|--quiet|-n|--dry-run", word):
            if word == "-j" and arguments and (arguments[0] or "").isdigit():
                arguments.pop(0)
            continue
        if word.startswith("-"):
            return Act("Runs Makefile rules, possibly from another folder.", None, runs, described=True)
        targets.append(word)
    if len(targets) > 1:
        return Act("Runs several Makefile rules.", None, runs, described=True)
    return Act("Runs a Makefile rule.", ("make", *targets), runs, described=True)


_NPM = names("npm pnpm yarn bun npx pnpx bunx")
_NPM_TAKES = names("run run-script")
_NPM_WHY: Mapping[str, str] = {
    **dict.fromkeys(
        names("install i add ci update up upgrade dedupe"), "Installs packages, which may run their own scripts."
    ),
    **dict.fromkeys(names("uninstall un remove rm"), "Removes packages."),
    **{name: f"Runs the package.json script {name}." for name in ("test", "start", "stop", "restart")},
    **dict.fromkeys(names("ls list ll why explain"), "Lists installed packages and writes its own log."),
    "outdated": "Checks the network for newer packages.",
    "audit": "Checks packages for known vulnerabilities over the network, and may change them.",
    "publish": "Publishes the package.",
    "version": "Changes the package's version and may create a commit.",
    "init": "Creates a package.json.",
}
_NPM_NEVER = names("exec x dlx config set publish unpublish login token owner uninstall remove rm link create init")


def _npm(call: ProgramCall) -> Act:
    arguments = call.values
    runs = _files(call, "package.json")
    is_installed = call.program in ("npx", "bunx") and _is_installed(arguments, call)
    if not arguments or arguments[0] is None or arguments[0].startswith("-") or _leads_elsewhere(arguments):
        return Act(f"What {call.program} would do is not certain.", None, runs, network=not is_installed)
    if call.program in ("npx", "pnpx", "bunx"):
        plain = re.fullmatch(r"[\w@./-]+", arguments[0])
        return Act(
            f"Runs {arguments[0]}{'' if is_installed else ', downloading it first if needed'}.",
            (call.program, arguments[0]) if plain else None,
            runs,
            network=not is_installed,
            described=True,
        )
    if arguments[0] in _NPM_TAKES:
        if len(arguments) < 2 or arguments[1] is None or arguments[1].startswith("-"):
            return Act(f"What {call.program} would run is not certain.", None, runs)
        return Act(
            f"Runs the package.json script {arguments[1]}.",
            (call.program, arguments[0], arguments[1]),
            runs,
            described=True,
        )
    prefix = (call.program, arguments[0])
    return Act(
        _NPM_WHY.get(arguments[0]) or _describe(prefix),
        None if arguments[0] in _NPM_NEVER else prefix,
        runs,
        network=prefix in _NETWORKED,
        described=arguments[0] in _NPM_WHY,
    )


def _is_installed(arguments: Sequence[str | None], call: ProgramCall) -> bool:
    """Whether the first is a program of a package in `node_modules`, of the folder or one above it in the workspace."""
    name, folder = (arguments or ("",))[0] or "", call.context.folder
    folders = [above for above in (folder, *folder.parents) if paths.inside(above, call.context)]
    is_name = re.fullmatch(r"\w[\w.-]*", name) is not None
    return is_name and any((above / "node_modules/.bin" / name).exists() for above in folders)


_CODE_MODULES = names(
    "timeit code pdb trace runpy cProfile profile doctest idlelib bdb site ensurepip http.server http "
    "pickle pickletools shutil webbrowser smtpd turtledemo zipapp"
)
"""Python modules that run the code or paths they are given, or serve and change files."""


def _python(call: ProgramCall) -> Act:
    arguments = list(call.values)
    while arguments and arguments[0] in ("-u", "-B", "-I", "-P", "-s", "-E", "-O", "-q"):
        arguments.pop(0)
    if not arguments or arguments[0] is None:
        return Act("Runs Python code.", described=True)
    if arguments[0] in ("--version", "-V"):  # and nothing else, whatever follows
        return Act("Shows its version.", (call.program, arguments[0]), described=True)
    if arguments[0] == "-m" and len(arguments) > 1 and arguments[1]:
        module = arguments[1]
        module_arguments = arguments[2:]
        if module in _CODE_MODULES or not re.fullmatch(r"[\w.]+", module):
            return Act(f"Runs the Python module {module}.", described=True)
        runs = _files(call, f"{module.replace('.', '/')}.py {module.replace('.', '/')}/__main__.py")
        if module == "pip":
            inner = act(
                ProgramCall(
                    "pip",
                    tuple(call.arguments[len(call.arguments) - len(module_arguments) :]),
                    call.context,
                    call.piped,
                )
            )
            prefix = ("python", "-m", *inner.prefix) if inner.prefix else None
            return replace(inner, prefix=(call.program, *prefix[1:]) if prefix else None, runs=runs)
        if _leads_elsewhere(module_arguments):
            return Act(f"Runs the Python module {module}.", None, runs, described=True)
        return Act(f"Runs the Python module {module}.", (call.program, "-m", module), runs, described=True)
    return _script(replace(call, arguments=call.arguments[len(call.arguments) - len(arguments) :]))


_SCRIPTED = names("node bash sh zsh dash fish ruby perl php lua tsx ts-node Rscript julia")


def _script(call: ProgramCall) -> Act:
    """An interpreter with a workspace script: a rule remembers the script, and its content is part of the approval."""
    first = call.values[0] if call.arguments else None
    if first is not None and not first.startswith("-"):
        try:
            path = paths.real(first, call.context)
        except NotHarmless:
            return Act(f"Runs a script with {call.program}.", described=True)
        if paths.inside(path, call.context) and path.is_file():
            return Act(f"Runs {first}, a script in the workspace.", (call.program, first), (str(path),), described=True)
        return Act(f"Runs the script {first}.", described=True)
    return Act(f"Runs code with {call.program}.", described=True)


def _runner(call: ProgramCall) -> Act:
    """`uv run pytest`: the tool is part of the prefix, and is judged as if it were called directly."""
    arguments = call.values
    if arguments[:1] == ("run",) and len(arguments) > 1:
        tool = arguments[1]
        if tool is None or tool.startswith("-") or not re.fullmatch(r"[\w.@-]+", tool):
            return Act(f"What {call.program} would run is not certain.")
        inner = act(ProgramCall(tool, call.arguments[2:], call.context, call.piped))
        return replace(inner, prefix=(call.program, "run", *inner.prefix) if inner.prefix else None)
    if not arguments or arguments[0] is None or arguments[0].startswith("-") or _leads_elsewhere(arguments):
        return Act(f"What {call.program} would do is not certain.")
    prefix = (call.program, arguments[0])
    if arguments[0] in ("pip", "tool", "python", "cache", "self", "publish", "config", "shell", "x"):
        return Act(_describe(prefix), None, (), prefix in _NETWORKED)
    return Act(_describe(prefix), prefix, (), prefix in _NETWORKED)


_SPECIAL: Mapping[str, Callable[[ProgramCall], Act]] = {
    "git": _git,
    "make": _make,
    "gmake": _make,
    **dict.fromkeys(("uv", "poetry", "pipenv", "rye"), _runner),
}
