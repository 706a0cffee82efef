"""Somebody opens Neovim for the first time: no key, no daemon, no session yet. Nothing they typed is lost, and the chat
says how to go on."""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from editors.test_neovim import ENDED, OPEN, STATE, TAIL, Start, folder, home, start
from support.neovim import Neovim
from support.running_daemon import signal_daemon

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

DRAFT = (
    "table.concat(vim.api.nvim_buf_get_lines(require('amanu.chat.prompt').buffer, 0, -1, true), '\\n') == ... "
    "and require('amanu.chat.prompt').buffer == vim.api.nvim_get_current_buf()"
)
NO_MODEL = {"model": None}
NO_PROGRAM = {"cmd": ["/nowhere/amanu", "serve"]}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def below(vim: Neovim) -> str:
    """The text below the chat, without its line breaks."""
    return " ".join(line.removeprefix("┆ ") for line in vim.lua(TAIL))


# A prompt that cannot be sent ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setup", "typed", "draft", "said"),
    [
        (NO_MODEL, "hello<C-s>", "hello", "not sent: No model is available"),
        (NO_MODEL, "hello<CR>of two lines<C-s>", "hello\nof two lines", "not sent: No model is available"),
        (NO_MODEL, "hello<Esc><C-q>", "hello", "not sent: No model is available"),
        (NO_MODEL, "/queue hello<C-s>", "hello", "not sent: No model is available"),
        (NO_MODEL, "/memory<Esc><CR>", "/memory", "not sent: No model is available"),
        (NO_MODEL, "/etc/hosts is what?<C-s>", "/etc/hosts is what?", "not sent: No model is available"),
        (NO_MODEL, "/mode plan<C-s>", "/mode plan", "not sent: No model is available"),
        (NO_MODEL, "/model scripted:nothing<C-s>", "/model scripted:nothing", "not sent: Unknown model"),
        ({}, "/mode nothing<C-s>", "/mode nothing", "not sent: "),
        ({}, "/refine shorter<C-s>", "/refine shorter", "not sent: there is no rewrite to refine"),
        ({}, "/nothing<C-s>", "/nothing", "not sent: /nothing is not a command"),
        (NO_PROGRAM, "hello<C-s>", "hello", "not sent: /nowhere/amanu is not there"),
        (NO_PROGRAM, "/memory<C-s>", "/memory", "not sent: /nowhere/amanu is not there"),
        ({"cmd": ["amanu", "serve"]}, "hello<C-s>", "hello", "not sent: cmd must begin with an absolute path"),
    ],
)
def test_what_cannot_be_sent_is_the_draft_again(
    setup: dict[str, Any], typed: str, draft: str, said: str, start: Start
) -> None:
    vim = start(**setup)
    vim.keys(":Amanu<CR>")
    vim.keys(typed)
    vim.until(DRAFT, draft)
    assert said in below(vim)
    vim.keys("<Esc>A more<Esc>")
    vim.until(DRAFT, f"{draft} more")  # the cursor is on its last line


@pytest.mark.parametrize(
    ("typed", "draft"),
    [
        (":Amanu hello<CR>", "hello"),
        (":Amanu /queue hello<CR>", "hello"),  # has opened no window so far
        (":Amanu /mcp off x<CR>", "/mcp off x"),
        (":Amanu<CR>mine<Esc>:bwipeout!<CR>:Amanu /queue hello<CR>", "hello"),
    ],
)
def test_a_prompt_from_the_command_line_is_a_draft_if_it_cannot_be_sent(typed: str, draft: str, start: Start) -> None:
    vim = start(**NO_MODEL)
    vim.keys(typed)
    prompt = "require('amanu.chat.prompt')"
    is_open = f"package.loaded['amanu.chat.prompt'] and #vim.fn.win_findbuf({prompt}.buffer or -1) == 1"
    vim.until(f"{is_open} and {DRAFT.partition(' and ')[0]}", draft)
    assert "not sent: No model is available" in below(vim)


def test_what_was_typed_meanwhile_stays(start: Start) -> None:
    vim = start()
    vim.keys(":Amanu<CR>")
    vim.keys("mine")
    vim.lua("require('amanu.chat.prompt').give_back('refused', {})")
    vim.until(DRAFT, "refused\nmine")
    vim.keys("!")
    vim.until(DRAFT, "refused\nmine!")


def test_a_prompt_on_its_way_when_the_daemon_is_gone(start: Start) -> None:
    vim = start()
    vim.keys(":Amanu /new<CR>")
    vim.until(STATE)
    stopped = signal_daemon(signal.SIGSTOP)
    assert stopped is not None
    try:
        vim.keys(":Amanu<CR>hello<C-s>")
        vim.until(DRAFT, "")
    finally:
        os.kill(stopped, signal.SIGKILL)
    vim.until(DRAFT, "hello")
    assert "not sent: the connection to the daemon was lost" in below(vim)
    vim.until("not require('amanu.session').lost and require('amanu.wire.client').get() ~= nil")
    vim.keys("<C-s>")
    vim.until(f"({ENDED}) == 'completed'")
    assert below(vim) == ""


# A daemon that takes its time ------------------------------------------------------------------------------------


@pytest.fixture
def begin(
    start: Start, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], None]]:
    """Nobody can start a daemon before this is called."""
    monkeypatch.setenv("AMANU_HOME", str(tmp_path_factory.mktemp("h")))
    lock = os.open(find_home().make().runtime / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    held = [lock]

    def begin() -> None:
        while held:
            os.close(held.pop())

    yield begin
    begin()
    signal_daemon()


WAITING = "sent as soon as Amanu is there: "


def test_prompts_wait_for_the_daemon_in_sight(begin: Callable[[], None], start: Start) -> None:
    vim = start(size=(90, 26), steps=[{"text": "First."}, {"text": "Second."}])
    vim.keys(":Amanu go<CR>")
    assert below(vim) == f"{WAITING}go"
    assert vim.lua("return require('amanu').status()") == "starting"
    vim.keys(":Amanu<CR>go on<C-s>")
    assert below(vim) == f"{WAITING}go {WAITING}go on"
    vim.lua("require('amanu.wire.client').get().rpc.terminate()")  # the line waits only so long
    vim.until("require('amanu.session').lost")
    assert below(vim) == f"{WAITING}go {WAITING}go on"
    begin()
    vim.until(f"{STATE} and #vim.tbl_filter(function(item) return item.kind == 'answer' end, {STATE}.items) == 2")
    said = [line for line in vim.chat().splitlines() if line in ("go", "go on", "First.", "Second.")]
    assert said == ["go", "First.", "go on", "Second."]
    assert below(vim) == ""


def test_a_daemon_that_never_comes_is_given_up(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / "file"))  # the line is there, and ends as it finds no daemon
    vim = start()
    vim.keys(":Amanu go<CR>:Amanu go on<CR>")
    vim.until(DRAFT.partition(" and ")[0], "go\ngo on")
    assert "not sent: the daemon ended (exit code 1) and did not come back" in below(vim)


# Without a key ----------------------------------------------------------------------------------------------------


def test_the_tour_from_the_first_command_to_its_end(start: Start, folder: Path) -> None:
    vim = start(size=(90, 26), model=None)
    vim.keys(":Amanu<CR>")
    vim.until("table.concat(vim.api.nvim_buf_get_lines(require('amanu.chat.view').buffer, 0, -1, true)):find('/tour')")
    shown = " ".join(vim.window("require('amanu.chat.view').buffer").replace("┆", "").split())
    assert "Amanu needs a model" in shown
    assert "/tour shows how Amanu works, without a key" in shown
    vim.keys("/tour<C-s>")
    for _ in range(2):
        vim.until(f"{STATE} and #{STATE}.approvals == 1")
        vim.wait_for_answers()
        vim.answer("Accept all")
        vim.keys("<Esc>:Amanu /approve<CR>")
        vim.until(f"{STATE} and #{STATE}.approvals == 0")
    vim.until(f"({ENDED}) == 'completed'")
    assert "never forced" in (folder / "amanu-tour.md").read_text()
    assert "*" not in vim.chat().replace("**Looking around first**", "")
    assert "then /new" in below(vim)


def test_from_one_proposal_of_a_file_to_the_next_side_by_side(start: Start, folder: Path) -> None:
    vim = start(size=(90, 26), model=None)
    vim.keys(":Amanu /tour<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals == 1")
    first = vim.lua(f"return {STATE}.approvals[1].toolCallId")
    vim.wait_for_answers()
    vim.answer("Review hunk by hunk")
    vim.keys(":Amanu /approve<CR>")
    vim.until("vim.wo.diff")
    vim.keys("<Space>aa")
    vim.until(f"#{STATE}.approvals == 1 and {STATE}.approvals[1].toolCallId ~= ...", first)
    vim.until(f"{OPEN} == 3")
    vim.keys("]a")
    vim.until("vim.wo.diff and vim.wo.winbar:find('3 to review') ~= nil")
    vim.keys("q")
    assert "answer:" in vim.window("require('amanu.chat.view').buffer"), "the end of the chat is in sight"


@pytest.mark.parametrize("command", ["/model scripted:tour", "/mode plan", "/effort high"])
def test_a_setting_before_the_first_prompt_is_of_the_session_to_come(command: str, start: Start) -> None:
    vim = start(model=None if "model" in command else "scripted:tour")
    vim.keys(f":Amanu {command}<CR>")
    vim.until(STATE)
    setting, value = command.removeprefix("/").split()
    state = vim.lua(f"return {STATE}")
    assert {"model": state["modelId"], "mode": state["mode"], "effort": state.get("effort")}[setting] == value
    assert state["modelId"] == "scripted:tour"


# Choosing a model -------------------------------------------------------------------------------------------------

MODEL: dict[str, Any] = {"contextWindow": 400_000, "inputPrice": 2, "outputPrice": 8, "factsFrom": "OpenAI, today"}
USABLE = {**MODEL, "modelId": "openai:ours", "available": True}
UNUSABLE = [
    {**MODEL, "modelId": f"anthropic:theirs-{n}", "available": False, "unavailable": "Set ANTHROPIC_API_KEY."}
    for n in range(40)
]
UNUSABLE.append({**MODEL, "modelId": "ollama:here", "available": False, "unavailable": "It does not answer."})
LISTED = "Anthropic: 40 models · Set ANTHROPIC_API_KEY.\nollama: 1 model · It does not answer."


@pytest.mark.parametrize(
    ("models", "asked", "page"),
    [
        ([USABLE], ["openai:ours 400k $2/$8 OpenAI, today"], None),
        (
            [*UNUSABLE, USABLE],
            ["openai:ours 400k $2/$8 OpenAI, today", "41 more, which need a key or a server …"],
            LISTED,
        ),
        (UNUSABLE, None, LISTED),
    ],
)
def test_the_models_that_can_be_used_are_offered(
    models: list[dict[str, Any]], asked: list[str] | None, page: str | None, start: Start
) -> None:
    vim = start()
    vim.lua(
        "local result = ... require('amanu.wire.client').request = function(_, _, done) done(nil, result) end",
        {"models": models, "vendors": {"anthropic": "Anthropic"}},
    )
    vim.answer("which need")
    vim.keys(":Amanu /model<CR>")
    vim.until("#Asked == 1" if asked else "vim.api.nvim_buf_get_name(0):find('models')")
    if asked:
        assert [" ".join(label.split()) for label in vim.lua("return Asked[1].labels")] == asked
    if page:
        assert vim.text().startswith(page)


def test_without_a_key_the_models_fit_on_a_screen(start: Start) -> None:
    vim = start(size=(90, 26), model=None)
    vim.keys(":Amanu /model<CR>")
    vim.until("vim.api.nvim_buf_get_name(0):find('models')")
    assert len(vim.text().splitlines()) < 26
    assert "/tour" in vim.text()
