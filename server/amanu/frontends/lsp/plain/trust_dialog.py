"""Trusting a folder, in an editor without a plugin of ours: a document shows what that enables."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.frontends.lsp.plain.command_arguments import TrustArguments
from amanu.frontends.lsp.plain.documents import Documents
from amanu.frontends.lsp.plain.editor import PlainEditor
from amanu.text import wording
from amanu.text.display import one_line, visible
from amanu.text.markdown import fenced, prose
from amanu_protocol.labels import BUTTONS
from amanu_protocol.requests import TrustGetParams, TrustGetResult, TrustSetParams

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions

TRUST = "trust.md"
YES, NO = BUTTONS["trust"], BUTTONS["notNow"]


class TrustDialog:
    def __init__(self, sessions: "Sessions", documents: Documents, editor: PlainEditor, client: "Client") -> None:
        self._sessions = sessions
        self._client = client
        self._documents = documents
        self._editor = editor
        self._notified: set[tuple[str, str]] = set()
        """Folders a user was told of, and what they enable."""
        self._offers: dict[Path, list[tuple[str, str, dict[str, Any]]]] = {}

    async def notify_untrusted(self, session: "Session") -> None:
        """Say once of an untrusted folder that it holds something trust would enable."""
        if session.state.trusted:
            return
        for root in session.state.roots:
            trust = await self._get(root)
            if trust.enables and trust.state != "trusted" and (root, trust.digest) not in self._notified:
                self._notified.add((root, trust.digest))
                why = "changed what trust enables" if trust.state == "changed" else "is not trusted"
                self._editor.say(f"Amanu: {Path(root).name} {why}; see amanu.trust")  # short: Neovim's line

    async def show(self, session: "Session") -> None:
        """Open what trust enables, with what of it is new; then ask, where the editor can."""
        document = self._documents.of(session.state.session_id, TRUST)
        by_root = {root: await self._get(root) for root in session.state.roots}
        await document.replace("\n".join(trust_text(root, trust) for root, trust in by_root.items()))
        self._offers[document.path] = [offer for root, trust in by_root.items() for offer in _offers(root, trust)]
        await self._editor.show(document.path, focus=True)
        for root, trust in by_root.items():
            if trust.state != "trusted" and not await self._ask(root, trust):
                return

    def offers(self, path: Path) -> list[tuple[str, str, dict[str, Any]]]:
        """The code actions of that document: title, command, argument."""
        return self._offers.get(path, [])

    async def set(self, arguments: TrustArguments) -> None:
        """Raises `AmanuError` when the folder enables something else by now than was shown."""
        await self._sessions.trust.set(
            TrustSetParams(root=arguments.root, trusted=arguments.trusted, digest=arguments.digest)
        )
        self._offers.clear()
        self._editor.say(f"Amanu: {Path(arguments.root).name} is {'trusted' if arguments.trusted else 'not trusted'}.")

    async def _ask(self, root: str, trust: TrustGetResult) -> bool:
        lines = [f"Trust {one_line(root)}?", *(visible(line.text) for line in trust.lines)]
        titles = [NO, YES] if self._editor.quirks.preselects else [YES, NO]
        try:
            answer = await self._editor.choose("\n".join(lines)[:1000], titles)
        except ClientError:
            return False  # the document's code actions are there
        if answer == YES:
            await self.set(TrustArguments(root=root, trusted=True, digest=trust.digest))
        return answer is not None

    async def _get(self, root: str) -> TrustGetResult:
        return await self._sessions.trust.get(TrustGetParams(root=root), self._client)


def trust_text(root: str, trust: TrustGetResult) -> str:
    """What trusting that folder means, as a document."""
    lines = "".join(f"{prose(line.text).strip()}\n\n" for line in trust.lines)
    diffs = "\n\n".join(fenced(visible(diff), "diff") for diff in wording.untrusted_diffs(trust))
    return f"# {prose(root)}\n\n{lines}{diffs}\n"


def _offers(root: str, trust: TrustGetResult) -> list[tuple[str, str, dict[str, Any]]]:
    name = one_line(Path(root).name)
    if trust.state == "trusted":
        arguments = TrustArguments(root=root, trusted=False)
        return [(f"Amanu: stop trusting {name}", "amanu.setTrust", arguments.model_dump(by_alias=True))]
    arguments = TrustArguments(root=root, trusted=True, digest=trust.digest)
    return [(f"Amanu: trust {name} and what is shown here", "amanu.setTrust", arguments.model_dump(by_alias=True))]
