"""`amanu chat`: the conversation at a terminal. A client of the daemon like any other."""

import argparse
import asyncio
import logging
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast, get_args

from amanu.cli import exits
from amanu.cli.agent_slash_commands import AgentSlashCommands
from amanu.cli.console import Console, Span, open_console
from amanu.cli.diff import show_proposal
from amanu.cli.edit_slash_commands import EditSlashCommands
from amanu.cli.header import effort_line, has_efforts, show_header
from amanu.cli.job_slash_commands import JobSlashCommands, farewell, running
from amanu.cli.keyboard_mode import unechoed
from amanu.cli.live import rows
from amanu.cli.mentions import line_mentions
from amanu.cli.pickers import Pickers
from amanu.cli.question import show_lines
from amanu.cli.question_input import QuestionInput
from amanu.cli.question_prompt import QuestionPrompt
from amanu.cli.render import Renderer, running_commands
from amanu.cli.review_page_decisions import PagedReview
from amanu.cli.review_prompt import ReviewPrompt
from amanu.cli.running import RunningServers, show_running
from amanu.cli.session_board import SessionBoard
from amanu.cli.session_lookup import LATEST, begins_an_id, latest, listing, resolve_session_id
from amanu.cli.session_search import show_found
from amanu.cli.slash_completion import SlashCompletion
from amanu.cli.slash_words import is_known, split, unknown, why_not
from amanu.cli.status_line import IDLE, SENDING, status_line
from amanu.cli.text import one_line, stripped, visible
from amanu.cli.trust_prompt import TrustPrompt
from amanu.cli.ui import first_paint
from amanu.cli.ui.completions import Row
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.conversation import ConversationSlashCommands
from amanu.cli.ui.cost import SessionCost
from amanu.cli.ui.keys import key_map
from amanu.cli.ui.notifications import Notifications, notifying
from amanu.cli.ui.terminal import (
    AttentionNeeded,
    Interrupted,
    QuestionLeft,
    RewindRequested,
    StopRequested,
    Terminal,
)
from amanu.cli.ui.themes import Themes
from amanu.cli.ui.transcript import Transcript
from amanu.cli.usage import show_context
from amanu.cli.waiting_questions import WaitingQuestions
from amanu.cli.work_pickers import WorkPickers
from amanu.client.base_texts import load_base_texts
from amanu.client.daemon_client import DaemonClient, Disconnected
from amanu.client.session_view import SessionView, attach, create, mint
from amanu.config import ThemeChoice, load_settings
from amanu.system.missing_folder import missing_folder
from amanu.text.amounts import plural
from amanu.text.sub_agents import count_working, working
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, TurnEnded
from amanu_protocol.items import Approval, Attachment, Effort, Mode, Notice, Question, ToolCall, UserMessage
from amanu_protocol.state import SessionState

log = logging.getLogger(__name__)

TWICE_SECONDS = 2.0
"""A second Ctrl-C within that time leaves."""
BEGIN_SECONDS = 60.0
"""Seconds between two notifications that the user types; the daemon ignores more frequent ones."""
SHOWN_ITEMS = 20
"""Of a session that is opened again."""
RECONNECTS = 6
MISTAKE_SECONDS = 0.5
"""Before the next round after a bug: one that comes again at once must not fill the screen."""
NEXT_MODE: dict[Mode, Mode] = {
    "ask": "acceptEdits",
    "acceptEdits": "draft",
    "draft": "plan",
    "plan": "ask",
    "auto": "ask",
}
"""By Shift-Tab, which never leads to `auto`."""
_RECOMMENDED = re.compile(r"`(/model \S+)`, then send it again\.$")
"""The end of a refusal that names another model (`agent/refusals.py`)."""
ANSWERS = "Enter answers · ↑ ↓ or a digit chooses"
"""The status line's words at a question."""
LIVE_ROWS = 8
"""Of the text being written, above the prompt."""

SLASH_COMMANDS = {
    "/mode": "choose plan, ask, acceptEdits, draft or auto (? at an empty prompt shows the key to the next)",
    "/plan": "plan mode: only the plan is written; /plan GOAL plans that",
    "/model": "choose a model; /model WORDS: the one that has them, or choose among those",
    "/effort": "choose how much the model thinks",
    "/theme": "choose the colours: dark, light, plain, or auto, which asks the terminal",
    "/queue": "queue a prompt for after the running turn (plain text steers it)",
    "/unqueue": "remove the queued prompts",
    "/diff": "show the proposals of this session; /diff turn, /diff session: applied changes as one diff",
    "/review": "review all that waits in this session, on a page of its own: change by change",
    "/accept": "accept open hunks: turn (the last), session, file PATH; they are shown first",
    "/reject": "reject open hunks: turn, session, file PATH; they are shown first",
    "/undo": "undo applied changes: turn (the last), session, file PATH; they are shown first",
    "/redo": "apply undone changes again: turn, session, file PATH",
    "/keep": "keep changes that a rule applied: turn, session, file PATH",
    "/retry": "ask the model again for changes in conflict: turn (the last), session, file PATH",
    "/checkpoints": "list the turns you can go back to",
    "/restore": "choose a turn to go back to (/rewind, Esc twice); N [files|all]: before turn N of /checkpoints",
    "/context": "show what fills the model's context window",
    "/cost": "show what the session has cost: its last turn, each model, each sub-agent",
    "/copy": "copy the last answer to the clipboard",
    "/export": "[md|json] [FILE]: write the conversation to a new file, with its calls, decisions and diffs",
    "/edit": "put your last prompt into the composer, to be changed and sent again",
    "/agents": "choose a sub-agent, to see or stop it; /agents stop ID, /agents open ID",
    "/running": "show everything that runs: agents, background commands, MCP servers",
    "/jobs": "choose a background command (Ctrl-B puts one there); /jobs output ID, /jobs stop ID",
    "/todos": "show the model's to-do list",
    "/notes": "show the details behind notices: summaries, masked output",
    "/sessions": "choose another session (/resume); its id, a prefix of it, latest, or words it has",
    "/dashboard": "all sessions, live: which wait for you, which work; Enter goes to one",
    "/fork": "[N]: go on in a session of its own with this conversation, without its last N turns",
    "/search": "WORDS: find sessions by what was said, done and changed in them",
    "/new": "start a new session (/clear does too)",
    "/trust": "show what trusting this folder enables, and trust it; /untrust reverts that",
    "/untrust": "stop trusting this folder",
    "/audit": "show how the last tool call was decided and what it did; /audit session: all calls",
    "/record": "record the exchanges with models to a new file; /record off stops",
    "/cancel": "stop the turn (Esc and Ctrl-C do too)",
    "/help": "show this list",
    "/quit": "leave (/exit and Ctrl-D do too)",
}


def ended_turns(state: SessionState) -> list[str]:
    """The turns that prompts began and that have ended, of the items the chat has."""
    running = None if state.turn is None else state.turn.turn_id
    turns = dict.fromkeys(item.turn_id for item in state.items if isinstance(item, UserMessage) and not item.steer)
    return [turn_id for turn_id in turns if turn_id != running]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        first_paint.erase()
        super().error(message)


def parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="amanu chat",
        description="Chat with the agent in this terminal. Nothing in your workspace changes without your approval.",
        epilog="In the chat: /help lists the commands, @path adds a file, Alt-Enter starts a new line. "
        + exits.CHAT_HELP,
    )
    parser.add_argument("paths", nargs="*", metavar="FOLDER", help="workspace folders (default: the current one)")
    parser.add_argument("--model", metavar="ID", help="vendor:model")
    parser.add_argument(
        "--effort", choices=get_args(Effort), metavar="LEVEL", help="how much the model thinks: none … max"
    )
    parser.add_argument("--mode", choices=get_args(Mode), help="what is allowed without asking (default: ask)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="continue that session: its id, a prefix of it, or latest")
    which.add_argument(
        "--continue", dest="latest", action="store_true", help="continue the latest session of this folder"
    )
    parser.add_argument("--alone", action="store_true", help="in this process, without the shared daemon")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("amanu chat needs a terminal. For scripts, use amanu run.", file=sys.stderr)
        return exits.USAGE
    for path in arguments.paths:
        if not os.path.isdir(path):  # noqa: PTH112  is_dir may raise
            first_paint.erase()
            print(visible(str(missing_folder(path))), file=sys.stderr)
            return exits.USAGE
    roots = [str(Path(path).absolute()) for path in arguments.paths or ["."]]
    options = ChatOptions(roots, arguments.model, arguments.mode, arguments.effort, arguments.session, arguments.latest)
    try:
        return asyncio.run(_chat(options, alone=arguments.alone))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return exits.CANCELLED
    finally:  # only what the interpreter does at exit is left
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class ChatOptions:
    """The wishes of the command line, and of the settings."""

    roots: list[str]
    model_id: str | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    session_id: str | None = None
    latest: bool = False
    theme: ThemeChoice = "auto"


async def _chat(options: ChatOptions, *, alone: bool) -> int:
    from prompt_toolkit.patch_stdout import patch_stdout

    from amanu.client.connect import connect
    from amanu.home import find_home
    from amanu.system import logs

    async def connector() -> DaemonClient:
        return await connect(roots=options.roots, alone=alone)

    with unechoed(), patch_stdout(raw=True):
        transcript = Transcript(sys.stdout)
        console = open_console(cast("TextIO", transcript))
        loop = asyncio.get_running_loop()
        try:
            home = find_home().make()
            settings = load_settings(home, os.environ)
            logs.start(home, settings.log_level)
            with notifying(os.environ, wanted=settings.terminal.notify) as notifications:
                options = replace(options, theme=settings.terminal.theme)
                chat = Chat(options, connector, console, alone=alone, notifications=notifications)
                keys, refused = key_map(settings.terminal.keys)
                for warning in refused:
                    first_paint.erase()
                    console.line(("yellow", visible(f"{home.settings}: {warning.sentence}")))
                terminal = Terminal(
                    chat,
                    history=home.state / "chat-history",
                    keys=keys,
                    editing=settings.terminal.editing,
                    transcript=transcript,
                )
                loop.add_signal_handler(signal.SIGINT, chat.interrupt)
                try:
                    return await chat.run(terminal)
                finally:
                    await terminal.close()
        except AmanuError as error:
            first_paint.erase()
            hint = f" {error.data.hint}" if error.data.hint else ""
            console.line(("red", visible(f"{error}{hint}")))
            if error.kind == "authRequired":
                console.line(("dim", "To try it without a key: amanu chat --model scripted:tour, or amanu demo."))
            return exits.of_error(error)
        finally:
            loop.remove_signal_handler(signal.SIGINT)


class Chat(PromptContext):
    """One user, one terminal, one session at a time."""

    _view: SessionView
    _renderer: Renderer
    _completion: SlashCompletion
    _pickers: Pickers
    _waiting: WaitingQuestions
    _paged_review: PagedReview
    _review_prompt: ReviewPrompt
    _question_prompt: QuestionPrompt
    _edit_slash_commands: EditSlashCommands
    _job_slash_commands: JobSlashCommands
    _conversation: ConversationSlashCommands
    _cost: SessionCost
    _agent_slash_commands: AgentSlashCommands
    _servers: RunningServers
    _board: SessionBoard
    _work_pickers: WorkPickers
    _trust_prompt: TrustPrompt
    _terminal: Terminal
    _themes: Themes
    _task: asyncio.Task[Any]

    def __init__(
        self,
        options: ChatOptions,
        connect: Callable[[], Awaitable[DaemonClient]],
        console: Console,
        *,
        alone: bool,
        notifications: Notifications | None = None,
    ) -> None:
        self._notifications = notifications
        self._options = options
        self._connect = connect
        self._console = console
        self._alone = alone
        self._client: DaemonClient | None = None
        self._interrupted_at = -TWICE_SECONDS
        self._interrupting = False
        self._leaving = False
        self._sending: list[str] = []
        """Prompts on their way to the daemon, which may look for what they mention; the first is being sent."""
        self._sender: asyncio.Task[None] | None = None
        self._changing_mode: asyncio.Task[None] | None = None
        self._moving: asyncio.Task[None] | None = None
        """Has a command put in the background."""
        self._wanted_mode: Mode | None = None
        """The mode that the user chose with Shift-Tab and the daemon has not set yet."""
        self._begun_at = -BEGIN_SECONDS

    async def run(self, terminal: Terminal) -> int:
        """Run until the user leaves. Returns the exit code; raises AmanuError when no session can be had, and
        CancelledError when the user interrupts the start or the end."""
        task = asyncio.current_task()
        assert task is not None
        self._task, self._terminal = task, terminal
        self._themes = Themes(self._console, terminal)
        await self._themes.use(self._options.theme)
        self._client = await self._connect()
        try:
            await self._enter(await self._first_view(self._client))
            await self._ask_trust()
            while not self._leaving:
                await self._round()
            return exits.OK
        except Disconnected as error:
            self._console.line(("red", str(error)))
            return exits.FAILED
        finally:
            await self._client.close()

    def above(self) -> list[Span]:
        """What is being written, above the prompt."""
        columns = shutil.get_terminal_size().columns
        spans: list[Span] = []
        for style, line in self._renderer.tail(LIVE_ROWS, self._view.state):
            for row in rows([line], LIVE_ROWS, columns):
                spans.append((style, row))
        for text in self._sending:
            for row in rows([f"› {line}" for line in text.split("\n")], LIVE_ROWS, columns):
                spans.append(("bold", row))
        return spans[-LIVE_ROWS:]

    def tell(self, error: AmanuError) -> None:
        self._show_error(error)

    def next_mode(self) -> None:
        self._wanted_mode = NEXT_MODE[self._wanted_mode or self._view.state.mode]
        self._renderer.modes_by_key.append(self._wanted_mode)
        self._changing_mode = asyncio.create_task(self._change_mode(self._changing_mode, self._wanted_mode))

    async def _change_mode(self, earlier: asyncio.Task[None] | None, mode: Mode) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        try:
            await self._view.set_mode(mode)
        except AmanuError as error:
            self._show_error(error)
        except Disconnected:
            pass
        finally:
            if asyncio.current_task() is self._changing_mode:
                self._wanted_mode = None

    def stoppable(self) -> bool:
        """A turn runs."""
        return self._view.state.turn is not None

    def has_command(self) -> bool:
        return bool(running_commands(self._view.state))

    def background(self) -> None:
        self._moving = asyncio.create_task(self._put_in_background())

    async def _put_in_background(self) -> None:
        params = r.JobBeginParams(session_id=self._view.session_id)
        try:
            await self._view.client.request("amanu/job/begin", params, r.JobBeginResult)
        except AmanuError as error:
            self._show_error(error)
        except Disconnected:
            pass

    def everything(self) -> str:
        return self._renderer.expanded(self._view.state)

    def toolbar(self, taken: int = 0) -> str:
        """The line below the prompt."""
        activity = self._renderer.status(self._view.state) or (SENDING if self._sending else None)
        dialog = self._terminal.dialog
        idle = IDLE if dialog is None else dialog.footer() if dialog.asked.is_picker else ANSWERS
        columns = shutil.get_terminal_size().columns - taken
        return status_line(self._view.state, activity, columns, self._servers.count, idle)

    # One round -----------------------------------------------------------------------------------------

    async def _round(self) -> None:
        """Answer a question, or read a prompt and act on it."""
        try:
            if self._view.client.lost.is_set():
                await self._reconnect()
            else:
                await self._answer_or_read()
        except AttentionNeeded:
            pass
        except QuestionLeft as left:
            self._waiting.move(left.by, left.typed)
        except StopRequested:
            await self._view.cancel()
        except RewindRequested:
            await self._go_back()
        except Interrupted:
            await self._interrupt()
        except EOFError:
            if not self._leaving:
                await self._leave()
        except AmanuError as error:
            self._show_error(error)
        except Disconnected:
            pass  # the next round reconnects
        except asyncio.CancelledError:
            if not self._interrupting or self._leaving:
                raise
            self._interrupting = False
            self._task.uncancel()
            await self._interrupt()
        except Exception as error:
            self._show_mistake(error)
            await asyncio.sleep(MISTAKE_SECONDS)

    async def _answer_or_read(self) -> None:
        match self._waiting.current:
            case Approval() as approval:
                await self._review_prompt.decide(approval, self._waiting.typed(), self._waiting.place)
            case Question() as question:
                await self._question_prompt.answer(question, self._waiting.typed(), self._waiting.place)
            case None:
                await self._act(await self._terminal.read(self._needed))

    def interrupt(self) -> None:
        """Ctrl-C as a signal, which it is while no prompt reads keys: it ends what the chat is doing."""
        if not self._terminal.interrupt():
            self._interrupting = True
            self._task.cancel()

    def _show_error(self, error: AmanuError) -> None:
        hint = f" {error.data.hint}" if error.data.hint else ""
        self._console.line(("red", visible(f"✗ {error}{hint}")))

    def _show_mistake(self, error: Exception) -> None:
        log.error("the chat failed", exc_info=error)
        failure = one_line(f"{type(error).__name__}: {error}", 200)
        self._console.line(("red", f"✗ Internal error; the session is intact ({failure}). `amanu logs` shows more."))

    async def _run_while_waiting(self, text: str) -> None:
        """A command typed at a question. Raises EOFError when it leaves."""
        self._echo(text)
        try:
            await self._command(text)
        except AmanuError as error:
            self._show_error(error)
        if self._leaving:
            raise EOFError

    def _needed(self) -> bool:
        return self._asked() or self._view.client.lost.is_set()

    def _asked(self) -> bool:
        return bool(self._view.state.approvals or self._view.state.questions)

    async def _act(self, text: str) -> None:
        if unknown(text, self._completion.names) is not None:
            await self._daemons_slash_commands()  # it may be a file that is new
        names = self._completion.names
        if (word := unknown(text, names)) is not None:
            self._console.line(("red", f"{why_not(word, names)} It is your draft again."))
            self._terminal.draft(text)
        elif is_known(split(text)[0], names):
            self._echo(text)
            await self._command(text)
        else:
            self._send(text)

    def _echo(self, text: str) -> None:
        """The slash command above its answer. One of the daemon's is a prompt, which is printed with the others."""
        word = text.split(maxsplit=1)[0]
        if word in SLASH_COMMANDS or word not in self._completion.names:
            self._console.line(("dim", f"› {one_line(text)}"))

    def _send(self, text: str, *, queued: bool = False) -> None:
        """Without holding up the keyboard; in the order in which they were typed."""
        self._sending.append(text)
        earlier = [task for task in (self._sender, self._changing_mode) if task is not None]
        self._sender = asyncio.create_task(self._send_after(earlier, text, queued=queued))

    async def _send_after(self, earlier: Sequence[asyncio.Task[None]], text: str, *, queued: bool) -> None:
        """Send a prompt, or give it back to the user when it cannot be sent."""
        if earlier:
            await asyncio.wait(earlier)
        try:
            if queued:
                await self._view.prompt(text, self._mentioned(text))
            else:
                await self._say(text)
        except AmanuError as error:
            self._show_error(error)
        except Disconnected:
            pass
        except Exception as error:
            self._show_mistake(error)
        else:
            return
        finally:
            self._sending.remove(text)
        text = f"/queue {text}" if queued else text
        if self._leaving:
            self._console.line(("red", f"✗ Not sent: {visible(text)}"))
        else:
            self._console.line(("red", "✗ Not sent; it is your draft again."))
            self._terminal.draft(text)

    async def _sent(self) -> None:
        """Until what was typed has reached the daemon."""
        if self._sender is not None:
            await self._sender

    async def _say(self, text: str) -> None:
        turn = self._view.state.turn
        files = self._mentioned(text)
        if turn is None:
            await self._view.prompt(text, files)
            return
        try:
            if await self._view.steer(text, turn.turn_id, files):
                self._console.line(("dim", "↪ sent into the running turn; /queue TEXT waits until it ends"))
        except AmanuError as error:
            if error.kind != "staleTurn":
                raise
            await self._view.prompt(text, files)

    async def _interrupt(self) -> None:
        if time.monotonic() - self._interrupted_at < TWICE_SECONDS:
            await self._leave()
            return
        await self._view.cancel()
        self._console.line(("dim", "Press Ctrl-C again to quit."))
        self._interrupted_at = time.monotonic()

    async def _leave(self) -> None:
        self._leaving = True
        await self._sent()
        if self._view.client.lost.is_set():
            return
        if running(self._view.state):
            self._console.line(("dim", farewell(self._view.state, await self._idle_seconds())))
        if self._view.state.turn is None:
            if count := count_working(self._view.state.agents):
                what = "ended with the chat" if self._alone else "at work; amanu chat --continue returns to the session"
                self._console.line(("dim", f"{count} {what}."))
            await self._put_away()
            return
        if self._alone:
            await self._view.cancel()
        elif self._asked():
            self._console.line(("dim", "The question stays open; amanu chat --continue returns to it."))
        else:
            self._console.line(("dim", "The turn continues in the daemon; amanu chat --continue returns to it."))

    async def _idle_seconds(self) -> float | None:
        from amanu.config import load_settings
        from amanu.home import find_home

        if self._alone:
            return None
        return (await asyncio.to_thread(load_settings, find_home(), os.environ)).idle_seconds

    # Commands ------------------------------------------------------------------------------------------

    async def _command(self, text: str) -> None:
        word, argument = split(text)
        match word:
            case "/mode" if self._view.state.at_work:
                theirs = "A sub-agent works in the mode of the session it works for: change it there."
                self._console.line(("", f"mode {self._view.state.mode}. {theirs}"))
            case "/mode":
                if (mode := await self._pickers.mode(argument)) is not None:
                    await self._view.set_mode(mode)
            case "/plan":
                await self._view.set_mode("plan")
                if argument:
                    self._send(argument)
            case "/effort" if argument and not has_efforts(self._view.state.model_id):
                self._console.line(("yellow", effort_line(self._view.state)))
            case "/effort":
                if (effort := await self._pickers.effort(argument)) is not None:
                    await self._view.set_effort(effort)
                self._console.line(("", effort_line(self._view.state)))
            case "/model":
                is_id = ":" in argument  # which may be newer than any list
                model_id = argument if is_id else await self._pickers.model(argument)
                if model_id is not None:
                    await self._view.set_model(model_id)
                    show_header(self._view.state, self._console)
            case "/theme":
                await self._themes.run(argument, self._pickers, self._view.client)
            case "/queue" if argument:
                self._send(argument, queued=True)
            case "/unqueue":
                for prompt in self._view.state.queue:
                    params = r.PromptUnqueueParams(session_id=self._view.session_id, prompt_id=prompt.prompt_id)
                    await self._view.client.request("amanu/prompt/unqueue", params, r.Empty)
            case "/diff" if argument:
                await self._edit_slash_commands.diff(argument)
            case "/diff":
                await load_base_texts(self._view.client, self._view.state, self._view.state.proposals)
                for proposal in self._view.state.proposals:
                    show_proposal(self._console, proposal, self._view.state.roots)
            case "/review":
                await self._paged_review.review_all()
            case "/accept":
                await self._edit_slash_commands.decide("accept", argument)
            case "/reject":
                await self._edit_slash_commands.decide("reject", argument)
            case "/undo":
                await self._edit_slash_commands.undo(argument)
            case "/redo":
                await self._edit_slash_commands.decide("redo", argument)
            case "/keep":
                await self._edit_slash_commands.decide("keep", argument)
            case "/retry":
                await self._edit_slash_commands.retry(argument)
            case "/checkpoints":
                await self._edit_slash_commands.checkpoints()
            case "/restore" | "/rewind" if not argument[:1].isdecimal():
                await self._go_back(argument)
            case "/restore" | "/rewind":
                if (prompt := await self._edit_slash_commands.restore(argument)) is not None:
                    self._terminal.draft(prompt)
            case "/context":
                show_context(self._view.state.usage, self._console)
            case "/cost":
                self._cost.show()
            case "/copy":
                self._conversation.copy()
            case "/export":
                await self._conversation.export(argument)
            case "/edit":
                self._terminal.draft(self._conversation.last_prompt())
            case "/todos":
                self._renderer.show_todos(self._view.state)
            case "/jobs" if not argument and self._view.state.jobs and not self._asked():
                await self._run_chosen(self._work_pickers.job())
            case "/jobs":
                await self._job_slash_commands.run(argument)
            case "/agents" if not argument and self._view.state.agents and not self._asked():
                await self._run_chosen(self._work_pickers.agent())
            case "/mcp" if not argument and not self._asked():
                if not await self._work_pickers.server():
                    self._send(text)
            case "/agents":
                await self._agent_slash_commands.run(argument)
            case "/running":
                await show_running(self._view, self._servers, self._console)
            case "/notes":
                self._show_notes()
            case "/sessions" | "/resume":
                if (session_id := await self._other_session(argument)) is not None:
                    await self._enter(await attach(self._view.client, session_id), detach=True)
                else:
                    self._console.line(("dim", "Still in this session."))
            case "/dashboard" if not self._asked():
                if (session_id := await self._board.pick()) is not None:
                    await self._enter(await attach(self._view.client, session_id), detach=True)
            case "/dashboard":
                self._console.line(("dim", "Answer the question first, or decide later."))
            case "/fork":
                await self._fork(argument)
            case "/search" if argument:
                params = r.SessionSearchParams(text=argument[:1000])
                result = await self._view.client.request("amanu/session/search", params, r.SessionSearchResult)
                show_found(result, argument, self._console)
            case "/new" | "/clear":
                await self._enter(await self._create(self._view.client), detach=True)
            case "/trust":
                await self._trust_prompt.ask()
            case "/untrust":
                await self._trust_prompt.withdraw()
            case "/audit":
                await self._show_audit(argument)
            case "/record" if argument:
                path = None if argument == "off" else _absolute(argument)
                params = r.SessionRecordParams(session_id=self._view.session_id, path=path)
                await self._view.client.request("amanu/session/record", params, r.Empty)
            case "/cancel":
                if not await self._view.cancel():
                    self._console.line(("dim", "nothing is running"))
            case "/quit" | "/exit":
                await self._leave()
            case "/help":
                for name, description in {**SLASH_COMMANDS, **await self._daemons_slash_commands()}.items():
                    self._console.line(("bold", f"{name:13}"), ("", description), hang=13)
            case _ if word not in SLASH_COMMANDS and word in await self._daemons_slash_commands():
                self._send(text)
            case _:
                self._console.line(("red", why_not(word, self._completion.names)))

    async def _run_chosen(self, picking: Awaitable[str | None]) -> None:
        if (command := await picking) is not None:
            await self._command(command)

    async def _fork(self, argument: str) -> None:
        """Enter a session with this conversation, without its last turns."""
        ended = ended_turns(self._view.state)
        if argument and not argument.isdecimal():
            self._console.line(("red", "Usage: /fork [N], without the last N turns"))
            return
        dropped = int(argument[:9] or 0)
        if dropped >= len(ended):
            self._console.line(("red", f"It has {plural(len(ended), 'turn')}; /new begins without any."))
            return
        params = r.SessionForkParams(
            session_id=self._view.session_id, new_session_id=mint(), turn_id=ended[-1 - dropped]
        )
        await self._view.client.request("amanu/session/fork", params, r.SessionResult)
        await self._enter(await attach(self._view.client, params.new_session_id), detach=True)

    async def _go_back(self, words: str = "") -> None:
        """Have a turn chosen, and go back to before it."""
        checkpoints = await self._edit_slash_commands.list_checkpoints()
        if not checkpoints:
            await self._edit_slash_commands.checkpoints()
        elif (chosen := await self._pickers.checkpoint(checkpoints, words)) is not None:
            await self._command(f"/restore {chosen}")

    def _offer_recommended(self, message: EventMessage, state: SessionState) -> None:
        """Have the model that a refusal recommends ready to be chosen, unless the user writes something else."""
        match message.event:
            case TurnEnded(reason="refused", message=text) if (found := _RECOMMENDED.search(text)) is not None:
                if not self._terminal.typed:
                    self._terminal.draft(found[1])
            case _:
                pass

    def rows(self, typed: str) -> Sequence[Row]:
        return self._completion.rows(typed)

    def taken(self, typed: str) -> str:
        return self._completion.taken(typed)

    async def learn(self, typed: str) -> None:
        await self._completion.learn(typed)

    def begin_prompt(self) -> None:
        now = time.monotonic()
        if now - self._begun_at >= BEGIN_SECONDS:
            self._begun_at = now
            self._view.client.notify("amanu/prompt/begin", r.PromptBeginParams(session_id=self._view.session_id))

    async def mentions(self, text: str) -> r.MentionCompleteResult:
        params = r.MentionCompleteParams(session_id=self._view.session_id, text=text)
        return await self._view.client.request("amanu/mention/complete", params, r.MentionCompleteResult)

    async def _daemons_slash_commands(self) -> dict[str, str]:
        """Prompts that mean something of their own to the daemon; some are files, which come and go."""
        params = r.CommandListParams(session_id=self._view.session_id)
        answer = await self._view.client.request("amanu/command/list", params, r.CommandListResult)
        self._completion.daemons = answer.commands
        return {
            f"/{command.name}": one_line(
                " · ".join(filter(None, [command.argument_hint, _as_listed(command.description)]))
            )
            for command in answer.commands
        }

    async def _show_audit(self, which: str) -> None:
        calls = [item.item_id for item in self._view.state.items if isinstance(item, ToolCall)]
        if which not in ("", "last", "session"):
            self._console.line(("red", "Usage: /audit [last | session]"))
            return
        if which != "session" and not calls:
            self._console.line(("dim", "No tool calls yet."))
            return
        params = r.AuditQueryParams(
            session_id=self._view.session_id, tool_call_id=None if which == "session" else calls[-1]
        )
        result = await self._view.client.request("amanu/audit/query", params, r.AuditQueryResult)
        show_lines(result.lines, self._console)

    def _show_notes(self) -> None:
        notices = [item for item in self._view.state.items if isinstance(item, Notice) and item.detail]
        for notice in notices:
            self._console.line(("bold", stripped(notice.text)))
            self._console.markdown(stripped(notice.detail))
        if not notices:
            self._console.line(("dim", "No notices with details."))

    # Sessions ------------------------------------------------------------------------------------------

    async def _other_session(self, typed: str) -> str | None:
        """The id of the session that is meant; the user chooses among those that have the words."""
        root, sessions = self._options.roots[0], listing(self._view.client)
        if typed == LATEST or await begins_an_id(typed, sessions):
            return await resolve_session_id(typed, root, sessions)
        return await self._pickers.session(root, typed)

    async def _first_view(self, client: DaemonClient) -> SessionView:
        session_id = self._options.session_id
        if self._options.latest:
            try:
                session_id = await latest(self._options.roots[0], listing(client))
            except AmanuError:
                first_paint.erase()
                self._console.line(("dim", "There is no session of this folder yet, so this is a new one."))
        elif session_id is not None:
            session_id = await resolve_session_id(session_id, self._options.roots[0], listing(client))
        if session_id is None:
            return await self._create(client)
        view = await attach(client, session_id)
        if self._options.mode is not None and self._options.mode != view.state.mode:
            await view.set_mode(self._options.mode)
        if self._options.effort is not None and self._options.effort != view.state.effort:
            await view.set_effort(self._options.effort)
        if self._options.model_id is not None and self._options.model_id != view.state.model_id:
            await view.set_model(self._options.model_id)
        return view

    async def _create(self, client: DaemonClient) -> SessionView:
        params = r.SessionCreateParams(
            session_id=mint(),
            roots=self._options.roots,
            mode=self._options.mode,
            model_id=self._options.model_id,
            effort=self._options.effort,
        )
        return await create(client, params)

    async def _enter(self, view: SessionView, *, detach: bool = False) -> None:
        first_paint.erase()
        if detach and self._view.session_id != view.session_id:
            await self._put_away("amanu/session/detach")
        self._view = view
        keys = self._terminal.keys
        self._renderer = Renderer(
            self._console,
            details_hint="/notes",
            trust="/trust",
            expand_hint=keys.shown("everything"),
            background_hint=keys.shown("background"),
        )
        self._pickers = Pickers(view, self._terminal)
        self._completion = SlashCompletion(view, SLASH_COMMANDS)
        asked = QuestionInput(
            self._terminal,
            self._console,
            self._completion,
            self._run_while_waiting,
            lambda: view.client.lost.is_set(),
        )
        self._waiting = WaitingQuestions(view)
        self._paged_review = PagedReview(view, self._terminal, self._console)
        self._review_prompt = ReviewPrompt(view, self._renderer, asked, self._paged_review)
        self._question_prompt = QuestionPrompt(view, self._console, asked)
        self._edit_slash_commands = EditSlashCommands(view, self._console, asked)
        self._job_slash_commands = JobSlashCommands(view, self._console)
        self._conversation = ConversationSlashCommands(view, self._console)
        self._cost = SessionCost(view, self._console)
        self._agent_slash_commands = AgentSlashCommands(view, self._console)
        self._servers = RunningServers(view)
        self._board = SessionBoard(view, self._terminal)
        self._work_pickers = WorkPickers(view, self._terminal, self._console)
        view.client.on_notification = self._on_notification
        self._trust_prompt = TrustPrompt(view, self._console, asked, self._terminal.draft)
        show_header(view.state, self._console)
        self._console.line(("dim", f"session {view.session_id} · /help"))
        if view.state.parent_session_id is not None:
            whose = f"This is the session of the sub-agent {one_line(view.state.agent or '')}."
            way_back = f"Its questions are asked in the session it works for: /sessions {view.state.parent_session_id}."
            self._console.line(("yellow", f"{whose} {way_back}"), hang=0)
        if view.state.read_only:
            self._console.line(("yellow", "Read-only: another Amanu process has this session open."))
        await self._daemons_slash_commands()  # for completion
        await self._servers.refresh()
        self._renderer.show_items(view.state.items[-SHOWN_ITEMS:], view.state)
        if view.state.turn is None:
            self._renderer.show_open_draft(view.state)
        self._agent_slash_commands.show(working(view.state.agents))
        if commands := running(view.state):
            self._console.line(("dim", commands))
        view.listeners.append(self._renderer.show)
        view.listeners.append(self._offer_recommended)
        view.replaced.append(self._renderer.resume)
        if self._notifications is not None:
            self._notifications.enter(view.state)
            view.listeners.append(self._notifications.show)
            view.replaced.append(self._notifications.enter)

    def _on_notification(self, method: str, params: Any) -> None:
        self._servers.on_notification(method, params)
        self._board.on_notification(method, params)

    async def _put_away(self, method: str | None = None) -> None:
        """Leave this session; one in which nobody said anything is not kept."""
        await self._sent()
        state = self._view.state
        params = r.SessionParams(session_id=state.session_id)
        if not (state.title or state.items or state.queue or state.read_only):
            await self._view.client.request("amanu/session/delete", params, r.Empty)
        elif method is not None:
            await self._view.client.request(method, params, r.Empty)

    async def _reconnect(self) -> None:
        self._console.line(("yellow", "Lost the connection to the daemon; reconnecting …"))
        for attempt in range(RECONNECTS):
            try:
                client = await self._connect()
                await self._view.reattach(client)
                client.on_notification = self._on_notification
                self._client = client
                self._console.line(("dim", "reconnected"))
                return
            except (AmanuError, Disconnected, OSError):
                await asyncio.sleep(0.1 * 2**attempt)
        raise SystemExit(exits.FAILED)

    async def _ask_trust(self) -> None:
        if not self._view.state.trusted:
            try:
                await self._trust_prompt.ask()
            except (Interrupted, StopRequested, Disconnected):
                pass
            except EOFError:
                if not self._leaving:
                    await self._leave()

    def _mentioned(self, text: str) -> list[Attachment]:
        return [*line_mentions(text, self._view.state.roots), *self._terminal.pictures.named(text)]


def _as_listed(description: str) -> str:
    """The text in the style of the chat's own slash commands: no capital, no full stop."""
    description = description.removesuffix(".") if description.count(". ") == 0 else description
    return description[:1].lower() + description[1:] if description[1:2].islower() else description


def _absolute(path: str) -> str:
    """As the user means it, at this terminal."""
    return str(Path(path).expanduser().absolute())
