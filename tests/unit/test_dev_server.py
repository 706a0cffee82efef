"""A server that the agent starts in the background, waits for, fetches a page from, reads and stops."""

from pathlib import Path

import pytest

from amanu.core.conversation import Results
from amanu.permissions import approvals as approval
from support.free_port import free_port
from support.scripted_session import call, conversation, scripted_session, step


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def test_a_server_is_started_waited_for_fetched_from_read_and_stopped(tmp_path: Path) -> None:
    port = free_port()
    serve = f"python3 -u -m http.server {port} --bind 127.0.0.1"
    steps = [
        step("", call("run_shell_command", command=serve, background=True, port=port, network=True)),
        step("", call("web_fetch", url=f"http://localhost:{port}/hello.html")),
        step("", call("read_command", job="job-1", until="GET /hello", wait_s=5)),
        step("", call("stop_command", job="job-1")),
        step("It works."),
    ]
    async with scripted_session(tmp_path, *steps) as d:
        (d.root / "hello.html").write_text("<h1>Hello</h1><p>from the workspace</p>")
        await d.prompt("try the page")
        state = await d.until(lambda state: state.approvals)
        grants = state.approvals[0].likely_grants
        await d.answer("allow", grants=grants)
        state = await d.until(lambda state: state.approvals and state.approvals[0].title.startswith("Fetch"))
        assert "your own computer" in "\n".join(
            [state.approvals[0].detail, *(line.text for line in state.approvals[0].lines)]
        )
        await d.answer("allow")
        state = await d.ended()
        started, page, read, stopped = [
            result for message in conversation(d.session) if isinstance(message, Results) for result in message.results
        ]
        assert started.fields["port"] == port
        assert "# Hello" in page.text and "from the workspace" in page.text
        assert "GET /hello.html" in str(read.fields["output"])
        assert stopped.fields["state"] == "stopped"
        assert [job.state for job in state.jobs] == ["stopped"]
