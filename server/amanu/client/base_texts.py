"""The base texts of proposals. The terminal shows lines of them; those of big files must be fetched from the daemon."""

from collections.abc import Sequence

from amanu.client.daemon_client import DaemonClient
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ProposalChanged
from amanu_protocol.items import Proposal, ProposedFile
from amanu_protocol.state import SessionState, fold

PAGE = 4_194_304
"""Bytes asked for at once: the most the daemon gives."""


def lacks_base_texts(proposal: Proposal, state: SessionState) -> bool:
    """Whether a base text must be fetched: neither the proposal nor its earlier version in the state contains it."""
    known = next((each for each in state.proposals if each.proposal_id == proposal.proposal_id), None)
    texts = {file.base_blob for file in (known.files if known else ()) if file.base_text is not None}
    return any(_lacks_base_text(file) and file.base_blob not in texts for file in proposal.files)


async def with_base_texts(client: DaemonClient, session_id: str, proposal: Proposal) -> Proposal:
    """The proposal with the base texts of all its files. A text that the daemon does not send becomes empty: its hunks
    are shown without the lines around them. Raises `Disconnected`."""
    files = [
        file.model_copy(update={"base_text": await _fetch_base_text(client, session_id, file.base_blob)})
        if _lacks_base_text(file) and file.base_blob is not None
        else file
        for file in proposal.files
    ]
    return proposal.model_copy(update={"files": files})


async def load_base_texts(client: DaemonClient, state: SessionState, proposals: Sequence[Proposal]) -> None:
    """Fetch the missing base texts of these proposals into the state."""
    for proposal in proposals:
        if lacks_base_texts(proposal, state):
            whole = await with_base_texts(client, state.session_id, proposal)
            fold(state, ProposalChanged(proposal=whole))


async def load_open_base_texts(client: DaemonClient, state: SessionState) -> None:
    """Fetch those of the proposals that wait for a decision."""
    await load_base_texts(client, state, [proposal for proposal in state.proposals if proposal.state == "pending"])


def _lacks_base_text(file: ProposedFile) -> bool:
    return file.base_blob is not None and file.base_text is None


async def _fetch_base_text(client: DaemonClient, session_id: str, blob_id: str) -> str:
    pages: list[str] = []
    offset: int | None = 0
    try:
        while offset is not None:
            params = r.BlobGetParams(session_id=session_id, blob_id=blob_id, offset=offset, limit=PAGE)
            page = await client.request("amanu/blob/get", params, r.BlobGetResult)
            pages.append(page.text)
            offset = page.next_offset
    except AmanuError:
        return ""
    return "".join(pages)
