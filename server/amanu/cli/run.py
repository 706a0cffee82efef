"""`amanu run "…"`: one turn without a user, the core in this process. Policy decides instead of a user."""

import argparse
import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, get_args

from amanu.cli import exits
from amanu.cli.report import Report, error_json
from amanu.cli.run_printer import Format, RunPrinter
from amanu.cli.session_changes import ChangesPrompt, carry_out, read_changes_prompt
from amanu.cli.session_lookup import LATEST, SHORT, listing, resolve_session_id
from amanu.cli.sessions import on_running
from amanu.cli.slash_words import unknown
from amanu.cli.stdin import PipedInput, read_piped_input
from amanu.cli.text import visible
from amanu.client.daemon_client import DaemonClient
from amanu.client.session_view import mint
from amanu.system.missing_folder import missing_folder
from amanu.text.amounts import plural
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, TurnEnded
from amanu_protocol.items import Attachment, Effort, Mode, ServiceTier
from amanu_protocol.requests import (
    CommandListParams,
    Empty,
    PromptSendParams,
    ProposalPatchParams,
    SessionAttachParams,
    SessionCloseParams,
    SessionCreateParams,
)

if TYPE_CHECKING:
    from amanu.config import Settings
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu run",
        description="Run one prompt to completion. No one is asked: what no rule allows is denied, and the result says "
        "which --allow would have permitted it.",
        epilog=exits.HELP,
    )
    parser.add_argument("prompt", nargs="?", help="what to do; - or nothing: read from standard input")
    parser.add_argument("--output-format", choices=get_args(Format), default="text", help="default: text")
    parser.add_argument("--mode", choices=get_args(Mode), help="what is allowed without asking (default: ask)")
    parser.add_argument("--model", metavar="ID", help="vendor:model")
    parser.add_argument(
        "--effort", choices=get_args(Effort), metavar="LEVEL", help="how much the model thinks: none … max"
    )
    tiers = get_args(ServiceTier)
    parser.add_argument("--service-tier", choices=tiers, metavar="TIER", help="standard, fast (dearer), flex (cheaper)")
    parser.add_argument(
        "--allow", metavar="RULE", action="append", default=[], help="e.g. edit_file(src/**) or @write; repeatable"
    )
    parser.add_argument(
        "--workspace", metavar="DIR", action="append", default=[], help="workspace folder (default: the current one)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="continue that session: its id or a prefix of it")
    which.add_argument(
        "--continue",
        dest="session",
        action="store_const",
        const=LATEST,
        help="continue the latest session of this folder",
    )
    parser.add_argument("--max-steps", metavar="N", type=_positive(int), help="at most N requests to the model")
    parser.add_argument("--timeout", metavar="S", type=_positive(float), help="at most S seconds")
    parser.add_argument("--max-cost", metavar="USD", type=_positive(float), help="at most this many US dollars")
    parser.add_argument(
        "--until-done",
        action="store_true",
        help="until the model says it is done; needs --mode auto",
    )
    parser.add_argument("--no-loop-check", action="store_true", help="do not stop a model that repeats itself")
    wire = parser.add_mutually_exclusive_group()
    wire.add_argument("--record", metavar="FILE", help="record the exchanges with the model to FILE, keys removed")
    wire.add_argument("--replay", metavar="FILE", help="play a recording instead of asking a model: no network, no key")
    parser.add_argument("--trust", action="store_true", help="trust the workspace folders for this run")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    folders = arguments.workspace or ["."]
    missing = [folder for folder in folders if not os.path.isdir(folder)]  # noqa: PTH112  is_dir may raise
    if missing:
        print(visible(str(missing_folder(missing[0]))), file=sys.stderr)
        return exits.USAGE
    roots = [str(Path(folder).absolute()) for folder in folders]
    prompt = arguments.prompt
    if prompt in (None, "-"):
        if sys.stdin.isatty():
            print("No prompt: give one as an argument or on standard input.", file=sys.stderr)
            return exits.USAGE
        prompt, beside = sys.stdin.read(), PipedInput()
    else:
        beside = read_piped_input()
    prompt = prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # bytes that are no UTF-8
    if not prompt.strip():
        print("The prompt is empty.", file=sys.stderr)
        return exits.USAGE
    try:
        changes_prompt = read_changes_prompt(prompt)
    except AmanuError as error:
        print(visible(str(error)), file=sys.stderr)
        return exits.USAGE
    if changes_prompt is not None:
        return _carry_out(changes_prompt, arguments.session, roots[0], as_json=arguments.output_format != "text")
    if beside.notice and arguments.output_format == "text":
        print(beside.notice, file=sys.stderr)
    options = RunOptions(
        prompt=prompt,
        attachments=[beside.attachment] if beside.attachment is not None else [],
        roots=roots,
        mode=arguments.mode,
        model_id=arguments.model,
        effort=arguments.effort,
        service_tier=arguments.service_tier,
        allow=arguments.allow,
        session_id=arguments.session,
        max_steps=arguments.max_steps,
        seconds=arguments.timeout,
        max_cost=arguments.max_cost,
        loop_check=not arguments.no_loop_check,
        trust=arguments.trust,
        until_done=arguments.until_done,
        record=arguments.record and str(Path(arguments.record).expanduser().absolute()),
        replay=arguments.replay and Path(arguments.replay).expanduser().absolute(),
    )
    return asyncio.run(run(options, arguments.output_format, sys.stdout, sys.stderr))


def _carry_out(prompt: ChangesPrompt, typed: str | None, root: str, *, as_json: bool) -> int:
    """Carry out a prompt that is a slash command about the session's changes; no model sees it. Returns the exit
    code."""
    if typed is None:
        print(f"/{prompt.verb} is about a session: add --continue or --session ID.", file=sys.stderr)
        return exits.USAGE

    async def run_prompt(client: DaemonClient) -> int:
        session_id = await resolve_session_id(typed, root, listing(client))
        return await carry_out(client, session_id, prompt, as_json=as_json)

    return on_running(run_prompt)


@dataclass(frozen=True)
class RunOptions:
    """What one run is to do."""

    prompt: str
    roots: list[str]
    attachments: Sequence[Attachment] = ()
    mode: Mode | None = None
    model_id: str | None = None
    effort: Effort | None = None
    service_tier: ServiceTier | None = None
    allow: list[str] = field(default_factory=list[str])
    session_id: str | None = None
    max_steps: int | None = None
    seconds: float | None = None
    max_cost: float | None = None
    loop_check: bool = True
    """False turns it off; True leaves it to the settings."""
    trust: bool = False
    until_done: bool = False
    record: str | None = None
    """Absolute path of a new file."""
    replay: Path | None = None


async def run(options: RunOptions, output: Format, out: TextIO, err: TextIO) -> int:
    """One turn. Prints as `output` says; returns the exit code."""
    report = Report()
    printer = RunPrinter(output, out, err, report)
    try:
        code = await _turn(options, report, printer)
    except AmanuError as error:
        report.error = error_json(error)
        code = exits.of_error(error)
        printer.error(error)
    try:
        printer.end(code)
        out.flush()
    except BrokenPipeError:  # the reader left; nothing more can be flushed to it, also not at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return code


async def _turn(options: RunOptions, report: Report, printer: RunPrinter) -> int:
    from amanu.config import load_settings
    from amanu.core.service_tiers import TIER_NAMES
    from amanu.home import find_home
    from amanu.models.recording import load
    from amanu.models.replay import Replay
    from amanu.session.services import make_services
    from amanu.session.sessions import Sessions
    from amanu.system import logs

    home = find_home().make()
    settings = _limited(load_settings(home, os.environ), options)
    logs.start(home, settings.log_level)
    for warning in settings.warnings:
        printer.warning(warning)
    sessions = Sessions(make_services(home, settings, headless=True, until_done=options.until_done))
    client = RunClient(report)
    replay: Replay | None = None
    try:
        if options.replay is not None:
            recording = load(options.replay)
            replay = Replay(recording)
            sessions.services.registry.replays = True
            options = dataclasses.replace(options, model_id=options.model_id or recording.model_id)
        for root in options.roots if options.trust else ():
            await asyncio.to_thread(sessions.services.trust.trust_for_now, root)
        session = await _session(sessions, options, client, settings.mode)
        if replay is not None:
            session.replay(replay)
        report.begin(session.state)
        report.base = await asyncio.to_thread(session.patches.base)
        printer.begin(session.state)
        if options.model_id is not None and (doubt := await sessions.models.doubt(options.model_id, client)):
            printer.warning(doubt)
        if options.service_tier not in (None, "standard", session.state.service_tier):
            name = TIER_NAMES[options.service_tier]
            printer.warning(f"No {name} is known for {session.state.model_id}; the usual price applies.")
        await _refuse_unknown_command(sessions, session.state.session_id, options.prompt)
        client.show = printer.show
        code = await _prompt(session, options, client, report)
        if printer.is_json:
            await _add_patch(session, report, printer)
        await printer.stop_status()
        if replay is not None:
            printer.replayed(replay)
        return code
    finally:
        await printer.stop_status()
        await sessions.shutdown()


async def _add_patch(session: "Session", report: Report, printer: RunPrinter) -> None:
    turn_id = None if report.ended is None or report.has_draft else report.ended.turn_id
    state = "open" if report.has_draft else "applied"
    params = ProposalPatchParams(session_id=session.state.session_id, state=state, turn_id=turn_id)
    try:
        patch = await session.patches.patch(params)
    except AmanuError as error:
        printer.warning(str(error))
    else:
        report.patch = patch if patch.files or patch.left else None


def _limited(settings: "Settings", options: RunOptions) -> "Settings":
    """The settings with the limits of this run."""
    limits = {"steps": options.max_steps, "seconds": options.seconds, "cost_usd": options.max_cost}
    set_limits = {name: value for name, value in limits.items() if value is not None}
    return settings.model_copy(
        update={
            "limits": settings.limits.model_copy(update=set_limits),
            "loops": settings.loops and options.loop_check,
        }
    )


async def _refuse_unknown_command(sessions: "Sessions", session_id: str, prompt: str) -> None:
    """Do as the chat does. Raises `AmanuError`."""
    if unknown(prompt, ()) is None:
        return
    listed = await sessions.completion.slash_commands(CommandListParams(session_id=session_id))
    names = [f"/{command.name}" for command in listed.commands]
    if (word := unknown(prompt, names)) is not None:
        raise AmanuError("invalidParams", f"There is no command {word} here.", hint="Nothing was sent.")


async def _prompt(session: "Session", options: RunOptions, client: "RunClient", report: Report) -> int:
    """Send the prompt and wait for the end of its turn; the exit code."""
    if session.state.queue:  # of a session that was interrupted or cancelled: its prompts would run first
        raise AmanuError(
            "turnInProgress",
            f"{plural(len(session.state.queue), 'prompt')} in the session's queue would run first.",
            hint=f"Send or remove them with `amanu chat --session {session.state.session_id}` or in an editor.",
        )
    params = PromptSendParams(
        session_id=session.state.session_id,
        prompt_id=mint(),
        text=options.prompt,
        attachments=[*options.attachments],
    )
    with _stopped_by_signals(client):  # before the prompt: what it prints may be answered by a signal at once
        sent = await session.prompts.send(params, client)
        if sent.status == "answered":
            report.is_answered = True
            return 0
        turn_id = sent.turn_id
        if turn_id is None:  # never of a session that only this process has open
            raise AmanuError("turnInProgress", "The session is still busy with an earlier prompt.")
        end = asyncio.create_task(session.wait_for_turn(turn_id))
        return await _until_ended(end, client, report, options.seconds, lambda: session.prompts.cancel(turn_id))


async def _session(sessions: "Sessions", options: RunOptions, client: "RunClient", default_mode: Mode) -> "Session":
    from amanu.models.recording import new_path
    from amanu.permissions import offers

    # Before anything is begun.
    for rule in options.allow:
        offers.rules_of(rule, "--allow")
    if options.record is not None:
        new_path(options.record, options.roots)
    if options.session_id is None:
        _must_be_auto(options, options.mode or default_mode)
        params = SessionCreateParams(
            session_id=mint(),
            roots=options.roots,
            mode=options.mode,
            model_id=options.model_id,
            effort=options.effort,
            service_tier=options.service_tier,
        )
        session = await sessions.get((await sessions.create(params, client)).state.session_id)
    else:
        session_id = await resolve_session_id(options.session_id, options.roots[0], sessions.summaries.list)
        await _release_idle(sessions, session_id)
        await sessions.attach(SessionAttachParams(session_id=session_id), client)
        session = await sessions.get(session_id)
        if session.state.read_only:
            raise AmanuError(
                "sessionReadOnly",
                "Another Amanu process has this session open: a client shows it, or something runs in it.",
                hint=f"Go on there, or close it there. To see what it does: amanu chat --session {session_id[:SHORT]}",
            )
        _must_be_auto(options, options.mode or session.state.mode)
        if options.mode is not None:
            await session.set_mode(options.mode)
        if options.effort is not None:
            await session.set_effort(options.effort)
        if options.model_id is not None:
            await session.set_model(options.model_id, client)
        if options.service_tier is not None:
            await session.own_parts.service_tier.set(options.service_tier)
    for rule in options.allow:
        session.allow(rule)
    if options.record is not None:
        await session.record(options.record)
    return session


async def _release_idle(sessions: "Sessions", session_id: str) -> None:
    """Have the daemon put the session away that it holds, if nobody looks at it and nothing runs in it."""
    from amanu.client.connect import connect_running
    from amanu.client.daemon_client import Disconnected
    from amanu.storage import lease

    folder = (await sessions.summaries.index()).folder(session_id)
    if await asyncio.to_thread(lease.holder, folder) is None:
        return
    with suppress(AmanuError, Disconnected):  # it is opened read-only then, which is told
        daemon = await connect_running()
        try:
            params = SessionCloseParams(session_id=session_id, idle_only=True)
            await daemon.request("amanu/session/close", params, Empty)
        finally:
            await daemon.close()


def _must_be_auto(options: RunOptions, mode: Mode) -> None:
    if options.until_done and mode != "auto":
        raise AmanuError(
            "invalidParams",
            f"--until-done continues without asking; in mode {mode}, what needs approval would be denied.",
            hint="Add --mode auto.",
        )


@contextmanager
def _stopped_by_signals(client: "RunClient") -> Generator[None]:
    """Ctrl-C and SIGTERM set `client.stop`; a second Ctrl-C does not wait."""
    loop = asyncio.get_running_loop()
    interrupted = 0

    def interrupt() -> None:
        nonlocal interrupted
        interrupted += 1
        if interrupted > 1:
            os._exit(exits.CANCELLED)
        client.stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _until_ended(
    end: "asyncio.Task[TurnEnded]",
    client: "RunClient",
    report: Report,
    seconds: float | None,
    cancel: Callable[[], Awaitable[object]],
) -> int:
    """Wait for the end of the turn. A signal, a reader that left and the time limit stop it in an orderly way."""
    stop = asyncio.create_task(client.stop.wait())
    try:
        await asyncio.wait({end, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            return report.exit_code()
        if not client.stop.is_set():
            report.out_of_time(seconds)
        await cancel()
        await end
        return report.exit_code()
    finally:
        for task in (end, stop):
            task.cancel()


class RunClient:
    """This process as a client of its own sessions; see `stream.DaemonClient`."""

    name = "amanu run"

    trusted_roots = None

    def __init__(self, report: Report) -> None:
        self._report = report
        self.environment: Mapping[str, str] = dict(os.environ)
        self.ripgrep = None
        self.context = None
        self.stop = asyncio.Event()
        """Somebody wants it to end."""
        self.show: Callable[[EventMessage], None] | None = None

    def send(self, message: EventMessage) -> None:
        self._report.on_event(message)
        try:
            if self.show is not None:
                self.show(message)
        except BrokenPipeError:
            self.show = None
            self.stop.set()

    def list_changed(self, session_id: str) -> None:
        pass

    def mcp_changed(self) -> None:
        pass


def _positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError
        return value

    number.__name__ = "positive number"
    return number
