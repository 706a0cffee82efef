"""Lets the model end its task itself; only in runs that continue until it does."""

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, Tool, ToolError


class FinishTaskParams(Params):
    summary: str = Field(
        description="For the user: what was done, how it was checked, and what remains open or could not be done."
    )


class FinishTask(Tool[FinishTaskParams]):
    name = "finish_task"
    effect = "read"
    description = (
        "Ends this run. Call it, alone, when the whole task is done and checked, or when you are sure that it cannot "
        "be done. Until then keep working: a reply without a tool call does not end the run, and nobody will answer."
    )
    params = FinishTaskParams

    async def preview(self, params: FinishTaskParams, call: CallContext) -> Preview:
        if not params.summary.strip():
            raise ToolError("The summary is empty. Describe what was done.")
        return Preview(title="Finish the task", subject=Subject(self.name, self.effect, ""), detail=params.summary)

    async def run(self, params: FinishTaskParams, call: CallContext) -> Outcome:
        """Its result for the model is the summary: the loop ends the turn with it (`Turn.finishing`)."""
        return Outcome(params.summary, params.summary)
