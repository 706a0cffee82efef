"""Two published safe lists, written anew from their descriptions; no line is theirs. Which lines they run unasked.

Codex (codex-rs): programs by base name, `find` and `rg` without some options, `base64` without output, `sed -n Np`; git
was taken off. Plain words only, joined by `&&`, `||`, `;` and `|`: no expansion, no redirection, no control flow. What
is run so is contained by its sandbox, which may read the whole disk.

Gemini CLI: the same programs and git's status, log, diff, show and branch, when there is a sandbox; every command of a
line is checked; a redirection asks.
"""

import re
import shlex
from collections.abc import Callable, Sequence

_PLAIN = frozenset(
    (
        *("cat", "cd", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "paste", "pwd", "rev", "seq"),
        *("stat", "tail", "tr", "true", "uname", "uniq", "wc", "which", "whoami", "numfmt", "tac"),
    )
)
_FIND = ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf")
_RG = ("--pre", "--hostname-bin", "--search-zip", "-z")
_GIT = ("status", "log", "diff", "show", "branch")
_GIT_NOT = ("--output", "--ext-diff", "--textconv", "--exec", "--paginate", "-c", "-C", "-d", "-D", "-m", "-M")


def codex(line: str) -> bool:
    return _all(line, _listed, expansions=False)


def gemini_cli(line: str) -> bool:
    return _all(line, lambda words: _listed(words) or _git(words), expansions=True)


def _all(line: str, safe: Callable[[Sequence[str]], bool], *, expansions: bool) -> bool:
    bare = re.sub(r"'[^']*'", "''", line)
    unsure = r"`|\$[({@!]|[<>]|\n" if expansions else r"`|\$|[<>(){}]|\n"
    if re.search(unsure, bare):
        return False
    reader = shlex.shlex(line, posix=True, punctuation_chars="&|;()")
    reader.whitespace_split = True
    reader.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for word in reader:
            if word in ("&&", "||", ";", "|"):
                commands.append([])
            elif word and set(word) <= set("&|;()"):
                return False
            else:
                commands[-1].append(word)
    except ValueError:
        return False
    return all(words and safe(words) for words in commands)


def _listed(words: Sequence[str]) -> bool:
    name = words[0].rpartition("/")[2]
    rest = words[1:]
    match name:
        case "base64":
            return not any(word.startswith(("-o", "--output")) for word in rest)
        case "find":
            return not any(word in _FIND for word in rest)
        case "rg":
            return not any(word.partition("=")[0] in _RG for word in rest)
        case "sed":
            return len(rest) in (2, 3) and rest[0] == "-n" and bool(re.fullmatch(r"\d+(,\d+)?p", rest[1]))
        case _:
            return name in _PLAIN


def _git(words: Sequence[str]) -> bool:
    if words[0] != "git" or len(words) < 2 or words[1] not in _GIT:
        return False
    if any(word.partition("=")[0] in _GIT_NOT for word in words[2:]):
        return False
    return words[1] != "branch" or all(word.startswith("-") for word in words[2:])
