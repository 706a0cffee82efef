"""Programs that list files and show their metadata. GNU coreutils 9.1, findutils 4.9, tree 2.1, fd 10."""

from amanu.shell import paths
from amanu.shell.call import Harmless, NotHarmless, ProgramCall
from amanu.shell.options import names
from amanu.shell.spec import Anything, Judge, Use

_NAMES = ("name*",)

_FIND_FLAGS = names(
    "-print -print0 -ls -prune -quit -true -false -depth -d -mount -xdev -daystart -empty -executable "
    "-readable -writable -nouser -nogroup -not -and -or -a -o -noleaf -ignore_readdir_race -nowarn -warn "
    "! ( ) ,"
)
_FIND_TAKES = names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -regextype -type "
    "-xtype -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -newermt -perm -user -group "
    "-uid -gid -links -inum -printf -fstype -used"
)
"""Tests and actions of find that take one word and only print. -newer takes a path; -exec, -execdir, -ok, -okdir,
-delete, -fprint*, -fls, -files0-from are left out."""


def _find(call: ProgramCall) -> Harmless:
    arguments = list(call.arguments)
    starts: list[str] = []
    while arguments and arguments[0].value in ("-H", "-P"):  # not -L: it would leave the workspace through links
        arguments.pop(0)
    while arguments and not (arguments[0].value or "-").startswith(("-", "(", ")", "!", ",")):
        starts.append(arguments.pop(0).value or "")
    while arguments:
        word = arguments.pop(0)
        if word.several or word.value is None:
            raise NotHarmless("The arguments of find are only known when it runs.")
        if word.value in _FIND_FLAGS:
            continue
        if word.value in _FIND_TAKES or word.value == "-newer":
            value = arguments.pop(0) if arguments else None
            if value is None or value.several:
                raise NotHarmless(f"The value of find {word.value} is not certain.")
            if word.value == "-newer":
                paths.named(value.value or "\0", call.context)
            continue
        raise NotHarmless(f"find {word.value} is not known to be read-only.")
    return Harmless("Lists files.", tuple(str(paths.named(start, call.context)) for start in starts or ["."]))


PROGRAMS: dict[str, Judge] = {
    "ls": Use(
        "Lists files.",
        "-a -A -b -B -c -C -d -f -F -g -G -h -H -i -I= -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -u -U -v -w= -x "
        "-X -Z "
        "-1 --all --almost-all --author --escape --block-size= --ignore-backups --color?= --directory --classify?= "
        "--file-type --format= --full-time --group-directories-first --no-group --human-readable --si --hide= "
        "--hyperlink?= --indicator-style= --inode --ignore= --kibibytes --dereference --dereference-command-line "
        "--numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name --quoting-style= --reverse "
        "--recursive --size --sort= --time= --time-style= --width= --zero --context",
        _NAMES,
    ),
    "tree": Use(  # not -o, -R (writes 00Tree.html); older ones take values only as the next word
        "Lists files as a tree.",
        "-a -d -f -i -x -s -h -p -u -g -D -F -r -t -c -U -v -C -n -S -A -N -Q -J -X -q -L= -P= -I= --dirsfirst "
        "--filesfirst --noreport --gitignore --prune --du --si --matchdirs --ignore-case --inodes --device",
        _NAMES,
        clusters=False,
    ),
    "stat": Use(
        "Shows the status of files.",
        "-L -f -t -c= --dereference --file-system --format= --printf= --terse",
        _NAMES,
    ),
    "du": Use(  # not --files0-from, -X
        "Shows the disk usage of files.",
        "-a -b -c -h -H -k -m -s -S -x -0 -B= -d= -t= --all --apparent-size --block-size= --bytes --total --max-depth= "
        "--human-readable --inodes --separate-dirs --si --summarize --threshold= --time?= --exclude= --one-file-system "
        "--null",
        _NAMES,
    ),
    "df": Use(  # not --sync
        "Shows free disk space.",
        "-a -h -H -i -k -l -P -T -t= -x= -B= --all --human-readable --si --inodes --local --portability --print-type "
        "--type= --exclude-type= --total --output?= --block-size=",
        _NAMES,
    ),
    "find": _find,
    "fd": Use(  # not -x, -X, -l (runs ls), --ignore-file, -L
        "Lists files.",
        "-H -I -s -i -g -F -a -p -0 -1 -q -u -e= -t= -d= -E= -S= -c= --hidden --no-ignore --no-ignore-vcs "
        "--case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --full-path --print0 --quiet "
        "--extension= --type= --max-depth= --min-depth= --exact-depth= --exclude= --size= --changed-within= "
        "--changed-before= --color= --max-results= --unrestricted",
        ("text", "name*"),
    ),
    "basename": Anything("Shows part of a path."),
    "dirname": Anything("Shows part of a path."),
    "realpath": Use(
        "Resolves a path.",
        "-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --logical --physical --quiet "
        "--relative-to= --relative-base= --strip --no-symlinks --zero",
        ("text*",),
    ),
    "readlink": Anything("Shows where a link points."),
    "pwd": Use("Shows the current folder.", "-L -P --logical --physical"),
    "which": Use("Shows where a program is.", "-a -s --all", ("text*",)),
    "whereis": Use("Shows where a program is.", "-b -m -s -u", ("text*",)),
    "type": Use("Shows what a name refers to.", "-a -f -p -P -t", ("text*",)),
    "command": Use(
        "Shows what a name refers to.",
        "-v -V",
        ("text*",),
        check=lambda parsed, call: _only_asks(parsed.has("-v", "-V")),
    ),
}
PROGRAMS["fdfind"] = PROGRAMS["fd"]  # as Debian names it


def _only_asks(says: bool) -> None:
    if not says:
        raise NotHarmless("command runs the program named after it.")
