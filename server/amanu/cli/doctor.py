"""`amanu doctor`: is everything in place, and if not, what to do. Exit code 1 on a real problem. `--report` makes a
problem report for the user to send (`problem_report.py`)."""

import argparse
import asyncio
import json
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from amanu import __version__
from amanu.cli import exits
from amanu.cli.console import Console, Style, open_console
from amanu.cli.text import one_line
from amanu.home import Home, find_home
from amanu_protocol.errors import AmanuError

EDITORS = {"code": "VS Code", "nvim": "Neovim", "hx": "Helix", "emacs": "Emacs", "zed": "Zed", "kak": "Kakoune"}
ONLINE_SECONDS = 5.0
OLDEST_PYTHON = (3, 11)

Level = Literal["ok", "info", "note", "problem"]
_SIGN: dict[Level, tuple[Style, str]] = {
    "ok": ("green", "✓"),
    "info": ("dim", "·"),
    "note": ("yellow", "!"),
    "problem": ("red", "✗"),
}


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the report. `todo` says what to do about a note or a problem."""

    level: Level
    what: str
    detail: str
    todo: str = ""


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu doctor",
        description="Check the setup and say how to fix problems.",
        epilog="exit codes: 0 nothing is broken · 1 something is · 2 wrong usage",
    )
    parser.add_argument("--online", action="store_true", help="also try to reach the model services (sends no key)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object")
    form.add_argument(
        "--report",
        nargs="?",
        const="-",
        metavar="FILE",
        help="a problem report for you to send, keys and names hidden; FILE is written once you have seen it",
    )
    parser.add_argument("--session", metavar="ID", help="with --report: the events of this session, or latest, too")
    parser.add_argument("--yes", action="store_true", help="with --report FILE: write it without asking")
    return parser


def main(argv: list[str]) -> int:
    options = parser()
    arguments = options.parse_args(argv)
    if arguments.report is None and (arguments.session is not None or arguments.yes):
        options.error("--session and --yes need --report")
    home = find_home()
    if arguments.report is not None:
        return _report(home, arguments)
    findings = asyncio.run(examine(home, os.environ, online=arguments.online))
    if arguments.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}))
    else:
        show_findings(findings, open_console(sys.stdout))
    return exits.FAILED if any(finding.level == "problem" for finding in findings) else exits.OK


def show_findings(findings: Iterable[DoctorFinding], console: Console) -> None:
    for finding in findings:
        style, sign = _SIGN[finding.level]
        console.line((style, sign), ("bold", f" {finding.what:14}"), ("", one_line(finding.detail, 400)), hang=16)
        if finding.todo:
            console.line(("dim", f"{'':16}→ {one_line(finding.todo, 400)}"))


def _report(home: Home, arguments: argparse.Namespace) -> int:
    """The exit code. Problems that were found are in the report, and are no failure of it."""
    from amanu.cli.long_text import printed
    from amanu.cli.problem_report import ReportSource, problem_report

    async def look() -> str:
        findings = await examine(home, os.environ, online=arguments.online)
        return printed(lambda console: show_findings(findings, console))

    target = None if arguments.report == "-" else Path(arguments.report)
    asks = not arguments.yes and sys.stdin.isatty() and sys.stdout.isatty()
    if target is not None and os.path.lexists(target):
        print(f"{target} already exists; choose another file.", file=sys.stderr)
        return exits.USAGE
    if target is not None and not asks and not arguments.yes:
        print("A report is shown before it is written: use a terminal, or add --yes.", file=sys.stderr)
        return exits.USAGE
    text = asyncio.run(problem_report(ReportSource(home, os.environ, arguments.session), look))
    if target is None:
        print(text, end="")
        return exits.OK
    if asks and not _confirmed(text, target):
        print("Nothing was written.")
        return exits.OK
    return _write(text, target)


def _confirmed(text: str, target: Path) -> bool:
    """Show the text, in the user's pager if it is long, and ask."""
    from amanu.cli.long_text import is_long
    from amanu.cli.ui.programs import page_text

    if is_long(text):
        page_text(text, ".md")
    else:
        print(text, end="")
    try:
        return input(f"Write these {len(text.splitlines())} lines to {target}? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        return False


def _write(text: str, target: Path) -> int:
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror}.", file=sys.stderr)
        return exits.FAILED
    print(f"Written: {target}")
    return exits.OK


async def examine(home: Home, environ: Mapping[str, str], *, online: bool) -> list[DoctorFinding]:
    """Everything that is looked at, in the order it is shown. Changes nothing; starts only the test of the sandbox."""
    return [
        DoctorFinding("ok", "amanu", f"{__version__} in {Path(__file__).parents[1]}"),
        _python(),
        *_folders(home),
        _settings(home, environ),
        await _daemon(home),
        *_keys(home, environ),
        _prices(home),
        *(await _endpoints(home, environ) if online else ()),
        _ripgrep(environ),
        _program("git", "git", environ, "files ignored by git cannot be recognized; install git"),
        await _sandbox(home, environ),
        _editors(environ),
    ]


def _python() -> DoctorFinding:
    version = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return DoctorFinding("problem", "python", version, "Amanu needs Python 3.11 or newer.")
    return DoctorFinding("ok", "python", version)


def _folders(home: Home) -> Iterator[DoctorFinding]:
    for name, folder in (
        ("config", home.config),
        ("state", home.state),
        ("logs", home.logs),
        ("runtime", home.runtime),
    ):
        if not folder.exists():
            yield DoctorFinding("ok", name, f"{folder} (created when first needed)")
            continue
        status = folder.stat()
        if not folder.is_dir():
            yield DoctorFinding("problem", name, f"{folder} is not a folder", f"Move it away: mv {folder} {folder}.old")
        elif hasattr(os, "getuid") and status.st_uid != os.getuid():
            yield DoctorFinding("problem", name, f"{folder} belongs to another user", f"sudo chown -R $USER {folder}")
        elif stat.S_IMODE(status.st_mode) & 0o077:
            yield DoctorFinding("problem", name, f"{folder} is accessible to other users", f"chmod 700 {folder}")
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield DoctorFinding("problem", name, f"{folder} cannot be written", f"chmod u+rwx {folder}")
        else:
            yield DoctorFinding("ok", name, str(folder))
    for keys in (home.auth, home.config / "chatgpt.json"):
        if keys.exists() and stat.S_IMODE(keys.stat().st_mode) & 0o077:
            yield DoctorFinding("problem", "kept keys", f"{keys} can be read by other users", f"chmod 600 {keys}")


def _settings(home: Home, environ: Mapping[str, str]) -> DoctorFinding:
    from amanu.config import load_settings

    path = home.settings
    try:
        settings = load_settings(home, environ)
    except AmanuError as error:
        return DoctorFinding("problem", "settings", str(error), f"Fix or remove that field in {path}.")
    if settings.warnings:
        return DoctorFinding("note", "settings", " ".join(settings.warnings), f"Fix or remove it in {path}.")
    return DoctorFinding("ok", "settings", str(path) if path.exists() else "defaults (no config.toml)")


async def _daemon(home: Home) -> DoctorFinding:
    """Without a hello: a daemon of another version would take that as the order to leave."""
    from amanu.daemon.sockets import socket_path

    try:
        path = socket_path(home)
        if not path.exists():
            return DoctorFinding("ok", "daemon", f"not running; starts when needed ({path})")
        async with asyncio.timeout(2):
            _, writer = await asyncio.open_unix_connection(path)
            writer.close()
            await writer.wait_closed()
    except ConnectionRefusedError:
        return DoctorFinding(
            "note", "daemon", f"{home.socket} is left over; no process is listening", "The next start replaces it."
        )
    except (OSError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        return DoctorFinding(
            "problem", "daemon", f"the socket cannot be used: {why}", "Remove it; see also: amanu logs"
        )
    version = await asyncio.to_thread(_running_version, home)
    if version not in (None, __version__):
        return DoctorFinding(
            "note", "daemon", f"version {version} runs", "It is replaced when an editor starts this one."
        )
    return DoctorFinding("ok", "daemon", f"version {version or 'unknown'} runs ({path})")


def _running_version(home: Home) -> str | None:
    """Of the daemon that began to listen last, by its own log."""
    from amanu.system.logs import tail

    for line in reversed(tail(home, 5000)):
        match = re.search(r"amanu (\S+) listens on", line)
        if match:
            return match[1]
    return None


def _keys(home: Home, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    from amanu.cli.auth import source
    from amanu.models.credentials import Credentials
    from amanu.models.local import LocalServers

    try:
        statuses = Credentials(home.auth).status(environ)
        servers = LocalServers(home.local_models).vendors
    except AmanuError as error:
        yield DoctorFinding("problem", "keys", str(error), error.data.hint or "Fix or delete the file.")
        return
    for status in statuses:
        yield DoctorFinding("info" if status.source == "none" else "ok", status.vendor, source(status))
    for vendor in servers:
        yield DoctorFinding("ok", vendor, "its server on this machine may be used")
    if not servers and all(status.source == "none" for status in statuses):
        todo = "amanu auth set VENDOR, or try amanu demo, which needs none"
        yield DoctorFinding("note", "keys", "no model service has a key", todo)


def _prices(home: Home) -> DoctorFinding:
    """The age of the facts about models."""
    from amanu.models.catalogue import Catalogue

    catalogue = Catalogue(home.catalogue)
    if not catalogue.is_stale:
        return DoctorFinding("ok", "models", catalogue.told_age)
    return DoctorFinding("note", "models", f"{catalogue.told_age}: prices may have changed", catalogue.how_to_renew)


async def _endpoints(home: Home, environ: Mapping[str, str]) -> list[DoctorFinding]:
    """Whether anything answers at the addresses of the model services; no key is sent."""
    from amanu.config import Settings, load_settings
    from amanu.models.registry import VENDORS

    try:
        settings = load_settings(home, environ)
    except AmanuError:
        settings = Settings()  # what is wrong with the file is reported by itself
    addresses = {
        vendor.name: environ.get(vendor.base_variable or "") or settings.base_urls.get(vendor.name, vendor.base_url)
        for vendor in VENDORS
    }
    addresses = {name: address for name, address in addresses.items() if address}  # a cloud's depends on the region
    addresses |= {name: endpoint.base_url for name, endpoint in settings.endpoints.items()}
    local = {vendor.name for vendor in VENDORS if vendor.local}
    answers = await asyncio.gather(*(_reachable(address) for address in addresses.values()))
    findings: list[DoctorFinding] = []
    for (name, address), why in zip(addresses.items(), answers, strict=True):
        if why is None:
            findings.append(DoctorFinding("ok", name, f"{address} answers"))
        elif name in local:
            findings.append(DoctorFinding("info", name, f"no server is running at {address}"))
        else:
            todo = "Check the network, the proxy variables, and the address in the environment or config.toml."
            findings.append(DoctorFinding("note", name, f"{address} does not answer: {why}", todo))
    return findings


async def _reachable(address: str) -> str | None:
    """None if a server answers there, whatever it says; else why not."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=ONLINE_SECONDS) as http:
            await http.get(address)
        return None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        return str(error) or type(error).__name__


def _ripgrep(environ: Mapping[str, str]) -> DoctorFinding:
    from amanu.workspace.ripgrep import shipped_ripgrep

    if (shipped := shipped_ripgrep()) is not None and os.access(shipped, os.X_OK):
        return DoctorFinding("ok", "ripgrep", shipped)
    return _program("rg", "ripgrep", environ, "search falls back to a slower built-in scan; install ripgrep")


def _program(name: str, purpose: str, environ: Mapping[str, str], without: str) -> DoctorFinding:
    path = shutil.which(name, path=environ.get("PATH"))
    return DoctorFinding("ok", purpose, path) if path else DoctorFinding("note", purpose, "not found", without)


async def _sandbox(home: Home, environ: Mapping[str, str]) -> DoctorFinding:
    """Which sandbox holds commands, tried now as the daemon tries it at its start."""
    from amanu.config import Settings, load_settings
    from amanu.sandbox.layers.layer import LayerError
    from amanu.sandbox.sandbox import Sandbox

    try:
        settings = load_settings(home, environ)
    except AmanuError:
        settings = Settings()  # what is wrong with the file is reported by itself
    sandbox = Sandbox(settings.sandbox, home)
    try:
        proof = await sandbox.proved()
        try:
            fault = await sandbox.layer_fault([await asyncio.to_thread(Path.cwd)])
        except LayerError as error:
            fault = str(error)
        except FileNotFoundError:
            fault = "It was deleted: change to a folder that exists."
    finally:
        await sandbox.close()
    advice = proof.advice or ("" if proof.tier != "none" else "Each command needs approval.")
    copies = f"They cannot run on a private copy of this folder. {fault}" if fault else _COPIES
    summary = f"{proof.summary} {copies}" if proof.tier == "bubblewrap" else proof.summary
    return DoctorFinding("ok" if proof.tier in ("bubblewrap", "seatbelt") else "note", "sandbox", summary, advice)


_COPIES = "In ask, acceptEdits and draft they run on a private copy of this folder; what they change is proposed."


def _editors(environ: Mapping[str, str]) -> DoctorFinding:
    titles = [title for name, title in EDITORS.items() if shutil.which(name, path=environ.get("PATH"))]
    return DoctorFinding("ok" if titles else "info", "editors", ", ".join(titles) or "none found on PATH")
