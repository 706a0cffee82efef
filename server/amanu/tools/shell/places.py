"""Opens the place where a command runs: the layer that holds its private copy of the workspace, or nothing."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from amanu.core.place import READ_ONLY
from amanu.core.tool import CallContext
from amanu.tools.shell.command_process import CommandPlan
from amanu.tools.shell.discarded_layer import DiscardedLayer
from amanu.tools.shell.layered_run import LayeredRun
from amanu.tools.shell.session_layer import SessionLayer


@dataclass(frozen=True)
class OpenedPlace:
    plan: CommandPlan
    """The plan with the layer it runs in, if any."""
    kept: LayeredRun | None = None
    """The run whose changes are to be read, on a copy that the session keeps."""
    dropped: DiscardedLayer | None = None
    """The layer of a foreground command that is thrown away."""
    note: str = ""
    """The files that the copy lacks, in a sentence for the model; "" for none."""


@asynccontextmanager
async def opened(plan: CommandPlan, call: CallContext, layer: SessionLayer) -> AsyncGenerator[OpenedPlace]:
    """Stay in the context while the command runs. `layer` is that of the session, or of the sub-agent that calls.
    Raises `ToolError`."""
    place = plan.need.place
    if not place.on_copy:
        yield OpenedPlace(plan)
    elif not (place.writes or await layer.shows_more(call)):
        in_place = replace(READ_ONLY, reach=place.reach, tried=place.tried)
        yield OpenedPlace(replace(plan, need=replace(plan.need, place=in_place)))
    elif plan.background:
        own = layer.apart()
        try:
            async with own.command(call, place) as run:
                run.forget()
                yield OpenedPlace(_on(run.folder, plan), note=own.too_large_note)
        finally:
            await own.close()
    elif not place.writes:
        async with layer.command(call, place) as run:
            yield OpenedPlace(_on(run.folder, plan))
    elif place.then == "dropped":
        async with layer.discarded(call, place) as discarded:
            yield OpenedPlace(_on(discarded.folder, plan), dropped=discarded)
    else:
        async with layer.command(call, place) as run:
            yield OpenedPlace(_on(run.folder, plan), run)


def _on(folder: Path, plan: CommandPlan) -> CommandPlan:
    return replace(plan, need=replace(plan.need, layer=folder))
