// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { List } from "../src/chat/view/list";
import { Standing } from "../src/chat/view/standing";
import { Folded } from "../src/fold";
import type { Approval, HunkState, Proposal, QueuedPrompt, SessionState, ToolCall } from "../src/protocol";
import { state } from "./states";

beforeEach(() =>
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
    },
  ),
);

function call(itemId: string): ToolCall {
  return {
    kind: "toolCall",
    itemId,
    turnId: "t",
    tool: "edit_file",
    title: `Edit ${itemId}`,
    effect: "write",
    arguments: {},
    state: "awaitingApproval",
    output: "",
    blob: null,
    proposalId: "p",
    decision: null,
    error: null,
  };
}

function approval(toolCallId: string): Approval {
  const scopes = [{ scope: "once" as const, rule: "" }];
  return {
    toolCallId,
    title: toolCallId,
    detail: "",
    effect: "write",
    rule: "",
    scopes,
    proposalId: "p",
    askedAt: 0,
  };
}

function proposal(calls: string[], states: HunkState[]): Proposal {
  const hunks = states.map((each, at) => ({
    hunkId: `h${at}`,
    oldStart: at + 1,
    oldLines: 1,
    newStart: at + 1,
    newLines: 1,
    oldText: "a\n",
    newText: "b\n",
    state: each,
    editedByPerson: false,
    reason: null,
    appliedText: null,
    reviewed: false,
    explanation: "",
  }));
  const file = {
    path: "/w/a.py",
    change: "edit" as const,
    baseSha256: "",
    baseVersion: null,
    baseText: "a\na\n",
    hunks,
    added: 2,
    removed: 2,
    encoding: "utf-8",
    finalNewline: true,
    unsaved: false,
    newPath: null,
    checks: [],
    mode: null,
  };
  return { proposalId: "p", turnId: "t", toolCallIds: calls, version: 3, state: "pending", files: [file] };
}

function show(given: Partial<SessionState>) {
  const posted: ToHost[] = [];
  const desk = { session: new Folded(state(given)), client: "here", post: (m: ToHost) => posted.push(m) };
  const list = new List(desk);
  document.body.replaceChildren(list.element);
  list.reset();
  return { desk, posted, cards: [...list.element.querySelectorAll<HTMLElement>(".tool")] };
}

function two(states: HunkState[]) {
  return show({
    items: [call("c1"), call("c2")],
    approvals: [approval("c1"), approval("c2")],
    proposals: [proposal(["c1", "c2"], states)],
  });
}

test("two edits of one file are one review", () => {
  const { cards } = two(["pending", "pending"]);
  const drawn = cards.map((card) => card.querySelectorAll(".hunks:not([hidden]) .hunk").length);
  expect(drawn).toEqual([0, 2]);
  expect(cards[0]?.querySelector<HTMLElement>(".approval")?.hidden).toBe(true);
  expect(cards[0]?.textContent).toContain("shown with the last edit of this step");
});

test("accepting all allows every call that waits", () => {
  const { cards, posted } = two(["pending", "pending"]);
  cards[1]?.querySelector<HTMLButtonElement>(".allow")?.click();
  expect(posted.map((each) => each.type === "resolve" && [each.toolCallId, each.decision])).toEqual([
    ["c1", "allow"],
    ["c2", "allow"],
  ]);
});

test.each([
  ["of two calls", ["c1", "c2"], ["pending", "pending"], ["h0", "h1"]],
  ["of what is decided in part", ["c2"], ["applied", "pending"], ["h1"]],
] as [string, string[], HunkState[], string[]][])(
  "rejecting the rest %s rejects the open hunks",
  (_, calls, states, rejected) => {
    const { cards, posted } = show({
      items: calls.map(call),
      approvals: calls.map(approval),
      proposals: [proposal(calls, states)],
    });
    const card = cards.at(-1);
    const reason = card?.querySelector<HTMLInputElement>(".reason");
    if (reason) reason.value = "not these";
    card?.querySelector<HTMLButtonElement>(".approval button.reject")?.click();
    expect(posted).toEqual([
      {
        type: "hunks",
        proposalId: "p",
        version: 3,
        hunks: rejected.map((hunkId) => ({ hunkId, decision: "reject", reason: "not these" })),
      },
    ]);
  },
);

test("rejecting a whole proposal of one call rejects the call", () => {
  const { cards, posted } = show({
    items: [call("c1")],
    approvals: [approval("c1")],
    proposals: [proposal(["c1"], ["pending"])],
  });
  cards[0]?.querySelector<HTMLButtonElement>(".approval button.reject")?.click();
  expect(posted).toMatchObject([{ type: "resolve", toolCallId: "c1", decision: "reject" }]);
});

test.each([
  ["running", { turnId: "t", modelId: "m", steps: 0, routed: null }, ["×"]],
  ["stopped", null, ["Send now", "×"]],
])("a queued prompt while the turn is %s", (_, turn, buttons) => {
  const queued: QueuedPrompt = { promptId: "q", text: "later", attachments: [] };
  const { desk, posted } = show({ turn, queue: [queued] });
  const back: QueuedPrompt[] = [];
  const standing = new Standing(
    desk,
    () => undefined,
    (prompt) => back.push(prompt),
    (modelId) => modelId,
  );
  standing.update();
  const found = [...standing.element.querySelectorAll<HTMLButtonElement>(".queued button")];
  expect(found.map((each) => each.textContent)).toEqual(buttons);
  found.at(-1)?.click();
  expect([posted, back]).toEqual([[{ type: "unqueue", promptId: "q" }], [queued]]);
});
