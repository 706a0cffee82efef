"""The files of a folder that a command names: their content is approved with a hook or a server."""

import json
import shlex
from pathlib import Path

import pytest

from amanu.system.named_files import MAX_FILES, named_files

NAMED: list[tuple[list[str] | str, str, str]] = [
    # (words of a command or a line for bash, the files present, those it names)
    (["python", "my srv.py"], "'my srv.py' other.py", "'my srv.py'"),
    (["python", "{folder}/my dir/srv.py"], "'my dir/srv.py'", "'my dir/srv.py'"),
    (["run", "--script=./my srv.py"], "'my srv.py'", "'my srv.py'"),
    (["python", "-um", "pkg.srv"], "pkg/__init__.py pkg/srv.py", "pkg/__init__.py pkg/srv.py"),
    (["python", "-Im", "m"], "m.py x.py", "m.py"),
    (["python", "-X", "dev", "-m", "helper"], "helper.py dev.py", "helper.py"),
    (["env", "PYTHONPATH=lib:src", "python", "-m", "helper"], "src/helper.py", "src/helper.py"),
    (["python3.12", "tools"], "tools/__main__.py tools/x.py", "tools/__main__.py"),
    (["python", "-X", "dev", "tools"], "tools/__main__.py", "tools/__main__.py"),
    ("uv run tools", "tools/__main__.py pyproject.toml", "pyproject.toml tools/__main__.py"),
    (["node", "."], "index.js package.json x.js", "index.js package.json"),
    (["node", "."], "package.json:lib/a lib/a.js b.js", "lib/a.js package.json"),
    (["node", "build"], "build/index.mjs", "build/index.mjs"),
    (["node", "build"], "build/package.json:./out.js build/out.js", "build/out.js build/package.json"),
    (["node", "--import", "./hook.js", "./x"], "hook.js x.cjs", "hook.js x.cjs"),
    (["node", "-r./x.js", "/no/srv.js"], "x.js", "x.js"),
    (["node", "--import", "file://{folder}/a%20b.js"], "'a b.js'", "'a b.js'"),
    (["deno", "run", "-A", "file:x.ts"], "x.ts", "x.ts"),
    (["npx", "tsx", "src/index"], "src/index.ts src/other.ts", "src/index.ts"),
    (["bun", "x"], "x.tsx package.json", "x.tsx"),
    (["bun", "run", "dev"], "package.json", "package.json"),
    (["uvicorn", "pkg.srv:app"], "pkg/srv.py", "pkg/srv.py"),
    (["mcp", "run", "srv.py:app"], "srv.py", "srv.py"),
    (["fastmcp", "run", "tools/srv.py:mcp"], "tools/srv.py", "tools/srv.py"),
    ("./{run,x}.sh", "run.sh x.sh y.sh", "run.sh x.sh"),
    (["sh", "-c", "./{a,b}/{run,x}.sh"], "a/x.sh b/run.sh", "a/x.sh b/run.sh"),
    (["npm", "start"], "package.json index.js", "package.json"),
    (["pnpm", "--prefix", "tools", "run", "srv"], "package.json tools/package.json", "tools/package.json"),
    ("cd tools && yarn dev", "package.json tools/package.json", "tools/package.json"),
    ("(cd tools && ./x.sh) && npm start", "package.json tools/x.sh", "package.json tools/x.sh"),
    ('cd "$DIR" && npm start', "package.json", "package.json"),
    (["bash", "-c", "npm run build && npm run srv"], "package.json", "package.json"),
    (["make", "serve"], "Makefile serve", "Makefile serve"),
    ("make -C tools", "Makefile tools/Makefile", "tools/Makefile"),
    (["just", "serve"], "justfile", "justfile"),
    (["uv", "run", "serve"], "pyproject.toml", "pyproject.toml"),
    (["poetry", "run", "serve"], "pyproject.toml", "pyproject.toml"),
    (["uv", "--directory=tools", "run", "srv.py"], "pyproject.toml tools/srv.py", "tools/srv.py"),
    (["go", "run", "./pkg"], "pkg/a.go pkg/b.go pkg/c.txt main.go", "pkg/a.go pkg/b.go"),
    # Words that name data, and programs from elsewhere
    (["npx", "-y", "server-filesystem", "."], "package.json index.js", ""),
    (["npx", "-y", "server-filesystem", "{folder}"], "package.json index.js", ""),
    (["uvx", "mcp-server-git", "--repository", "."], "pyproject.toml __main__.py", ""),
    (["uv", "tool", "run", "ruff"], "pyproject.toml", ""),
    (["pnpm", "dlx", "srv"], "package.json", ""),
    (["npm", "exec", "-y", "srv"], "package.json", ""),
    (["node", "{elsewhere}/srv.js", "."], "package.json index.js", ""),
    (["python", "-u", "{elsewhere}/srv.js", "tools"], "tools/__main__.py", ""),
    (["uv", "--directory", "{elsewhere}", "run", "srv.js"], "pyproject.toml", ""),
    (["bash", "-c", "cd {elsewhere} && npm start"], "package.json", ""),
    ("git add . && git commit -am x", "package.json index.js x.py", ""),
    ("ruff check src tests", "src/__main__.py tests/index.js package.json pyproject.toml", ""),
    ("echo run make.txt", "Makefile", ""),
    ("curl http://localhost:80/x", "http.py", ""),
]


@pytest.mark.parametrize(("command", "present", "named"), NAMED)
def test_the_files_that_a_command_names(tmp_path: Path, command: list[str] | str, present: str, named: str) -> None:
    folder, elsewhere = tmp_path / "w", tmp_path / "elsewhere"
    for name in (*(f"w/{each}" for each in shlex.split(present)), "elsewhere/srv.js"):
        path, _, main = name.partition(":")
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps({"main": main}) if main else "")
    texts = [command] if isinstance(command, str) else command
    texts = [text.replace("{folder}", str(folder)).replace("{elsewhere}", str(elsewhere)) for text in texts]
    found = named_files(texts, folder, "/root", lambda path: path.resolve().is_relative_to(folder))
    assert [str(path.relative_to(folder)) for path in found] == shlex.split(named)


@pytest.mark.parametrize(
    "text",
    [
        "go run ./pkg",
        "{a,b}" * 300 + ".sh",
        "{" * 100_000,
        "x" * 100_000,
        "cat pkg/*",
        "node a\0b",
        "node " + "{a,b" * 999,
    ],
)
def test_what_no_command_should_say_is_bounded(tmp_path: Path, text: str) -> None:
    (tmp_path / "pkg").mkdir()
    for number in range(3 * MAX_FILES):
        (tmp_path / "pkg" / f"{number}.go").touch()
    assert len(named_files([text], tmp_path, "/root")) <= MAX_FILES + 1


@pytest.mark.parametrize("text", ["[]", "{", '{"main": 1}', '{"main": "a\\u0000b"}', "[" * 100_000])
def test_a_package_that_names_no_program(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_text(text)
    assert named_files(["node", "."], tmp_path, "/root") == [tmp_path / "package.json"]
