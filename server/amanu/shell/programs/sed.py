"""sed scripts that only print: addresses and the commands p = q Q d D n N g G h H x s y l b t z and braces.

Left out: w, W, r, R (files), e (runs commands), a, i, c (they read the rest of the line differently), F, v, and the
flags w and e of s. The options -i and -f are not in the table. GNU sed 4.8; the syntax follows its manual.
"""

from amanu.shell.call import Harmless, NotHarmless, ProgramCall
from amanu.shell.spec import Use

_USE = Use(
    "Shows the lines its script selects.",
    "-n -E -r -s -u -z -e= --quiet --silent --expression= --regexp-extended --separate --unbuffered --null-data "
    "--posix "
    "--sandbox",
    ("text", "file*"),
    first_by="-e --expression",
)
_UNKNOWN = "The sed script contains more than is known to only print."


def sed(call: ProgramCall) -> Harmless:
    """The grammar of sed. Raises `NotHarmless`."""
    parsed = _USE.parse_call(call)
    scripts = parsed.values("-e", "--expression")
    if not parsed.has("-e", "--expression"):
        if not parsed.operands:
            if parsed.has("--help", "--version"):
                return Harmless("Shows its help.")
            raise NotHarmless("sed has no script.")
        scripts = [parsed.operands[0].value]
    if any(script is None for script in scripts):
        raise NotHarmless("The sed script is only known when it runs.")
    _Script("\n".join(script or "" for script in scripts)).check()
    return Harmless(_USE.why, _USE.reads(parsed, call))


class _Script:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def check(self) -> None:
        """Raises `NotHarmless` unless every command is one that only prints."""
        if len(self._text) > 10_000 or "\\\n" in self._text:
            raise NotHarmless(_UNKNOWN)
        while True:
            self._skip(" \t\n;}")
            if self._position == len(self._text):
                return
            self._addresses()
            self._command()

    def _addresses(self) -> None:
        if self._address():
            self._skip(" \t")
            if self._take(","):
                self._skip(" \t")
                self._take("+~")
                if not self._address():
                    raise NotHarmless(_UNKNOWN)
        self._skip(" \t")
        while self._take("!"):
            self._skip(" \t")

    def _address(self) -> bool:
        if self._take("$"):
            return True
        if self._digits():
            if self._take("~"):
                self._digits()
            return True
        if self._take("\\"):
            self._until(self._next())
        elif self._take("/"):
            self._until("/")
        else:
            return False
        self._skip("IM")
        return True

    def _command(self) -> None:
        match self._next():
            case "{":
                return
            case "p" | "=" | "d" | "D" | "n" | "N" | "g" | "G" | "h" | "H" | "x" | "z" | "P":
                pass
            case "q" | "Q" | "l":
                self._skip(" ")
                self._digits()
            case "b" | "t":
                self._skip(" ")
                while self._position < len(self._text) and self._text[self._position].isalnum():
                    self._position += 1
            case "s":
                mark = self._next()
                self._until(mark)
                self._until(mark)
                self._skip("gpiI0123456789")
            case "y":
                mark = self._next()
                self._until(mark)
                self._until(mark)
            case _:
                raise NotHarmless(_UNKNOWN)
        self._skip(" \t")
        if self._position < len(self._text) and self._text[self._position] not in ";\n}":
            raise NotHarmless(_UNKNOWN)

    def _until(self, mark: str) -> None:
        """Skip to the end of a part of s, y or an address. A delimiter inside brackets may end the part for sed or
        not, so it is refused."""
        if mark in "\\\n" or mark.isalnum() or mark in "[]":
            raise NotHarmless(_UNKNOWN)
        bracket = False
        while self._position < len(self._text):
            char = self._text[self._position]
            self._position += 1
            if char == "\\":
                self._position += 1
            elif char == "\n":
                break
            elif char == mark:
                if bracket:
                    raise NotHarmless(_UNKNOWN)
                return
            elif char == "[" and not bracket:
                bracket = True
                self._take("^")
                self._take("]")
            elif char == "]":
                bracket = False
        raise NotHarmless(_UNKNOWN)

    def _next(self) -> str:
        if self._position >= len(self._text):
            raise NotHarmless(_UNKNOWN)
        self._position += 1
        return self._text[self._position - 1]

    def _take(self, chars: str) -> bool:
        if self._position < len(self._text) and self._text[self._position] in chars:
            self._position += 1
            return True
        return False

    def _digits(self) -> bool:
        begun = self._position
        while self._position < len(self._text) and self._text[self._position] in "0123456789":
            self._position += 1
        return self._position > begun

    def _skip(self, chars: str) -> None:
        while self._take(chars):
            pass
