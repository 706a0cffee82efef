"""A server on this machine may read, outside the workspace, what its command line names and what its scripts need;
never a home folder or a secret."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp import connection
from amanu.mcp.config import Access
from amanu.mcp.opened_folders import opened_folders
from amanu.mcp.process import Command
from amanu.sandbox.protected_scan import scan_protected
from amanu.sandbox.toolchains import visibility
from support.mcp_harness import SUPPORT, harness
from support.required_programs import needs

PACKAGE = '{"name": "weather"}'
KINDS_OF_MODULES = '{"type": "module"}'
CASES: Mapping[str, tuple[Mapping[str, str], Sequence[str], Sequence[str], Sequence[str]]] = {
    # files below the home folder, the command, what is opened, what is not
    "beside a script": ({"code/w/server.py": ""}, ["python3", "~/code/w/server.py"], ["code/w"], []),
    "a project": (
        {"code/w/pyproject.toml": "", "code/w/src/w/server.py": ""},
        ["python3", "~/code/w/src/w/server.py"],
        ["code/w"],
        [],
    ),
    "a repository": (
        {"code/w/.git/HEAD": "", "code/w/a/b/srv.rb": ""},
        ["ruby", "~/code/w/a/b/srv.rb"],
        ["code/w"],
        [],
    ),
    "the nearest": (
        {"code/.git/HEAD": "", "code/w/package.json": PACKAGE, "code/w/dist/index.js": ""},
        ["node", "--enable-source-maps", "~/code/w/dist/index.js"],
        ["code/w"],
        [],
    ),
    "not a build's package.json": (
        {"w/package.json": PACKAGE, "w/dist/package.json": KINDS_OF_MODULES, "w/dist/index.js": ""},
        ["node", "~/w/dist/index.js"],
        ["w"],
        [],
    ),
    "modules further up": (
        {"m/node_modules/x/a.js": "", "m/packages/w/package.json": PACKAGE, "m/packages/w/index.mjs": ""},
        ["node", "~/m/packages/w/index.mjs"],
        ["m/packages/w", "m/node_modules"],
        [],
    ),
    "a folder of an option": ({"w/server.py": ""}, ["uv", "run", "--directory", "~/w", "server.py"], ["w"], []),
    "a folder after a sign": ({"w/server.py": ""}, ["uv", "--directory={home}/w", "run", "server.py"], ["w"], []),
    "a package of a runner": (
        {"code/.git/HEAD": "", "code/w/package.json": PACKAGE},
        ["npx", "-y", "~/code/w"],
        ["code/w"],
        [],
    ),
    "folders to serve": (
        {"notes/a.md": "", "Documents/b.md": ""},
        ["npx", "-y", "server-filesystem", "~/notes", "~/Documents"],
        ["notes", "Documents"],
        [],
    ),
    "one inside another": ({"w/server.py": "", "w/data/x": ""}, ["python3", "~/w/server.py", "~/w/data"], ["w"], []),
    "an environment of a project": (
        {"w/pyproject.toml": "", "w/.venv/bin/python": ""},
        ["~/w/.venv/bin/python", "-m", "w"],
        ["w"],
        [],
    ),
    "a script as the command": ({"w/run.sh": "", "w/lib/x": ""}, ["~/w/run.sh"], ["w"], []),
    "an installed program": ({".nvm/.git/HEAD": "", ".nvm/v20/bin/node": ""}, ["~/.nvm/v20/bin/node"], [], []),
    "a program without a project": ({"go/bin/srv": ""}, ["~/go/bin/srv"], [], []),
    "data": ({"code/.git/HEAD": "", "code/x.db": ""}, ["srv", "--db-path", "~/code/x.db"], [], []),
    "what is not there": ({}, ["python3", "~/code/w/server.py", "/nowhere"], [], []),
    "the home folder": ({"server.py": ""}, ["python3", "~/server.py"], [], [""]),
    "all of it": ({"a": ""}, ["npx", "server-filesystem", "{home}", "/"], [], ["", "/"]),
    "among downloads": ({"Downloads/server.py": ""}, ["python3", "~/Downloads/server.py"], [], ["Downloads"]),
    "a project among them": ({"Downloads/w/w.py": ""}, ["python3", "~/Downloads/w/w.py"], ["Downloads/w"], []),
    "a home folder with a repository": ({".git/HEAD": "", "w/w.py": ""}, ["python3", "~/w/w.py"], ["w"], []),
    "keys": ({".ssh/id_test": "", ".ssh/w.py": ""}, ["python3", "~/.ssh/w.py", "~/.ssh"], [], [".ssh"]),
    "above keys": ({".config/gh/x": "", ".config/w.py": ""}, ["python3", "~/.config/w.py"], [], [".config"]),
    "keys elsewhere": ({"backup/.ssh/shop": ""}, ["srv", "~/backup/.ssh"], [], ["backup/.ssh"]),
    "keys in capitals": ({".SSH/id_test": ""}, ["srv", "~/.SSH"], [], [".SSH"]),
    "an environment of that name": (
        {"w/pyproject.toml": "", "w/.env/pyvenv.cfg": "", "w/.env/bin/python": ""},
        ["~/w/.env/bin/python", "-m", "w"],
        ["w"],
        [],
    ),
    "the workspace": ({"shop/w.py": "", "shop/d/x": ""}, ["python3", "~/shop/w.py", "~/shop", "~/shop/d"], [], []),
    "through the workspace": ({"w/w.py": "", "shop/x": ""}, ["python3", "~/shop/link/w.py", "~/shop/link"], [], []),
    "through the workspace in other words": (
        {"w/w.py": "", "shop/x": ""},
        ["python3", "{home}//shop/link/w.py", "~/./shop/link", "~/w/../shop/link"],
        [],
        [],
    ),
    "through a link of the user's": ({"w/w.py": ""}, ["python3", "~/link/w.py"], ["w"], []),
}


@pytest.mark.parametrize(("files", "command", "opened", "closed"), CASES.values(), ids=CASES)
def test_what_goes_with_a_command_is_opened(
    tmp_path: Path, files: Mapping[str, str], command: Sequence[str], opened: Sequence[str], closed: Sequence[str]
) -> None:
    home = tmp_path.resolve() / "home"
    for name, text in {"shop/": "", **files}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            (home / name).write_text(text)
    (home / "shop").mkdir(exist_ok=True)
    (home / "shop" / "link").symlink_to(home / "w")
    (home / "link").symlink_to(home / "w")
    words = [word.replace("~", str(home), 1).format(home=home) for word in command]
    found = opened_folders(words, {}, {"HOME": str(home)}, [home / "shop"])
    assert (found.folders, found.closed) == (
        tuple(home / name for name in opened),
        tuple(home / name for name in closed),
    )


def test_links_to_modules_open_what_they_lead_to(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    script = home / "m" / "packages" / "index.js"
    script.parent.mkdir(parents=True)
    script.touch()
    (home / "m" / "node_modules").symlink_to(home)
    found = opened_folders(["node", str(script)], {}, {"HOME": str(home)}, [])
    assert (found.folders, found.closed) == ((script.parent,), (home,))


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/home/nobody/w", "on request"),
        ("/home/nobody", "never"),
        ("/home/nobody/.aws", "never"),
        ("/home/nobody/.config/gh", "never"),
        ("/home/nobody/.config", "never"),
        ("/mnt/c/Users/Nobody/.ssh", "never"),
        ("/mnt/c/Users/Nobody/AppData/Roaming/Mozilla", "never"),
        ("/mnt/c/Users/Nobody/w", "on request"),
        ("/run/secrets", "never"),
        ("/run/user/1000/keyring", "never"),
        ("/run/media/me/disk/w", "on request"),
        ("/tmp/w", "on request"),
        ("/tmp", "never"),
        ("/", "never"),
    ],
)
def test_secrets_of_others_and_of_services_are_never_opened(tmp_path: Path, folder: str, expected: str) -> None:
    homes = (tmp_path, *map(Path, ("/home", "/mnt/c/Users")))
    assert visibility(Path(folder), homes) == expected


def test_secrets_are_found_in_large_folders_and_by_the_names_above(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / "large" / str(number)).mkdir(parents=True)
    secrets = [tmp_path / "large" / str(number) / ".env" for number in (0, 300, 599)]
    secrets.append(tmp_path / "backup" / ".aws" / "credentials")
    secrets[-1].parent.mkdir(parents=True)
    for secret in secrets:
        secret.touch()
    found = scan_protected([tmp_path / "large", secrets[-1].parent], None, opened=True).secrets
    assert sorted(found) == sorted(secrets)


@pytest.mark.parametrize(
    ("word", "is_shown"),
    [
        ("{home}/w/data.csv", True),
        ("{home}/shop/link/data.csv", False),
        ("{home}/shop/link/w.py", True),
        ("{home}/shop/a", False),
    ],
)
def test_no_data_is_shown_that_a_link_of_the_workspace_leads_to(tmp_path: Path, word: str, is_shown: bool) -> None:
    home = tmp_path.resolve()
    for name in ("w/data.csv", "w/w.py", "shop/a"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).touch()
    (home / "shop" / "link").symlink_to(home / "w")
    named = word.format(home=home)
    command = Command(("/nowhere", named), None, {}, Access(), (home / "shop",), home)
    assert (named in command.requirements.programs) == is_shown


def test_folders_in_which_programs_look_are_opened(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    for name in ("a", "b", "c"):
        (home / name).mkdir(parents=True)
    variables = {"PYTHONPATH": f"{home}/a:{home}/b:", "DATA": f"{home}/c"}
    found = opened_folders(["python3", "-m", "w"], variables, {"HOME": str(home)}, [])
    assert found.folders == (home / "a", home / "b")


LINES = """
import helpers
helpers.main()
"""
NODE = """
import {main} from './lib/main.js';
main();
"""
MAIN = """
import {createInterface} from 'node:readline';
import {readFileSync} from 'node:fs';
import {name} from 'dependency';
const answers = {
  'initialize': () => ({protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name, version: '1'}}),
  'tools/list': () => ({tools: [{name: 'read', inputSchema: {type: 'object'}}]}),
  'tools/call': params => {
    try { return {content: [{type: 'text', text: readFileSync(params.arguments.path, 'utf8')}]}; }
    catch (error) { return {content: [{type: 'text', text: `refused: ${error.code}`}]}; }
  },
};
export function main() {
  createInterface({input: process.stdin}).on('line', line => {
    const {id, method, params} = JSON.parse(line);
    const said = answers[method] ? {result: answers[method](params)} : {error: {code: -32601, message: 'unknown'}};
    if (id !== undefined) console.log(JSON.stringify({jsonrpc: '2.0', id, ...said}));
  });
}
"""


def project(home: Path) -> Path:
    """A server in Python and one in JavaScript, with what they import beside them, and secrets."""
    folder = home / "code" / "weather"
    files = {
        "server.py": LINES,
        "helpers.py": (SUPPORT / "plain_mcp_server.py").read_text(),
        "package.json": json.dumps({"name": "weather", "type": "module"}),
        "dist/index.js": NODE,
        "dist/lib/main.js": MAIN,
        "node_modules/dependency/package.json": json.dumps({"name": "dependency", "type": "module", "main": "i.js"}),
        "node_modules/dependency/i.js": "export const name = 'weather';\n",
        ".env": "TOKEN=secret\n",
        "data.txt": "sunny\n",
        "../other/data.txt": "private\n",
        "../../.ssh/id_test": "private\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("source", ["mcp.toml", ".mcp.json"])
async def test_a_server_elsewhere_starts_with_what_it_imports_and_reads_no_secrets(tmp_path: Path, source: str) -> None:
    node = needs("node")
    folder = project(tmp_path / "home")
    async with harness(tmp_path) as it:
        table: dict[str, Any] = {"command": node, "args": [str(folder / "dist" / "index.js")]}
        if source == "mcp.toml":
            it.configure(weather=table)
        else:
            (it.workspace.roots[0] / ".mcp.json").write_text(json.dumps({"mcpServers": {"weather": table}}))
        await it.servers.sandbox.proved()
        assert f"It can also read {folder}, but not the secrets in there." in it.view("weather").access
        await it.approved("weather")
        assert (it.view("weather").state, it.view("weather").reason) == ("ready", "")
        assert await it.text("weather", "read", path=str(folder / "data.txt")) == "sunny\n"
        if it.servers.sandbox.tier != "none":
            for hidden in (folder / ".env", folder.parent / "other" / "data.txt", tmp_path / "home/.ssh/id_test"):
                assert (await it.text("weather", "read", path=str(hidden))).startswith("refused")


@pytest.mark.parametrize(
    "table",
    [
        {"command": sys.executable, "args": ["~/code/weather/server.py"]},
        {"command": sys.executable, "args": ["server.py"], "cwd": "~/code/weather"},
        {"command": sys.executable, "args": ["-m", "server"], "env": {"PYTHONPATH": "{home}/code/weather"}},
    ],
    ids=["a script", "its folder", "a module"],
)
async def test_a_script_imports_what_is_beside_it(tmp_path: Path, table: dict[str, Any]) -> None:
    project(tmp_path / "home")
    variables = {name: value.format(home=tmp_path / "home") for name, value in table.get("env", {}).items()}
    async with harness(tmp_path) as it:
        it.configure(weather={**table, **({"env": variables} if variables else {})})
        await it.approved("weather")
        assert (it.view("weather").state, it.view("weather").reason) == ("ready", "")
        assert await it.text("weather", "echo", text="x") == "x"


async def test_a_folder_that_is_opened_later_is_asked_about(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "home" / "code" / "weather"
    project(tmp_path / "home")
    (folder / "package.json").unlink()
    async with harness(tmp_path) as it:
        it.configure(weather={"command": sys.executable, "args": [str(folder / "server.py")]})
        await it.approved("weather")
        digest = it.view("weather").digest
        (folder.parent / ".git").mkdir()
        view = it.view("weather")
        assert (view.state, view.digest != digest) == ("unapproved", True)
        assert view.reason == f"It would also read {folder.parent}, which you have not approved."
        shutil.rmtree(folder.parent / ".git")
        assert it.view("weather").state != "unapproved"


@pytest.mark.parametrize("through_link", [False, True])
async def test_a_folder_on_the_path_that_a_workspace_sets_is_told_of_and_no_link(
    tmp_path: Path, through_link: bool
) -> None:
    node = needs("node")
    folder = project(tmp_path / "home")
    private = folder.parent / "other"
    async with harness(tmp_path) as it:
        root = it.workspace.roots[0]
        (root / "tools").symlink_to(private)
        path = f"{root / 'tools' if through_link else private}:{os.defpath}"
        table = {"command": node, "args": [str(folder / "dist" / "index.js")], "env": {"PATH": path}}
        (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"weather": table}}))
        await it.servers.sandbox.proved()
        assert (str(private) in it.view("weather").access) is not through_link
        await it.approved("weather")
        if it.servers.sandbox.tier != "none":
            read = await it.text("weather", "read", path=str(private / "data.txt"))
            assert read == "private\n" if not through_link else read.startswith("refused")


@pytest.mark.parametrize("cwd", ["~", "~/.ssh", "~/code/weather"])
async def test_where_it_starts_opens_no_home_folder(tmp_path: Path, cwd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BACK_OFF", (0.01,))
    node = needs("node")
    folder = project(tmp_path / "home")
    async with harness(tmp_path) as it:
        it.configure(weather={"command": node, "args": [str(folder / "dist" / "index.js")], "cwd": cwd})
        await it.approved("weather")
        opens = cwd == "~/code/weather"
        assert (f"It starts in {cwd}, and can read all of it." in it.view("weather").access) == opens
        if it.servers.sandbox.tier == "none" or it.view("weather").state != "ready":
            assert cwd == "~/.ssh" or it.servers.sandbox.tier == "none"
            return
        assert (await it.text("weather", "read", path=str(tmp_path / "home/.ssh/id_test"))).startswith("refused")
        assert (await it.text("weather", "read", path=str(folder / ".env"))).startswith("TOKEN" if opens else "refused")
