"""The output of `amanu run`: answers while they are written and progress as text, one JSON object at the end, or the
protocol line by line."""

import json
from typing import TYPE_CHECKING, Any, Literal, TextIO

from amanu import __version__
from amanu.cli.answer_stream import AnswerStream
from amanu.cli.console import Console, PlainConsole, open_console
from amanu.cli.header import describe, model_info
from amanu.cli.live import LiveConsole
from amanu.cli.render import Renderer
from amanu.cli.report import Report
from amanu.cli.status_line import Activity
from amanu.cli.text import visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage
from amanu_protocol.items import ModelInfo
from amanu_protocol.methods import PROTOCOL_VERSION
from amanu_protocol.state import SessionState

if TYPE_CHECKING:
    from amanu.models.replay import Replay

Format = Literal["text", "json", "stream-json"]


class RunPrinter:
    """Prints one run in one format. Answers and JSON go to `out`; progress and errors, for whoever watches, to `err`.
    What writes to `out` raises BrokenPipeError when its reader left."""

    def __init__(self, output: Format, out: TextIO, err: TextIO, report: Report) -> None:
        self._format = output
        self._out = out
        self._err = err
        self._report = report
        self._answers = AnswerStream(out, open_console(out), before=self._clear_status)
        self._console = open_console(err)
        self._live: LiveConsole | None = None

    @property
    def is_json(self) -> bool:
        return self._format != "text"

    def begin(self, state: SessionState) -> None:
        """The session is ready; `state` is read again with every event."""
        self._state = state
        model = model_info(state.model_id)
        console: Console | LiveConsole = self._console
        if self._format == "text" and not isinstance(self._console, PlainConsole):
            console = self._live = LiveConsole(self._console, self._err, self._status)
        self._renderer = Renderer(console, answers=False, thoughts=False)
        self._renderer.console.line(("dim", f"{describe(model, state.service_tier)} · session {state.session_id}"))
        if self._format == "stream-json":
            self._write(_init(state, model))
        if self._live is not None:
            self._live.start()

    def show(self, message: EventMessage) -> None:
        """An event of the session, after `begin`."""
        self._renderer.show(self._report.displayed(message), self._state)
        if self._format == "stream-json":
            self._write(message.model_dump(mode="json"))
        elif self._format == "text":
            self._answers.show(message.event)

    async def stop_status(self) -> None:
        """Take the line of the status away, if there is one."""
        if self._live is not None:
            await self._live.stop()

    def replayed(self, replay: "Replay") -> None:
        """How the run differed from the recording it was played from."""
        for difference in replay.differences:
            self._console.line(("dim", visible(f"replay: {difference}")))
        if replay.left:
            self._console.line(("dim", f"replay: {replay.left} recorded exchanges were not used"))

    def warning(self, text: str) -> None:
        self._console.line(("yellow", visible(text)))

    def error(self, error: AmanuError) -> None:
        if self._format == "text":
            hint = f" {error.data.hint}" if error.data.hint else ""
            self._console.line(("red", visible(f"✗ {error}{hint}")))

    def end(self, code: int) -> None:
        """The result, which is on the report; `code` is the exit code."""
        if self._format == "json":
            self._write(self._report.as_json(code))
        elif self._format == "stream-json":
            self._write({"kind": "result", **self._report.as_json(code)})

    def _status(self) -> Activity | None:
        """Nothing while standard output, which may be the same screen, is in the middle of a line."""
        return None if self._answers.in_line else self._renderer.status(self._state)

    def _clear_status(self) -> None:
        if self._live is not None:
            self._live.clear()

    def _write(self, value: dict[str, Any]) -> None:
        """One line of pure ASCII: no byte of it can mean anything to a terminal."""
        self._out.write(json.dumps(value, separators=(",", ":")) + "\n")
        self._out.flush()


def _init(state: SessionState, model: ModelInfo) -> dict[str, Any]:
    return {
        "kind": "init",
        "version": __version__,
        "protocol": PROTOCOL_VERSION,
        "sessionId": state.session_id,
        "modelId": state.model_id,
        "model": model.model_dump(mode="json", exclude={"available", "unavailable"}),  # it is used, so it is
        "mode": state.mode,
        "roots": state.roots,
        "trusted": state.trusted,
    }
