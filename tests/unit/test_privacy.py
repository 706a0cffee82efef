"""`docs/privacy.md` names every connection that the source can open; `tests/e2e/test_connections.py` watches a run."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from support import connection_scan, privacy_page
from support.connection_scan import Found, read_python, without_comments
from support.privacy_page import NAMED, PACKAGES, ROWS, STAYS

ADVICE = (
    "Say in tests/support/privacy_page.py to whom it connects, when, with what and how to prevent that (ROWS), or why "
    "nothing leaves the machine (STAYS, NAMED, PACKAGES); then: make generate"
)


def test_the_page_is_fresh_short_and_says_what_the_rows_say() -> None:
    text = privacy_page.PAGE.read_text("utf-8")
    assert text == privacy_page.page(), "run: make generate"
    assert text.startswith("# What leaves your machine\n") and len(text.splitlines()) <= 120
    assert all(all((row.to, row.when, row.sent, row.off)) for row in ROWS)
    for row in ROWS:
        assert [shown for shown in row.hosts.values() if shown not in row.to] == [], "a row names its hosts"


def said() -> dict[str, set[str]]:
    """File → the calls that have a row, or stay."""
    calls: dict[str, set[str]] = {}
    for file, opens in [*(each for row in ROWS for each in row.opens.items()), *((k, v[0]) for k, v in STAYS.items())]:
        calls.setdefault(file, set()).update(opens.split())
    return calls


def missing(found: Mapping[str, Found]) -> list[str]:
    """Connections that no row has, and those that a row has and no file."""
    calls, named = said(), {host for row in ROWS for host in row.hosts} | NAMED.keys()
    lines: list[str] = []
    for file, each in found.items():
        lines += [f"{file} opens {call}" for call in sorted(each.opens - calls.get(file, set()))]
        lines += [f"{file} names {host}" for host in sorted(each.hosts - named)]
        lines += [f"{file} imports {package}" for package in sorted(each.packages - PACKAGES)]
    for file, expected in calls.items():
        gone = expected - (found[file].opens if file in found else set())
        lines += [f"{file}: no {call}" for call in sorted(gone)]
    hosts = {host for each in found.values() for host in each.hosts}
    packages = {package for each in found.values() for package in each.packages}
    lines += [f"no file names {host}" for host in sorted(named - hosts)]
    return lines + [f"no file imports {package}" for package in sorted(PACKAGES - packages)]


def test_whatever_the_source_opens_names_and_imports_has_a_row() -> None:
    lines = missing(connection_scan.scan())
    assert not lines, "\n".join([*lines, ADVICE])


# That it can fail -------------------------------------------------------------------------------------

OPENS = [
    ("import httpx2\nasync def f():\n    async with httpx2.AsyncClient() as c: ...", {"httpx2.AsyncClient"}),
    ("from httpx2 import AsyncClient as C\nC()", {"httpx2.AsyncClient"}),
    ("import httpx2\nhttpx2.post('x')", {"httpx2.post"}),
    ("def f():\n    from anthropic import AsyncAnthropic\n    return AsyncAnthropic()", {"anthropic.AsyncAnthropic"}),
    ("from google import genai\ngenai.Client()", {"genai.Client"}),
    ("import asyncio\nasyncio.open_connection('h', 1)", {"asyncio.open_connection"}),
    ("loop().getaddrinfo('h', 1)", {"getaddrinfo"}),
    ("import socket as s\ns.create_connection(('h', 1))", {"socket.create_connection"}),
    ("from urllib.request import urlopen\nurlopen('x')", {"request.urlopen"}),
    ("import subprocess\nsubprocess.run(['git', 'push'])", {"subprocess.run"}),
    ("from subprocess import check_output\ncheck_output('ssh')", {"subprocess.check_output"}),
    ("import os\nos.execvp('curl', [])", {"os.execvp"}),
    ("import webbrowser\nwebbrowser.open('x')", {"webbrowser.open"}),
    ("import socket\nx = socket.AF_INET\nsocket_path()", set[str]()),
]


@pytest.mark.parametrize(("text", "expected"), OPENS)
def test_what_opens_is_seen(text: str, expected: set[str]) -> None:
    assert read_python(text).opens == expected


HOSTS = [
    ('X = "https://telemetry.example.org/v1"', {"telemetry.example.org"}),
    ('x = f"https://{region}.example.org"', {"{}.example.org"}),
    ('x = f"{region}-stats.googleapis.com"', {"{}-stats.googleapis.com"}),
    ('x = "pre-commit.com"', set[str]()),
    ('x = "wss://example.org:1/"', {"example.org"}),
    ('x = r"https://example\\.org/(.*)"', {"example.org"}),
    ('"""A page: https://example.org."""\n# https://example.org', set[str]()),
    ('x = f"{name}.py", "http://", "config.toml"', set[str]()),
]


@pytest.mark.parametrize(("text", "expected"), HOSTS)
def test_hosts_are_seen(text: str, expected: set[str]) -> None:
    assert read_python(text).hosts == expected


def test_packages_are_seen() -> None:
    text = "import sentry_sdk.x\nfrom posthog import a\nimport os, smtplib\nimportlib.import_module('websockets')"
    assert read_python(text).packages == {"sentry_sdk", "posthog", "smtplib", "websockets"}


def test_the_clients_are_seen(tmp_path: Path) -> None:
    for folder in ("vscode-extension/src", "neovim"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "vscode-extension/src/x.ts").write_text(
        'import axios from "axios";\n// fetch("https://a.example.org")\nconst y = /^https:\\/\\//.test(a);\n'
        'void fetch("https://b.example.org");\nawait this.fetch(1);\nnew WebSocket(u); child.exec(1);\n'
    )
    (tmp_path / "neovim/x.lua").write_text('vim.system({ "curl" }) -- vim.net\nvim.ui.open("https://c.example.org")\n')
    assert connection_scan.scan(tmp_path) == {
        "vscode-extension/src/x.ts": found("fetch WebSocket", "b.example.org", "axios"),
        "neovim/x.lua": found("vim.system vim.ui.open", "c.example.org"),
    }
    assert without_comments('x("https://a") // c') == 'x("https://a") '


def found(opens: str = "", hosts: str = "", packages: str = "") -> Found:
    return Found(*(frozenset(each.split()) for each in (opens, hosts, packages)))


def test_what_is_new_and_what_is_gone_fails() -> None:
    files = {file: found(" ".join(opens)) for file, opens in said().items()}
    hosts = " ".join([*NAMED, *(host for row in ROWS for host in row.hosts)])
    files["all"] = found("", hosts, " ".join(PACKAGES))
    assert missing(files) == []
    search = "server/amanu/web/search.py"
    assert missing(
        {**files, "x.py": found("httpx2.AsyncClient", "stats.example.org", "sentry_sdk"), search: found()}
    ) == [
        "x.py opens httpx2.AsyncClient",
        "x.py names stats.example.org",
        "x.py imports sentry_sdk",
        f"{search}: no http.http_client",
    ]
    assert missing({**files, "all": found("", hosts.replace("api.tavily.com", ""), " ".join(PACKAGES - {"rich"}))}) == [
        "no file names api.tavily.com",
        "no file imports rich",
    ]
