"""`amanu chat` at a pseudo terminal, over the relay, with the user's daemon."""

import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from amanu.daemon.sockets import socket_path
from amanu.home import find_home
from amanu.system import logs
from support import checked_edits
from support.cli_process import AMANU, amanu, call, script
from support.pseudo_terminal import SECONDS, PseudoTerminal
from support.running_daemon import signal_daemon
from support.warm_process import warm


class Screen(PseudoTerminal):
    """A chat in a process of its own."""

    def __init__(
        self, *arguments: str, cwd: Path, size: tuple[int, int] = (100, 40), command: Sequence[str] = ()
    ) -> None:
        super().__init__([*(command or warm(AMANU)), "chat", *arguments], cwd=cwd, size=size)


@pytest.fixture
def daemon() -> Iterator[None]:
    """Whatever daemon was started is ended."""
    yield
    assert signal_daemon() is not None


@pytest.mark.usefixtures("daemon")
def test_a_turn_outlives_the_terminal(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    write = call("write_file", path="a.txt", content="one\n")
    model = script(tmp_path, {"text": "I will write it.", "calls": [write]}, {"expect": "a.txt", "text": "Written."})
    screen = Screen("--model", model, cwd=shop, command=AMANU)
    try:
        screen.sees("mode ask")  # the line above it is broken between words, nobody knows where
        screen.sees("2. Trust this folder")
        screen.types("y\r")
        screen.takes_prompts()
        screen.types("write it\r")
        screen.sees("› write it")
        screen.sees("? Create a.txt")
        screen.sees("Accept all")
        os.kill(screen.process.pid, signal.SIGKILL)  # the terminal window is closed
        screen.leaves()
    finally:
        screen.close()
    again = Screen("--continue", cwd=shop, command=AMANU)
    try:
        again.sees("› write it")
        again.sees("+ one")
        again.sees("Accept all")
        time.sleep(0.6)  # sooner does not count
        again.types("a\r")
        again.sees("Written.")
        again.takes_prompts()  # the prompt is back
        assert (shop / "a.txt").read_text() == "one\n"
        again.types("\x04")
        assert again.leaves() == 0
    finally:
        again.close()
    listed = amanu("sessions", "list", cwd=shop)  # through the daemon, which holds the session
    assert "idle" in listed.stdout and "write it" in listed.stdout


@pytest.mark.usefixtures("daemon")
def test_what_is_typed_while_it_starts_is_kept_and_answers_nothing(tmp_path: Path) -> None:
    screen = Screen("--model", script(tmp_path, {"expect": "hello", "text": "Hello."}), cwd=tmp_path, command=AMANU)
    try:
        screen.sees("› starting …")
        screen.types("y\r2\rhello")
        screen.sees("2. Trust this folder")
        screen.types("1")
        screen.sees("not trusted")
        screen.takes_prompts()
        screen.types("\r")
        screen.sees("Hello.")
        screen.types("\x04")
        assert screen.leaves() == 0
    finally:
        screen.close()


JOB_CONTROL = "import fcntl, os, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp('bash', ['bash', *{}])"
"""A shell that owns its terminal."""


@pytest.mark.usefixtures("daemon")
def test_the_shell_has_it_suspended_and_back(tmp_path: Path) -> None:
    model = script(tmp_path, {"expect": "hello", "text": "Hello."})
    options = ["--norc", "--noprofile", "--noediting", "-i"]
    shell = PseudoTerminal([sys.executable, "-c", JOB_CONTROL.format(options)], cwd=tmp_path, PS1="shell$ ")
    try:
        shell.sees("shell$ ")
        shell.types(f"{shlex.join([*AMANU, 'chat', '--model', model])}\n")
        shell.sees("2. Trust this folder")
        shell.types("1")
        shell.takes_prompts()
        shell.types("he")
        shell.sees("he")
        shell.types("\x1a")
        shell.sees("Stopped")
        shell.sees("shell$ ")
        shell.types("echo $((6 * 7))\n")
        shell.sees("42")
        shell.types("fg\n")
        shell.takes_prompts()
        shell.types("llo\r")
        shell.sees("Hello.")
        shell.types("\x04")
        shell.sees("shell$ ")
        shell.types("exit\n")
        shell.leaves()
    finally:
        shell.close()


@pytest.mark.usefixtures("daemon")
def test_a_command_is_edited_before_it_runs(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    model = script(
        tmp_path,
        {"text": "I will run it.", "calls": [call("run_shell_command", command="touch one")]},
        {"expect": "The user changed the command before it ran, to: touch one-two", "text": "Heard."},
    )
    screen = Screen("--model", model, cwd=shop)
    try:
        screen.sees("2. Trust this folder")
        screen.types("y\r")
        screen.takes_prompts()
        screen.types("do it\r")
        screen.sees("Edit the command")
        time.sleep(0.6)  # sooner does not count
        screen.types("e\r")
        screen.sees("command ›")
        screen.sees("touch one")
        screen.types("-two\r")
        screen.sees("as you changed it")
        screen.sees("Heard.")
        screen.takes_prompts()
        assert [path.name for path in shop.iterdir()] == ["one-two"]
        screen.types("\x04")
        assert screen.leaves() == 0
    finally:
        screen.close()


@pytest.mark.usefixtures("daemon")
def test_what_is_typed_at_the_review_of_a_draft_is_the_next_prompt(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    content = "".join(f"{number}\n" for number in range(40))
    write = call("write_file", path="a.txt", content=content)
    model = script(tmp_path, {"calls": [write]}, {"text": "Drafted."}, {"expect": "and b.txt?", "text": "Not needed."})
    screen = Screen("--model", model, "--mode", "draft", cwd=shop, size=(90, 26))
    try:
        screen.sees("2. Trust this folder")
        screen.types("y\r")
        screen.takes_prompts()
        screen.types("write it\r")
        screen.sees("? Apply the draft: 1 file")
        screen.sees("+ 39")
        screen.sees("── a.txt (new file) +40 −0")  # again, for its beginning has left the screen
        screen.sees("or the next prompt")
        time.sleep(0.6)  # sooner does not count
        screen.types("and b.txt?\r")
        screen.sees("› and b.txt?")
        screen.sees("Not needed.")
        screen.takes_prompts()
        assert list(shop.iterdir()) == []
        screen.types("/accept\r")
        screen.sees("Accept the changes above?")
        screen.sees("1. Yes")
        screen.types("1")
        screen.sees("accepted 1 change in 1 file")
        assert (shop / "a.txt").read_text() == content
        screen.types("\x04")
        assert screen.leaves() == 0
    finally:
        screen.close()


def test_ctrl_c_while_it_connects_ends_it_without_a_word(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:  # one that never answers
        daemon.bind(os.fspath(socket_path(find_home().make())))
        daemon.listen()
        daemon.settimeout(SECONDS)
        screen = Screen(cwd=tmp_path, command=AMANU)
        try:
            link, _ = daemon.accept()
            with link:
                os.kill(screen.process.pid, signal.SIGINT)
                assert screen.leaves() == 130
            assert screen.shown == "› starting …", "which is erased again"
        finally:
            screen.close()


@pytest.mark.usefixtures("daemon")
def test_what_is_no_text_is_sent_all_the_same_and_no_traceback_is_shown(tmp_path: Path) -> None:
    (find_home().make().state / "chat-history").mkdir()  # so that every prompt fails to be written down
    model = script(tmp_path, {"expect": "caf\ufffd!", "text": "So be it."}, {"expect": "again", "text": "Right."})
    screen = Screen("--model", model, cwd=tmp_path)
    try:
        screen.sees("2. Trust this folder")
        screen.types("n\r")
        screen.takes_prompts()
        screen.types("caf\udce9!\r")
        screen.sees("So be it.")
        screen.takes_prompts()
        screen.types("again\r")
        screen.sees("Right.")
        screen.types("\x04")
        assert screen.leaves() == 0
        assert "Traceback" not in screen.shown and "rror" not in screen.shown
        assert "IsADirectoryError" in logs.log_file(find_home()).read_text()
    finally:
        screen.close()


def test_without_a_model_it_says_what_works_without_one(tmp_path: Path) -> None:
    screen = Screen("--alone", cwd=tmp_path)
    try:
        screen.sees("no API key is set")
        screen.sees("amanu chat --model scripted:tour")
        assert screen.leaves() == 4
    finally:
        screen.close()


def test_without_a_terminal_it_says_what_to_do(tmp_path: Path) -> None:
    done = amanu("chat", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "amanu run" in done.stderr


@pytest.mark.usefixtures("daemon")
def test_the_model_hears_of_checkers_with_the_result_of_its_edit_and_mends_it(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    checked_edits.prepare(shop)
    screen = Screen("--model", script(tmp_path, *checked_edits.STEPS), "--mode", "acceptEdits", cwd=shop)
    screen.sees("2. Trust this folder")
    screen.types("y\r")
    screen.takes_prompts()
    screen.types("do it\r")
    screen.sees("Ruff, a.py: adds 1 error")
    screen.sees("Heard.")
    assert (shop / checked_edits.FILE).read_text() == checked_edits.MENDED
    screen.types("\x04")
    assert screen.leaves() == 0
    screen.close()
