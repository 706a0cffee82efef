"""Programs that search text: GNU grep 3.8, ripgrep 14, ag 2.2; sed and awk where their script only prints."""

import re
from collections.abc import Callable, Mapping, Sequence

from amanu.shell import paths
from amanu.shell.call import Harmless, NotHarmless, ProgramCall, Word
from amanu.shell.options import ParsedOptions, names
from amanu.shell.programs.awk import awk
from amanu.shell.programs.sed import sed
from amanu.shell.spec import Judge, Use

_GREP = Use(
    "Searches text.",
    "-E -F -G -P -i -y -v -w -x -c -L -l -o -q -s -b -H -h -n -T -Z -z -a -I -r -R -U -u -m= -A= -B= -C= -e= -f=file "
    "--extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case --no-ignore-case --invert-match "
    "--word-regexp --line-regexp --count --files-without-match --files-with-matches --only-matching --quiet --silent "
    "--no-messages --byte-offset --with-filename --no-filename --line-number --initial-tab --null --null-data --text "
    "--recursive --dereference-recursive --binary --max-count= --after-context= --before-context= --context= "
    "--regexp= --file=file --include= --exclude= --exclude-dir= --color?= --colour?= --binary-files= --label= "
    "--line-buffered",
    ("text", "file*"),
    first_by="-e -f --regexp --file",
    digits=True,
)
_RIPGREP = Use(  # not --pre, --hostname-bin, -z, --ignore-file, -L
    "Searches text.",
    "-A= -B= -C= -e= -f=file -F -g= -H -I -i -l -M= -m= -N -n -o -P -p -q -r= -S -s -t= -T= -U -u -v -w -x -c -d= -E= "
    "-j= -a -b -0 -. --after-context= --before-context= --context= --regexp= --file=file --fixed-strings --glob= "
    "--iglob= --with-filename --no-filename --ignore-case --smart-case --case-sensitive --files --files-with-matches "
    "--files-without-match --max-columns= --max-count= --max-depth= --max-filesize= --line-number --no-line-number "
    "--only-matching --pcre2 --pretty --quiet --replace= --type= --type-not= --type-add= --type-list --multiline "
    "--multiline-dotall --unrestricted --invert-match --word-regexp --line-regexp --count --count-matches --encoding= "
    "--hidden --no-ignore --no-ignore-vcs --no-heading --heading --color= --colors= --column --no-column --json "
    "--sort= "
    "--sortr= --stats --text --threads= --trim --vimgrep --no-messages --no-config --null --passthru --engine= "
    "--context-separator= --byte-offset --crlf --path-separator= --no-follow --no-require-git --no-ignore-parent",
    ("text", "text*"),
    first_by="-e -f --regexp --file --files --type-list",
)
_AG = Use(
    "Searches text.",
    "-A= -B= -C= -c -G= -g= -H -h -i -l -L -m= -n -o -Q -s -S -v -w --after= --before= --context= --count --nocolor "
    "--noheading --nogroup --nonumbers --ignore-case --literal --files-with-matches --files-without-matches "
    "--only-matching --case-sensitive --smart-case --invert-match --word-regexp --column --python --js --ts --go "
    "--rust",
    ("text", "text*"),
)


_TYPES = names(
    "py python js ts typescript rust go java c cpp cs md markdown json yaml toml html css rb ruby php kotlin swift lua "
    "sql txt xml tsx jsx vue svelte dart elixir haskell scala r proto"
)
"""File types of rg that include no hidden files (`sh` has some)."""

_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude")
"""Ignore files: rg also searches hidden files that they take back (`!.env`; measured, 13.0)."""


def _grep(call: ProgramCall) -> Harmless:
    parsed = _GREP.parse_call(call)
    if not parsed.has("-r", "-R", "--recursive", "--dereference-recursive"):
        return Harmless(_GREP.why, _GREP.reads(parsed, call))
    follows = parsed.has("-R", "--dereference-recursive")
    without = parsed.values("--exclude-dir")
    skipped = frozenset(pattern for pattern in without if pattern and not re.search(r"[*?\[\\/]", pattern))
    # A file that neither kind of option names is searched, unless the first such option is --include.
    first = next((name for name, _, _ in parsed.options if name in ("--include", "--exclude")), None)
    included = parsed.values("--include") if first == "--include" else []
    pattern = () if parsed.has("-e", "-f", "--regexp", "--file") else parsed.operands[:1]
    patterns = _GREP.reads(ParsedOptions(parsed.options, list(pattern)), call)
    return Harmless(
        "Searches the text of folders.",
        (
            *patterns,
            *(
                str(
                    paths.tree(
                        searched,
                        call.context,
                        reads=paths.globbed(included),
                        enters=lambda name: name not in skipped,
                        follows=follows,
                    )
                )
                for searched in _searched(parsed.operands[len(pattern) :], call)
            ),
        ),
    )


def _rg(call: ProgramCall) -> Harmless:
    parsed = _RIPGREP.parse_call(call)
    if call.context.environment.get("RIPGREP_CONFIG_PATH") and not parsed.has("--no-config"):
        raise NotHarmless("RIPGREP_CONFIG_PATH names options that could make rg run a program.")
    pattern = 0 if parsed.has("-e", "-f", "--regexp", "--file", "--files", "--type-list") else 1
    files = _RIPGREP.reads(ParsedOptions(parsed.options, []), call)
    if parsed.has("--type-list"):
        return Harmless("Lists file types.")
    operands = parsed.operands[pattern:]
    if parsed.has("--files"):
        return Harmless(
            "Lists files.", tuple(str(paths.named(searched, call.context)) for searched in _searched(operands, call))
        )
    unrestricted = sum(name in ("-u", "--unrestricted") for name, _, _ in parsed.options)
    ignored = unrestricted > 0 or parsed.has("--no-ignore", "--no-ignore-vcs", "--no-require-git", "--no-ignore-parent")
    reads, enters = _name_filters(parsed, hidden=unrestricted > 1 or parsed.has("--hidden", "-."))
    return Harmless(
        "Searches the text of folders.",
        (
            *files,
            *(
                str(
                    paths.tree(
                        searched,
                        call.context,
                        reads=reads,
                        enters=enters,
                        ignored=ignored,
                        obeyed_ignore_files=_IGNORE_FILES,
                    )
                )
                for searched in _searched(operands, call)
            ),
        ),
    )


def _name_filters(parsed: ParsedOptions, *, hidden: bool) -> tuple[Callable[[str], bool], Callable[[str], bool]]:
    """Tests for the names of files and of folders that rg searches. It also searches hidden files that a glob or type
    names."""
    globs = [glob for glob in parsed.values("-g", "--glob", "--iglob") if glob is None or not glob.startswith("!")]
    plain = [glob for glob in globs if glob is not None and re.fullmatch(r"[\w.*?-]+", glob)]
    types = parsed.values("-t", "--type")
    typed = parsed.has("--type-add") or any(file_type not in _TYPES for file_type in types)
    if globs and len(plain) == len(globs) and not parsed.has("--iglob"):
        matches = paths.globbed(list(plain))
        return matches, lambda name: hidden or not name.startswith(".") or matches(name)
    if globs:
        return lambda name: True, lambda name: True
    return lambda name: hidden or typed or not name.startswith("."), lambda name: hidden or not name.startswith(".")


def _ag(call: ProgramCall) -> Harmless:
    parsed = _AG.parse_call(call)
    return Harmless(
        _AG.why, tuple(str(paths.tree(searched, call.context)) for searched in _searched(parsed.operands[1:], call))
    )


def _searched(operands: Sequence[Word], call: ProgramCall) -> list[str]:
    searched: list[str] = []
    for word in operands:
        if word.value is None:
            raise NotHarmless(f"Where {call.program} would search is only known when it runs.")
        if word.value != "-":
            searched.append(word.value)
    return searched or (["."] if not operands else [])


PROGRAMS: Mapping[str, Judge] = {
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "rg": _rg,
    "ag": _ag,
    "sed": sed,
    "gsed": sed,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
}
