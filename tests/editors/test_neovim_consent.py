"""What a user is asked in Neovim, and what comes of it: how it is drawn, answered, remembered; trust and audit. The
daemon is played by the test; against the real one: test_neovim.py."""

from pathlib import Path
from typing import Any

import pytest

from amanu.text import wording
from amanu_protocol.items import Approval, Decision
from amanu_protocol.labels import IGNORED
from amanu_protocol.requests import AuditQueryResult, RulePreviewResult, TrustGetResult
from editors.test_neovim import Start, folder, home, start
from support.neovim import Neovim
from support.sample_events import answered

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

PLAYED = """
Sent, Replies = {}, ...
local client, session = require("amanu.wire.client"), require("amanu.session")
client.request = function(method, params, done)
  table.insert(Sent, { method, params })
  local reply = Replies[method]
  if type(reply) == "table" and reply[1] then
    reply = #reply > 1 and table.remove(reply, 1) or reply[1]
  end
  if done then
    done(nil, vim.deepcopy(reply or {}))
  end
end
client.flush = function() end
"""
ASKED = """
local approval = ...
local session = require("amanu.session")
session.state = {
  sessionId = "s", title = "", mode = "ask", modelId = "scripted:x", proposals = {}, queue = {}, roots = { "/w" },
  approvals = { approval }, questions = {},
  items = { { kind = "toolCall", itemId = "c", turnId = "t", title = approval.title, tool = "run_shell_command",
    effect = "run", arguments = {}, state = "awaitingApproval", output = "" } },
}
session.changed()
"""
BELOW = """
local found, space = {}, vim.api.nvim_get_namespaces()["amanu.rule"] or -1
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
  for _, line in ipairs(mark[4].virt_lines) do
    table.insert(found, line[1][1])
  end
end
return found
"""
RULE = "run_shell_command+network(npm install *)"
PARTS = [
    {"text": "git status", "decision": "allow", "rule": "built-in", "reason": "Only reads."},
    {"text": "npm install\n✓ x", "decision": "ask", "rule": "no rule", "reason": "Runs what it fetches."},
]
APPROVAL: dict[str, Any] = {
    "toolCallId": "c",
    "title": "Run git status && npm install",
    "detail": "git status &&\nnpm install",
    "effect": "run",
    "rule": "no rule",
    "scopes": [{"scope": "once", "rule": ""}, {"scope": "session", "rule": RULE, "explanation": "Allows that."}],
    "askedAt": 0,
    "digest": "d1",
    "parts": PARTS,
    "sandbox": {"tier": "bubblewrap", "writes": "workspace", "network": False, "summary": "Sandboxed (x). No network."},
    "grants": ["network", "unsandboxed"],
    "likelyGrants": ["network"],
}
RESOLVE, PREVIEW = "amanu/approval/resolve", "amanu/rule/preview"
FINE = {"valid": True, "explanation": "Allows that.", "covers": True, "covered": ["Run npm ci"], "coveredCount": 7}


@pytest.fixture
def vim(start: Start) -> Neovim:
    editor = start()
    editor.lua("require('amanu')")
    editor.keys(":Amanu /hide<CR>")  # wires the session
    return editor


def played(vim: Neovim, approval: dict[str, Any], **replies: Any) -> None:
    vim.lua(PLAYED, {RESOLVE: {"status": "resolved"}, PREVIEW: previewed(FINE), **replies})
    vim.lua("require('amanu.chat.view').show()")
    vim.lua(ASKED, question(approval))


def question(approval: dict[str, Any]) -> dict[str, Any]:
    explained = wording.explain_approval(Approval.model_validate(approval))
    return (explained if explained.answers else answered(explained)).model_dump(mode="json")


def previewed(preview: dict[str, Any]) -> dict[str, Any]:
    return wording.explain_rule_preview(RulePreviewResult.model_validate(preview)).model_dump(mode="json")


def trusted(found: dict[str, Any]) -> dict[str, Any]:
    return wording.explain_trust(TrustGetResult.model_validate(found)).model_dump(mode="json")


def audited(found: dict[str, Any]) -> dict[str, Any]:
    return wording.explain_audit(AuditQueryResult.model_validate(found)).model_dump(mode="json")


def answers(vim: Neovim) -> list[dict[str, Any]]:
    return [params for method, params in vim.lua("return Sent") if method == RESOLVE]


def test_a_question_is_shown_whole_and_its_yes_grants_what_it_says(vim: Neovim) -> None:
    played(vim, APPROVAL)
    assert vim.chat().split("\n")[:9] == [
        "● ? Run git status && npm install · waits for your answer",
        "┆ git status &&",
        "┆ npm install",
        "┆ ✓ git status — Only reads. (built-in)",
        "┆ ? npm install␊✓ x — Runs what it fetches.",
        "┆ Probably needs network access. If you allow it:",
        "┆ Sandboxed (x). No network.",
        "┆ Needs approval: no rule",
        "┆ answer: :Amanu /approve or <Space>ap",
    ]
    for wanted, grants in [
        ("Allow once with network access", ["network"]),
        ("Allow once without network access", []),
        ("Allow once without the sandbox", ["unsandboxed"]),
    ]:
        vim.answer(wanted)
        vim.keys(":Amanu /approve<CR>")
        sent = answers(vim)[-1]
        assert (sent["decision"], sent["digest"], sent["grants"] or []) == ("allow", "d1", grants)
    assert vim.lua("return Asked[1].labels") == [
        "Allow once with network access",
        "Allow once without network access",
        "Allow once without the sandbox",
        f"Allow for this session with network access: {RULE}",
        "Reject with a reason",
    ]

    alone = {"tier": "none", "writes": "everything", "network": True, "summary": "Not sandboxed: no bwrap."}
    plain: dict[str, Any] = {
        **APPROVAL,
        "sandbox": alone,
        "grants": [],
        "likelyGrants": [],
        "parts": [],
        "scopes": APPROVAL["scopes"][:1],
    }
    vim.lua(ASKED, question(plain))
    assert vim.chat().split("\n")[3:5] == [
        "┆ ! Not sandboxed: no bwrap.",
        "┆ Asked every time: no rule",
    ]
    vim.keys(":Amanu /approve<CR>")
    asked = vim.lua("return Asked[#Asked]")
    assert asked["labels"] == ["Allow once", "Reject with a reason"]
    assert "NOT SANDBOXED" in asked["prompt"]


def test_a_rule_says_what_it_would_do_as_it_is_typed(vim: Neovim) -> None:
    elsewhere = {**FINE, "covers": False, "coveredCount": 0, "covered": []}
    none = {"valid": False, "explanation": "That is no rule."}
    played(vim, APPROVAL, **{PREVIEW: [previewed(each) for each in (FINE, elsewhere, elsewhere, none, none, FINE)]})
    vim.answer("Allow for this session")
    vim.keys(":Amanu /approve<CR>")
    assert vim.text() == RULE
    told = ["  Allows that.", "  Would have answered 7 earlier questions:", "    Run npm ci", "    … and 6 more"]
    assert vim.lua(BELOW) == told
    cannot = "The rule does not cover this call, so it cannot be saved."
    for typed, below, said in [
        (
            "other(x)",
            ["  Allows that.", f"  {cannot}", "  It would have answered none of the earlier questions"],
            cannot,
        ),
        ("nonsense", ["  That is no rule."], "That is no rule."),
    ]:
        vim.keys(f"cc{typed}<Esc>")
        vim.until(f"(function() {BELOW} end)()[1] == ... or (function() {BELOW} end)()[2] == ...", below[0])
        vim.until(f"#(function() {BELOW} end)() == ...", len(below))
        assert vim.lua(BELOW) == below
        vim.keys(":w<CR>")
        assert vim.lua("return Said[#Said]") == f"Amanu: {said}"
        assert answers(vim) == []
    vim.keys("ccrun_shell_command(npm *)<Esc>:w<CR>")
    (sent,) = answers(vim)
    assert (sent["scope"], sent["rule"], sent["digest"]) == ("session", "run_shell_command(npm *)", "d1")
    assert sent["grants"] == ["network"]
    vim.until("not vim.api.nvim_buf_get_name(0):find('amanu://rule')")
    tried = [params for method, params in vim.lua("return Sent") if method == PREVIEW]
    assert all((each["sessionId"], each["toolCallId"]) == ("s", "c") for each in tried)


def test_a_command_is_edited_in_a_window(vim: Neovim) -> None:
    command = "git status &&\nnpm install"
    played(vim, {**APPROVAL, "command": command}, **{RESOLVE: [{"status": "tooSoon"}, {"status": "resolved"}]})
    vim.answer("Edit the command")
    vim.keys(":Amanu /approve<CR>")
    assert vim.text() == command
    vim.keys("Gccnpm ci<Esc>:w<CR>")
    assert vim.text() == "git status &&\nnpm ci", "it did not count: the window stays"
    vim.keys(":w<CR>")
    sent = answers(vim)
    assert [(each["decision"], each["command"]) for each in sent] == [("allow", "git status &&\nnpm ci")] * 2
    assert sent[0]["digest"] == "d1" and sent[0]["grants"] == ["network"]
    vim.until("not vim.api.nvim_buf_get_name(0):find('amanu://command')")


def test_what_has_changed_is_asked_again(vim: Neovim) -> None:
    played(vim, APPROVAL, **{RESOLVE: [{"status": "stale"}, {"status": "resolved"}]})
    vim.lua(
        "local approval = ... vim.defer_fn(function() require('amanu.session').state.approvals = { approval } end, 50)",
        question({**APPROVAL, "digest": "d2", "detail": "npm ci"}),
    )
    vim.answer("Allow once", "Allow once")
    vim.keys(":Amanu /approve<CR>")
    vim.until("#Asked == 2")
    assert [each["digest"] for each in answers(vim)] == ["d1", "d2"]
    assert "npm ci" in vim.lua("return Asked[2].prompt")
    assert vim.lua("return Said") == [f"Amanu: {IGNORED['stale']}"]

    # and also when it changed while the list of answers stood open
    vim.lua("vim.ui.select = function(items, _, chosen) Later = Later or function() chosen(items[1], 1) end end")
    vim.keys(":Amanu /approve<CR>")
    vim.lua("require('amanu.session').state.approvals[1] = ...", question({**APPROVAL, "digest": "d3"}))
    vim.lua("Later()")
    assert [each["digest"] for each in answers(vim)] == ["d1", "d2"]


def test_who_decided_and_what_held_it(vim: Neovim) -> None:
    draw = "local item = ... return require('amanu.chat.blocks').lines(item, { proposals = {}, approvals = {} })[1]"
    ran = {"kind": "toolCall", "itemId": "c", "title": "Run x", "state": "succeeded", "effect": "run", "output": ""}
    sandbox = {"tier": "landlock", "writes": "nothing", "network": True, "summary": "", "brief": "sandboxed, read-only"}
    user = {"outcome": "allowed", "by": "user", "client": "Neovim"}
    networked = {**user, "scope": "once", "grants": ["network"]}
    turn = {**user, "scope": "turn", "rule": "r(x)", "client": "Emacs"}
    for decision, held, expected in [
        (user, None, "allowed by you"),
        (networked, sandbox, "allowed with network access by you · sandboxed, read-only"),
        (turn, None, "allowed for this turn by you: r(x) (Emacs)"),
        ({"outcome": "allowed", "by": "rule", "rule": "built-in"}, None, "allowed by built-in"),
    ]:
        summarized = wording.summarize_decision(Decision.model_validate(decision)).model_dump(mode="json")
        item = {**ran, "decision": summarized, **({"sandbox": held} if held else {})}
        assert vim.lua(draw, item) == f"● ✓ Run x ({expected})"
    read = {**ran, "effect": "read", "decision": {"outcome": "allowed", "by": "rule", "rule": "built-in"}}
    assert vim.lua(draw, read) == "● ✓ Run x", "what a mode allows to be read is no news"


def test_trust_is_for_what_was_shown(vim: Neovim) -> None:
    enables = [
        {"path": "AGENTS.md", "kind": "memory", "state": "changed", "diff": "-a\n+b\x1b[2J\n"},
        {"path": ".amanu/commands/x\n.md", "kind": "command", "state": "same", "diff": ""},
    ]
    found = {"state": "changed", "enables": enables, "digest": "t1"}
    played(vim, APPROVAL, **{"amanu/trust/get": trusted(found)})
    vim.answer("Trust this folder", "Not now")
    vim.keys(":Amanu /trust<CR>")
    (sent,) = [params for method, params in vim.lua("return Sent") if method == "amanu/trust/set"]
    assert (sent["trusted"], sent["digest"]) == (True, "t1")
    vim.keys(":Amanu /trust<CR>")
    assert vim.text().split("\n")[1:] == [
        "Trusting this folder would enable:",
        "  AGENTS.md — instructions to the model (changed)",
        "  .amanu/commands/x␊.md — a slash command (unchanged)",
        "  sandboxed checks of edits by the linters and type checkers set up in it",
        "",
        "│ -a",
        "│ +b<U+001B>[2J",
    ]
    assert len([1 for method, _ in vim.lua("return Sent") if method == "amanu/trust/set"]) == 1
    vim.keys("q:Amanu /untrust<CR>")
    assert vim.lua("return Sent[#Sent][2].trusted") is False


def test_the_record_of_the_call_under_the_cursor(vim: Neovim) -> None:
    entries = [{"number": 1, "at": 0, "kind": "asked", "text": "Asked:\n\x1b x", "hash": ""}]
    found = audited({"entries": entries, "intact": False, "message": "Broken at 1."})
    played(vim, APPROVAL, **{"amanu/audit/query": found})
    vim.keys(":Amanu /audit<CR>")
    assert vim.lua("return Sent[#Sent][2].toolCallId") == "c"
    first, last = vim.text().split("\n")
    assert first.endswith("asked    Asked:␊<U+001B> x") and last == "✗ Broken at 1."
    vim.keys("q:Amanu /audit session<CR>")
    assert vim.lua("return Sent[#Sent][2].toolCallId") is None


EVIL = (
    "%{system('touch %s')}%#Error#\x12=system('touch %s')\r\n"
    "\x1b]0;x\x07\x9b31m\u202e\u2066\u200b\U000e0041\x80│ ✓ ● `x` {{{"
)
"""What a status line, an input line, a terminal or a fold would obey."""


EVERYWHERE = """
local evil, state = ..., require("amanu.session").state
state.title, state.modelId = evil, evil
state.queue = { { promptId = "q", text = evil, attachments = {} } }
state.lastTurn = { reason = evil }
state.retry = { attempt = 2, reason = evil, at = 0 }
local sandbox = { tier = "none", writes = "everything", network = true, summary = evil, brief = evil }
local decision = { outcome = "allowed", by = "rule", rule = evil, summary = evil }
for _, each in ipairs({
  { kind = "answer", text = evil },
  { kind = "thought", text = evil, subject = evil },
  { kind = "notice", level = "info", text = evil, detail = evil },
  { kind = "toolCall", title = evil, state = "failed", error = evil, output = evil, effect = "run", sandbox = sandbox,
    decision = decision },
  { kind = "todoList", summary = evil, todos = { { text = evil, status = "pending" } } },
  { kind = "citations", sources = { { title = evil, url = evil, quote = evil } } },
  { kind = "userMessage", text = evil, attachments = { { kind = "file", path = evil } } },
}) do
  each.itemId, each.turnId, each.arguments = each.kind, "t", {}
  table.insert(state.items, each)
end
require("amanu.session").changed()
"""
BARS = """
return vim.tbl_map(function(window)
  return vim.api.nvim_eval_statusline(vim.wo[window].winbar, { winid = window }).str
end, vim.api.nvim_list_wins())
"""


def test_text_of_others_is_never_obeyed_or_hidden(start: Start, folder: Path, tmp_path: Path) -> None:
    """Everywhere a title, a path, a reason, a rule or an output is shown."""
    planted = tmp_path / "planted"
    evil = EVIL.replace("%s", str(planted))
    vim = start()
    vim.keys(":Amanu /hide<CR>")
    sandbox = {"tier": "none", "writes": "everything", "network": True, "summary": evil}
    part = {"text": evil, "decision": "ask", "rule": evil, "reason": evil}
    approval = {**APPROVAL, "title": evil, "detail": evil, "rule": evil, "parts": [part], "sandbox": sandbox}
    session = {"label": f"Allow for this session{evil}", "action": "allow", "scope": "session", "rule": evil}
    no = {"label": f"Reject{evil}", "action": "reject", "asks": "reason", "explanation": evil}
    approval["answers"] = [{**session, "explanation": evil}, no]
    preview = {**FINE, "explanation": evil, "covered": [evil]}
    found = {
        "state": "changed",
        "enables": [{"path": evil, "kind": "memory", "state": "new", "diff": evil}],
        "digest": "d",
    }
    entry = {"number": 1, "at": 0, "kind": "asked", "text": evil, "hash": ""}
    summary: dict[str, Any] = {
        "sessionId": "x",
        "title": evil,
        "status": "idle",
        "updatedAt": 0,
        "roots": [],
        "changes": 0,
    }
    model = {"modelId": evil, "name": evil, "contextWindow": 1000, "available": False, "unavailable": evil}
    played(
        vim,
        approval,
        **{
            PREVIEW: previewed(preview),
            "amanu/trust/get": trusted(found),
            "amanu/audit/query": audited({"entries": [entry], "intact": False, "message": evil}),
            "amanu/session/list": {"sessions": [summary]},
            "amanu/model/list": {"models": [model], "defaultModelId": evil},
            "amanu/command/list": {"commands": [{"name": "x", "description": evil, "argumentHint": evil}]},
            "amanu/checkpoint/list": {
                "checkpoints": [{"turnId": "t", "text": evil, "at": 0, "files": [], "commands": [evil]}]
            },
        },
    )
    vim.lua(EVERYWHERE, evil)
    vim.lua("vim.o.statusline = \"%{%v:lua.require'amanu'.status()%}\" vim.cmd.redrawstatus()")
    shown = [vim.chat(), vim.lua("return require('amanu').status()")]
    vim.lua("require('amanu.say').now(...) require('amanu.say').aside(...)", evil)
    for command, answer in [
        ("approve", []),
        ("approve", ["Allow for this session"]),
        ("trust", []),
        ("audit", []),
        ("sessions", ["%{", "Rename"]),
        ("sessions", ["%{", "Delete", "No"]),
        ("model", []),
        ("unqueue", []),
        ("rename", []),
        ("checkpoints", []),
    ]:
        vim.lua("Answers = {}")
        if answer:
            vim.answer(*answer)
        vim.keys(f":Amanu /{command}<CR>")
        shown += [vim.text(), *vim.lua(BELOW)]
        if vim.lua("return vim.api.nvim_buf_get_name(0):find('amanu://') ~= nil"):
            vim.keys(":close!<CR>")
    shown += vim.lua(BARS)
    shown += vim.lua("return Said")
    for asked in vim.lua("return Asked"):
        shown += [asked["prompt"], asked.get("default") or "", *(asked.get("labels") or [])]
        assert "\n" not in asked["prompt"] + (asked.get("default") or "")
    vim.lua("vim.cmd.redraw()")
    assert len(vim.lua("return Asked")) > 10
    hidden = set(map(chr, (*range(9), *range(11, 32), *range(127, 160)))) | set("\u202e\u2066\u200b\U000e0041")
    for text in shown:
        assert not hidden & set(text), ascii(text)
    assert not planted.exists()


PLAN = """
local path = ...
local answers = {}
for _, mode in ipairs({ "acceptEdits", "ask", "auto" }) do
  for _, fresh in ipairs({ false, true }) do
    table.insert(answers, { label = "Approve in " .. mode, action = "allow", mode = mode, freshContext = fresh,
      scope = "once", grants = {}, rule = "", explanation = "", asks = "", further = false })
  end
end
table.insert(answers, { label = "Keep planning", action = "reject", asks = "reason", scope = "once", grants = {},
  rule = "", explanation = "", freshContext = false, further = false })
local session = require("amanu.session")
local approval = { toolCallId = "c", title = "Carry out this plan", detail = "# Goal", effect = "read", rule = "r",
  scopes = {}, askedAt = 0, digest = "d1", parts = {}, grants = {}, likelyGrants = {}, lines = {}, answers = answers,
  document = path }
session.state = { sessionId = "s", title = "", mode = "plan", modelId = "scripted:x", proposals = {}, queue = {},
  roots = { "/w" }, approvals = { approval }, items = {}, questions = {}, jobs = {}, todos = {} }
session.changed({ kind = "approvalRequested", approval = approval })
"""
SHOWN = """
local found = {}
for _, window in ipairs(vim.api.nvim_list_wins()) do
  table.insert(found, vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)))
end
return found
"""
ALLOWED = """
require("amanu.session").changed({ kind = "approvalResolved", toolCallId = "c", decision = { outcome = "allowed" } })
"""


def test_a_plan_that_is_asked_about_again_after_a_yes_is_opened_again(vim: Neovim, tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text("# Goal\n")
    vim.lua(PLAYED, {})
    for _ in range(2):  # it has changed since the first yes
        vim.lua(PLAN, str(plan))
        assert str(plan) in vim.lua(SHOWN)
        vim.lua(ALLOWED)
        assert str(plan) not in vim.lua(SHOWN)


def test_a_plan_is_opened_edited_and_approved_as_it_stands(vim: Neovim, tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text("# Goal\n")
    vim.lua(PLAYED, {RESOLVE: {"status": "resolved"}})
    before = vim.lua("return vim.api.nvim_get_current_win()")
    vim.lua(PLAN, str(plan))
    assert vim.lua("return vim.api.nvim_get_current_win()") == before
    assert str(plan) in vim.lua(SHOWN)
    vim.lua("require('amanu.session').state.approvals[1].digest = 'd2'")
    vim.lua("Picked = nil; vim.ui.select = function(items, options, done) Picked = items; done(items[5]) end")
    vim.lua("require('amanu.approve.approvals').ask()")
    sent = vim.lua("return Sent[#Sent]")
    assert sent[0] == RESOLVE
    assert {key: sent[1][key] for key in ("decision", "mode", "freshContext", "digest")} == {
        "decision": "allow",
        "mode": "auto",
        "freshContext": False,
        "digest": "d2",
    }
