"""What a rule would remember of a command, which files it runs, and whether it needs the network.

A rule remembers a prefix: the program and as many words as tell what it does, as in `git commit`, `npm run build`,
`python -m pytest`. A command that means more than a user sees in it has no prefix and needs approval each time:
interpreters without a script, programs that delete, move or download anything. A program that is in no table has none
either.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from amanu.shell import files, git
from amanu.shell.call import NotHarmless, ProgramCall, names


@dataclass(frozen=True)
class Act:
    """What a command does, as far as its words tell."""

    why: str = ""
    """A sentence for the user; "" where nothing is known."""
    prefix: tuple[str, ...] | None = None
    """What a rule would remember; None: it cannot be remembered."""
    runs: tuple[str, ...] = ()
    network: bool = False


_PYTHON = re.compile(r"python([23](\.\d+t?)?)?|pypy3?")
_SCRIPTED = names("node bash sh zsh dash fish ruby perl php lua tsx ts-node Rscript julia")
_RUNNERS = names("uv poetry pipenv rye")
_PACKAGE_MANAGERS = names("npm pnpm yarn bun npx pnpx bunx")

_WORDS: Mapping[str, int] = {
    **dict.fromkeys(
        names("cargo go pip pip3 terraform helm rustup dotnet mvn gradle deno bundle composer brew apt"), 2
    ),
    **dict.fromkeys(
        names("apt-get conda kubectl swift flutter mix zig docker podman docker-compose systemctl just"), 2
    ),
    **dict.fromkeys(
        names("task ninja rake alembic nx ruff hatch pdm pre-commit turbo vite next prisma drizzle-kit"), 2
    ),
    **dict.fromkeys(names("wrangler"), 2),
    **dict.fromkeys(names("gh glab aws gcloud az"), 3),
    # One thing each: tests, linters, formatters, compilers, and what only makes new things.
    **dict.fromkeys(
        names("pytest py.test tox nox mypy pyright pylint flake8 black isort bandit eslint tsc prettier"), 1
    ),
    **dict.fromkeys(
        names("jest vitest mocha playwright cypress biome webpack rollup esbuild rubocop rspec phpunit"), 1
    ),
    **dict.fromkeys(
        names("phpstan golangci-lint gofmt goimports rustfmt rustc clang-format clang-tidy cmake ctest"), 1
    ),
    **dict.fromkeys(names("gcc g++ cc clang shellcheck shfmt yamllint hadolint actionlint coverage cloc tokei scc"), 1),
    **dict.fromkeys(names("mkdir touch javac swiftc protoc sphinx-build pdflatex pandoc stylelint yamlfmt taplo"), 1),
    **dict.fromkeys(names("typos codespell vulture pyupgrade pip-compile markdownlint"), 1),
}
"""How many words of the command tell what it does."""

_NEVER_REMEMBERED: Mapping[str, frozenset[str]] = {
    "docker": names("run exec rm rmi system volume cp build container image"),
    "podman": names("run exec rm rmi system volume cp"),
    "docker compose": names("run exec rm"),
    "kubectl": names("exec delete run apply cp debug edit patch proxy"),
    "go": names("run generate tool env clean install"),
    "cargo": names("run install login publish clean"),
    "deno": names("run eval install upgrade repl"),
    "terraform": names("destroy apply import state console"),
    "helm": names("uninstall delete upgrade install plugin"),
    "gh": names("api alias extension auth secret config codespace"),
    "aws": names("configure"),
    **dict.fromkeys(names("apt apt-get"), names("remove purge")),
    "brew": names("uninstall"),
    "systemctl": names("stop disable"),
    **dict.fromkeys(names("pip pip3"), names("config")),
    "bundle": names("exec"),
    **dict.fromkeys(names("conda pdm hatch rustup"), names("run")),
    **dict.fromkeys(
        names("npm pnpm yarn bun"),
        names("exec x dlx config set publish unpublish login token owner uninstall remove rm link create init"),
    ),
    **dict.fromkeys(_RUNNERS, names("pip tool python cache self publish config shell x")),
}
"""Program → sub-commands that no rule remembers: they run what follows, or do more than their name says."""

_NETWORK: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(names("pip pip3"), names("install download index wheel search")),
    "cargo": names("install fetch update add search publish login"),
    "go": names("get install mod"),
    "npm": names("install i ci add update outdated view info search publish audit login"),
    "pnpm": names("install i add update outdated view publish audit dlx"),
    "yarn": names("install add upgrade outdated info publish audit dlx"),
    "docker": names("pull push login search"),
    "composer": names("install update require"),
    "bundle": names("install update"),
    "terraform": names("init plan apply"),
    "uv": names("sync lock add pip tool"),
    "poetry": names("install add update lock"),
    **dict.fromkeys(names("brew apt apt-get"), names("install update upgrade")),
}
"""Program → sub-commands that need the network."""
_ALWAYS_NETWORK = names(
    "gh glab aws gcloud az kubectl helm curl wget ssh scp rsync nc ncat telnet ftp sftp ping dig nslookup host npx "
    "pnpx bunx"
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
    **dict.fromkeys(_PACKAGE_MANAGERS, "package.json"),
}
"""Files of the folder that decide what these programs do."""

_WHY: Mapping[str, str] = {
    **dict.fromkeys(("cargo test", "go test"), "Builds and runs the tests."),
    **dict.fromkeys(("cargo build", "go build"), "Builds the project."),
    **dict.fromkeys(("pip install", "pip3 install"), "Installs packages from the network."),
    **{
        f"npm {verb}": "Installs packages, which may run their own scripts."
        for verb in names("install i ci add update")
    },
    **{f"npm {verb}": f"Runs the package.json script {verb}." for verb in names("test start stop restart")},
    "pytest": "Runs the tests of the workspace.",
    "mkdir": "Creates folders.",
    "touch": "Creates files or updates their timestamps.",
    "rm": "Deletes files.",
    "rmdir": "Deletes folders.",
    "mv": "Moves files.",
    **dict.fromkeys(("cp", "install"), "Copies files."),
    "ln": "Creates links.",
    "dd": "Writes a file or a device.",
    "tee": "Writes files.",
    "truncate": "Truncates files.",
    "chmod": "Changes file permissions.",
    "chown": "Changes file ownership.",
    **dict.fromkeys(("kill", "pkill", "killall"), "Ends processes."),
    "curl": "Connects to the network.",
    "wget": "Downloads from the network.",
    "scp": "Copies files to or from another machine.",
    "rsync": "Copies files, possibly to or from another machine.",
    "crontab": "Changes scheduled jobs.",
}
"""What a command does, by its first words."""


def is_known(program: str) -> bool:
    """Whether the arguments of a program of that name tell what it does."""
    special = program in ("git", "make", "gmake") or program in _RUNNERS or program in _PACKAGE_MANAGERS
    return special or takes_script(program) or program in _WORDS


def takes_script(program: str) -> bool:
    """Whether the second word of this program's prefix may be a script."""
    return program in _SCRIPTED or _PYTHON.fullmatch(program) is not None


def act(call: ProgramCall) -> Act:
    """What the call does, as far as its words tell."""
    if call.program == "git":
        return Act(*git.description(call)[:2], network=git.description(call)[2])
    if call.program in ("make", "gmake"):
        return _make(call)
    if _PYTHON.fullmatch(call.program):
        return _python(call)
    if call.program in _SCRIPTED:
        return _script(call)
    if call.program in _RUNNERS and call.values[:1] == ("run",) and len(call.values) > 1:
        return _runner(call)
    return _by_words(call)


def _by_words(call: ProgramCall) -> Act:
    """What a program does whose first words tell."""
    words = call.values
    count = _WORDS.get(call.program, 2 if call.program in _RUNNERS or call.program in _PACKAGE_MANAGERS else 0)
    if (call.program in ("docker", "podman") and words[:1] == ("compose",)) or (
        call.program in _PACKAGE_MANAGERS and words[:1] in (("run",), ("run-script",))
    ):
        count = 3
    prefix = (call.program, *(word for word in words[: max(count - 1, 0)] if word is not None and word[:1] != "-"))
    verb = prefix[1] if len(prefix) > 1 else ""
    never = verb in _NEVER_REMEMBERED.get(call.program, ())
    never = never or (len(prefix) > 2 and prefix[2] in _NEVER_REMEMBERED.get(" ".join(prefix[:2]), ()))
    why = _WHY.get(" ".join(prefix[:2])) or _WHY.get(call.program) or ""
    if call.program in _PACKAGE_MANAGERS and count == 3 and len(prefix) == 3:
        why = f"Runs the package.json script {prefix[2]}."
    return Act(
        why or (f"{' '.join(prefix)} may change files or run other programs." if count else ""),
        prefix if count and len(prefix) == count and not never else None,
        files.existing(_RUNS.get(call.program, ""), call.context),
        (call.program in _ALWAYS_NETWORK and not _is_installed(call)) or verb in _NETWORK.get(call.program, ()),
    )


def _is_installed(call: ProgramCall) -> bool:
    """Whether it runs a program of a package in `node_modules`, of the folder or one above it in the workspace."""
    name, folder = (call.values[:1] or ("",))[0] or "", call.context.folder
    folders = [above for above in (folder, *folder.parents) if files.inside(above, call.context)]
    is_name = call.program in ("npx", "bunx") and re.fullmatch(r"\w[\w.-]*", name) is not None
    return is_name and any((above / "node_modules/.bin" / name).exists() for above in folders)


def _make(call: ProgramCall) -> Act:
    """`make -j4 test`: options that only say how the rules are run are left out."""
    arguments = list(call.values)
    targets: list[str] = []
    runs = files.existing("GNUmakefile makefile Makefile", call.context)
    while arguments:
        word = arguments.pop(0)
        if word is None or "=" in word:
            return Act("Runs Makefile rules with variables set on the command line.", None, runs)
        if re.fullmatch(r"-j\d*|-[skiwB]+|--silent|--no-print-directory|--keep-going|--quiet|-n|--dry-run", word):
            if word == "-j" and arguments and (arguments[0] or "").isdigit():
                arguments.pop(0)
        elif word.startswith("-"):
            return Act("Runs Makefile rules, possibly from another folder.", None, runs)
        else:
            targets.append(word)
    if len(targets) > 1:
        return Act("Runs several Makefile rules.", None, runs)
    return Act("Runs a Makefile rule.", ("make", *targets), runs)


_CODE_MODULES = names(
    "timeit code pdb trace runpy cProfile profile doctest idlelib bdb site ensurepip http.server http pickle "
    "pickletools shutil webbrowser smtpd turtledemo zipapp"
)
"""Python modules that run the code or paths they are given, or serve and change files."""


def _python(call: ProgramCall) -> Act:
    while call.values[:1] and call.values[0] in ("-u", "-B", "-I", "-P", "-s", "-E", "-O", "-q"):
        call = call.without_first(1)
    first, module = (*call.values, None, None)[:2]
    if first is None:
        return Act("Runs Python code.")
    if first in ("--version", "-V"):  # and nothing else, whatever follows
        return Act("Shows its version.", (call.program, first))
    if first != "-m" or not module:
        return _script(call)
    if module in _CODE_MODULES or not re.fullmatch(r"[\w.]+", module):
        return Act(f"Runs the Python module {module}.")
    path = module.replace(".", "/")
    runs = files.existing(f"{path}.py {path}/__main__.py", call.context)
    if module == "pip":
        inner = act(ProgramCall("pip", call.arguments[2:], call.context))
        return replace(inner, prefix=inner.prefix and (call.program, "-m", *inner.prefix), runs=runs)
    return Act(f"Runs the Python module {module}.", (call.program, "-m", module), runs)


def _script(call: ProgramCall) -> Act:
    """An interpreter with a workspace script: a rule remembers the script, and its content is part of the approval."""
    first = call.values[0] if call.arguments else None
    if first is None or first.startswith("-"):
        return Act(f"Runs code with {call.program}.")
    try:
        path = files.real(first, call.context)
    except NotHarmless:
        return Act(f"Runs a script with {call.program}.")
    if files.inside(path, call.context) and path.is_file():
        return Act(f"Runs {first}, a script in the workspace.", (call.program, first), (str(path),))
    return Act(f"Runs the script {first}.")


def _runner(call: ProgramCall) -> Act:
    """`uv run pytest`: the tool is part of the prefix, and is judged as if it were called directly."""
    tool = call.values[1]
    if tool is None or not re.fullmatch(r"[\w.@][\w.@-]*", tool):
        return Act(f"What {call.program} would run is not certain.")
    inner = act(ProgramCall(tool, call.arguments[2:], call.context))
    return replace(inner, prefix=inner.prefix and (call.program, "run", *inner.prefix))
