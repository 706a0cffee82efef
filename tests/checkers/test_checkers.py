"""Checkers as real processes: what they say of texts in no file, and what is left when they misbehave."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.checks import language_server
from amanu.checks import runner as pool
from amanu.checks.catalog import CHECKERS
from amanu.checks.process import CheckFailed
from amanu.checks.runner import Checkers, ReadyChecker, TextChange
from amanu.config import CheckSettings, SandboxSettings
from amanu.home import find_home
from amanu.sandbox.sandbox import Sandbox
from amanu.sandbox.self_test import Tier
from amanu.workspace.overlay import CodePlace
from support.range_edits import apply_range_edits
from support.required_programs import needs

TOY = Path(__file__).parents[1] / "support" / "toy_language_server.py"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def only(**commands: tuple[str, ...]) -> CheckSettings:
    """Settings with no checkers but these."""
    return CheckSettings(checkers={**{each.name: False for each in CHECKERS}, **commands})


def toy(*how: str) -> CheckSettings:
    return only(pyright=(sys.executable, "-P", str(TOY), *how))


def make_sandbox(best: Tier = "bubblewrap", write: Path | None = None) -> Sandbox:
    """A sandbox in which what the tests themselves start can be seen, and that folder written."""
    own = (sys.prefix, sys.base_prefix, str(TOY.parent))
    return Sandbox(
        SandboxSettings(read=own, write=() if write is None else (str(write),)), find_home().make(), best=best
    )


@asynccontextmanager
async def started(
    settings: CheckSettings, best: Tier = "bubblewrap", write: Path | None = None
) -> AsyncGenerator[Checkers]:
    sandbox = make_sandbox(best, write)
    if best != "none" and (await sandbox.proved()).tier == "none":
        pytest.skip("no sandbox works here")
    held = Checkers(settings, sandbox, {"OWN_KEY"})
    try:
        yield held
    finally:
        await held.end()
        await sandbox.close()


def ready(
    held: Checkers, root: Path, name: str = "a.py", environment: Mapping[str, str] = ENVIRONMENT
) -> list[ReadyChecker]:
    return held.ready([root / name], root, [root], environment)


async def verdict(
    held: Checkers,
    root: Path,
    *texts: tuple[str, str | None, str],
    others: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = ENVIRONMENT,
) -> list[str]:
    """What the only checker says: "name line: message" for what is new, "name -n" for what is gone."""
    changes = [TextChange(root / name, before, after) for name, before, after in texts]
    (only_one,) = held.ready([each.path for each in changes], root, [root], environment)
    found = await held.check(only_one, changes, {root / name: text for name, text in (others or {}).items()})
    said: list[str] = []
    for path, now in found.items():
        said += [f"{path.name} {each.lines.first}: {each.message}" for each in now.added]
        said += [f"{path.name} -{now.fixed}"] if now.fixed else []
    return said


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy says all it has to say at once."""
    monkeypatch.setattr(language_server, "QUIET", 0.1)


@pytest.mark.parametrize("how", ["well", "halves", "older", "pull"])
async def test_a_language_server(tmp_path: Path, how: str, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "halves":
        monkeypatch.setattr(language_server, "QUIET", 0.4)
    async with started(toy(how)) as held:
        one = ("a.py", "wrong\nfine\n", "fine\nwrong\nwrong\n")
        assert await verdict(held, tmp_path, one) == ["a.py 3: this is wrong"]
        assert await verdict(held, tmp_path, ("a.py", "wrong\n", "fine\n")) == ["a.py -1"]
        assert await verdict(held, tmp_path, ("a.py", "wrong\n", "new\nwrong\n")) == []
        created = ("new.py", None, "wrong\n")
        assert await verdict(held, tmp_path, created, ("b.py", "a\n", "b\n")) == ["new.py 1: this is wrong"]
        assert len(held._servers) == 1, "one server for all"  # pyright: ignore[reportPrivateUsage]
    assert list(tmp_path.iterdir()) == [], "nothing was written"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("late 100", "did not start within"),
        ("crash", "It ended with code 3: Error: it was too much for me."),
        ("garbage", "not valid LSP"),
        ("flood", "too large"),
        ("silent", "No answer within"),
        ("nonsense.py", "It ended with code 2"),
        ("/nonexistent", ""),
    ],
)
async def test_who_misbehaves_has_no_verdict(
    tmp_path: Path, how: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "late" in how:
        monkeypatch.setattr(language_server, "START", 0.3)
    if how == "silent":
        monkeypatch.setattr(pool, "LIMIT", 0.3)
    settings = toy(*how.split())
    if how == "nonsense.py":
        settings = only(pyright=(sys.executable, "-P", str(tmp_path / "not there")))
    if how == "/nonexistent":
        settings = only(pyright=("/nonexistent",))
    async with started(settings) as held:
        if why == "":
            assert ready(held, tmp_path) == []
            return
        with pytest.raises(CheckFailed) as failed:
            await verdict(held, tmp_path, ("a.py", "fine\n", "wrong\n"))
        assert why in str(failed.value)
        assert ready(held, tmp_path) == [], "it is left alone for a while"
        assert held._servers == {}  # pyright: ignore[reportPrivateUsage]


async def test_a_server_that_ends_while_it_is_asked_leaves_no_answer_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))

    async def gone(self: language_server.LanguageServer) -> None:
        failure = CheckFailed("It ended.")
        self._fail(failure)  # pyright: ignore[reportPrivateUsage]
        raise failure

    monkeypatch.setattr(language_server.LanguageServer, "_drain", gone)
    async with started(toy("well")) as held:
        with pytest.raises(CheckFailed):
            await verdict(held, tmp_path, ("a.py", None, "x"))
    gc.collect()
    assert failures == []


async def test_a_check_that_is_cancelled_leaves_a_server_that_still_works(tmp_path: Path) -> None:
    async with started(toy("silent")) as held:
        checking = asyncio.create_task(verdict(held, tmp_path, ("a.py", "fine\n", "wrong\n")))
        async with asyncio.timeout(50):
            while not held._servers:  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0.01)
        (kept,) = held._servers.values()  # pyright: ignore[reportPrivateUsage]
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking
        assert not kept.lock.locked() and not kept.server.lost


async def test_a_server_whose_check_was_cancelled_goes_when_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most checks are: of proposals that are decided before it is over."""
    monkeypatch.setattr(pool, "IDLE", 0.0)
    async with started(toy("silent")) as held, asyncio.timeout(50):
        checking = asyncio.create_task(verdict(held, tmp_path, ("a.py", "fine\n", "wrong\n")))
        while not held._servers:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)
        checking.cancel()
        while held._servers or held._ending:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)


async def test_two_checks_at_the_same_time_have_one_server(tmp_path: Path, quick: None) -> None:
    async with started(toy("well")) as held:
        both = [verdict(held, tmp_path, (name, "fine\n", "wrong\n")) for name in ("a.py", "b.py")]
        assert await asyncio.gather(*both) == [["a.py 1: this is wrong"], ["b.py 1: this is wrong"]]
        assert len(held._servers) == 1  # pyright: ignore[reportPrivateUsage]


async def test_others_see_texts_that_are_not_saved(tmp_path: Path, quick: None) -> None:
    """The toy finds words of every file it was shown; here it is enough that it was shown them, and closed them."""
    root, log = tmp_path / "work", tmp_path / "log" / "log"
    root.mkdir()
    log.parent.mkdir()
    async with started(toy("strict", str(log)), write=log.parent) as held:
        await verdict(
            held, root, ("a.py", "fine\n", "wrong\n"), others={"b.py": "unsaved\n", "c.txt": "x", "a.py": "no"}
        )
        await verdict(held, root, ("a.py", "fine\n", "wrong\n"))
    lines = log.read_text().splitlines()
    assert sorted(lines[:2]) == ["open a.py", "open b.py"] and "TWICE" not in log.read_text()


async def test_servers_are_few_and_go_when_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_SERVERS", 2)
    monkeypatch.setattr(language_server, "QUIET", 0.05)
    async with started(toy("well")) as held:
        roots = [tmp_path / name for name in "abc"]
        for root in roots:
            root.mkdir()
            assert await verdict(held, root, ("a.py", "", "wrong\n")) == ["a.py 1: this is wrong"]
        assert [root for _, root in held._servers] == roots[1:]  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(pool, "IDLE", 0.0)
        servers = [kept.server for kept in held._servers.values()]  # pyright: ignore[reportPrivateUsage]
        for root in roots[1:]:
            await verdict(held, root, ("a.py", "", "wrong\n"))
        async with asyncio.timeout(50):
            while held._servers or held._ending:  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0.01)
        assert all(server.process._process.code is not None for server in servers)  # pyright: ignore[reportPrivateUsage]


PROBE = """#!{python} -P
import json, os, sys
text = sys.stdin.read()
found = [{{"line": n, "level": "error", "code": 1, "message": line}}
    for n, line in enumerate(text.splitlines(), 1) if "wrong" in line]
if "die" in text:
    sys.exit("Error: no")
if "environment" in text:
    found = [{{"line": 1, "level": "error", "code": 1, "message": name}} for name in os.environ]
print(json.dumps(found) if "garbage" not in text else "garbage")
"""


def program(folder: Path, name: str, text: str = PROBE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("wrong 1\n", "fine\nwrong 1\nwrong 2\n", ["a.sh 3: wrong 2"]),
        (None, "wrong\n", ["a.sh 1: wrong"]),
        ("wrong\n", "", ["a.sh -1"]),
        ("", "garbage", "It ended with code 0."),
        ("", "die", "It ended with code 1: Error: no."),
    ],
)
async def test_a_linter(tmp_path: Path, before: str | None, after: str, said: list[str] | str) -> None:
    path = program(tmp_path / "bin", "shellcheck")
    async with started(only(shellcheck=(str(path),))) as held:
        if isinstance(said, str):
            with pytest.raises(CheckFailed) as failed:
                await verdict(held, tmp_path, ("a.sh", before, after))
            assert str(failed.value) == said
        else:
            assert await verdict(held, tmp_path, ("a.sh", before, after)) == said


def running(path: Path) -> list[str]:
    """Processes with that path in their command line."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(path).encode() in process.read_bytes():
                found.append(process.parent.name)
    return found


async def test_a_linter_whose_check_was_cancelled_is_gone_when_the_checkers_are(tmp_path: Path) -> None:
    stubborn = "#!/bin/sh\ntrap '' TERM\n: > begun\nwhile :; do sleep 0.05; done\n"
    path = program(tmp_path / "bin", "shellcheck", stubborn)
    async with started(only(shellcheck=(str(path),)), write=tmp_path) as held:
        checking = asyncio.create_task(verdict(held, tmp_path, ("a.sh", None, "x")))
        async with asyncio.timeout(50):
            while not (tmp_path / "begun").exists():
                await asyncio.sleep(0.01)
        assert running(path)
        for _ in range(2):  # impatiently: the second one leaves what waits for the linter's end
            checking.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await checking
    assert running(path) == []


SPY = """#!{python} -P
import json, os, socket, sys
sys.stdin.read()
found = {{}}
def tried(what, act):
    try:
        act()
        found[what] = "done"
    except OSError as error:
        found[what] = type(error).__name__
tried("write the workspace", lambda: open("planted", "w"))
try:
    open(os.environ["OUTSIDE"] + "/planted", "w")  # perhaps a folder of its own in that place: the test looks outside
except OSError:
    pass
tried("read a key", lambda: open(os.environ["HOME"] + "/.ssh/id_rsa").read())
tried("connect", lambda: socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 2))
tried("write temporary files", lambda: open(os.environ["TMPDIR"] + "/t", "w"))
tried("write its caches", lambda: os.makedirs(os.environ["XDG_CACHE_HOME"] + "/spy", exist_ok=True))
print(json.dumps([{{"line": 1, "level": "error", "code": 1, "message": f"{{what}}: {{how}}"}}
    for what, how in found.items()]))
"""


@pytest.mark.parametrize("best", ["bubblewrap", "landlock"])
async def test_a_checker_that_was_planted_in_the_workspace_is_held_by_walls(tmp_path: Path, best: Tier) -> None:
    root, home = tmp_path / "work", tmp_path / "home"
    program(root / ".venv" / "bin", "shellcheck", SPY)
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("secret")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "OUTSIDE": str(tmp_path), "PORT": str(port)}
    on = only()
    on.checkers["shellcheck"] = True
    async with server, started(on, best) as held:
        said = await verdict(held, root, ("a.sh", None, "x"), environment=environment)
    did = [each.removeprefix("a.sh 1: ").partition(": ")[0] for each in said if each.endswith(": done")]
    assert (len(said), did) == (5, ["write temporary files", "write its caches"])
    assert not (root / "planted").exists() and not (tmp_path / "planted").exists()


HUNGRY = """#!{python} -P
import json, resource
held = [name for name in ("RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_CORE")
    if resource.getrlimit(getattr(resource, name))[1] != resource.RLIM_INFINITY]
print(json.dumps([{{"line": 1, "level": "error", "code": 1, "message": name}} for name in held]))
"""


@pytest.mark.parametrize("best", ["bubblewrap", "landlock"])
async def test_a_checker_is_held_to_the_limits_of_what_nobody_was_asked_about(tmp_path: Path, best: Tier) -> None:
    path = program(tmp_path / "bin", "shellcheck", HUNGRY)
    async with started(only(shellcheck=(str(path),)), best) as held:
        said = await verdict(held, tmp_path, ("a.sh", None, "x"))
    assert {"a.sh 1: RLIMIT_DATA", "a.sh 1: RLIMIT_FSIZE", "a.sh 1: RLIMIT_CORE"} <= {*said}


async def test_without_a_sandbox_nothing_is_started(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "shellcheck", "#!/bin/sh\n: > begun\n")
    async with started(only(shellcheck=(str(path),)), "none") as held:
        assert not await held.sandboxed()
        with pytest.raises(CheckFailed, match="checkers are not started without one"):
            await verdict(held, tmp_path, ("a.sh", None, "x"))
    assert not (tmp_path / "begun").exists()


async def test_no_key_is_given_to_a_checker(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "shellcheck")
    environment = {**ENVIRONMENT, "ANTHROPIC_API_KEY": "k", "OWN_KEY": "k", "KEPT": "1"}
    async with started(only(shellcheck=(str(path),))) as held:
        said = await verdict(held, tmp_path, ("a.sh", "", "environment"), environment=environment)
    names = {each.rpartition(" ")[2] for each in said}
    assert "KEPT" in names and names.isdisjoint({"ANTHROPIC_API_KEY", "OWN_KEY"})


@pytest.mark.parametrize(
    ("there", "path", "found"),
    [
        (["bin/ruff"], ["bin"], "bin/ruff"),
        (["one/ruff", "two/ruff"], ["one", "two"], "one/ruff"),
        ([], ["bin"], None),
        (["bin/other"], ["bin"], None),
        # the workspace's own is the last choice
        (["work/bin/ruff", "bin/ruff"], ["work/bin", "bin"], "bin/ruff"),
        (["work/bin/ruff"], ["work/bin"], "work/bin/ruff"),
        (["work/.venv/bin/ruff"], ["bin"], "work/.venv/bin/ruff"),
        (["work/node_modules/.bin/ruff", "bin/ruff"], ["bin"], "bin/ruff"),
        (["work/ruff"], [".", "work/sub"], None),
        (["bin/ruff -> work/evil", "two/ruff", "work/evil"], ["bin", "two"], "two/ruff"),
    ],
)
def test_where_programs_are_found(tmp_path: Path, there: list[str], path: list[str], found: str | None) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for each in there:
        name, _, target = each.partition(" -> ")
        if target:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).symlink_to(tmp_path / target)
        else:
            program((tmp_path / name).parent, Path(name).name)
    environment = {"PATH": os.pathsep.join("." if each == "." else str(tmp_path / each) for each in path)}
    off: dict[str, Any] = {each.name: False for each in CHECKERS if each.name != "ruff"}
    held = Checkers(CheckSettings(checkers=off), make_sandbox())
    commands = [each.command[0] for each in ready(held, root, environment=environment)]
    assert commands == ([] if found is None else [str(tmp_path / found)])


@pytest.mark.parametrize(
    ("files", "name", "fits"),
    [
        (["eslint.config.js"], "a.ts", True),
        ([".eslintrc.json"], "sub/a.js", True),
        (["sub/eslint.config.mjs"], "sub/deep/a.js", True),
        (["other/eslint.config.mjs"], "sub/a.js", False),
        ([], "a.js", False),
        (["eslint.config.js"], "a.py", False),
    ],
)
def test_a_linter_without_settings_is_not_asked(tmp_path: Path, files: list[str], name: str, fits: bool) -> None:
    for each in files:
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).touch()
    held = Checkers(only(eslint=(str(program(tmp_path / "bin", "eslint")),)), make_sandbox())
    assert bool(ready(held, tmp_path, name)) == fits


async def test_a_big_text_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_TEXT", 100)
    async with started(toy("well")) as held:
        with pytest.raises(CheckFailed, match="too large"):
            await verdict(held, tmp_path, ("a.py", "", "x" * 300))


# Real ones --------------------------------------------------------------------------------------------


BEFORE = "import os\n\ncount: int = 'a'\nprint(os)\n"
AFTER = "import os\nimport re\n\ncount: int = 'a'\nname: str = 3\nprint(sys)\n"


async def test_ruff(tmp_path: Path) -> None:
    async with started(only(ruff=(needs("ruff"), "server"))) as held:
        said = await verdict(held, tmp_path, ("a.py", BEFORE, AFTER))
        assert [each.partition(":")[0] for each in said] == ["a.py 6", "a.py 1", "a.py 2"]
        assert "Undefined name `sys`" in said[0] and "`re` imported but unused" in said[2]
        assert await verdict(held, tmp_path, ("a.py", AFTER, BEFORE)) == ["a.py -3"]
    assert list(tmp_path.iterdir()) == [], "no cache was written"


async def test_pyright(tmp_path: Path) -> None:
    needs("node")
    (tmp_path / "a.py").write_text(BEFORE)
    environment = {**ENVIRONMENT, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    async with started(only(pyright=(needs("pyright-langserver"), "--stdio"))) as held:
        calling = ("b.py", None, "import a\n\na.name.upper()\na.nothing\n")
        said = await verdict(held, tmp_path, ("a.py", BEFORE, AFTER), calling, environment=environment)
        assert [each.partition(" is not")[0] for each in said if each.startswith("a.py")] == [
            'a.py 5: Type "Literal[3]"',
            'a.py 6: "sys"',
        ]
        assert [each for each in said if each.startswith("b.py")] == [
            'b.py 4: "nothing" is not a known attribute of module "a"'
        ], "it sees the other file as it is proposed"
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


async def test_pyright_renames_in_files_that_are_open_and_others(tmp_path: Path) -> None:
    """Only while it runs: no server is started for a rename."""
    needs("node")
    texts = {"a.py": "def total(): ...\n", "b.py": "import a\n\nx = '𝄞', a.total()\n", "c.py": "from a import total\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text if name != "b.py" else "unsaved = 1\n")
    environment = {**ENVIRONMENT, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    place = CodePlace(tmp_path / "a.py", 0, "def ")
    shown = {tmp_path / name: texts[name] for name in ("a.py", "b.py")}
    async with started(only(pyright=(needs("pyright-langserver"), "--stdio"))) as held:
        assert await held.rename(tmp_path, place, "sum_up", shown) is None
        await verdict(held, tmp_path, ("a.py", "", texts["a.py"]), environment=environment)
        files = await held.rename(tmp_path, place, "sum_up", shown)
        assert files is not None
        renamed = {
            Path(file.path).name: apply_range_edits(texts[Path(file.path).name], file.edits, "utf-16") for file in files
        }
        assert renamed == {name: text.replace("total", "sum_up") for name, text in texts.items()}
        assert {Path(file.path).name for file in files if file.sha256} == {"a.py", "b.py"}
        assert await held.rename(tmp_path / "other", place, "sum_up", shown) is None
