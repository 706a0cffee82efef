"""Redaction: finds keys, passwords and tokens in texts and hides them.

Secrets are recognised by *source* (a value that this process has used as a key), by *name* (`API_KEY=…`,
`Authorization: …`) and by *shape* (`sk-ant-…`, `ghp_…`, a private key). A `Secrets` knows the values of one process and
masks in three degrees:

- `mask`: all three, generously. For texts that are not code: logs, errors, the audit log.
- `mask_output`: all three, carefully. For what commands print and what is recorded: most of it is code.
- `mask_content`: source and shape. For what file tools show: a model that edits needs the exact text, so little is
  hidden, and no edit can write the mask into a file (`mask_added`). Also for what the user says: a key in it is usually
  a mistake, and would be stored and sent for good.

Every degree takes time linear in the text, whatever it holds, and works piece by piece, so that a masking thread never
blocks the interpreter for long.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote

MASK = "[hidden-by-amanu]"
"""Replaces what was hidden. It has no quote and no backslash, so JSON stays JSON, and occurs in no ordinary text."""
MIN_SECRET = 8
"""Characters; a shorter value may be an ordinary word, and is not hidden by its source."""
_PIECE = 64 * 1024  # characters masked at once, in about 5 ms
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
    """Whether a variable of that name holds a secret, judged by its name: `GITHUB_TOKEN`, `STRIPE_KEY`, `PGPASSWORD`,
    all of AWS's variables except region and profile."""
    return _SECRET_NAME.fullmatch(name) is not None or _AWS.fullmatch(name) is not None


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name or by the shape of its value."""
    return is_secret_name(name) or _hide_shapes(value, sure=True) != value


_ACCESS_NAME = re.compile(
    r"SSH_AUTH_SOCK|KUBECONFIG|(?:.*_)?(?:DSN|WEBHOOK(?:_UR[LI])?|CONN(?:ECTION)?_?STR(?:ING)?)", re.I
)
_ACCESS_VALUE = re.compile(
    r"https?://[0-9a-f]{32}@|https://hooks\.|/api/webhooks/|\.webhook\.office\.com/"
    r"|[;?& ](?:password|pwd|sharedaccesskey|accountkey)=[^;& ]",
    re.I,
)
_WITH_PASSWORD = re.compile(r"(://[^\s/:@]*):[^\s/@]+@")


def without_service_access(name: str, value: str) -> str | None:
    """The value of a variable for a process that may not reach services: a password in an address is replaced, so that
    programs that parse the address still work. None when the whole value gives access to a service (a webhook, a
    connection string, an agent)."""
    if _ACCESS_NAME.fullmatch(name) or _ACCESS_VALUE.search(value):
        return None
    return _WITH_PASSWORD.sub(r"\1:hidden@", value)


# Shapes ----------------------------------------------------------------------------------------------

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (anchor, re.compile(pattern))
    for anchor, pattern in (
        # (a text that every match contains, pattern), in the formats the services document.
        ("sk-", r"sk-[A-Za-z0-9_-]{12,}"),  # OpenAI, Anthropic, OpenRouter and many others
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
            r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?>(?:\s|\\[rn])*)"
            r"(?>(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{0,200}(?:\n|\\n)(?>(?:\s|\\[rn])*))*)"
            rf"[A-Za-z0-9+/=\s\\]{{48,{_LONGEST_BLOCK}}}+"
            r"(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?",
        ),
    )
)
_RUN = re.compile(r"[A-Za-z0-9]{12}")


def _hide_shapes(text: str, *, sure: bool) -> str:
    """The text with everything shaped like a secret masked. `sure`: only what can hardly be anything else
    (`sk-fading-circle-delay` is a CSS class, not a key)."""

    def replacement(match: re.Match[str]) -> str:
        if not _begins_word(text, match.start()):
            return match[0]
        if sure and match[0].startswith("sk-") and not _looks_random(match[0]):
            return match[0]
        return MASK

    for anchor, pattern in _SHAPES:
        if anchor in text:
            text = pattern.sub(replacement, text)
    return text


def _begins_word(text: str, index: int) -> bool:
    """Whether a word begins at `index`. An escape in JSON (`\\n`) is not part of a word."""
    previous = text[index - 1 : index]
    if not (previous.isascii() and (previous.isalnum() or previous == "_")):
        return True
    return previous in "nrtbf" and text[index - 2 : index - 1] == "\\"


def _looks_random(text: str) -> bool:
    return _RUN.search(text) is not None and any("0" <= character <= "9" for character in text)


# Names -----------------------------------------------------------------------------------------------

_WORDS = (
    *("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key"),
    *("token", "secret", "passw", "passphrase", "authorization", "cookie", "credential"),
)
_ENDINGS = ("_key", "_pat", "_pwd", "_auth", "aws_", "sshpass")
"""Endings and prefixes that count only in names of variables."""
_NAME_ENDS = r"[\"'\\]{0,2}+[ \t]{0,4}+[:=][ \t]{0,4}+[\"'\\]{0,2}+"
_SCHEME = r"(?:(?:bearer|basic|key|token)[ \t]{1,4}+)?"
_VALUE_BEGINS = r"[^\s\"'&,;)\]}\\:=\[{(<][^\s\"'&,;)\]}\\]"
_VALUE = re.compile(rf"[\w-]{{0,60}}+{_NAME_ENDS}(?i:{_SCHEME})(?P<value>{_VALUE_BEGINS}{{5,256}})")


def _candidates(value: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(word, pattern) for each of `_WORDS`. In a lower-case text the pattern matches where `_VALUE` would match with a
    value that begins with `value`. A text can hold a word at every sixth character, and each one Python looks at costs
    a microsecond; the patterns skip most of them."""
    return tuple(
        (word, re.compile(rf"{word}(?=[\w-]{{0,{60 - len(word)}}}+{_NAME_ENDS}{_SCHEME}{value})")) for word in _WORDS
    )


_CANDIDATES = _candidates(_VALUE_BEGINS + "{5}")
_RANDOM_CANDIDATES = _candidates(
    r"(?=[a-z+/=_.~-]{0,255}+[0-9])"  # the conditions of `_WORD` and `_looks_random`
    r"(?=(?>(?:[a-z0-9]{0,11}+[+/=_.~-]++){0,123})[a-z0-9]{12})"
    r"[a-z0-9+/=_.~-]{16}"
)
_REST_OF_VALUE = re.compile(r"[^\s\"'&,;)\]}\\]+")
_LINE = re.compile(
    r"^[ \t]{0,8}+(?:(?:export|declare -x|set)[ \t]{1,4}+)?(?P<name>[A-Za-z_]\w{1,80})=(?P<value>[^\r\n]{6,65536})",
    re.M,
)
_NAMES_SECRET = re.compile("|".join((*_WORDS, *_ENDINGS)), re.I)
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
    """The text with values masked whose names say that they are secrets. `sure`: in assignments as code writes them,
    only values that look random (`token = next_token` is code); lines as `printenv` writes them are always masked."""
    lower = text.replace("\u0130", "i").lower()  # the only character whose lower case is two characters
    spans = [line.span("value") for line in _LINE.finditer(text) if _sets_secret(line["name"], line["value"])]
    for word, pattern in _RANDOM_CANDIDATES if sure else _CANDIDATES:
        end = 0
        for match in pattern.finditer(lower) if word in lower else ():
            if match.start() >= end and (span := _value_span(text, match.start(), sure=sure)) is not None:
                spans.append(span)
                end = span[1]
    signs = (("=", _KEY_PARAMETER), ("earer", _BEARER), ("api-key", _KEY_HEADER), ("://", _IN_ADDRESS))
    for sign, pattern in signs:
        if sign in lower:
            spans += [match.span("value") for match in pattern.finditer(text)]
    return _mask_spans(text, spans)


def _value_span(text: str, index: int, *, sure: bool) -> tuple[int, int] | None:
    """(start, end) of the value that follows the name at `index`; None if it is no secret."""
    match = _VALUE.match(text, index)
    if match is None:
        return None
    value = match["value"]
    if value.isdigit():
        return None
    if sure and not (_WORD.fullmatch(value) and _looks_random(value)):
        return None
    continuation = _REST_OF_VALUE.match(text, match.end())
    return match.start("value"), continuation.end() if continuation else match.end()


def _sets_secret(name: str, value: str) -> bool:
    """Whether a line `name=value` sets a secret."""
    if _NAMES_SECRET.search(name) is None or not is_secret_name(name) or _PLAIN_VALUE.fullmatch(value):
        return False
    return name.isupper() or _looks_random(value)


def _mask_spans(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with these spans masked; they may overlap."""
    parts: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if end <= position:
            continue
        if start >= position:
            parts += [text[position:start], MASK]
        position = end
    return "".join([*parts, text[position:]])


# Values ----------------------------------------------------------------------------------------------


class Secrets:
    """The secrets that one process knows. It gives none away, and forgets none but those that were replaced twice."""

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()
        self._lasting: frozenset[str] = frozenset()
        self._replaced: dict[str, list[frozenset[str]]] = {}

    def __repr__(self) -> str:
        return f"Secrets({len(self._forms)})"

    def learn(self, values: Iterable[str]) -> None:
        """Hide these values from now on, also as programs commonly encode them (`_forms`). Short ones are ignored."""
        forms = _forms_of(values)
        if not forms <= self._lasting:
            self._lasting |= forms
            self._sort()

    def learn_current(self, name: str, values: Iterable[str]) -> None:
        """Hide these values, and those learned under that name the time before: tokens that are replaced each hour
        would be ever more to look for."""
        forms = _forms_of(values)
        known = self._replaced.setdefault(name, [])
        if known[-1:] != [forms]:
            known[:] = [*known[-1:], forms]
            self._sort()

    def _sort(self) -> None:
        """One may be part of another: the longer first."""
        forms = self._lasting.union(*(forms for known in self._replaced.values() for forms in known))
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Hide the values of variables whose names say that they hold secrets, but not words such as `postgres`."""
        self.learn(
            value
            for name, value in environment.items()
            if is_secret_name(name) and not value.startswith("/") and _looks_random(value)
        )

    def mask(self, text: str) -> str:
        """The text without anything that looks like a secret: for what is stored or sent away."""
        return self._piecewise(text, lambda piece: _hide_names(_hide_shapes(piece, sure=False), sure=False))

    def mask_output(self, text: str) -> str:
        """The text without what is very likely a secret: for what commands print."""
        return self._piecewise(text, lambda piece: _hide_names(_hide_shapes(piece, sure=True), sure=True))

    def mask_content(self, text: str) -> str:
        """The text without known values and shapes: for what tools show of files."""
        return self._piecewise(text, lambda piece: _hide_shapes(piece, sure=True))

    def _piecewise(self, text: str, transform: Callable[[str], str]) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return transform(text) if len(text) <= _PIECE else "".join(map(transform, _pieces(text)))


def _forms_of(values: Iterable[str]) -> frozenset[str]:
    return frozenset(form for value in map(str.strip, values) if len(value) >= MIN_SECRET for form in _forms(value))


def _forms(value: str) -> Iterator[str]:
    """The value as it is, and as it is encoded in JSON (also PHP's, Go's, and nested JSON), in URLs, HTML and
    base64."""
    plain, ascii = json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]
    yield from (value, plain, ascii, ascii.replace("/", "\\/"), json.dumps(ascii)[1:-1], json.dumps(plain)[1:-1])
    yield re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", plain)
    for safe in ("", "/", "!'()*"):  # everything encoded, as in a path, as JavaScript does
        address = quote(value, safe=safe)
        yield from (address, re.sub("%..", lambda match: match[0].lower(), address))
    yield from (value.translate(_IN_HTML), value.translate({**_IN_HTML, ord('"'): '"', ord("'"): "'"}))
    yield from _in_base64(value.encode("utf-8", "surrogatepass"))


def _in_base64(value: bytes) -> Iterator[str]:
    """The parts of its base64 text that do not depend on what surrounds it, for each of the three alignments."""
    for padding in range(3):
        text = b64encode(bytes(padding) + value).decode()
        begin, end = -(-padding * 8 // 6), (padding + len(value)) * 8 // 6
        yield from (text[begin:end], text[begin:end].translate(_URL_SAFE))


def mask_added(original: str, redacted: str) -> bool:
    """Whether a text has more masks than before: an edit would write a mask in place of the secret."""
    return MASK in redacted and redacted.count(MASK) > original.count(MASK)


def maskable_length(text: str) -> int:
    """How many characters of a growing text can be masked already: whole lines, and no part of a private key."""
    end = text.rfind("\n") + 1
    begin = text.rfind("-----BEGIN ", 0, end)
    if begin >= 0 and "PRIVATE KEY" in text[begin : begin + 100] and text.find("-----END ", begin, end) < 0:
        return begin if len(text) - begin < _LONGEST_BLOCK else end
    return end


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that can be masked one by one: cut between lines, or between words in very long lines."""
    offset = 0
    while offset < len(text):
        piece = text[offset : offset + _PIECE]
        if offset + _PIECE < len(text):
            piece = piece[: maskable_length(piece) or _last_gap(piece)]
        yield piece
        offset += len(piece)


def _last_gap(piece: str) -> int:
    """The offset after the last character near the end that occurs in no key; the end if there is none. Never inside a
    private key, whose first line has such characters."""
    begin = piece.rfind("-----BEGIN ")
    if begin > 0 and len(piece) - begin < _LONGEST_BLOCK and piece.find("-----END ", begin) < 0:
        return begin
    for index in range(len(piece) - 1, len(piece) - 4096, -1):
        if piece[index] in " \t\r\",;'<>(){}|":
            return index + 1
    return len(piece)
