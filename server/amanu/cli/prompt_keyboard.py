"""Standard input as prompts read it. Imports prompt_toolkit."""

from contextlib import AbstractContextManager, nullcontext

from prompt_toolkit.input.vt100 import Vt100Input


class PromptKeyboard(Vt100Input):
    """A terminal on which every key stays what it is. While something is printed above a prompt, prompt_toolkit would
    let the terminal edit lines: a Ctrl-D typed just then is lost, an Enter becomes a line feed."""

    lent = False
    """Another program reads the keys: the user's editor."""

    def cooked_mode(self) -> AbstractContextManager[None]:
        return super().cooked_mode() if self.lent else nullcontext()
