"""What must not be told: keys, passwords and tokens, and how they are taken out of texts.

They are known by *source* (a value that passed through here as a key), by *name* (`API_KEY=…`, `Authorization: …`) and
by *shape* (`sk-ant-…`, `ghp_…`, a private key). A `Secrets` knows the values of one process and masks in three degrees:

- `mask`: all three, generously. What is about other things than code: logs, errors, the audit log.
- `mask_output`: all three, with care. What commands print and what is recorded: most of it is code.
- `mask_content`: source and shape. What file tools show: a model that edits needs the text to be exact, so little is
  hidden, and no edit can write the mark into a file (`marks_added`). What the user says, too: a key among it is there
  by mistake more often than not, and would be kept and sent for good.

Every degree takes time linear in the text, whatever it holds, and works piece by
piece, so that a thread that masks never holds the interpreter for long.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote

MASK = "[hidden-by-amanu]"
"""Stands for what was hidden. No quote and no backslash: JSON stays JSON. Found in no ordinary text."""
SHORTEST = 8
"""Characters; a shorter value is a word as well, and is not hidden by its source."""
_PIECE = 64 * 1024  # characters masked in one go: some 5 ms
_IN_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_URL_SAFE = str.maketrans("+/", "-_")
_LONGEST_BLOCK = 32 * 1024  # characters of a private key; the longest RSA keys have 13,000

_SECRET_NAME = re.compile(
    r"(?:.*[_-])?(?:(?:api|access|private|secret|signing|encryption|master|account)[_-]?keys?(?:[_-]id)?|key|pat|auth"
    r"|passphrase|credentials?|creds?|cookie|jwt|sk)(?:[_-](?:\d+|base|file|uri))?"
    r"|.*[_-]pwd|.*(?:token|secret|password|passwd|apikey|sshpass)s?(?:[_-](?:\d+|base|file|key|id))?",
    re.IGNORECASE,
)
_AWS = re.compile(r"AWS_(?!(?:DEFAULT_)?(?:REGION|PROFILE|OUTPUT)$|PAGER$|EC2_METADATA_DISABLED$)\w+", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name holds a secret, as far as its name tells: `GITHUB_TOKEN`, `STRIPE_KEY`,
    `PGPASSWORD`, all of AWS's but the region and the profile."""
    return _SECRET_NAME.fullmatch(name) is not None or _AWS.fullmatch(name) is not None


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable does, by its name or by the shape of its value."""
    return is_secret_name(name) or _hide_shapes(value, sure=True) != value


_WAY_NAME = re.compile(
    r"SSH_AUTH_SOCK|KUBECONFIG|(?:.*_)?(?:DSN|WEBHOOK(?:_UR[LI])?|CONN(?:ECTION)?_?STR(?:ING)?)", re.I
)
_WAY_VALUE = re.compile(
    r"https?://[0-9a-f]{32}@|https://hooks\.|/api/webhooks/|\.webhook\.office\.com/"
    r"|[;?& ](?:password|pwd|sharedaccesskey|accountkey)=[^;& ]",
    re.I,
)
_WITH_PASSWORD = re.compile(r"(://[^\s/:@]*):[^\s/@]+@")


def without_service_access(name: str, value: str) -> str | None:
    """The value of a variable for who cannot reach services anyway: with another password in its address, so that what
    reads it still works; None when the whole is a way to a service (a webhook, a connection string, an agent)."""
    if _WAY_NAME.fullmatch(name) or _WAY_VALUE.search(value):
        return None
    return _WITH_PASSWORD.sub(r"\1:hidden@", value)


# Shapes ----------------------------------------------------------------------------------------------

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (anchor, re.compile(pattern))
    for anchor, pattern in (
        # (text each match begins with, pattern); the forms are those the services document.
        ("sk-", r"sk-[A-Za-z0-9_-]{12,}"),  # OpenAI, Anthropic, OpenRouter and many that copy them
        ("AIza", r"AIza[A-Za-z0-9_-]{20,}"),  # Google
        ("AQ.", r"AQ\.[A-Za-z0-9_-]{20,}"),
        ("ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
        ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
        ("gh", r"gh[pousr]_[A-Za-z0-9]{20,}"),  # GitHub
        ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
        ("glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),  # GitLab
        ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),  # Slack
        ("xapp-", r"xapp-[A-Za-z0-9-]{10,}"),
        ("AKIA", r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),  # AWS
        ("ASIA", r"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        (
            "eyJ",
            r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf]))eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?",
        ),  # JWT
        ("npm_", r"npm_[A-Za-z0-9]{30,}"),
        ("pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
        ("sk_", r"sk_(?:live|test)_[A-Za-z0-9]{16,}"),  # Stripe
        ("rk_", r"rk_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
        ("SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),  # SendGrid
        ("hf_", r"hf_[A-Za-z0-9]{30,}"),  # Hugging Face
        ("AccountKey=", r"(?<=AccountKey=)[A-Za-z0-9+/]{40,}={0,2}"),  # Azure
        ("Q~", r"Q~[A-Za-z0-9_.~-]{31,}"),
        (
            "PRIVATE KEY",
            r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[rn])*+"
            r"(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{0,200}(?:\n|\\n)(?:\s|\\[rn])*+)*+"
            rf"[A-Za-z0-9+/=\s\\]{{48,{_LONGEST_BLOCK}}}+"
            r"(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?",
        ),
    )
)
_RUN = re.compile(r"[A-Za-z0-9]{12}")


def _hide_shapes(text: str, *, sure: bool) -> str:
    """`sure`: only what can hardly be anything else (`sk-fading-circle-delay` is a style, not a key)."""

    def hidden(match: re.Match[str]) -> str:
        if not _begins(text, match.start()):
            return match[0]
        if sure and match[0].startswith("sk-") and not _random(match[0]):
            return match[0]
        return MASK

    for anchor, pattern in _SHAPES:
        if anchor in text:
            text = pattern.sub(hidden, text)
    return text


def _begins(text: str, index: int) -> bool:
    """No word goes on there. An escape of JSON text (`\\n`) is no part of a word."""
    previous = text[index - 1 : index]
    if not (previous.isascii() and (previous.isalnum() or previous == "_")):
        return True
    return previous in "nrtbf" and text[index - 2 : index - 1] == "\\"


def _random(text: str) -> bool:
    return _RUN.search(text) is not None and any("0" <= character <= "9" for character in text)


# Names -----------------------------------------------------------------------------------------------

_WORDS = (
    *("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key"),
    *("token", "secret", "passw", "passphrase", "authorization", "cookie", "credential"),
)
_ENDINGS = ("_key", "_pat", "_pwd", "_auth", "aws_", "sshpass")
"""In the names of variables only."""
_NAME_ENDS = r"[\"'\\]{0,2}+[ \t]{0,4}+[:=][ \t]{0,4}+[\"'\\]{0,2}+"
_SCHEME = r"(?:(?:bearer|basic|key|token)[ \t]{1,4}+)?"
_VALUE_BEGINS = r"[^\s\"'&,;)\]}\\:=\[{(<][^\s\"'&,;)\]}\\]"
_VALUE = re.compile(rf"[\w-]{{0,60}}+{_NAME_ENDS}(?i:{_SCHEME})(?P<value>{_VALUE_BEGINS}{{5,256}})")


def _candidates(value: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """By word, where in a text of small letters `_VALUE` fits and begins with `value`. A text can hold a word at every
    sixth character, and Python itself looks at no place in less than a microsecond: here most are passed over."""
    return tuple(
        (word, re.compile(rf"{word}(?=[\w-]{{0,{60 - len(word)}}}+{_NAME_ENDS}{_SCHEME}{value})")) for word in _WORDS
    )


_CANDIDATES = _candidates(_VALUE_BEGINS + "{5}")
_RANDOM_CANDIDATES = _candidates(
    r"(?=[a-z+/=_.~-]{0,255}+[0-9])"  # what `_WORD` and `_random` ask of it
    r"(?=(?:[a-z0-9]{0,11}+[+/=_.~-]++){0,123}+[a-z0-9]{12})"
    r"[a-z0-9+/=_.~-]{16}"
)
_MORE = re.compile(r"[^\s\"'&,;)\]}\\]+")
_LINE = re.compile(
    r"^[ \t]{0,8}+(?:(?:export|declare -x|set)[ \t]{1,4}+)?(?P<name>[A-Za-z_]\w{1,80})=(?P<value>[^\r\n]{6,65536})",
    re.M,
)
_NAMING = re.compile("|".join((*_WORDS, *_ENDINGS)), re.I)
_KEY_PARAMETER = re.compile(r"(?<=[?&])(?:key|api_?key|access_token|sig|signature|auth)=(?P<value>[^&\s\"'\\#]+)", re.I)
_BEARER = re.compile(r"earer[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/=-]{12,})")
_KEY_HEADER = re.compile(
    r"x-(?:goog-)?api-key[\"'\\]{0,2}[ \t]{0,4}:[ \t]{0,4}[\"'\\]{0,2}"
    r"(?P<value>[^\s\"'&,;)\]}\\:=\[{(<][^\s\"'&,;)\]}\\]*)",
    re.I,
)
_IN_ADDRESS = re.compile(r"://[^\s/:@\"'\\]{0,128}+:(?P<value>[^\s/@\"'\\]{1,256}+)@")
_PLAIN_VALUE = re.compile(r"[\"']?(?:[\d.,_]+|true|false|none|null|[$(<{`~/.].*)[\"']?", re.I)
_WORD = re.compile(r"[A-Za-z0-9+/=_.~-]{16,}")


def _hide_names(text: str, *, sure: bool) -> str:
    """`sure`: of an assignment in the manner of code only a value that looks random (`token = next_token` is code);
    the lines `printenv` writes whole."""
    lower = text.replace("\u0130", "i").lower()  # the one character that would become two
    spans = [line.span("value") for line in _LINE.finditer(text) if _sets_secret(line["name"], line["value"])]
    for word, pattern in _RANDOM_CANDIDATES if sure else _CANDIDATES:
        end = 0
        for match in pattern.finditer(lower) if word in lower else ():
            if match.start() >= end and (span := _given(text, match.start(), sure=sure)) is not None:
                spans.append(span)
                end = span[1]
    signs = (("=", _KEY_PARAMETER), ("earer", _BEARER), ("api-key", _KEY_HEADER), ("://", _IN_ADDRESS))
    for sign, pattern in signs:
        if sign in lower:
            spans += [match.span("value") for match in pattern.finditer(text)]
    return _without(text, spans)


def _given(text: str, index: int, *, sure: bool) -> tuple[int, int] | None:
    """Where the value stands that follows the name at that place."""
    match = _VALUE.match(text, index)
    if match is None:
        return None
    value = match["value"]
    if value.isdigit():
        return None
    if sure and not (_WORD.fullmatch(value) and _random(value)):
        return None
    continuation = _MORE.match(text, match.end())
    return match.start("value"), continuation.end() if continuation else match.end()


def _sets_secret(name: str, value: str) -> bool:
    """Whether a line that sets a variable to that sets a secret."""
    if _NAMING.search(name) is None or not is_secret_name(name) or _PLAIN_VALUE.fullmatch(value):
        return False
    return name.isupper() or _random(value)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """With the mark in the place of these parts of the text, which may overlap."""
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if end <= done:
            continue
        if start >= done:
            parts += [text[done:start], MASK]
        done = end
    return "".join([*parts, text[done:]])


# Values ----------------------------------------------------------------------------------------------


class Secrets:
    """The secrets one process knows. Learns; never forgets, never tells."""

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Secrets({len(self._forms)})"

    def learn(self, values: Iterable[str]) -> None:
        """From now on hide these, also as programs commonly write them (`_forms`). Short ones are not hidden."""
        long = [value for value in map(str.strip, values) if len(value) >= SHORTEST]
        forms = {form for value in long for form in _forms(value)}
        if not forms <= set(self._forms):  # one may be part of another: the longer first
            self._forms = tuple(sorted({*self._forms, *forms}, key=lambda form: (-len(form), form)))

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Hide the values of variables that hold secrets by their names; words such as `postgres` are left."""
        self.learn(
            value
            for name, value in environment.items()
            if is_secret_name(name) and not value.startswith("/") and _random(value)
        )

    def mask(self, text: str) -> str:
        """Without anything that looks like a secret: for what is kept or sent away."""
        return self._piecewise(text, lambda piece: _hide_names(_hide_shapes(piece, sure=False), sure=False))

    def mask_output(self, text: str) -> str:
        """Without what is a secret in all likelihood: for what commands print."""
        return self._piecewise(text, lambda piece: _hide_names(_hide_shapes(piece, sure=True), sure=True))

    def mask_content(self, text: str) -> str:
        """Without what is known or formed as a secret: for what tools show of files."""
        return self._piecewise(text, lambda piece: _hide_shapes(piece, sure=True))

    def _piecewise(self, text: str, transform: Callable[[str], str]) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return transform(text) if len(text) <= _PIECE else "".join(map(transform, _pieces(text)))


def _forms(value: str) -> Iterator[str]:
    """As it is; in JSON (that of PHP, of Go, and as a text in other JSON), addresses, HTML and base64."""
    plain, ascii = json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]
    yield from (value, plain, ascii, ascii.replace("/", "\\/"), json.dumps(ascii)[1:-1], json.dumps(plain)[1:-1])
    yield re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", plain)
    for safe in ("", "/", "!'()*"):  # all of it, a path, as JavaScript does
        address = quote(value, safe=safe)
        yield from (address, re.sub("%..", lambda match: match[0].lower(), address))
    yield from (value.translate(_IN_HTML), value.translate({**_IN_HTML, ord('"'): '"', ord("'"): "'"}))
    yield from _in_base64(value.encode("utf-8", "surrogatepass"))


def _in_base64(value: bytes) -> Iterator[str]:
    """What of it is the same whatever is before and behind it: it can begin at three places of a group."""
    for padding in range(3):
        text = b64encode(bytes(padding) + value).decode()
        begin, end = -(-padding * 8 // 6), (padding + len(value)) * 8 // 6
        yield from (text[begin:end], text[begin:end].translate(_URL_SAFE))


def mask_added(original: str, redacted: str) -> bool:
    """Whether a text holds more of what stands for a secret than it did: an edit would put it in the secret's place."""
    return MASK in redacted and redacted.count(MASK) > original.count(MASK)


def maskable_length(text: str) -> int:
    """How much of a text that goes on can be masked by itself: whole lines, and no part of a private key."""
    end = text.rfind("\n") + 1
    begin = text.rfind("-----BEGIN ", 0, end)
    if begin >= 0 and "PRIVATE KEY" in text[begin : begin + 100] and text.find("-----END ", begin, end) < 0:
        return begin if len(text) - begin < _LONGEST_BLOCK else end
    return end


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that can each be masked by itself: cut between lines, in very long lines between words."""
    offset = 0
    while offset < len(text):
        piece = text[offset : offset + _PIECE]
        if offset + _PIECE < len(text):
            piece = piece[: maskable_length(piece) or _last_gap(piece)]
        yield piece
        offset += len(piece)


def _last_gap(piece: str) -> int:
    """Behind the last character that is in no key, near the end; the end if there is none. Not in a private key, which
    has gaps where it says that it is one."""
    begin = piece.rfind("-----BEGIN ")
    if begin > 0 and len(piece) - begin < _LONGEST_BLOCK and piece.find("-----END ", begin) < 0:
        return begin
    for index in range(len(piece) - 1, len(piece) - 4096, -1):
        if piece[index] in " \t\r\",;'<>(){}|":
            return index + 1
    return len(piece)
