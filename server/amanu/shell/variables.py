"""Which variables may be set without influencing the shell or a program."""

import re

from amanu.shell.state import State
from amanu.text.redaction import holds_secret

_HARMLESS = re.compile(
    r"CI|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|LANG|LC_[A-Z]+|TZ|TERM|COLORTERM|COLUMNS|LINES|PYTHONUNBUFFERED|"
    r"PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|PYTHONUTF8|PY_COLORS|RUST_BACKTRACE|RUST_LOG|NODE_ENV"
)
"""Known to change only how output looks, or the name of a build."""
_SILENT = re.compile(
    r"(?:GIT_|GH_|MAN|SYSTEMD_)?PAGER=(?:cat)?|GIT_(?:SEQUENCE_)?EDITOR=(?:true|:)|GIT_TERMINAL_PROMPT=0|"
    r"GIT_OPTIONAL_LOCKS=0|GIT_MERGE_AUTOEDIT=no|DEBIAN_FRONTEND=noninteractive"
)
"""Settings every command gets anyway (`tools/shell/command_process.py`), or that make it do less: no prompts."""
_VALUE = re.compile(r"[\w.,@+-]*|(?:[A-Z][A-Za-z_]+/)+[A-Za-z_]+")  # no path, since LANG and TZ can name files
_OF_BASH = re.compile(
    r"BASH.*|COMP_.*|COMPREPLY|COPROC|DIRSTACK|EMACS|ENV|EPOCH.*|EUID|EXECIGNORE|FCEDIT|FIGNORE|FUNC.*|GLOB.*|GROUPS|"
    r"HIST.*|HOME|HOST.*|IFS|IGNOREEOF|INPUTRC|INSIDE_EMACS|LANG|LC_.*|LD_.*|DYLD_.*|GIT_.*|LINENO|LINES|MACHTYPE|MAIL.*|"
    r"MAPFILE|OLDPWD|OPT.*|OSTYPE|PATH|CDPATH|PIPESTATUS|POSIXLY_CORRECT|PPID|PROMPT_.*|PS[0-9]|PWD|RANDOM|READLINE_.*|"
    r"REPLY|SECONDS|SHELL|SHELLOPTS|SHLVL|SRANDOM|TERM|TIMEFORMAT|TMOUT|TMPDIR|TZ|UID|_|auto_resume|histchars|"
    r"PAGER|EDITOR|VISUAL|BROWSER|PYTHON.*|NODE_.*|PERL.*|RUBY.*|NPM_.*|npm_.*"
)
SURROUNDING = re.compile(r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|POSIXLY_CORRECT|BASH_COMPAT|IFS")
"""Environment variables with which bash may behave in any way."""


def harmless(name: str, value: str | None) -> bool:
    """Whether a program may get this variable without changing what it does."""
    if value is None:
        return False
    harmless_value = _HARMLESS.fullmatch(name) and _VALUE.fullmatch(value)
    return bool(harmless_value or _SILENT.fullmatch(f"{name}={value}"))


_REDIRECTING = re.compile(
    r"PATH|LD_.*|DYLD_.*|BASH.*|ENV|SHELL.*|IFS|PS[0-9]|PROMPT_COMMAND|HOME|XDG_.*|GIT_.*|SSH_.*|.*PAGER|.*EDITOR|VISUAL|"
    r"BROWSER|.*_(?:OPTIONS|OPTS|COMMAND|WRAPPER)|(?:PERL5|RUBY)OPT|PYTHON(?:STARTUP|HOME|BREAKPOINT|WARNINGS)|"
    r"CC|CXX|LD|.*FLAGS|LESS.*|npm_.*|NPM_.*|PIP_.*|UV_.*|.*_proxy|.*_PROXY",
)
"""Variables that name a program, a library, settings or a download source: they mean more than a user sees in them."""


def may_be_remembered(name: str, value: str | None) -> bool:
    """Whether a rule may remember a command together with this assignment. A secret would end up in the rules file."""
    return value is not None and not _REDIRECTING.fullmatch(name) and not holds_secret(name, value)


def unsetting_matters(name: str) -> bool:
    """Whether a program may do more without this variable: some are set to keep it read-only (GIT_OPTIONAL_LOCKS,
    PAGER)."""
    return bool(_OF_BASH.fullmatch(name)) and not _HARMLESS.fullmatch(name)


def steers(name: str, value: str | None, state: State) -> bool:
    """Whether setting it changes what later commands of the line do. A variable that is already in the environment is
    passed to every program."""
    if harmless(name, value):
        return False
    return bool(_OF_BASH.fullmatch(name)) or name in state.context.environment or state.forgotten
