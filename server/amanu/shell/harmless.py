"""The programs that are known to only print, each with the options that make it write, run something, read what cannot
be checked, or never end.

Where a sandbox works, it is what holds a command; this list then only says which parts of a line need no rule. Where
none works, the list alone decides: what is not in it is asked about. Options: GNU coreutils 9.1, diffutils 3.8,
findutils 4.9, grep 3.8, sed 4.8, jq 1.6, ripgrep 14, fd 10, tree 2.1, by their manuals.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amanu.shell import files
from amanu.shell.call import NotHarmless, ProgramCall, names

_MOST = 300
"""Arguments of one command. Each may be a path to look up, and a verdict must take at most 20 ms."""


@dataclass(frozen=True)
class Harmless:
    """A program that only prints."""

    why: str
    not_with: str = ""
    """The options with which it is not harmless."""
    reads: Literal["", "names", "files", "trees"] = "files"
    """What it reads of the paths among its words: nothing, their names, their content, that of all files below them."""
    form: str = ""
    """A pattern that all its words must match, each followed by NUL; "" for any words."""


def _sed_form() -> str:
    """The words of a sed call that only shows lines: no command but p, d, q, = and s, without the flags w and e."""
    line = r"(?:[0-9]+|\$|/(?:[^/\\\n\[\0]|\\[^\n\0]|\[[^\]/\\\n\0]+\])+/I?)"
    substitutions = (
        rf"s{mark}(?:{part}{mark}){{2}}[gpI0-9]*"
        for mark in ("/", r"\|", "#", ",")
        for part in (rf"(?:[^{mark}\\\n\[\0]|\\[^\n\0]|\[[^\]{mark}\\\n\0]+\])*",)
    )
    command = rf"(?:{line}(?:,\+?{line})?)?!?(?:[pdq=]|{'|'.join(substitutions)})?"
    script = rf"{command}(?:; ?{command})*\0"
    options = r"(?:-[nErsuz]+\0|--quiet\0|--silent\0|--regexp-extended\0)*"
    return rf"{options}(?:{script}|(?:-e\0{script})+)(?:[^-\0][^\0]*\0)*"


_EXPRESSION = r'(?:\$?(?:[0-9]+|NF|NR)|"(?:[^"\\\n\0]|\\[nt])*")'
_TEST = r'(?:/(?:[^/\\\n\[\0]|\\[^\n\0])+/|(?:NR|NF|\$[0-9]+) ?[<>=!]=? ?(?:[0-9]+|"[^"\\\n\0]*"))'
_AWK = rf"(?:-F\0?[^\0]+\0)?{_TEST}? ?(?:\{{ ?print(?:[ ,]+{_EXPRESSION})* ?\}})?\0(?:[^-=\0][^=\0]*\0)*"
_DATE = r"(?:-u\0|-R\0|--utc\0|-I[a-z]*\0|--(?:iso-8601|rfc-3339|date)=[^\0]*\0|-d\0[^\0]*\0|\+[^\0]*\0)*"
_JQ = re.compile(
    r"(?<![.\w])(env|import|include|modulemeta|get_search_list|input_filename|\$__loc__)\b|\$(?=[\s#])|\$ENV"
)
"""What shows the environment or other files. `.env` is an ordinary field."""

_SUM = Harmless("Computes checksums.", "-c --check")
_VERSION = Harmless("Shows its version.", reads="", form=r"--version\0")
_TEXT = Harmless("Shows text.")
_FACT = Harmless("Shows a fact about the system.", reads="")
_FIND = "-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls -files0-from -L -follow"

_WITH_PATTERN = names("awk fd find grep jq rg sed")
"""Programs with words that only look like a path: `sed /x/d`."""

PROGRAMS: Mapping[str, Harmless] = {
    **dict.fromkeys(
        names("echo true false expr seq basename dirname realpath readlink"), Harmless("Prints.", reads="")
    ),
    **dict.fromkeys(names("cat head cut nl tac rev paste join comm cmp column fold fmt expand unexpand od"), _TEXT),
    **dict.fromkeys(names("uname nproc whoami id groups uptime free arch"), _FACT),
    **dict.fromkeys(names("md5sum sha1sum sha256sum sha512sum b2sum cksum"), _SUM),
    **dict.fromkeys(names("cc clang cmake curl g++ gcc make node perl python python3 ruby uv"), _VERSION),
    "tail": Harmless("Shows text.", "-f -F --follow --retry"),
    "tr": Harmless("Replaces characters.", reads=""),
    "wc": Harmless("Counts lines, words and characters.", "--files0-from"),
    "sort": Harmless(
        "Sorts lines.",
        "-o -T -S --output --temporary-directory --buffer-size --compress-program --files0-from --random-source",
    ),
    "uniq": Harmless(
        "Filters out repeated lines.", form=r"(?:-(?!-\0)[^\0]+\0)*(?:[^-\0][^\0]*\0)?"
    ),  # a second one it writes
    "diff": Harmless("Compares files.", "-l --paginate", reads="trees"),
    "base64": Harmless("Encodes or decodes.", "-i -o --input --output"),
    "file": Harmless(
        "Shows the types of files.",
        "-C -f -m -p -s -z -Z --compile --files-from --magic-file --preserve-date --special-files --uncompress",
    ),
    "grep": Harmless("Searches text.", "-R --dereference-recursive", reads="trees"),
    "rg": Harmless("Searches text.", "-z -L --pre --hostname-bin --search-zip --follow --ignore-file", reads="trees"),
    "jq": Harmless("Filters JSON.", "-f -L --from-file --library-path --run-tests"),
    "sed": Harmless("Shows the lines its script selects.", form=_sed_form()),
    "awk": Harmless("Shows parts of lines.", form=_AWK),
    "ls": Harmless("Lists files.", reads="names"),
    "stat": Harmless("Shows the status of files.", reads="names"),
    "df": Harmless("Shows free disk space.", "--sync", reads="names"),
    "du": Harmless("Shows the disk usage of files.", "-X --files0-from --exclude-from", reads="names"),
    "tree": Harmless("Lists files as a tree.", "-l -o -R --fromfile --fromtabfile --info --infofile", reads="names"),
    "find": Harmless("Lists files.", _FIND, reads="names"),
    "fd": Harmless(
        "Lists files.", "-x -X -l -L --exec --exec-batch --list-details --follow --ignore-file", reads="names"
    ),
    "which": Harmless("Shows where a program is.", reads="", form=r"(?:-a\0)?(?:[\w.+][\w.+-]*\0)+"),
    "date": Harmless("Shows the time.", reads="", form=_DATE),
    "sleep": Harmless("Waits briefly.", reads="", form=r"(?:[1-5]?[0-9]|60)(?:\.[0-9]+)?\0"),
}


_SHOW_FILES = names("ag bat egrep fgrep gawk gsed hexdump iconv less mawk more nm readelf strings tar tsort unzip xxd")
"""Programs that are not known to only print, but show the files that their words name."""


def check(call: ProgramCall) -> tuple[str, tuple[str, ...]]:
    """Why a call of a program is harmless, and what it reads. Raises `NotHarmless`, with the files it may not read."""
    try:
        return _check(call)
    except NotHarmless as error:
        raise NotHarmless(str(error), *dict.fromkeys((*error.reads, *_protected_files(call)))) from None


def _protected_files(call: ProgramCall) -> list[str]:
    """The files among its words that it may not read without a question, if it is a program that shows files."""
    program = PROGRAMS.get(call.program)
    if call.program not in _SHOW_FILES and (program is None or program.reads not in ("files", "trees")):
        return []
    try:
        paths = files.named([word for word in call.values if word is not None][:_MOST], call.context, missing=False)
    except NotHarmless:
        return []
    context = call.context
    return [
        str(path) for path in paths if files.inside(path, context) and path.is_file() and not context.may_read(path)
    ]


def _check(call: ProgramCall) -> tuple[str, tuple[str, ...]]:
    program = PROGRAMS.get(call.program)
    if program is None:
        raise NotHarmless(f"Amanu does not know what {call.program} does.")
    words = [word.value for word in call.arguments if word.value is not None]
    if len(words) < len(call.arguments) and (program.reads or program.not_with or program.form):
        reads_pipes = program.reads in ("files", "trees")
        unknown = [word for word in call.arguments if word.value is None and not (word.pipe and reads_pipes)]
        if unknown or program.form:
            raise NotHarmless(f"One argument of {call.program} is only known when it runs and could be an option.")
    if len(words) > _MOST and call.program != "echo":
        raise NotHarmless(f"{call.program} has too many arguments to check.")
    if program.form and not re.fullmatch(program.form, "".join(f"{word}\0" for word in words)):
        raise NotHarmless(f"{call.program} is not known to be read-only with these arguments.")
    if (option := given_option(words, program.not_with)) is not None:
        raise NotHarmless(f"{call.program} {option} is not known to be read-only.")
    if call.program == "jq" and any(map(_JQ.search, words)):
        raise NotHarmless("The jq filter can read the environment or other files.")
    if call.program == "rg" and "RIPGREP_CONFIG_PATH" in call.context.environment:
        raise NotHarmless("RIPGREP_CONFIG_PATH names options that could make rg run a program.")
    return program.why, _read_files(program, words, call)


def given_option(words: list[str], options: str) -> str | None:
    """The first word that may be one of these options: a long one may be abbreviated, a short one stand with others."""
    listed = options.split()
    letters = {option[1] for option in listed if len(option) == 2}
    for word in words:
        name = word.partition("=")[0]
        if len(name) > 2 and name.startswith("--"):
            if any(option.startswith(name) for option in listed):
                return word
        elif word in listed or (word.startswith("-") and not letters.isdisjoint(word[1:])):
            return word
    return None


def _read_files(program: Harmless, words: list[str], call: ProgramCall) -> tuple[str, ...]:
    if not program.reads:
        return ()
    paths = files.named(words, call.context, missing=call.program not in _WITH_PATTERN)
    if program.reads == "files":
        paths = [path for path in paths if not path.is_dir()]  # which have no content: `cut -d /`
    if program.reads == "names":
        for path in paths:
            files.check_inside(path, call.context)
        return ()
    for path in paths:
        files.check_readable(path, call.context)
    if program.reads == "trees":
        for top in _searched(call, words, [path for path in paths if path.is_dir()]):
            files.check_tree(top, call.context, follows=call.program == "diff")
    return tuple(map(str, paths))


def _searched(call: ProgramCall, words: list[str], folders: list[Path]) -> list[Path]:
    """The folders of which it may read all files: those among its words, and the one it runs in, unless it is certain
    that more than a pattern is given."""
    if call.program == "diff":
        return folders
    if call.program == "grep" and not any(re.match(r"-[^-]*r|--[dr]", word) for word in words):
        return []
    if call.program == "rg" and "--files" in words:
        return []  # it lists their names
    options = [word for word in words if word.startswith("-")]
    only_flags = all(re.fullmatch(r"-[inrlwcEFvohHsS]+", option) for option in options)
    return folders if only_flags and len(words) - len(options) > 1 else [*folders, call.context.folder]
