"""Which variables may be set without steering the shell or a program."""

import re

from amanu.shell.state import State
from amanu.text.redaction import holds_secret

_HARMLESS = re.compile(
    r"CI|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|LANG|LC_[A-Z]+|TZ|TERM|COLORTERM|COLUMNS|LINES|PYTHONUNBUFFERED|"
    r"PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|PYTHONUTF8|PY_COLORS|RUST_BACKTRACE|RUST_LOG|NODE_ENV"
)
"""Known to change nothing but how output looks, or what a build is called."""
_SILENT = re.compile(
    r"(?:GIT_|GH_|MAN|SYSTEMD_)?PAGER=(?:cat)?|GIT_(?:SEQUENCE_)?EDITOR=(?:true|:)|GIT_TERMINAL_PROMPT=0|"
    r"GIT_OPTIONAL_LOCKS=0|GIT_MERGE_AUTOEDIT=no|DEBIAN_FRONTEND=noninteractive"
)
"""What a command gets anyway (`tools/shell/run_shell_command.py`), or less than it would do: nobody is asked."""
_VALUE = re.compile(r"[\w.,@+-]*|(?:[A-Z][A-Za-z_]+/)+[A-Za-z_]+")  # no path: LANG and TZ can name files
_OF_BASH = re.compile(
    r"BASH.*|COMP_.*|COMPREPLY|COPROC|DIRSTACK|EMACS|ENV|EPOCH.*|EUID|EXECIGNORE|FCEDIT|FIGNORE|FUNC.*|GLOB.*|GROUPS|"
    r"HIST.*|HOME|HOST.*|IFS|IGNOREEOF|INPUTRC|INSIDE_EMACS|LANG|LC_.*|LD_.*|DYLD_.*|GIT_.*|LINENO|LINES|MACHTYPE|MAIL.*|"
    r"MAPFILE|OLDPWD|OPT.*|OSTYPE|PATH|CDPATH|PIPESTATUS|POSIXLY_CORRECT|PPID|PROMPT_.*|PS[0-9]|PWD|RANDOM|READLINE_.*|"
    r"REPLY|SECONDS|SHELL|SHELLOPTS|SHLVL|SRANDOM|TERM|TIMEFORMAT|TMOUT|TMPDIR|TZ|UID|_|auto_resume|histchars|"
    r"PAGER|EDITOR|VISUAL|BROWSER|PYTHON.*|NODE_.*|PERL.*|RUBY.*|NPM_.*|npm_.*"
)
SURROUNDING = re.compile(r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|POSIXLY_CORRECT|BASH_COMPAT|IFS")
"""Of the environment: with these, bash may do anything else."""


def harmless(name: str, value: str | None) -> bool:
    """May it be given to a program without changing what that does?"""
    if value is None:
        return False
    harmless_value = _HARMLESS.fullmatch(name) and _VALUE.fullmatch(value)
    return bool(harmless_value or _SILENT.fullmatch(f"{name}={value}"))


_REDIRECTING = re.compile(
    r"PATH|LD_.*|DYLD_.*|BASH.*|ENV|SHELL.*|IFS|PS[0-9]|PROMPT_COMMAND|HOME|XDG_.*|GIT_.*|SSH_.*|.*PAGER|.*EDITOR|VISUAL|"
    r"BROWSER|.*_(?:OPTIONS|OPTS|COMMAND|WRAPPER)|(?:PERL5|RUBY)OPT|PYTHON(?:STARTUP|HOME|BREAKPOINT|WARNINGS)|"
    r"CC|CXX|LD|.*FLAGS|LESS.*|npm_.*|NPM_.*|PIP_.*|UV_.*|.*_proxy|.*_PROXY",
)
"""What names a program, a library, settings or a place to fetch from: it stands for more than a user sees in it."""


def may_be_remembered(name: str, value: str | None) -> bool:
    """May a rule remember a command together with that being set? A key would lie in the file of the rules."""
    return value is not None and not _REDIRECTING.fullmatch(name) and not holds_secret(name, value)


def unsetting_matters(name: str) -> bool:
    """May a program do more without it? What a look is held by is set for it (GIT_OPTIONAL_LOCKS, PAGER …)."""
    return bool(_OF_BASH.fullmatch(name)) and not _HARMLESS.fullmatch(name)


def steers(name: str, value: str | None, state: State) -> bool:
    """Does setting it for the rest of the line change what later commands do? A variable that is in the environment
    goes to every program."""
    if harmless(name, value):
        return False
    return bool(_OF_BASH.fullmatch(name)) or name in state.context.environment or state.forgotten
