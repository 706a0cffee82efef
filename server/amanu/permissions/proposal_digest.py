"""The digest of what an approval of a proposal is about, and what is in its way."""

import hashlib
import json

from amanu_protocol.items import Proposal


def proposal_digest(proposal: Proposal) -> str:
    """A digest (SHA-256) of what an approval of the whole proposal is about: the files, what they are based on, and
    what would be in them."""
    parts = [
        [
            [file.path, file.change, file.new_path, file.base_sha256],
            *([hunk.hunk_id, hunk.old_text, hunk.new_text] for hunk in file.hunks if hunk.state == "pending"),
        ]
        for file in proposal.files
    ]
    rows = [[row.row_id, row.digest] for row in proposal.rows if row.state == "pending"]
    return hashlib.sha256(json.dumps([proposal.proposal_id, parts, *([rows] if rows else [])]).encode()).hexdigest()


def open_bases(proposal: Proposal) -> dict[str, str]:
    """Path → SHA-256 of the text that the open hunks of that file are based on; row id → its digest."""
    files = {
        file.path: file.base_sha256 for file in proposal.files if any(hunk.state == "pending" for hunk in file.hunks)
    }
    return files | {row.row_id: row.digest for row in proposal.rows if row.state == "pending"}


def is_changing(proposal: Proposal) -> bool:
    """Whether what was decided of it is being carried out: another version follows at once."""
    return any(change.state in ("accepted", "undoing") for change in proposal.changes)


def conflicts(proposal: Proposal) -> dict[str, str]:
    """Path → reason, for the files and rows in conflict."""
    found = [(file.path, hunk.reason) for file in proposal.files for hunk in file.hunks if hunk.state == "conflicted"]
    found += [(row.path, row.reason) for row in proposal.rows if row.state == "conflicted"]
    return {path: reason or "" for path, reason in reversed(found)}


def blocks_all(proposal: Proposal) -> bool:
    """Whether a yes to all its open changes applies nothing, because one of several files or rows is in conflict."""
    states = [{hunk.state for hunk in file.hunks} & {"pending", "conflicted"} for file in proposal.files]
    states += [{row.state} & {"pending", "conflicted"} for row in proposal.rows]
    return sum(map(bool, states)) > 1 and any("conflicted" in each for each in states)
