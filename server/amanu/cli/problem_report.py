"""`amanu doctor --report`: one Markdown text for the user to send.

Keys are hidden as everywhere (`text/redaction.py`), and in addition every value that this user's files and environment
store as a key. The home folder and the user's name become `~`. Whatever cannot be read is mentioned in the report.
"""

import asyncio
import contextlib
import getpass
import json
import os
import platform
import re
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from amanu import __version__
from amanu.cli.text import one_line, visible
from amanu.home import Home
from amanu.text.redaction import Secrets, holds_secret, is_secret_name

if TYPE_CHECKING:
    from amanu.storage.journal import Record

MAX_REPORT = 60_000
"""Characters: GitHub takes 65,536 in one field."""
_MAX_LOG = 20_000
_MAX_LINE = 800
"""Characters of a line of the log, and of a session's event."""
_LAST_REPLIES = 20
_LOG_READ, _LOG_LINES = 2000, 150
"""A key on many lines is recognised only if its beginning is read, too."""
_UNREADABLE = (OSError, ValueError, RecursionError)

_INTRODUCTION = """\
Keys and tokens are hidden. `~` stands for your home folder and your name, `[host]` for
this machine, `[mail]` for mail addresses. It may contain names of other folders and files.
{session}
**Read it before you send it.**
"""
_WITHOUT_SESSION = "It contains no prompts, no answers and no file contents."
_WITH_SESSION = "**Its last part is a session: prompts, answers, commands and file contents.**"


@dataclass(frozen=True)
class ReportSource:
    """The user's folders and variables, and the session that they chose (`latest`, an id, or its beginning)."""

    home: Home
    environ: Mapping[str, str]
    session: str | None = None


async def problem_report(source: ReportSource, examine: Callable[[], Awaitable[str]]) -> str:
    """The whole text, with the findings of `examine`. Whatever is broken on the machine, it does not fail."""
    hide = _hiding(source)

    async def part(title: str, read: Callable[[], Awaitable[str]]) -> str:
        try:
            text = await read()
        except Exception as error:  # whatever is broken: a report is what a user has then
            text = f"It cannot be read: {one_line(hide(str(error) or type(error).__name__), _MAX_LINE)}"
        return f"\n## {title}\n\n{text}\n"

    async def doctor() -> str:
        return _block(hide(await examine()), MAX_REPORT // 4)

    home, environ = source.home, source.environ
    about = _INTRODUCTION.format(session=_WITHOUT_SESSION if source.session is None else _WITH_SESSION)
    report = "".join(
        [
            f"# Amanu: problem report\n\n{about}",
            await part("Versions", lambda: _in_thread(lambda: _versions(home, environ, hide))),
            await part("Doctor", doctor),
            await part("Settings", lambda: _in_thread(lambda: hide(_settings(home, environ)))),
            await part("Log", lambda: _in_thread(lambda: _log(home, hide))),
        ]
    )
    if source.session is not None:
        room = MAX_REPORT - len(report) - 200
        report += await part("Session", lambda: _session(home, source.session or "", hide, room))
    return report


def _in_thread(read: Callable[[], str]) -> Awaitable[str]:
    return asyncio.to_thread(read)


# What is in it ---------------------------------------------------------------------------------------


def _versions(home: Home, environ: Mapping[str, str], hide: Callable[[str], str]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in sorted(dict(_packages()).items()))
    rows = {
        "Amanu": __version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "terminal": environ.get("TERM", "not set"),
        "clients": _clients(home) or "none is named in the log",
        "packages": packages,
    }
    return "\n".join(f"- {name}: {one_line(hide(value), 2000)}" for name, value in rows.items())


def _packages() -> Iterator[tuple[str, str]]:
    """The packages that Amanu needs, with their installed versions."""
    for requirement in metadata.requires("amanu") or ():
        name = re.match(r"[\w.-]+", requirement)
        if name is None or "extra ==" in requirement:
            continue
        try:
            yield name[0], metadata.version(name[0])
        except metadata.PackageNotFoundError:
            yield name[0], "missing"


def _clients(home: Home) -> str:
    """The editors and terminals that connected recently."""
    from amanu.system.logs import CLIENT_CONNECTED, tail

    try:
        lines = tail(home, _LOG_READ)
    except OSError:
        return ""
    found = [match[1] for line in lines if (match := re.search(rf": {CLIENT_CONNECTED}(.{{1,100}})$", line))]
    return ", ".join(dict.fromkeys(reversed(found)))


def _settings(home: Home, environ: Mapping[str, str]) -> str:
    """The settings in use: numbers, choices and public models with their values, everything else by its key."""
    from amanu.config import set_by_environment
    from amanu.session.setting_fields import setting_fields

    lines: list[str] = []
    try:
        tree: Any = tomllib.loads(home.settings.read_text("utf-8")) if home.settings.is_file() else {}
        values = dict(_leaves(tree))
    except _UNREADABLE as error:
        lines.append(f"- config.toml cannot be read: {one_line(type(error).__name__)}")
        values = {}
    fields = {field.key: field for field in setting_fields()}
    own, unknown = set[str](), 0
    for key, value in values.items():
        if key in fields:
            field = fields[key]
            lines.append(f"- `{key}` = {_shown(value, field.kind, field.choices)}")
        elif table := next((name for name in fields if key.startswith(f"{name}.")), None):
            own.add(table)
        else:
            unknown += 1
    lines += [f"- `{table}`: set" for table in sorted(own)]
    if unknown:
        lines.append(f"- {unknown} keys that do not exist")
    lines += [f"- `{key}`: set by {variable}" for key, variable in set_by_environment(environ).items()]
    if variables := [name for name in sorted(environ) if _concerns_us(name)]:
        lines.append(f"- variables, without values: {one_line(', '.join(variables), 2000)}")
    if files := list(_own_files(home)):
        lines.append(f"- files: {', '.join(files)}")
    return "\n".join(lines) or "- all defaults"


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its sections, and its value."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shown(value: Any, kind: str, choices: Sequence[str]) -> str:
    from amanu.core.model_families import MODELS
    from amanu.models.registry import VENDORS

    models = {info.model_id for info in MODELS}
    match value:
        case bool() | int() | float():
            return json.dumps(value)
        case str() if (kind == "choice" and value in choices) or value in models or value in _LEVELS:
            return json.dumps(value)
        case str() if value.partition(":")[0] in {"scripted", *(vendor.name for vendor in VENDORS)}:
            return f"{value.partition(':')[0]}:…"
        case list() if kind in ("list", "other"):
            return f"list of {len(cast('list[Any]', value))}"
        case _:
            return "set"


_LEVELS = ("debug", "info", "warning", "error")


def _concerns_us(name: str) -> bool:
    from amanu.models.credentials import VARIABLES

    keys = {variable for variables in VARIABLES.values() for variable in variables}
    return name in keys or re.fullmatch(r"AMANU_\w+|\w+_proxy|\w+_BASE_URL|SSL_CERT_\w+", name, re.I) is not None


def _own_files(home: Home) -> Iterator[str]:
    """The user's own files that exist."""
    for path in (
        home.settings,
        *(home.config / name for name in ("hooks.json", "mcp.toml", "rules.toml")),
        home.memory,
    ):
        if path.is_file():
            yield f"{path.name} ({path.stat().st_size:,} bytes)"
    for folder in (home.agents, home.slash_commands, home.skills, home.plugins):
        if folder.is_dir() and (count := sum(1 for _ in folder.iterdir())):
            yield f"{folder.name}/ ({count})"


def _log(home: Home, hide: Callable[[str], str]) -> str:
    from amanu.system.logs import tail

    lines = hide("\n".join(tail(home, _LOG_READ))).splitlines()[-_LOG_LINES:]
    return _block("\n".join(lines), _MAX_LOG) if lines else "It is empty."


async def _session(home: Home, typed: str, hide: Callable[[str], str], room: int) -> str:
    """The ends of the session's last replies, and its last events, as many as there is room for."""
    from amanu.storage.journal import Journal

    folder = await asyncio.to_thread(_session_folder, home, typed)
    if folder is None:
        return f"There is no session “{one_line(hide(typed), 40)}”, or several begin with that."
    journal = await Journal.read(folder)
    try:
        records = await journal.records()
    finally:
        await journal.close()
    lines = [
        f"{time.strftime('%H:%M:%S', time.localtime(each.timestamp / 1000))} {each.seq} {_brief(hide(each.event))}"
        for each in records
    ]
    damage = f"{one_line(hide(journal.damage), _MAX_LINE)}\n\n" if journal.damage else ""
    replies = [*_replies(records)][-_LAST_REPLIES:]
    ended = f"The last replies:\n\n{_block(hide(chr(10).join(replies)), room // 4)}\n\n" if replies else ""
    events = _block(hide(chr(10).join(lines)), room - len(ended))
    return f"{damage}{ended}{len(lines)} events, empty fields left out.\n\n{events}"


def _replies(records: "Iterable[Record]") -> Iterator[str]:
    """Each reply's model, the service's word for why it ended, and its id of the request: its support asks for
    that."""
    model = ""
    for each in records:
        match _event(each.event):
            case {"kind": "turnStarted" | "turnRouted", "modelId": str(model_id)}:
                model = model_id
            case {"kind": "stepEnded", "turnId": str(turn_id), "step": int(step)} as event:
                when = time.strftime("%H:%M:%S", time.localtime(each.timestamp / 1000))
                reason, request_id = event.get("finishReason") or "not said", event.get("requestId") or "not said"
                yield f"{when} {turn_id} step {step}: {model}, end: {reason}, request: {request_id}"
            case _:
                pass


def _event(text: str) -> Any:
    try:
        return json.loads(text) if '"kind"' in text else None
    except (ValueError, RecursionError):
        return None


def _brief(event: str) -> str:
    """An event on one line, without the fields that say nothing."""
    try:
        return json.dumps(_filled(json.loads(event)), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return event.replace("\n", " ")


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {name: _filled(each) for name, each in cast("dict[str, Any]", value).items()}
        return {name: each for name, each in fields.items() if each not in (None, "", [], {})}
    return [_filled(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _session_folder(home: Home, typed: str) -> Path | None:
    """The session's folder, found without the daemon and the index: either may be what is broken."""
    folders = [folder for folder in home.sessions.iterdir() if (folder / "journal.sqlite").exists()]
    if typed == "latest":
        return max(folders, key=lambda folder: (_is_users(folder), _last_change(folder)), default=None)
    matching = [folder for folder in folders if folder.name.startswith(typed)]
    exact = [folder for folder in matching if folder.name == typed]
    return (exact or matching)[0] if exact or len(matching) == 1 else None


def _is_users(folder: Path) -> bool:
    """Something was said in that session, and not to a sub-agent. True if that cannot be read."""
    match _parsed(folder / "summary.json", json.loads):
        case {"title": ""} | {"parentSessionId": str()}:
            return False
        case _:
            return True


def _last_change(folder: Path) -> float:
    """When its journal was last written. A running daemon writes beside it first."""
    files = (folder / "journal.sqlite", folder / "journal.sqlite-wal")
    return max(file.stat().st_mtime for file in files if file.exists())


def _block(text: str, room: int) -> str:
    """A block of code with the last lines that fit, each cut to a readable length."""
    lines = [_cut(line) for line in visible(text.rstrip("\n")).split("\n")]
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            kept.append(f"[… {len(lines) - len(kept)} earlier lines]")
            break
        kept.append(line)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return "\n".join([f"{fence}text", *reversed(kept), fence])


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]} [… {len(line) - _MAX_LINE:,} characters]"


# What is not -----------------------------------------------------------------------------------------

_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_EVERYBODY = frozenset(
    (
        *("root", "user", "admin", "ubuntu", "debian", "vscode", "node", "runner", "codespace", "coder", "dev"),
        *("amanu", "home", "localhost"),
    )
)
"""Names of users and machines that identify nobody, and that a report contains for other reasons."""


_SCHEMED = re.compile(r"\w+ (\S+)")
"""A header such as `Bearer TOKEN`."""


def _hiding(source: ReportSource) -> Callable[[str], str]:
    """A function that hides what should not be in a report."""
    secrets = _known_secrets(source.home, source.environ)
    names = list(_names(source.environ))

    def hide(text: str) -> str:
        text = secrets.mask(text)
        for pattern, replacement in names:
            text = pattern.sub(replacement, text)
        return text

    return hide


def _known_secrets(home: Home, environ: Mapping[str, str]) -> Secrets:
    """Every key in the user's files and variables, except those in files that cannot be read."""
    from amanu.models.credentials import VARIABLES

    secrets = Secrets()
    keys = {variable for variables in VARIABLES.values() for variable in variables}
    for file in ("auth.json", "chatgpt.json", "mcp-auth.json"):
        secrets.learn(_texts(_parsed(home.config / file, json.loads)))
    settings = _parsed(home.settings, tomllib.loads)
    keys |= {str(value) for key, value in _named(settings) if key == "key_variable"}
    secrets.learn(
        value
        for name, value in environ.items()
        if (name in keys or holds_secret(name, value)) and not os.path.exists(value)  # noqa: PTH110  (no path is wrong)
    )
    for tree in (settings, _parsed(home.config / "mcp.toml", tomllib.loads)):
        for section, values in _named(tree):
            if section in ("env", "headers"):
                given = list(_texts(values))
                secrets.learn([*given, *(match[1] for value in given if (match := _SCHEMED.fullmatch(value)))])
            elif is_secret_name(section) and section != "key_variable":
                secrets.learn(_texts(values))
    return secrets


def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(path.read_text("utf-8")) if path.is_file() else {}
    except _UNREADABLE:
        return {}


def _texts(tree: Any) -> Iterator[str]:
    return (value for _, value in _named(tree) if isinstance(value, str))


def _named(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every value in tables and lists, however deep, and the key it stands under."""
    waiting: list[tuple[str, Any]] = [("", tree)]
    while waiting:
        name, value = waiting.pop()
        yield name, value
        if isinstance(value, dict):
            waiting += cast("dict[str, Any]", value).items()
        elif isinstance(value, list):
            waiting += ((name, each) for each in cast("list[Any]", value))


def _names(environ: Mapping[str, str]) -> Iterator[tuple[re.Pattern[str], str]]:
    """Patterns that identify the user and the machine, and their replacements; the longest folder first."""
    homes = {environ.get("HOME", ""), str(Path.home()), os.path.realpath(Path.home())}
    users = {environ.get("USER", ""), environ.get("LOGNAME", "")}
    with contextlib.suppress(KeyError, OSError):  # no name for this number
        users.add(getpass.getuser())
    for folder in sorted((each.rstrip("/") for each in homes), key=len, reverse=True):
        if folder.count("/") > 1 or folder == "/root":
            yield re.compile(rf"{re.escape(folder)}(?![\w.-])"), "~"
            users.add(folder.rpartition("/")[2])
    yield _MAIL, "[mail]"
    for user in users - {""}:
        if user.casefold() not in _EVERYBODY:
            yield _word(user), "~"
    host = platform.node()
    for name in (host, host.partition(".")[0]):
        if len(name) > 2 and name.casefold() not in _EVERYBODY:
            yield _word(name), "[host]"


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)
