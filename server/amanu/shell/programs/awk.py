"""awk programs that only print. Instead of parsing awk, it accepts programs made of a few kinds of tokens, in which
nothing can name a command, a file or a variable that matters (`system`, `getline`, `|`, `>` after print, `ENVIRON`,
`@load`)."""

import re

from amanu.shell.call import Harmless, NotHarmless, ProgramCall
from amanu.shell.options import names
from amanu.shell.spec import Use

_USE = Use(
    "Shows the parts of lines its program selects.",
    "-F= -v=",
    ("text", "file*"),
    permutes=False,
)
_TOKEN = re.compile(
    r"""\s+|\#[^\n]*
    |"(?:[^"\\\n]|\\.)*"                # a text
    |[A-Za-z_]\w*|\$|\d+(?:\.\d+)?      # a name, a field, a number
    |==|!=|<=|>=|&&|\|\||\+\+|--|[-+*%]=
    |[-+*%!~<>(){}\[\];,?:^=]
    |/(?:[^/\\\n\[\]]|\\.|\[[^]\[/\\\n]+\])+/  # an expression, or a division: see below
    """,
    re.VERBOSE,
)
_NEVER = names("system getline close fflush ENVIRON PROCINFO SYMTAB FUNCTAB ARGV ARGC")
_BEFORE_EXPRESSION = names("( , { } ; ~ ! && ||")
_UNKNOWN = "The awk program contains more than is known to only print."


def awk(call: ProgramCall) -> Harmless:
    """The grammar of awk. Raises `NotHarmless`."""
    parsed = _USE.parse_call(call)
    if not parsed.operands or (program := parsed.operands[0].value) is None:
        raise NotHarmless("The awk program is only known when it runs.")
    _check(program)
    for value in parsed.values("-v", "-F"):
        if value is None or re.match(r"(ENVIRON|ARGV|ARGC|PROCINFO)\b", value):
            raise NotHarmless("A variable passed to awk is only known when it runs.")
    for word in parsed.operands[1:]:
        if word.value is None or "=" in word.value:
            raise NotHarmless("awk treats an argument with = as a variable, not a file.")
    if any(name.startswith(("AWK", "GAWK")) for name in call.context.environment):
        raise NotHarmless("AWK variables in the environment change what awk does.")
    return Harmless(_USE.why, _USE.reads(parsed, call))


def _check(program: str) -> None:
    """Raises `NotHarmless` unless the program consists of known tokens. A `>` is a comparison only inside parentheses
    or outside braces, where no `print` can be; `/` is accepted only where it must begin a regular expression."""
    position, deep, braces, preceding = 0, 0, 0, "{"
    if len(program) > 10_000:
        raise NotHarmless(_UNKNOWN)
    while position < len(program):
        match = _TOKEN.match(program, position)
        if match is None:
            raise NotHarmless(_UNKNOWN)
        token = match[0]
        position = match.end()
        if token in _NEVER:
            raise NotHarmless(f"awk's {token} can do more than print.")
        if token in ("print", "printf") and deep:
            raise NotHarmless(_UNKNOWN)  # `for (print > "file"; …)`
        if token.startswith("/") and preceding not in _BEFORE_EXPRESSION:
            raise NotHarmless(_UNKNOWN)  # it may be a division, and what seems quoted by it is not
        deep += (token == "(") - (token == ")")
        braces += (token == "{") - (token == "}")
        if token == ">" and deep == 0 and braces > 0:
            raise NotHarmless("awk's > can write a file.")
        if deep < 0 or braces < 0:
            raise NotHarmless(_UNKNOWN)
        if not token.isspace() or "\n" in token:
            preceding = token.strip() or "{"
