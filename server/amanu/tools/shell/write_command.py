"""The tool that types into a background command."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.text.display import visible
from amanu.tools.environment import SessionTool
from amanu.tools.shell.command_analysis import PLAN_INSTEAD, PLANNING
from amanu.tools.shell.job import Job
from amanu.tools.shell.job_report import report
from amanu_protocol.items import CommandSandbox

Key = Literal["enter", "ctrl-c", "ctrl-d", "tab", "escape", "up", "down"]

_KEYS: dict[Key, bytes] = {
    "enter": b"\r",
    "ctrl-c": b"\x03",
    "ctrl-d": b"\x04",
    "tab": b"\t",
    "escape": b"\x1b",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
}
_WITHOUT_TERMINAL: dict[Key, bytes] = {"enter": b"\n"}


class WriteCommandParams(Params):
    job: str
    text: str = Field(default="", max_length=65_536, description="Typed as it is; end a line with \\n.")
    key: Key | None = Field(default=None, description="Pressed after the text.")
    wait_s: float = Field(default=1, ge=0, le=300, description="Seconds to wait for output.")


class WriteCommand(SessionTool[WriteCommandParams]):
    name = "write_command"
    effect = "run"
    description = (
        "Types into a background command and returns what it prints then; the user is asked. Keys other than enter and "
        "ctrl-c need tty=true at its start."
    )
    params = WriteCommandParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Type into {arguments.get('job', 'a background command')}"

    async def preview(self, params: WriteCommandParams, call: CallContext) -> Preview:
        job = self._running(params)
        typed = f"{params.text}{f'<{params.key}>' if params.key else ''}"
        # Any other input may be a command to a shell, and nobody has analyzed it: only the user can allow it.
        only_interrupts = _only_interrupts(params)
        return Preview(
            title=f"Type into {job.job_id} ({job.shown.title}): {typed.strip()}",
            subject=Subject(
                self.name,
                "read" if only_interrupts else self.effect,
                typed,
                unclear=not only_interrupts,
                because="Amanu cannot tell what it does with this input.",
            ),
            detail=f"{visible(typed)}\nTyped into {job.job_id}: {visible(job.shown.title)}",
            sandbox=job.shown.sandbox,
            digest=f"{job.job_id} {job.shown.tool_call_id}",
        )

    async def run(self, params: WriteCommandParams, call: CallContext) -> Outcome:
        jobs, job = self._environment.jobs, self._running(params)
        process = job.process
        assert process is not None
        size = job.output.size
        text = params.text.replace("\n", "\r") if job.shown.tty else params.text
        keys = _KEYS if job.shown.tty else _WITHOUT_TERMINAL
        await process.write(text.encode("utf-8", "replace"))
        if params.key == "ctrl-c":
            await process.interrupt()
        elif params.key is not None:
            await process.write(keys[params.key])
        await job.wait_for_output(params.wait_s, size)
        return await report(job, jobs, self._limits.shell_model)

    def _running(self, params: WriteCommandParams) -> Job:
        """The job, which takes that input. Raises `ToolError`."""
        job = self._environment.jobs.require(params.job)
        if job.ended.is_set():
            raise ToolError(f"{job.job_id} has ended, so nothing can be typed into it.")
        if not params.text and params.key is None:
            raise ToolError("There is nothing to type: give `text`, `key` or both.")
        if params.key is not None and not job.shown.tty and params.key not in (*_WITHOUT_TERMINAL, "ctrl-c"):
            raise ToolError(f"{job.job_id} has no terminal, so {params.key} has no effect. Restart it with tty=true.")
        if self._environment.read_only() and _can_change_files(job.shown.sandbox) and not _only_interrupts(params):
            raise ToolError(
                f"{PLANNING} {job.job_id} was started before and can change files, so only ctrl-c can be typed into "
                f"it. {PLAN_INSTEAD}"
            )
        return job


def _can_change_files(sandbox: CommandSandbox | None) -> bool:
    if sandbox is None:
        return True
    is_dropped = sandbox.place is not None and sandbox.place.then == "dropped"
    return sandbox.writes != "nothing" and not is_dropped


def _only_interrupts(params: WriteCommandParams) -> bool:
    """Whether it is ctrl-c alone: to interrupt what the session itself has started is as harmless as to stop it."""
    return not params.text and params.key == "ctrl-c"
