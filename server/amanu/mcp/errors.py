"""What went wrong in the SDK's tasks, which raise groups of groups."""

from typing import cast


def first(error: BaseException) -> BaseException:
    """The first exception in a group of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def root_cause(error: BaseException) -> str:
    text = str(first(error))
    return text.partition("\n")[0][:300] or type(error).__name__
