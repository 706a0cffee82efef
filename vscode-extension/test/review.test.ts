// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { List } from "../src/chat/view/list";
import { StatusLines } from "../src/chat/view/statusLines";
import { Folded } from "../src/sessions/fold";
import type {
  Approval,
  HunkState,
  Proposal,
  QueuedPrompt,
  Row,
  SessionState,
  ToolCall,
  TurnEnded,
  UserMessage,
} from "../src/protocol";
import { meaning, row } from "./edits";
import { state, approvalAnswer } from "./states";

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
    agentId: null,
    itemId,
    turnId: "t",
    tool: "edit_file",
    title: `Edit ${itemId}`,
    effect: "write",
    arguments: {},
    state: "awaitingApproval",
    output: "",
    blob: null,
    summary: "",
    proposalId: "p",
    decision: null,
    error: null,
    sandbox: null,
    warns: false,
    movable: false,
    notUndone: [],
  };
}

function approval(toolCallId: string): Approval {
  const scopes = [{ scope: "once" as const, rule: "", explanation: "" }];
  return {
    toolCallId,
    title: toolCallId,
    detail: "",
    effect: "write",
    rule: "",
    scopes,
    proposalId: "p",
    document: null,
    command: null,
    originalCommand: null,
    askedAt: 0,
    digest: "d1",
    parts: [],
    sandbox: null,
    grants: [],
    agentId: null,
    agent: "",
    likelyGrants: [],
    blocked: "",
    answers: [approvalAnswer("Accept all", "allow"), approvalAnswer("Reject", "reject")],
    lines: [],
  };
}

function proposal(calls: string[], states: HunkState[]): Proposal {
  const hunks = states.map((each, at) => ({
    hunkId: `h${at}`,
    oldText: "a\n",
    newText: "b\n",
    state: each,
    editedByUser: false,
    reason: null,
    appliedText: null,
    reviewed: false,
    explanation: "",
    lines: { start: at, end: at + 1 },
    proposedLines: { start: at, end: at + 1 },
    ...meaning(each, false),
  }));
  const file = {
    path: "/w/a.py",
    change: "edit" as const,
    baseSha256: "",
    baseVersion: null,
    baseText: "a\na\n",
    baseBlob: null,
    hunks,
    added: 2,
    removed: 2,
    encoding: "utf-8",
    finalNewline: true,
    unsaved: false,
    newPath: null,
    checks: [],
    mode: null,
    presentPath: "/w/a.py",
  };
  return {
    proposalId: "p",
    turnId: "t",
    agentId: null,
    draft: false,
    runs: [],
    rows: [],
    toolCallIds: calls,
    version: 3,
    state: "pending",
    files: [file],
  };
}

function show(given: Partial<SessionState>) {
  const posted: ToHost[] = [];
  const view = { session: new Folded(state(given)), client: "here", post: (m: ToHost) => posted.push(m) };
  const list = new List(view);
  document.body.replaceChildren(list.element);
  list.reset();
  return { view, posted, list, cards: [...list.element.querySelectorAll<HTMLElement>(".tool")] };
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
  expect(cards[0]?.textContent).toContain("shown further down");
});

test("accepting all is one answer, which is about every call that the review shows", () => {
  const { cards, posted } = two(["pending", "pending"]);
  cards[1]?.querySelector<HTMLButtonElement>(".allow")?.click();
  expect(posted.map((each) => each.type === "resolve" && [each.toolCallId, each.decision])).toEqual([
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
        rows: [],
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

test("what a rule applied is kept or undone, and can be reviewed before instead", () => {
  const { cards, posted } = show({
    items: [{ ...call("c1"), state: "succeeded" }],
    proposals: [proposal(["c1"], ["applied", "reverted", "applied"])],
  });
  const seen = [{ proposalId: "p", version: 3 }];
  const buttons = [...(cards[0]?.querySelectorAll<HTMLButtonElement>(".hunks button") ?? [])];
  expect(buttons.map((each) => each.textContent)).toEqual([
    ...["Show diff", "Keep", "Undo", "Redo", "Keep", "Undo"],
    "Undo and review first",
  ]);
  for (const each of buttons.slice(1)) each.click();
  expect(posted).toEqual([
    { type: "decide", scope: { proposalId: "p", hunkIds: ["h0"] }, decision: "keep", seen },
    { type: "undo", scope: { proposalId: "p", hunkIds: ["h0"] } },
    { type: "decide", scope: { proposalId: "p", hunkIds: ["h1"] }, decision: "redo", seen },
    { type: "decide", scope: { proposalId: "p", hunkIds: ["h2"] }, decision: "keep", seen },
    { type: "undo", scope: { proposalId: "p", hunkIds: ["h2"] } },
    { type: "setReview", proposalId: "p", version: 3, review: "before" },
  ]);
});

test("what is open can be applied now and reviewed later: one of the options of its question", () => {
  const { cards, posted } = two(["pending", "rejected"]);
  expect(cards[1]?.querySelector(".whole")).toBeNull();
  cards[1]?.querySelector<HTMLButtonElement>(".more .later")?.click();
  expect(posted).toEqual([{ type: "setReview", proposalId: "p", version: 3, review: "after" }]);
});

test("after the review was finished, what is still open can be applied all the same", () => {
  const { cards, posted } = show({
    items: [{ ...call("c1"), state: "succeeded" }],
    proposals: [proposal(["c1"], ["pending", "applied"])],
  });
  cards[0]?.querySelector<HTMLButtonElement>(".whole button")?.click();
  expect(posted).toEqual([{ type: "setReview", proposalId: "p", version: 3, review: "after" }]);
});

test.each<[string, HunkState[], string[]]>([
  ["one change", ["pending"], ["Accept", "Review", "Reject"]],
  ["several of a file", ["pending", "pending"], ["Accept file", "Review", "Reject file"]],
  [
    "some are decided",
    ["applied", "pending"],
    ["Accept the rest", "Review", "Reject the rest", "Decide later"],
  ],
])("the question about edits is about those alone, in one row: %s", (_, states, labels) => {
  const { cards, posted } = show({
    items: [call("c1")],
    approvals: [approval("c1")],
    proposals: [proposal(["c1"], states)],
  });
  const row = [...(cards[0]?.querySelectorAll<HTMLButtonElement>(".approval > .row button") ?? [])];
  expect(row.filter(({ hidden }) => !hidden).map((each) => each.textContent)).toEqual(labels);
  row.find((each) => each.textContent === "Review")?.click();
  expect(posted).toEqual([{ type: "openDiff", proposalId: "p", path: "/w/a.py" }]);
});

test.each<[string, Partial<Proposal>, string[], ToHost[]]>([
  [
    "beside a file",
    { rows: [row("r", "/w/x")] },
    ["Accept 2 files", "Review", "Reject 2 files"],
    [{ type: "openDiff", proposalId: "p", path: "/w/a.py" }],
  ],
  [
    "at the path of one",
    { rows: [row("r", "/w/a.py", { kind: "mode" })] },
    ["Accept file", "Review", "Reject file"],
    [{ type: "openDiff", proposalId: "p", path: "/w/a.py" }],
  ],
  [
    "alone",
    { files: [], rows: [row("r", "/w/x")] },
    ["Accept", "Review", "Reject"],
    [{ type: "openDiff", proposalId: "p", path: "/w/x", rowId: "r" }],
  ],
  [
    "of git, decided in part",
    { files: [], rows: [row("r", "/w/x", { state: "applied" }), row("s", "/w", { kind: "git" })] },
    ["Accept the rest", "Review", "Reject the rest", "Decide later"],
    [{ type: "openDiff", proposalId: "p", path: "/w/x", rowId: "r" }],
  ],
])("the question about rows: %s", (_, more, labels, shown) => {
  const { cards, posted } = show({
    items: [call("c1")],
    approvals: [approval("c1")],
    proposals: [{ ...proposal(["c1"], ["pending"]), ...more }],
  });
  const found = [...(cards[0]?.querySelectorAll<HTMLButtonElement>(".approval > .row button") ?? [])];
  expect(found.filter(({ hidden }) => !hidden).map((each) => each.textContent)).toEqual(labels);
  found.find((each) => each.textContent === "Review")?.click();
  expect(posted).toEqual(shown);
});

test("rejecting the rest rejects open rows, but for those nobody can decide", () => {
  const { cards, posted } = show({
    items: [call("c1")],
    approvals: [approval("c1")],
    proposals: [
      {
        ...proposal(["c1"], ["applied", "pending"]),
        rows: [row("r", "/w/x"), row("s", "/w", { kind: "git", undecidable: "Too late." })],
      },
    ],
  });
  cards[0]?.querySelector<HTMLButtonElement>(".approval button.reject")?.click();
  const no = { decision: "reject", reason: null };
  expect(posted).toEqual([
    {
      type: "hunks",
      proposalId: "p",
      version: 3,
      hunks: [{ hunkId: "h1", ...no }],
      rows: [{ rowId: "r", ...no }],
    },
  ]);
});

test.each<[string, Row[], string, string[]]>([
  ["applied by a rule", [row("r", "/w/x", { state: "applied" })], "applied", ["Keep", "Undo"]],
  ["open", [row("r", "/w/x")], "", []],
  [
    "decided in part",
    [row("r", "/w/x", { state: "applied", reviewed: true }), row("s", "/w/y", { state: "rejected" })],
    "accepted 1 of 2",
    [],
  ],
  ["that nobody can decide", [row("r", "/w/x", { undecidable: "Too late." })], "", []],
])("the line of a call with rows alone: %s", (_, rows, words, keeping) => {
  const { cards } = show({
    items: [{ ...call("c1"), state: "succeeded" }],
    proposals: [{ ...proposal(["c1"], []), files: [], rows }],
  });
  const line = cards[0]?.querySelector("summary");
  expect(line?.querySelector(".state")?.textContent).toBe(words);
  expect(line?.querySelector(".stat")?.textContent).toBe("");
  const buttons = [...(line?.querySelectorAll(".keeping button") ?? [])];
  expect(buttons.map((each) => each.getAttribute("aria-label"))).toEqual(keeping);
  expect(cards[0]?.classList.contains("settled")).toBe(words !== "" || rows[0]?.undecidable !== "");
});

const said = (turnId: string): UserMessage => ({
  kind: "userMessage",
  itemId: `said-${turnId}`,
  turnId,
  text: turnId,
  attachments: [],
  steer: false,
});

test.each<[string, HunkState[], string[]]>([
  ["nothing decided", ["pending"], ["Review"]],
  ["applied by a rule", ["applied"], ["Review", "Undo"]],
  ["taken back", ["reverted"], ["Review", "Redo"]],
  ["both", ["applied", "reverted"], ["Review", "Undo", "Redo"]],
])("the row below a turn: %s", (_, states, buttons) => {
  const { view, posted, list } = show({
    items: [said("t"), call("c1"), said("u")],
    proposals: [proposal(["c1"], states)],
  });
  const found = () => [...list.element.querySelectorAll<HTMLButtonElement>(".turn .link")];
  expect(found().map((each) => each.textContent)).toEqual(buttons);
  expect([...list.element.children].map((each) => each.classList[0])).toEqual([
    "card",
    "card",
    "turn",
    "card",
    "turn",
  ]);
  for (const each of found()) each.click();
  const wishes = { Review: "review", Undo: "undo", Redo: "redo" } as Record<string, string>;
  expect(posted.map((each) => (each.type === "turn" ? each.what : each.type))).toEqual(
    buttons.map((each) => wishes[each] ?? "decide"),
  );
  // it leaves with what it was about, and stays away while the turn runs
  view.session.fold({ kind: "turnStarted", turnId: "t", promptId: "q", modelId: "m" });
  list.update(new Set(["c1"]));
  expect(found()).toEqual([]);
});

test("the way back is at prompts that changed something", () => {
  const ran: ToolCall = { ...call("c3"), turnId: "ran", effect: "run", proposalId: null };
  const { posted, list } = show({
    items: [
      said("t"),
      call("c1"),
      said("talk"),
      said("ran"),
      ran,
      { ...said("t"), itemId: "s", steer: true },
    ],
    proposals: [proposal(["c1"], ["rejected"])],
  });
  const found = [...list.element.querySelectorAll<HTMLButtonElement>(".restore")];
  for (const each of found) each.click();
  expect(posted).toEqual(["t", "ran"].map((turnId) => ({ type: "turn", what: "restore", turnId })));
});

test.each([
  ["running", { turnId: "t", modelId: "m", steps: 0, routed: null }, ["", ""]],
  ["stopped", null, ["Send now", "", ""]],
])("queued prompts while the turn is %s", (_, turn, buttons) => {
  const first: QueuedPrompt = { promptId: "f", text: "first", attachments: [] };
  const queued: QueuedPrompt = { promptId: "q", text: "later", attachments: [] };
  const lastTurn: TurnEnded = {
    kind: "turnEnded",
    turnId: "before",
    reason: "cancelled",
    message: "",
    canContinue: true,
    usage: null,
  };
  const { view, posted } = show({ turn, lastTurn, queue: [first, queued] });
  const back: QueuedPrompt[] = [];
  const standing = new StatusLines(
    view,
    () => undefined,
    (prompt) => back.push(prompt),
    (modelId) => modelId,
  );
  standing.update();
  const found = [...standing.element.querySelectorAll<HTMLButtonElement>("button")];
  expect(found.map((each) => each.textContent)).toEqual(buttons);
  for (const each of [found.at(-1), found[0]]) each?.click();
  const send = { type: "prompt", text: "first", attachments: [], how: "send", promptId: "f" };
  const takenBack = { type: "unqueue", promptId: "q" };
  expect([posted, back]).toEqual(
    turn === null
      ? [[takenBack, send], [queued]]
      : [
          [takenBack, { ...takenBack, promptId: "f" }],
          [queued, first],
        ],
  );
});
