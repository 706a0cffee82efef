"""A whole client of Amanu in some 140 lines: prompt, thoughts, answer, approvals, review hunk by hunk, diff.

    python minimal_client.py "Fix the typo in a.py"

It needs the standard library, and `amanu` on PATH. docs/protocol.md explains each message.
"""

import json
import subprocess
import sys
import uuid
from collections import deque
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Daemon:
    """The daemon behind a process of ours; requests wait for their reply, events are kept meanwhile."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.events: deque[Json] = deque()
        self.proposals: dict[str, Json] = {}
        self.requests = 0

    def send(self, message: Json) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> Json:
        """The next message. Events are kept, too; a request of the daemon is answered that we cannot do it."""
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not line:
            sys.exit("The daemon has left.")
        message: Json = json.loads(self.process.stdout.read(length))
        if message.get("method") == "amanu/event":
            event = message["params"]["event"]
            self.events.append(event)
            if event["kind"] == "proposalChanged":
                self.proposals[event["proposal"]["proposalId"]] = event["proposal"]
        elif "method" in message and "id" in message:
            self.send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})
        return message

    def request(self, method: str, params: Json | None = None) -> Any:
        self.requests += 1
        sent = self.requests
        self.send({"id": sent, "method": method, **({} if params is None else {"params": params})})
        while (reply := self.receive()).get("id") != sent or "method" in reply:
            pass
        if "error" in reply:
            sys.exit(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def event(self) -> Json:
        while not self.events:
            self.receive()
        return self.events.popleft()


def review(daemon: Daemon, session_id: str, proposal_id: str) -> None:
    """Ask about each hunk and row that waits, then decide all of them in one request."""
    scope = {"proposalId": proposal_id}
    found = daemon.request("amanu/proposal/preview", {"sessionId": session_id, "scope": scope})
    decisions: list[Json] = []
    rows: list[Json] = []
    for file in found["files"]:
        for each in file["hunks"]:
            hunk = each["hunk"]
            lines = [f"- {line}" for line in hunk["oldText"].splitlines()]
            lines += [f"+ {line}" for line in hunk["newText"].splitlines()]
            around = [f"  {line}" for line in each["contextBefore"]], [f"  {line}" for line in each["contextAfter"]]
            print(f"\n{file['title']}, line {hunk['lines']['start'] + 1}", *around[0], *lines, *around[1], sep="\n")
            yes = input("accept? [y/n] ").strip() == "y"
            decisions.append({"hunkId": hunk["hunkId"], "decision": "accept" if yes else "reject"})
    proposal = daemon.proposals[proposal_id]
    for row in [row for row in proposal["rows"] if "accept" in row["verbs"]]:
        print(f"\n{row['path']}: {row['title']}", *[line["text"] for line in row["lines"]], sep="\n")
        yes = input("accept? [y/n] ").strip() == "y"
        rows.append({"rowId": row["rowId"], "decision": "accept" if yes else "reject"})
    params: Json = {"sessionId": session_id, "proposalId": proposal_id, "version": proposal["version"]}
    if daemon.request("amanu/proposal/resolve", {**params, "hunks": decisions, "rows": rows})["status"] == "tooSoon":
        review(daemon, session_id, proposal_id)


def approve(daemon: Daemon, session_id: str, approval: Json) -> None:
    """Show the answers that the daemon offers, and send the chosen one."""
    print(f"\n{approval['title']}\n{approval['detail']}")
    answers = [answer for answer in approval["answers"] if answer["asks"] != "command" and not answer["further"]]
    for number, answer in enumerate(answers, 1):
        print(f"{number}. {answer['label']}")
    chosen = answers[int(input("which? ")) - 1]
    if chosen["action"] == "review":
        return review(daemon, session_id, approval["proposalId"])
    params = {"sessionId": session_id, "toolCallId": approval["toolCallId"], "digest": approval["digest"]}
    params |= {"decision": chosen["action"], "scope": chosen["scope"], "grants": chosen["grants"]}
    params |= {"mode": chosen["mode"], "freshContext": chosen["freshContext"]}
    if chosen["asks"] == "reason":
        params["reason"] = input("why? ")
    if daemon.request("amanu/approval/resolve", params)["status"] == "tooSoon":
        approve(daemon, session_id, approval)
    return None


def main(text: str) -> None:
    daemon, session_id = Daemon(["amanu", "serve"]), str(uuid.uuid4())
    ours = {"experimental": {"amanu": {"protocol": [4]}}}
    daemon.request("initialize", {"processId": None, "rootUri": None, "capabilities": ours})
    daemon.send({"method": "initialized", "params": {}})
    daemon.request("amanu/session/create", {"sessionId": session_id, "roots": [str(Path.cwd())]})
    prompt = {"sessionId": session_id, "promptId": str(uuid.uuid4()), "text": text}
    daemon.request("amanu/prompt/send", prompt)
    while (event := daemon.event())["kind"] != "turnEnded":
        match event["kind"]:
            case "itemDelta":
                print(event["text"], end="", flush=True)
            case "itemCompleted" if event["item"]["kind"] == "toolCall":
                print(f"\n{event['item']['title']}: {event['item']['state']}")
            case "approvalRequested":
                approve(daemon, session_id, event["approval"])
            case _:
                pass  # the reference names the others; what you do not know, ignore
    print(f"\n{event['reason']} {event['message']}")
    print(daemon.request("amanu/proposal/diff", {"sessionId": session_id, "scope": {}})["diff"])
    daemon.request("shutdown")
    daemon.send({"method": "exit"})
    sys.exit(daemon.process.wait())


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or sys.exit("usage: minimal_client.py PROMPT"))
