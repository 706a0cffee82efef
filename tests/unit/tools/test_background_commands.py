"""Background commands: they are waited for, read, typed into and stopped; bad input is answered, and nothing hangs."""

import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amanu.config import SandboxSettings
from amanu.core.tool import Outcome, ToolError
from amanu.home import find_home
from amanu.sandbox.sandbox import Sandbox
from amanu.tools.shell import jobs as job_limits
from amanu.tools.shell.job import Job, JobEnd
from amanu.tools.shell.job_output import HEAD, TAIL, JobOutput
from amanu_protocol.items import CommandSandbox
from support.free_port import free_port
from support.required_programs import needs
from support.tool_harness import ToolHarness
from unit.tools.test_run_shell_command import running

SERVER = """
import http.server, sys
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
sys.stdout.write(f"ready on {server.server_port}\\n")  # in one piece: an unfinished line is read again
server.serve_forever()
"""


@asynccontextmanager
async def harness(folder: Path, *, sandbox: bool = False) -> AsyncGenerator[ToolHarness]:
    if sandbox:
        needs("bwrap")
    home = find_home({"AMANU_HOME": str(folder / "h")}).make()
    root = folder / "w"
    root.mkdir()
    box = Sandbox(SandboxSettings(), home) if sandbox else None
    made = ToolHarness(root, {"server.py": SERVER}, sandbox=box)
    try:
        yield made
    finally:
        await made.jobs.stop_all("at the end")
        if box is not None:
            await box.close()


async def start(made: ToolHarness, command: str, **more: Any) -> Outcome:
    return await made.run("run_shell_command", {"command": command, "background": True, **more})


@pytest.mark.parametrize("sandbox", [False, True])
async def test_a_server_is_started_waited_for_read_and_stopped(tmp_path: Path, sandbox: bool) -> None:
    number = str(time.monotonic_ns())
    async with harness(tmp_path, sandbox=sandbox) as made:
        outcome = await start(made, f"python3 -u server.py {number}", until=r"ready on \d+")
        assert outcome.fields["state"] == "running" and outcome.fields["job"] == "job-1"
        port = int(str(outcome.fields["output"]).split()[-1])
        waited = await made.jobs.require("job-1").wait(10, port=port)
        assert waited == "ready"
        again = await made.run("read_command", {"job": "job-1"})
        assert again.fields["output"] == "" and again.fields["port"] == port
        assert ("same sandbox" in str(again.fields["notes"])) == sandbox, "it cannot be reached"
        stopped = await made.run("stop_command", {"job": "job-1"})
        assert stopped.fields["state"] == "stopped" and "stopped by the model" in stopped.for_model
        assert running(number) == []
        again = await made.run("stop_command", {"job": "job-1"})
        assert (stopped.for_user, again.for_user) == ("stopped", "had already ended")


@pytest.mark.parametrize("sandbox", [False, True])
async def test_a_port_is_waited_for(tmp_path: Path, sandbox: bool) -> None:
    port = free_port()
    async with harness(tmp_path, sandbox=sandbox) as made:
        line = f"sleep 0.2; exec python3 -m http.server {port} --bind 127.0.0.1"
        outcome = await start(made, line, port=port)
        assert outcome.fields["port"] == port and outcome.fields["state"] == "running"
        assert f"listens on port {port}" in outcome.for_model


@pytest.mark.parametrize(
    ("command", "more", "expected", "failed"),
    [
        ("sleep 300", {"until": "ready", "wait_s": 0.2}, "Not ready after 0.2 s: nothing in its output matches", False),
        ("sleep 300", {"until": "a\0", "wait_s": 0.2}, "Not ready after 0.2 s", False),
        ("sleep 300", {"port": 9, "wait_s": 0.2}, "nothing listens on port 9", False),
        ("echo no; exit 3", {"until": "ready"}, "Exit code: 3", True),
        ("echo no; exit 3", {"port": 9}, "Exit code: 3", True),
        ("no_such_program", {}, "Exit code: 127", True),
        ("echo done", {}, "Exit code: 0", False),
        ("sleep 300", {"timeout_s": 0.2}, "its time limit", True),
        (
            "printf 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'; sleep 300",
            {"until": "(a+)+$", "wait_s": 1},
            "Not re",
            False,
        ),
        ("echo 1%; printf '2%%\\r3%%\\r99%%\\n'; echo err >&2; exit 0", {}, "1%\n99%\nerr\n", False),
    ],
)
async def test_what_never_gets_ready_is_told(
    tmp_path: Path, command: str, more: dict[str, Any], expected: str, failed: bool
) -> None:
    async with harness(tmp_path) as made:
        outcome = await start(made, command, **more)
        assert expected in outcome.for_model and outcome.is_error == failed


@pytest.mark.parametrize(
    ("command", "by_user", "timeout_s", "limit"),
    [
        ("seq inf | wc -l", False, None, 300),
        ("seq inf | wc -l", False, 900, 300),
        ("seq inf | wc -l", False, 5, 5),
        ("seq inf | wc -l", True, None, None),
        ("seq inf | wc -l", True, 900, 900),
        ("python3 server.py", False, None, None),
    ],
)
async def test_what_only_reads_and_nobody_was_asked_about_has_a_time_limit(
    tmp_path: Path,
    command: str,
    by_user: bool,
    timeout_s: float | None,
    limit: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits, follow = list[float | None](), Job.follow

    def watched(job: Job, process: Any, seconds: float | None, most_bytes: int) -> Any:
        limits.append(seconds)
        return follow(job, process, seconds, most_bytes)

    monkeypatch.setattr(Job, "follow", watched)
    async with harness(tmp_path) as made:
        call = replace(made.context(), by_user=by_user)
        arguments = {"command": command, "background": True, "wait_s": 0.01, "timeout_s": timeout_s}
        await made.run("run_shell_command", arguments, call=call)
    assert limits == [limit]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("run_shell_command", {"command": "ls", "background": True, "until": "("}, "not a regular expression"),
        ("run_shell_command", {"command": "ls", "until": "x"}, "add background=true"),
        ("read_command", {"job": "job-9"}, "no background command 'job-9'. Known: job-1"),
        ("read_command", {"job": "job-1", "until": "["}, "not a regular expression"),
        ("stop_command", {"job": ""}, "no background command"),
        ("write_command", {"job": "job-1"}, "nothing to type"),
        ("write_command", {"job": "job-1", "key": "tab"}, "no terminal"),
    ],
)
async def test_bad_input(tmp_path: Path, tool: str, arguments: dict[str, Any], expected: str) -> None:
    async with harness(tmp_path) as made:
        await start(made, "sleep 300", wait_s=0.01)
        with pytest.raises(ToolError, match=re.escape(expected)):
            await made.run(tool, arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("run_shell_command", {"command": "ls", "background": True}), ("read_command", {"job": "job-1"})],
)
async def test_an_expression_is_compiled_beside_the_event_loop(
    tmp_path: Path, tool: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, compiled, threads = "(?i)" + "[\x01-\ufff0]" * 99, re.compile, list[threading.Thread]()

    def watched(pattern: Any, flags: int = 0) -> Any:
        if pattern == slow:
            threads.append(threading.current_thread())
            return None
        return compiled(pattern, flags)

    async with harness(tmp_path) as made:
        await start(made, "sleep 300", wait_s=0.01)
        monkeypatch.setattr(re, "compile", watched)
        await made.preview(tool, {**arguments, "until": slow})
    assert threads and threading.main_thread() not in threads


async def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    async with harness(tmp_path) as made:
        os.mkfifo(made.root / "fifo")
        first = await start(made, "echo one; read < fifo; echo two; printf '> '; sleep 300", until="one")
        assert first.fields["output"] == "one\n"
        assert (await made.run("read_command", {"job": "job-1"})).for_model.startswith("[no new output]")
        await asyncio.to_thread((made.root / "fifo").write_text, "go\n")
        second = await made.run("read_command", {"job": "job-1", "until": "> $", "wait_s": 10})
        assert second.fields["output"] == "two\n> "
        whole = await made.run("read_command", {"job": "job-1", "offset": 0})
        assert whole.fields["output"] == "one\ntwo\n> "


async def test_the_daemon_goes_on_while_output_is_masked(tmp_path: Path) -> None:
    async with harness(tmp_path) as made:
        await start(made, "sleep 300", wait_s=0.01)
        job = made.jobs.require("job-1")
        threads: set[threading.Thread] = set()

        def mask(text: str) -> str:
            threads.add(threading.current_thread())
            return text

        job.output = JobOutput(mask)
        job.output.add(b"ready\n")
        assert await job.wait(10, until="ready") == "ready"
        assert threads and threading.main_thread() not in threads


async def test_what_is_printed_while_a_report_is_made_is_in_the_next(tmp_path: Path) -> None:
    async with harness(tmp_path) as made:
        await start(made, "sleep 300", wait_s=0.01)
        job = made.jobs.require("job-1")

        def mask(text: str) -> str:
            if job.output.size == len("one\n"):  # in its thread, as a quick command would
                job.output.add(b"two\n")
            return text

        job.output = JobOutput(mask)
        job.output.add(b"one\n")
        reports = [await made.run("read_command", {"job": "job-1", "wait_s": 0}) for _ in range(3)]
        assert [each.fields["output"] for each in reports] == ["one\n", "two\n", ""]


@pytest.mark.parametrize("sandbox", [False, True])
@pytest.mark.parametrize("tty", [False, True])
async def test_what_is_typed_arrives(tmp_path: Path, sandbox: bool, tty: bool) -> None:
    async with harness(tmp_path, sandbox=sandbox) as made:
        line = (
            "trap 'echo caught' INT; [ -t 0 ] && echo terminal; echo up; while read x; do echo got $x; done; sleep 300"
        )
        outcome = await start(made, line, tty=tty, until="up")
        assert ("terminal" in outcome.for_model) == tty
        typed = await made.run("write_command", {"job": "job-1", "text": "hello\n"})
        assert "got hello\n" in str(typed.fields["output"])
        await made.run("write_command", {"job": "job-1", "key": "ctrl-c", "wait_s": 0})
        caught = await made.jobs.require("job-1").wait(10, until="caught")
        assert caught == "ready"


@pytest.mark.parametrize("sandbox", [False, True])
async def test_an_interpreter_with_a_terminal(tmp_path: Path, sandbox: bool) -> None:
    async with harness(tmp_path, sandbox=sandbox) as made:
        await start(made, f"{sys.executable} -q -i" if not sandbox else "python3 -q -i", tty=True, until=">>> ")
        await made.run("write_command", {"job": "job-1", "text": "6*7", "key": "enter"})
        assert await made.jobs.require("job-1").wait(10, until=r"42\n>>> ") == "ready"
        await made.run("write_command", {"job": "job-1", "text": "import time; time.sleep(50)\n", "wait_s": 0.3})
        await made.run("write_command", {"job": "job-1", "key": "ctrl-c", "wait_s": 0})
        assert await made.jobs.require("job-1").wait(10, until="KeyboardInterrupt") == "ready"
        await made.run("write_command", {"job": "job-1", "key": "ctrl-d", "wait_s": 0})
        assert await made.jobs.require("job-1").wait(10, until="never printed") == "ended"


async def test_to_type_is_asked_about_and_to_interrupt_is_not(tmp_path: Path) -> None:
    async with harness(tmp_path) as made:
        await start(made, "sleep 300", wait_s=0.01)
        typed = await made.preview("write_command", {"job": "job-1", "text": "rm -rf x\n"})
        assert (typed.subject.effect, typed.subject.unclear) == ("run", True)
        interrupted = await made.preview("write_command", {"job": "job-1", "key": "ctrl-c"})
        assert (interrupted.subject.effect, interrupted.subject.unclear) == ("read", False)


@pytest.mark.parametrize(
    ("writes", "arguments", "refused"),
    [
        (None, {"text": "rm x\n"}, True),
        ("everything", {"key": "enter"}, True),
        ("workspace", {"text": "rm x\n", "key": "ctrl-c"}, True),
        ("workspace", {"key": "ctrl-c"}, False),
        ("nothing", {"text": "6*7\n"}, False),
    ],
)
async def test_in_plan_mode_nothing_is_typed_into_what_can_change_files(
    tmp_path: Path, writes: Any, arguments: dict[str, Any], refused: bool
) -> None:
    async with harness(tmp_path) as made:
        await start(made, "sleep 300", wait_s=0.01)
        job = made.jobs.require("job-1")
        if writes is not None:
            box = CommandSandbox(tier="bubblewrap", writes=writes, network=False, summary="Sandboxed")
            job.show(sandbox=box)
        object.__setattr__(made.environment, "read_only", lambda: True)
        with pytest.raises(ToolError, match=r"plan mode.*Make this a step of") if refused else nullcontext():
            await made.preview("write_command", {"job": "job-1", **arguments})


async def test_a_flood_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with harness(tmp_path) as made:
        monkeypatch.setattr(type(made.environment.limits), "shell_endless", 4 << 20, raising=False)
        object.__setattr__(made.environment.limits, "shell_endless", 4 << 20)
        outcome = await start(made, "yes all work and no play", wait_s=30)
        assert "bytes of output" in str(outcome.fields["notes"]) and outcome.fields["truncated"]
        assert len(outcome.for_model) < 31_000 and "left out" in outcome.for_model
        assert made.blobs and len(made.blobs[-1]) < (HEAD + TAIL) * 1.2


async def test_what_was_left_out_can_be_read(tmp_path: Path) -> None:
    async with harness(tmp_path) as made:
        outcome = await start(made, "seq 20000", wait_s=30)
        (offset,) = re.findall(r'read_command\(job="job-1", offset=(\d+)\)', outcome.for_model)
        before, _, after = outcome.for_model.partition("\n[… ")
        assert re.match(r"[\d,]+ of 108,894 characters left out …\]", after)
        more = (await made.run("read_command", {"job": "job-1", "offset": int(offset)})).for_model
        whole = "".join(f"{at}\n" for at in range(1, 20_001))
        assert (before + more.partition("\n[… ")[0]) == whole[: len(before) + 6000]


async def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    number = str(time.monotonic_ns())
    async with harness(tmp_path) as made:
        task = asyncio.create_task(start(made, f"setsid sleep 77.{number} & sleep 77.{number}", until="never"))
        while len(running(number)) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert running(number) == [] and made.jobs.running == []


async def test_two_stop_at_once(tmp_path: Path) -> None:
    async with harness(tmp_path) as made:
        await start(made, "trap '' TERM; sleep 300; sleep 300", wait_s=0.1)
        job = made.jobs.require("job-1")
        await asyncio.gather(job.stop("by one"), job.stop("by another"))
        await job.stop("by a third")
        assert (job.shown.state, job.stopped_by) == ("stopped", "by one")
        assert job.shown.summary.startswith("Stopped by one, after ")


async def test_not_too_many_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_limits, "MAX_RUNNING", 2)
    async with harness(tmp_path) as made:
        await start(made, "sleep 300", wait_s=0.01)
        outcome = await start(made, "sleep 300", wait_s=0.01)
        assert "Also: 1 background command is running: job-1 (sleep 300)." in outcome.for_model
        with pytest.raises(ToolError, match="Stop one with stop_command"):
            await start(made, "sleep 300")


async def test_all_are_stopped_though_one_has_just_failed_to_start() -> None:
    jobs, fails = job_limits.Jobs(), asyncio.Event()

    async def run(job: Job) -> JobEnd:
        fails.set()
        raise ToolError("It cannot be started.")

    starting = asyncio.create_task(jobs.start("c1", "true", run))
    await fails.wait()
    await jobs.stop_all("at the end")
    with pytest.raises(ToolError, match="cannot be started"):
        await starting


@pytest.mark.parametrize("sizes", [[10, 20], [HEAD, 5], [HEAD - 1, TAIL, 70_000], [3 * TAIL]])
def test_output_is_kept_from_both_ends(sizes: list[int]) -> None:
    whole = b"".join(bytes([97 + at]) * size for at, size in enumerate(sizes))
    output = JobOutput()
    at = 0
    for size in sizes:
        for begin in range(at, at + size, 30_000):
            output.add(whole[begin : min(begin + 30_000, at + size)])
        at += size
    assert output.size == len(whole)
    end, text, missing = 0, b"", 0
    while end < output.size:
        piece = output.piece(end, 50_000)
        text, missing, end = text + piece.data, missing + piece.missing, piece.end
        assert piece.data == whole[end - len(piece.data) : end]
    assert len(text) + missing == len(whole)
    assert (missing == 0) == (len(whole) <= HEAD + TAIL) or missing < 200_000


def test_a_terminal_gets_colours_but_no_orders() -> None:
    output = JobOutput(lambda text: text.replace("s3cret", "***"))
    output.add(b"\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07 s3cret \xc3")
    text, piece = output.terminal_text(0, 1000, ended=False)
    assert text == "\x1b[31mred\x1b[0m  *** " and piece.end == output.size - 1
    output.add(b"\xa9\n")
    assert output.terminal_text(piece.end, 1000, ended=False)[0] == "é\n"
    assert output.last_line == "red  *** é"


GAP = b"x" * (HEAD - 1)


@pytest.mark.parametrize(
    ("pieces", "ended", "expected"),
    [
        ([b"a\x1b]52;c;", b"aGk=\x07b"], False, "ab"),
        ([b"a\x1b", b"]52;c;aGk=\x07b"], False, "ab"),
        ([b"a\x1b]8;;http://x\x1b", b"\\b"], False, "ab"),
        ([b"a\x1bP1;", b"q\x1b\\b"], False, "ab"),
        ([b"a\x1b[3", b"1mb"], False, "a\x1b[31mb"),
        ([b"a\x1b\x1b]x\x07]52;c;aGk=\x07b"], False, "a]52;c;aGk=\x07b"),
        ([b"a\x1b\x1b", b"]x\x07]52;c;aGk=\x07b"], False, "a]52;c;aGk=\x07b"),
        ([b"a\x1b\xc2\x9d]52;c;aGk=\x07b"], False, "ab"),
        ([b"a\x1b\n]52;c;aGk=\x07b"], False, "ab"),
        ([b"a\x1b\0", b"]52;c;aGk=\x07b"], False, "a]52;c;aGk=\x07b"),
        ([b"a\x1b]52;c;aGk="], False, "a"),
        ([b"a\x1b]52;c;aGk="], True, "a"),
        ([b"a\x1b]" + b"y" * 5000], False, "a" + "y" * 5000),
        ([GAP + b"\x1b" + b"z" * 200_000 + b"]52;c;aGk=\x07" + b"z" * (TAIL - 12)], True, None),
        ([GAP + b"\xc3", b"z" * 1_200_000], False, None),
    ],
)
def test_no_order_reaches_a_terminal_in_two_pieces(pieces: list[bytes], ended: bool, expected: str | None) -> None:
    output, shown, at = JobOutput(), "", 0
    for number, data in enumerate(pieces, 1):
        output.add(data)
        while at < output.size:
            text, piece = output.terminal_text(at, 64 * 1024, ended=ended and number == len(pieces))
            if piece.end == at:
                break
            shown, at = shown + text, piece.end
    assert "\x1b]" not in shown and not shown.endswith("\x1b")
    assert shown == expected if expected is not None else at == output.size


def test_plain_text_is_cut_between_lines() -> None:
    output = JobOutput(lambda text: text.replace("s3cret", "***"))
    output.add(b"one\ntwo s3cret\nmore s3c")
    texts, at = list[str](), 0
    for limit in (10, 15, 5):
        text, piece = output.readable_piece(at, limit)
        texts, at = [*texts, text], piece.end
    assert texts == ["one\n", "two ***\n", "more "], "a line that is longer than a piece is cut"
