"""Runs the command lines of a slash command (`!{…}`), with the session's command tool, sandbox and policy.

What policy or a hook does not allow without a question does not run: the user reads the exact line and the rule that
would allow it, and the model is told to run it with its own tool if it needs the output, which then asks as usual. What
ran is shown and recorded like a call of the model's.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from amanu.context.slash_command_template import ShellLine
from amanu.core.conversation import Result
from amanu.core.tool import ToolError
from amanu.session.events import EventStream
from amanu.session.unasked_calls import CallRefused, NeedsApproval, UnaskedCall, UnaskedCalls
from amanu.text.display import one_line
from amanu_protocol.events import ItemChanged, ItemCompleted, ItemStarted
from amanu_protocol.items import Decision, ToolCall

SECONDS = 30.0
"""For all lines of one prompt: the turn, and with it whoever would stop it, waits for them."""
MAX_LINES = 20
TOOL = "run_shell_command"


@dataclass(frozen=True)
class LineOutputs:
    """What became of the lines of one command."""

    outputs: Sequence[str] = ()
    """For each line the text that takes its place."""
    ran: Sequence[UnaskedCall] = ()
    """The lines that ran."""
    not_run: Sequence[str] = ()
    """A sentence for the user about each of the others."""


class CommandLines:
    """The `!{…}` of one prompt."""

    def __init__(self, calls: UnaskedCalls) -> None:
        self._calls = calls

    async def run(self, lines: Sequence[ShellLine]) -> LineOutputs:
        """Run them one after another. Failures raise nothing."""
        outputs: list[str] = []
        ran: list[UnaskedCall] = []
        not_run: list[str] = []
        ends = asyncio.get_running_loop().time() + SECONDS
        for number, line in enumerate(lines):
            try:
                if number >= MAX_LINES:
                    raise ToolError(f"a prompt runs at most {MAX_LINES} command lines.")
                async with asyncio.timeout_at(ends):
                    call = await self._calls.run(TOOL, command=line.command)
            except NeedsApproval as error:
                rules = " ".join(f"A rule would allow it: {rule}" for rule in error.rules[:1])
                not_run.append(f"Not run, because it needs your approval: {line.command}\n{rules}".rstrip())
                outputs.append(
                    f"(not run, because it needs the user's approval: {line.command!r}. If you need its output, run it "
                    f"with {TOOL}; the user is asked then.)"
                )
            except CallRefused as error:
                not_run.append(f"Not run: {one_line(line.command)}\n{error}")
                outputs.append(f"(not run: {line.command!r}. {error})")
            except (ToolError, TimeoutError) as error:
                reason = str(error) or f"it took more than {SECONDS:g} seconds."
                not_run.append(f"Failed: {one_line(line.command)}: {reason}")
                outputs.append(f"(no output of {line.command!r}: {reason})")
            else:
                ran.append(call)
                outputs.append(_text(call.result))
        return LineOutputs(outputs, ran, not_run)


def report_lines(lines: LineOutputs, turn_id: str, emit: EventStream) -> None:
    """Show and record the calls that ran, as part of that turn."""
    for call in lines.ran:
        outcome = call.outcome
        item = ToolCall(
            item_id=call.call.call_id,
            turn_id=turn_id,
            tool=TOOL,
            title=one_line(call.title),
            effect="run",
            arguments=call.call.arguments if isinstance(call.call.arguments, dict) else {},
            state="executing",
            output="",
            decision=Decision(outcome="allowed", by="rule", rule=call.rule),
            sandbox=outcome.sandbox,
        )
        emit(ItemStarted(item=item))
        emit(ItemChanged(item=item))
        output, state = emit.redact(outcome.for_user), "failed" if outcome.is_error else "succeeded"
        done = {"state": state, "output": output, "blob": outcome.blob}
        emit(ItemCompleted(item=item.model_copy(update=done)))


def _text(result: Result) -> str:
    """The output of a command, its exit code if it failed, and what hooks added."""
    fields = result.fields
    if "stdout" not in fields:
        return result.text
    parts = [str(fields["stdout"]).rstrip("\n"), str(fields.get("stderr", "")).rstrip("\n")]
    if fields.get("exit_code") != 0:
        parts.append(f"[exit code {fields.get('exit_code')}]")
    parts.append(str(fields.get("notes", "")))
    return "\n".join(filter(None, parts))
