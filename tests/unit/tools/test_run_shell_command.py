"""Commands: what they may know, how long they may take, what is shown, and that nothing of them is left."""

import asyncio
import gzip
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.config import EndpointSettings, SandboxSettings, Settings, ShellSettings
from amanu.core.tool import ToolError
from amanu.home import find_home
from amanu.sandbox import rlimits as kernel_limits
from amanu.sandbox.sandbox import Sandbox
from amanu.text.redaction import Secrets
from amanu.tools.shell import waiting_editor
from amanu.tools.shell.output import TO_LOOK_AT_BINARY, CommandOutput, LiveOutput, is_binary, readable
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import BlobRef, Grant
from support.required_programs import needs
from support.tool_harness import ToolHarness


def running(sign: str) -> list[int]:
    """Processes whose command line holds `sign`."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if sign.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("echo one; echo two; echo", "two"),
        ("echo no module >&2; exit 3", "exit 3 · no module"),
        ("true", "no output"),
        ("kill -SEGV $$", "Ended by signal SIGSEGV · no output"),
    ],
)
async def test_how_it_went_on_one_line(tmp_path: Path, command: str, line: str) -> None:
    assert (await ToolHarness(tmp_path).run("run_shell_command", {"command": command})).line == line


@pytest.mark.parametrize(
    ("command", "expected", "failed"),
    [
        ("echo hi", "hi\n\nExit code: 0", False),
        ("echo out; echo err >&2; exit 3", "out\nerr\n\nExit code: 3", True),
        ("true", "[no output]\n\nExit code: 0", False),
        ("pwd", "{root}\n\nExit code: 0", False),
        ("cat; read x || echo none", "none\n\nExit code: 0", False),
        ("kill -SEGV $$", "[no output]\n\nEnded by signal SIGSEGV.", True),
        ("printf '\\e[31mred\\e[0m\\n\\e]0;title\\a 10%%\\r 20%%\\r 30%%\\n'", "red\n 30%\n\nExit code: 0", False),
        ("printf '\\1\\2\\377\\0'", f"[binary output, 4 bytes, not shown. {TO_LOOK_AT_BINARY}]\n\nExit code: 0", False),
        ("printf 'a\\0b'", "a\nb\n\nExit code: 0", False),
        ("printf 'x\\0y\\n'; echo FAILED; exit 1", "x\ny\nFAILED\n\nExit code: 1", True),
        ("env -i A=1 B=2 env -0", "A=1\nB=2\n\nExit code: 0", False),
        ("echo $AMANU $PAGER $GIT_TERMINAL_PROMPT", "1 cat 0\n\nExit code: 0", False),
        ("env | grep -c =s3cr3t", "0\n\nExit code: 1", True),
        ("no_such_command 2>/dev/null", "[no output]\n\nExit code: 127", True),
    ],
)
async def test_run(tmp_path: Path, command: str, expected: str, failed: bool) -> None:
    keys = ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "openai_api_key", "ANTHROPIC_AUTH_TOKEN", "AMANU_KEY", "BASH_ENV")
    environment = {"PATH": "/usr/bin:/bin", **dict.fromkeys((*keys, "MY_OWN_MODELS"), "s3cr3t")}
    endpoint = EndpointSettings(base_url="http://127.0.0.1:9/v1", key_variable="MY_OWN_MODELS")
    harness = ToolHarness(tmp_path, environment=environment, settings=Settings(endpoints={"mine": endpoint}))
    outcome = await harness.run("run_shell_command", {"command": command})
    assert outcome.for_model == expected.format(root=harness.root)
    assert outcome.is_error == failed


@pytest.mark.parametrize(("network", "expected"), [(False, "hidden"), (True, "S3cret")])
async def test_ways_to_services_are_for_commands_that_may_reach_them(
    tmp_path: Path, network: bool, expected: str
) -> None:
    needs("bwrap")
    sandbox = Sandbox(SandboxSettings(), find_home({"AMANU_HOME": str(tmp_path / "h")}).make())
    environment = {"PATH": "/usr/bin:/bin", "DATABASE_URL": "postgres://me:S3cret@db/x", "APP_TOKEN": "t0ken"}
    harness = ToolHarness(tmp_path / "w", {"a": ""}, environment=environment, sandbox=sandbox)
    tool, call = harness.tools["run_shell_command"], harness.context()
    params = tool.params.model_validate({"command": "touch b; echo ${DATABASE_URL:11} $APP_TOKEN"})
    call.preview = await tool.preview(params, call)
    assert call.preview.command is not None
    grants: list[Grant] = ["network"] if network else []
    call.preview = call.preview.at(call.preview.command.placing.granted(grants, secrets=False))
    outcome = await tool.run(params, call)
    await sandbox.close()
    assert outcome.for_model.startswith(f"me:{expected}@db/x\n")


@pytest.mark.parametrize("asked", [False, True])
async def test_what_nobody_was_asked_about_has_part_of_the_memory(
    tmp_path: Path, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_limits, "LEAST_MEMORY", 100 << 20)
    monkeypatch.setattr(kernel_limits, "_memory", lambda: 200 << 20)
    harness = ToolHarness(tmp_path)
    call = harness.context()
    call.by_user = asked
    outcome = await harness.run("run_shell_command", {"command": "echo {1..3000000} | wc -c"}, call=call)
    assert ("22888896\n" in outcome.for_model) == asked
    assert ("limited to 0.1 GiB of memory" in outcome.for_model) != asked


async def test_preview(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"sub/x": ""})
    command = "echo \u202e a\necho b"
    preview = await harness.preview("run_shell_command", {"command": command, "description": "says b", "path": "sub"})
    assert (preview.subject.text, preview.subject.unclear) == (command, True)
    assert preview.title == "Run echo \u202e a … and 1 more line"
    assert preview.detail == "echo <U+202E> a\necho b"
    assert [line.text for line in preview.notes] == ["The model says: says b", f"In: {harness.root / 'sub'}"]
    for wrong in ({"command": "a\0b"}, {"command": "ls", "path": "sub/x"}, {"command": "ls", "path": ".."}):
        with pytest.raises(ToolError):
            await harness.preview("run_shell_command", wrong)


@pytest.mark.parametrize(
    ("command", "arguments", "shell", "told"),
    [
        ("sleep 77.{n}", {"timeout_s": 0.3}, ShellSettings(), "its time limit"),
        ("sleep 77.{n}", {}, ShellSettings(total_seconds=0.3), "its time limit"),
        ("echo a; sleep 77.{n}", {}, ShellSettings(inactivity_seconds=0.3), "without output"),
        ("trap '' TERM INT; sleep 77.{n}; sleep 77.{n}", {"timeout_s": 0.3}, ShellSettings(), "its time limit"),
        (
            "setsid -f sleep 77.{n}; sleep 77.{n} & disown; exit 0",
            {},
            ShellSettings(),
            "It left 2 background processes running",
        ),
        ("(setsid sleep 77.{n} &); sleep 77.{n}", {"timeout_s": 0.3}, ShellSettings(), "its time limit"),
    ],
)
async def test_nothing_is_left(
    tmp_path: Path, command: str, arguments: Mapping[str, Any], shell: ShellSettings, told: str
) -> None:
    number = str(time.monotonic_ns())
    harness = ToolHarness(tmp_path, settings=Settings(shell=shell))
    started = time.monotonic()
    outcome = await harness.run("run_shell_command", {"command": command.replace("{n}", number), **arguments})
    assert told in outcome.for_model
    assert time.monotonic() - started < 30
    assert running(number) == []


SLEEP = "cp $(command -v sleep) {name}; ./{name} 77.{n}"
EDITOR = "mkfifo fifo; cp $(command -v bash) vim; echo 'read -t 0.6 <>fifo' > run; ./vim run {option}; echo ran"
SCRIPT = "mkfifo fifo; printf '#!/bin/bash\\nread -t 0.6 <>fifo\\n' > {name}; chmod +x {name}; ./{name} x; echo ran"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        *(
            (SLEEP.replace("{name}", name), f"{name} waits for somebody to type")
            for name in ("vi", "nano", "vim.basic")
        ),
        ("cp $(command -v sleep) vi; sh -c 'EDITOR=./vi; echo first; $EDITOR 77.{n}; echo last'", "vi waits for"),
        (EDITOR.replace("{option}", "-c"), "vim waits for somebody"),
        *(
            (EDITOR.replace("{option}", option), "ran\n\nExit code: 0")
            for option in ("-es", "--eval '(f)'", "--embed", "-l x.lua", "--fg-daemon=x")
        ),
        *((SCRIPT.replace("{name}", name), "ran\n\nExit code: 0") for name in ("view.py", "vim", "ex")),
        (EDITOR.replace("read -t 0.6 <>fifo", "sleep 0.6").replace("{option}", "-c"), "ran\n\nExit code: 0"),
        (SLEEP.replace("{name}", "cc").replace("77.{n}", "0.6") + "; echo ran", "ran\n\nExit code: 0"),
        ("sleep 0.6 | less; echo ran", "ran\n\nExit code: 0"),
    ],
)
async def test_an_editor_that_nobody_can_type_into_is_ended(
    tmp_path: Path, command: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_editor, "LOOK_SECONDS", 0.15)
    number = str(time.monotonic_ns())
    outcome = await ToolHarness(tmp_path).run("run_shell_command", {"command": command.replace("{n}", number)})
    assert told in outcome.for_model
    assert running(number) == []


@pytest.mark.parametrize("configured", ["sequence.editor", "core.editor"])
async def test_git_opens_no_editor(tmp_path: Path, configured: str) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty"
    start = f"git init -q; {commit} -m one; {commit} -m two; git config {configured} 'touch opened;'"
    harness = ToolHarness(
        tmp_path,
        environment={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "EDITOR": "touch opened;",
            "KUBE_EDITOR": "touch opened;",
        },
    )
    line = f"{start}; git rebase -q -i HEAD~1 && {commit}; $EDITOR x; $KUBE_EDITOR x; ls"
    outcome = await harness.run("run_shell_command", {"command": line})
    assert "Aborting commit due to empty commit message" in outcome.for_model and "opened" not in outcome.for_model


async def test_cancel(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path)
    number = str(time.monotonic_ns())
    task = asyncio.create_task(
        harness.run("run_shell_command", {"command": f"echo up; (setsid sleep 77.{number} &); sleep 77.{number}"})
    )
    while "up\n" not in harness.live:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(number) == []


@pytest.mark.parametrize("sandbox", [False, True])
async def test_a_command_cancelled_while_it_starts_is_gone(
    tmp_path: Path, sandbox: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio alone would wait here for as long as another process has the pipe: for ever, if that one waits for us."""
    if sandbox:
        needs("bwrap")
    home = find_home({"AMANU_HOME": str(tmp_path / "h")}).make()
    root = tmp_path / "w"
    root.mkdir()
    harness = ToolHarness(root, sandbox=Sandbox(SandboxSettings(), home) if sandbox else None)
    number = str(time.monotonic_ns())
    create = asyncio.create_subprocess_exec

    def cancel() -> None:
        while len(running(number)) < 3:  # the shell and both; or bubblewrap's two, and the shell, which waits for us
            time.sleep(0.01)
        task.cancel()

    async def creating(*argv: Any, **options: Any) -> asyncio.subprocess.Process:
        if number in str(argv):
            asyncio.get_running_loop().call_soon(cancel)  # when it has started, before asyncio has its pipe
        return await create(*argv, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", creating)
    task = asyncio.create_task(harness.run("run_shell_command", {"command": f"sleep 77.{number} & sleep 77.{number}"}))
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(50):
            await task
    assert running(number) == []


async def test_long_output_keeps_both_ends_and_the_whole(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path)
    outcome = await harness.run("run_shell_command", {"command": "seq 1 200000"})
    assert outcome.for_model.startswith("1\n2\n3\n") and "200000\n\nExit code: 0" in outcome.for_model
    assert "characters left out" in outcome.for_model and 'Full output: read_output(id="' in outcome.for_model
    assert len(outcome.for_model) < 31_000 and len(outcome.for_user) < 31_000
    assert harness.blobs == ["".join(f"{at}\n" for at in range(1, 200_001)).encode()]
    assert outcome.blob is not None and outcome.blob.size == len(harness.blobs[0])
    assert len("".join(harness.live)) < 201_000


async def test_live_output_comes_while_it_runs(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path)
    task = asyncio.create_task(harness.run("run_shell_command", {"command": "echo one; read < fifo; echo two"}))
    os.mkfifo(tmp_path / "fifo")
    while harness.live != ["one\n"]:
        await asyncio.sleep(0.01)
    await asyncio.to_thread((tmp_path / "fifo").write_text, "go\n")
    await task
    assert harness.live == ["one\n", "two\n"]


async def test_unsaved_files_are_named(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"a.py": "disk\n"})
    harness.editor.put(harness.root / "a.py", "typed\n")
    outcome = await harness.run("run_shell_command", {"command": "cat a.py"})
    assert (
        outcome.for_model == "disk\n\nExit code: 0\nUnsaved in the editor, so the command saw an older version: a.py."
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", False),
        (b"./a\0./b\0", False),
        (b"a\0b\0c\0", False),
        (b"\0FAILED test_x\n", False),
        (b"\0" * 9000 + b"a log whose beginning was cut off\n", False),
        (b"\1\2 some words \xff\n", False),
        ("中文注释\n".encode("gbk") * 9, False),  # what it says is lost, but there may be other words
        (b"\0" * 9000, True),
        (b"\0\1\2\3", True),
        (bytes(range(256)), True),
        (gzip.compress(b"hello", mtime=0), True),
        (Path(sys.executable).read_bytes(), True),
    ],
)
def test_is_binary(data: bytes, expected: bool) -> None:
    assert is_binary(data) == expected
    output = CommandOutput(100_000)
    for at in range(0, len(data), 4096):
        output.add(data[at : at + 4096])
    assert output.binary == expected


def test_the_rest_of_a_secret_that_is_overwritten_is_hidden() -> None:
    secrets, data = Secrets(), "KEY ghp_" + "a1B2" * 9 + "\rOK\n"
    live = LiveOutput(1000, secrets.mask_output)
    live.add(data.encode())
    shown = live.take(last=True)
    assert shown == readable(data, secrets.mask_output) and shown.startswith("OK") and "a1B2" not in shown


@pytest.mark.parametrize("chunk", [1, 7, 65536])
def test_output_does_not_depend_on_the_pieces(chunk: int) -> None:
    data = "".join(f"línea {at}\r\n" for at in range(10_000)).encode()
    output, live = CommandOutput(100_000), LiveOutput(10_000_000)
    shown = ""
    for at in range(0, len(data), chunk):
        output.add(data[at : at + chunk])
        live.add(data[at : at + chunk])
        shown += live.take()
    whole = data.decode().replace("\r\n", "\n")
    assert shown + live.take(last=True) == whole
    kept = output.masked()
    assert kept == data[: len(kept)] and kept.endswith(b"\n") and 95_000 < len(kept) <= 100_000
    assert output.size == len(data)
    text, cut = output.text(1000)
    assert cut and text.startswith(whole[:200]) and text.endswith(whole[-800:])
    assert output.tail(50) == (whole[-50:], True)


@pytest.mark.parametrize(
    ("command", "pinned"),
    [("make", ["Makefile"]), ("git stash && make", []), ("git log -1 && make", ["Makefile"])],
)
async def test_what_the_line_itself_rewrites_is_not_pinned(tmp_path: Path, command: str, pinned: list[str]) -> None:
    harness = ToolHarness(tmp_path, {"Makefile": "all:\n\ttrue\n"})
    shown = (await harness.preview("run_shell_command", {"command": command})).command
    assert shown is not None and [Path(each).name for each in shown.requirements.pinned] == pinned


async def test_what_was_allowed_for_it_only_reads_is_another_call_when_it_reads_something_else(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"a.txt": "", "b.txt": "", ".env": ""})
    seen: set[str] = set()
    for target in ("a.txt", "b.txt", ".env"):
        (harness.root / "notes").unlink(missing_ok=True)
        (harness.root / "notes").symlink_to(target)
        seen.add((await harness.preview("run_shell_command", {"command": "cat notes"})).digest)
    assert len(seen) == 3


async def test_what_a_yes_is_about_changes_its_digest(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"run.sh": "echo one", "sub/run.sh": "echo one", "other/x": ""})
    (harness.root / "link").symlink_to("sub")
    seen: set[str] = set()

    async def digest(command: str, **more: str) -> str:
        return (await harness.preview("run_shell_command", {"command": command, **more})).digest

    def touch(path: str, text: str) -> None:
        (harness.root / path).write_text(text)

    seen.add(await digest("bash run.sh"))
    assert await digest("bash run.sh") in seen  # nothing changed
    touch("run.sh", "echo two")
    seen.add(await digest("bash run.sh"))
    (harness.root / "run.sh").chmod(0o700)
    seen.add(await digest("bash run.sh"))
    (harness.root / "run.sh").unlink()
    seen.add(await digest("bash run.sh"))
    seen.add(await digest("bash run.sh", path="sub"))
    seen.add(await digest("bash run.sh", path="link"))
    (harness.root / "sub").rename(harness.root / "was")
    (harness.root / "sub").mkdir()
    touch("sub/run.sh", "echo one")
    seen.add(await digest("bash run.sh", path="sub"))
    assert len(seen) == 6  # the link leads to the folder itself


@pytest.mark.parametrize("command", ["a\0b", " \n", "x" * 65_537])
async def test_what_is_no_command(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolError):
        await ToolHarness(tmp_path).preview("run_shell_command", {"command": command})


async def test_how_it_ended_is_told_also_when_its_output_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(self: ToolHarness, data: bytes) -> BlobRef:
        raise AmanuError("storageError", "The disk is full.")

    monkeypatch.setattr(ToolHarness, "put_blob", full)
    harness = ToolHarness(tmp_path)
    outcome = await harness.run("run_shell_command", {"command": "seq 1 20000; touch -c x; exit 3"})
    assert "Exit code: 3" in outcome.for_model and "could not be stored: The disk is full." in outcome.for_model


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("echo out; echo err >&2; exit 3", {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "truncated": False}),
        ("true", {"exit_code": 0, "stdout": "", "stderr": "", "truncated": False}),
        (
            "kill -SEGV $$",
            {
                "exit_code": -11,
                "stdout": "",
                "stderr": "",
                "truncated": False,
                "notes": "Ended by signal SIGSEGV.",
            },
        ),
    ],
)
async def test_a_result_has_fields(tmp_path: Path, command: str, fields: dict[str, Any]) -> None:
    outcome = await ToolHarness(tmp_path).run("run_shell_command", {"command": command})
    assert {name: value for name, value in outcome.fields.items() if name != "duration_s"} == fields
    assert isinstance(outcome.fields["duration_s"], float)


async def test_fields_are_cut_together(tmp_path: Path) -> None:
    outcome = await ToolHarness(tmp_path).run("run_shell_command", {"command": "seq 1 50000; seq 1 50000 >&2"})
    stdout, stderr = str(outcome.fields["stdout"]), str(outcome.fields["stderr"])
    assert outcome.fields["truncated"] and len(stdout) + len(stderr) < 31_000
    assert stdout.startswith("1\n2\n") and stderr.endswith("50000\n")
    assert 'read_output(id="' in str(outcome.fields["notes"])


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "utf-8"])
def test_output_in_an_older_encoding_is_read(encoding: str) -> None:
    output = CommandOutput(1000)
    output.add("Ошибка: файл не найден\n".encode(encoding) + b"exit 1\n")
    assert output.text(100) == ("Ошибка: файл не найден\nexit 1\n", False)
