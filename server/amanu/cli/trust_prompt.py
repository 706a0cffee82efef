"""Trusting a folder, at a terminal: what that enables is shown first, and an approval is for what was shown."""

from collections.abc import Callable, Sequence

from amanu.cli.console import Console, Style
from amanu.cli.question import show_lines, show_whole
from amanu.cli.review_prompt import UserInput
from amanu.cli.text import one_line
from amanu.cli.ui.dialog import Choice, Dialog
from amanu.client.session_view import SessionView
from amanu.text import wording
from amanu_protocol import requests as r

_KEPT = "  Answer this first. What you typed is kept, as the draft of your prompt."
_SIGN: dict[str, Style] = {"+": "green", "-": "red"}


class TrustPrompt:
    """Asks one user about the folders of one session. `keep_draft` takes a prompt that was typed at the question."""

    def __init__(
        self, view: SessionView, console: Console, user_input: UserInput, keep_draft: Callable[[str], None]
    ) -> None:
        self._view = view
        self._console = console
        self._user_input = user_input
        self._keep_draft = keep_draft

    async def ask(self) -> None:
        """Folder by folder: show what trust would enable, ask, set it. Leaving the question changes nothing."""
        for root in self._view.state.roots:
            if not await self._ask_about(root):
                return

    async def withdraw(self) -> None:
        for root in self._view.state.roots:
            await self._set(root, trusted=False)
        self._console.line(("dim", "no longer trusted; /trust changes that"))

    async def _ask_about(self, root: str) -> bool:
        """False when the user left the question."""
        trust = await self._view.client.request("amanu/trust/get", r.TrustGetParams(root=root), r.TrustGetResult)
        if len(self._view.state.roots) > 1:
            self._console.line(("bold", one_line(root, 2000)))
        show_lines(trust.lines, self._console, "")
        if trust.state == "trusted":
            return True
        diffs = wording.untrusted_diffs(trust)
        if trust.state == "changed":
            self._show(diffs)
            diffs = []
        while True:
            self._console.line(("heading", "? "), ("bold", "Trust this folder?"))
            show = [Choice("d", "Show the contents", "of what it would enable")] if diffs else []
            choices = [Choice("n", "Not now"), *show, Choice("y", "Trust this folder")]
            answer = await self._user_input.ask(
                Dialog("› ", choices, valid=lambda: not self._view.client.lost.is_set())
            )
            match (answer or "").lower():
                case "d" if diffs:
                    self._show(diffs)
                case "y" | "yes":
                    await self._set(root, trusted=True, digest=trust.digest)
                    self._console.line(("dim", "trusted"))
                    return True
                case "n" | "no" | "":
                    self._console.line(("dim", "not trusted; /trust changes that"))
                    return answer is not None
                case _:
                    self._keep_draft(answer or "")
                    self._console.line(("yellow", _KEPT))

    async def _set(self, root: str, *, trusted: bool, digest: str | None = None) -> None:
        """Raises AmanuError when what it enables is not what was shown."""
        params = r.TrustSetParams(root=root, trusted=trusted, digest=digest)
        await self._view.client.request("amanu/trust/set", params, r.Empty)

    def _show(self, diffs: Sequence[str]) -> None:
        for diff in diffs:
            show_whole(diff, self._console, _SIGN)
