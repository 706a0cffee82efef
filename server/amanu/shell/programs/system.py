"""Programs that print text, test conditions, and show facts about the system.

GNU coreutils 9.1, procps 4, iproute2 6.
"""

import re
from collections.abc import Mapping

from amanu.shell.call import Harmless, NotHarmless, ProgramCall
from amanu.shell.options import ParsedOptions, names
from amanu.shell.spec import Anything, Judge, Use

_LONGEST_SLEEP = 60  # seconds
_PUBLIC = names(
    "PATH HOME SHELL USER LOGNAME LANG LC_ALL PWD OLDPWD TERM TZ EDITOR VIRTUAL_ENV NODE_ENV GOPATH "
    "GOROOT JAVA_HOME CARGO_HOME RUSTUP_HOME PYTHONPATH XDG_CONFIG_HOME XDG_CACHE_HOME XDG_STATE_HOME "
    "XDG_DATA_HOME CI HOSTNAME"
)
"""Environment variables that hold no secret."""

_SOCKETS = re.compile(
    r"state|exclude|all|connected|synchronized|bucket|big|established|syn-sent|syn-recv|fin-wait-[12]|time-wait|"
    r"closed|close-wait|last-ack|listening|closing|sport|dport|src|dst|and|or|not|[=!<>()]|==|!=|>=|<=|"
    r"(\d{1,3}(\.\d{1,3}){3}(/\d{1,2})?)?(:\d{1,5})?"
)
"""Words of an ss filter that do not name a machine."""

_UNARY = names("-b -c -d -e -f -g -G -h -k -L -n -N -O -p -r -s -S -t -u -w -x -z")
_BINARY = names("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef")


def _printf(call: ProgramCall) -> Harmless:
    """`-v` and `%n` set a variable, so the format must be known."""
    arguments = call.values
    operands = arguments[1:] if arguments[:1] == ("--",) else arguments
    form = operands[0] if operands else None
    if form is None or (form.startswith("-") and arguments is operands):
        raise NotHarmless("What printf does with its arguments is only known when it runs.")
    if not re.fullmatch(
        r"(?:[^%]|%%|%[-+ #0']*[\d*]*(?:\.[\d*]*)?(?:[hlLqjzt]*[diouxXeEfFgGaAcsbqQ]|\([^)]*\)T))*", form
    ):
        raise NotHarmless("This printf format can do more than print.")
    return Harmless("Prints its arguments.")


def _test(call: ProgramCall) -> Harmless:
    """Not -v and -R, which look into variables and may run what is between brackets. An unknown word is accepted only
    where bash cannot read it as an operator: in an expression of at most three words with a known operator."""
    operands = list(call.values)
    if call.program == "[" and (not operands or operands.pop() != "]"):
        raise NotHarmless("This [ has no matching ].")
    if any(word.several for word in call.arguments):
        raise NotHarmless("What is tested is only known when it runs and could be an expression.")
    if None not in operands:
        if any(word in ("-v", "-R", "-o", "-a") for word in operands):
            raise NotHarmless("This test is not known to be read-only.")
        return Harmless("Evaluates a condition.")
    if operands[0] == "!":
        operands.pop(0)
    if (
        len(operands) == 1
        or (len(operands) == 2 and operands[0] in _UNARY)
        or (len(operands) == 3 and operands[1] in _BINARY)
    ):
        return Harmless("Evaluates a condition.")
    raise NotHarmless("What is tested is only known when it runs and could be an expression.")


def _date(parsed: ParsedOptions, call: ProgramCall) -> None:
    if any(word.value is None or not word.value.startswith("+") for word in parsed.operands):
        raise NotHarmless("With these arguments, date can set the clock.")


def _addresses(parsed: ParsedOptions, call: ProgramCall) -> None:
    """ss looks up what it reads as a host name on the network (measured, iproute2 6.1)."""
    for word in parsed.operands:
        if word.value is None or not _SOCKETS.fullmatch(word.value):
            raise NotHarmless(f"ss may look up {word.value or 'its arguments'} on the network.")


def _sleep(call: ProgramCall) -> Harmless:
    seconds = [
        float(word) for word in call.values if word and re.fullmatch(r"\d{1,6}(\.\d{1,6})?s?", word) and word[-1] != "s"
    ]
    if len(seconds) != len(call.arguments) or not seconds or sum(seconds) > _LONGEST_SLEEP:
        raise NotHarmless("It may not end soon.")
    return Harmless("Waits briefly.")


def _ps(call: ProgramCall) -> Harmless:
    """Old-style options without a dash can show the environment of processes (`ps auxe`)."""
    arguments = list(call.values)
    while arguments:
        word = arguments.pop(0)
        if word in (
            "aux",
            "auxf",
            "auxww",
            "ax",
            "axf",
            "-e",
            "-f",
            "-ef",
            "-A",
            "-a",
            "-x",
            "-w",
            "-ww",
            "-l",
            "-H",
            "--forest",
        ):
            continue
        if word in ("-o", "-eo", "-p", "-u", "-C", "--sort", "--pid", "--ppid") and arguments:
            value = arguments.pop(0)
            if value is not None and re.fullmatch(r"[\w,=%+-]+", value) and "env" not in value:
                continue
        elif word is not None and re.fullmatch(r"--sort=[\w%,+-]+", word):
            continue
        raise NotHarmless("With these arguments, ps may show environment variables.")
    return Harmless("Lists processes.")


def _printenv(parsed: ParsedOptions, call: ProgramCall) -> None:
    if not parsed.operands or any(word.value not in _PUBLIC for word in parsed.operands):
        raise NotHarmless("The environment may contain tokens.")


def _environment(call: ProgramCall) -> Harmless:
    raise NotHarmless("Shows the environment, which may contain tokens.")


PROGRAMS: Mapping[str, Judge] = {
    "echo": Anything("Prints its arguments."),
    "printf": _printf,
    "true": Anything("Does nothing."),
    "false": Anything("Does nothing."),
    ":": Anything("Does nothing."),
    "expr": Anything("Computes a value."),
    "seq": Anything("Prints numbers."),
    "factor": Anything("Computes a value."),
    "test": _test,
    "[": _test,
    "date": Use(  # not -s, -f; BSD sets the clock by an operand
        "Shows the time.",
        "-u -R -d= -r=name -I?= --date= --iso-8601?= --rfc-3339= --rfc-email --utc --universal --reference=name",
        ("text*",),
        check=_date,
    ),
    "cal": Use("Shows a calendar.", "-1 -3 -m -y -j -w", ("text*",)),
    "uname": Use(
        "Shows system information.",
        "-a -s -n -r -v -m -p -i -o --all --kernel-name --kernel-release --machine --operating-system",
    ),
    "arch": Use("Shows system information."),
    "nproc": Use("Counts processors.", "--all --ignore="),
    "whoami": Use("Shows the current user."),
    "logname": Use("Shows the current user."),
    "id": Use("Shows the current user.", "-u -g -G -n -r -z -a --user --group --groups --name --real", ("text*",)),
    "groups": Use("Shows the current user.", "", ("text*",)),
    "hostname": Use("Shows the host name.", "-s -I --short"),  # not -f, -i: they ask the network
    "uptime": Use("Shows how long the machine has been running.", "-p -s --pretty --since"),
    "free": Use("Shows memory usage.", "-h -b -k -m -g -t -w -l --human --bytes --kibi --mebi --gibi --total --wide"),
    "vmstat": Use("Shows system activity.", "-s -w"),
    "lscpu": Use("Shows CPU information.", "-e?= -p?= -J"),
    "lsblk": Use("Lists disks.", "-a -f -J -l -o= -p"),
    "getconf": Use("Shows system limits.", "-a", ("text*",)),
    "lsb_release": Use("Shows system information.", "-a -i -d -r -c -s --all --id --description --release --short"),
    "locale": Use("Shows locale settings.", "-a -m -k -c"),
    "tty": Use("Shows whether there is a terminal.", "-s --quiet --silent"),
    "ss": Use(  # not -K, -D, -F, -r
        "Lists open connections.", "-t -u -l -n -p -a -x -s -e -m -i -H -4 -6", ("text*",), check=_addresses
    ),
    "pgrep": Use(
        "Lists processes.", "-a -f -l -n -o -x -c -i -u= -P= --full --list-name --list-full --exact", ("text*",)
    ),
    "pidof": Use("Lists processes.", "-s -x", ("text*",)),
    "ps": _ps,
    "sleep": _sleep,
    "env": _environment,
    "printenv": Use("Shows variables of the environment.", "-0", ("text*",), check=_printenv),
}
