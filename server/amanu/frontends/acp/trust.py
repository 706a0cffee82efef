"""Whether the user trusts the folders of a session, asked before its first prompt: ACP has no request for it."""

from typing import Any

from amanu.client.session_view import SessionView
from amanu.frontends.acp.peer import Peer, RpcError
from amanu.frontends.acp.plain_cards import adapted_request
from amanu.frontends.acp.schema import ClientFeatures, chosen_option
from amanu.frontends.acp.tool_calls import code_content
from amanu.text.display import visible
from amanu_protocol import requests as r
from amanu_protocol.labels import BUTTONS


async def ask_trust(view: SessionView, peer: Peer, features: ClientFeatures) -> None:
    """Ask about each folder that is not trusted. Without an answer, nothing changes. Raises `AmanuError`,
    `ClientDisconnected`."""
    for root in view.state.roots if not view.state.trusted else ():
        trust = await view.client.request("amanu/trust/get", r.TrustGetParams(root=root), r.TrustGetResult)
        if trust.state != "trusted" and await _user_trusts(root, trust, view, peer, features):
            params = r.TrustSetParams(root=root, trusted=True, digest=trust.digest)
            await view.client.request("amanu/trust/set", params, r.Empty)


async def _user_trusts(
    root: str, trust: r.TrustGetResult, view: SessionView, peer: Peer, features: ClientFeatures
) -> bool:
    lines = "\n".join(line.text for line in trust.lines)
    diffs = "\n".join(item.diff for item in trust.enables if item.diff)
    shown = [code_content(visible(lines)), *([code_content(visible(diffs), "diff")] if diffs else [])]
    call_id = f"trust {root}"
    call = {
        "toolCallId": call_id,
        "title": f"Do you trust the files in {root}?",
        "kind": "other",
        "status": "pending",
        "content": shown,
    }
    options = [
        {"optionId": "trust", "name": BUTTONS["trust"], "kind": "allow_always"},
        {"optionId": "later", "name": BUTTONS["notNow"], "kind": "reject_once"},
    ]
    _update(view, peer, {"sessionUpdate": "tool_call", **call})
    params = {"sessionId": view.session_id, "toolCall": call, "options": options}
    try:
        result = await peer.request("session/request_permission", adapted_request(params, features))
    except RpcError:
        return False
    is_trusted = chosen_option(result) == "trust"
    status = "completed" if is_trusted else "failed"
    _update(view, peer, {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status})
    return is_trusted


def _update(view: SessionView, peer: Peer, update: dict[str, Any]) -> None:
    peer.notify("session/update", {"sessionId": view.session_id, "update": update})
