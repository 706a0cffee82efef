"""VS Code's chat view alone in a page of a real Chromium: the extension's side is played."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from amanu_protocol.state import SessionState, TurnState

ROOT = Path(__file__).parents[1]
SEND = "message => window.dispatchEvent(new MessageEvent('message', {data: message, origin: window.origin}))"
"""Says a message as the extension would."""


def open_page(browser: Any, paint: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Any:
    """The view. `paint` answers its requests for colours."""
    page = browser.new_page(viewport={"width": 420, "height": 900})
    page.set_content(f"<style>{(ROOT / 'vscode-extension/dist/chat/chat.css').read_text()}</style><body></body>")
    page.expose_function("paint", paint or no_colours)
    page.evaluate(
        """() => {
          const post = async message => {
            const reply = message.type === 'paint' ? await window.paint(message) : null;
            if (reply) window.dispatchEvent(new MessageEvent('message', {data: reply, origin: window.origin}));
          };
          window.acquireVsCodeApi = () => ({postMessage: post, getState(){}, setState(){}});
        }"""
    )
    page.add_script_tag(path=str(ROOT / "vscode-extension/dist/chat/main.js"))
    return page


def no_colours(_request: dict[str, Any]) -> None:
    """Code stays as it is."""


def opened(page: Any, session: dict[str, Any]) -> float:
    """Show that session; milliseconds until it is drawn."""
    return page.evaluate(
        """async message => {
          const begin = performance.now();
          window.dispatchEvent(new MessageEvent('message', {data: message, origin: window.origin}));
          await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
          return performance.now() - begin;
        }""",
        {"type": "session", "state": session, "seq": 0, "client": "bench"},
    )


def events(seq: int, event: dict[str, Any]) -> dict[str, Any]:
    return {"type": "events", "events": [event], "seq": seq}


def answer(item_id: str, text: str) -> dict[str, Any]:
    return {"kind": "answer", "itemId": item_id, "turnId": "t", "agentId": None, "text": text}


def state(items: list[dict[str, Any]]) -> dict[str, Any]:
    turn = TurnState(turn_id="t", model_id="a:b", steps=1)
    session = SessionState(
        session_id="s",
        title="Bench",
        roots=["/w"],
        mode="ask",
        model_id="a:b",
        trusted=True,
        read_only=False,
        turn=turn,
    )
    return {**session.model_dump(by_alias=True, mode="json"), "items": items}
