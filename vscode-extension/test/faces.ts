import type { ToView } from "../src/chat/messages";
import type {
  Answer,
  Approval,
  CommandPart,
  Item,
  Proposal,
  Question,
  SessionState,
  SessionSummary,
  SubAgent,
  ToolCall,
  UserMessage,
} from "../src/protocol";
import { file, hunk, proposal, row, version } from "./edits";
import { CALL, model, question, sandbox, state, summary } from "./states";

/** What leads to a state of the chat: what the extension says, what the user presses (a selector), what they write. */
export type Step = ToView | { type: "press"; what: string } | { type: "write"; text: string };

const AT = 1_790_000_000_000;
const ANSWER = `# What stands where

The parser reads **one line at a time**, see [src/cart/parser.py](src/cart/parser.py:40) and \`src/cart/total.py:12\`.
More in [the manual](https://example.org/manual).

## How it fits

1. A line is split into words.
2. Each word is looked up:
   - names in \`names.json\`,
   - numbers by \`Decimal\`.

- [x] read the tests
- [ ] write one for an empty line

| Name | Lines | Share |
|:-----|------:|:-----:|
| parser | 120 | 60 % |
| total | 80 | 40 % |

> Numbers are rounded half to even.

---

### In Python

\`\`\`python
# src/cart/total.py
def total(lines: list[Line]) -> Decimal:
    """What is to be paid."""
    return sum((line.price * line.count for line in lines), start=Decimal("0"))
\`\`\`

\`\`\`typescript
export const total = (lines: Line[]): number => lines.reduce((sum, { price, count }) => sum + price * count, 0);
\`\`\`

\`\`\`diff
-    return sum(lines)
+    return sum(lines, start=Decimal("0"))
\`\`\`

\`\`\`bash
python -m pytest -q tests/test_total.py
\`\`\`
`;
const BASE = "def total(lines):\n    return sum(lines)\n\n\ndef count(lines):\n    return len(lines)\n";

function user(text: string, itemId = "u1", turnId = "t1"): UserMessage {
  return { kind: "userMessage", itemId, turnId, text, attachments: [], steer: false };
}

function answer(text: string, itemId = "a1", turnId = "t1"): Answer {
  return { kind: "answer", itemId, turnId, agentId: null, text };
}

function call(itemId: string, tool: string, title: string, more: Partial<ToolCall> = {}): ToolCall {
  return { ...CALL, itemId, tool, title, effect: "read", arguments: {}, state: "succeeded", ...more };
}

function run(itemId: string, command: string, more: Partial<ToolCall> = {}): ToolCall {
  return call(itemId, "run_shell_command", `Run ${command}`, {
    effect: "run",
    arguments: { command },
    sandbox: sandbox("bubblewrap"),
    ...more,
  });
}

const READS = [
  call("r1", "read_file", "Read src/cart/parser.py", {
    arguments: { path: "src/cart/parser.py" },
    summary: "lines 1–120",
  }),
  call("r2", "read_file", "Read src/cart/total.py", {
    arguments: { path: "src/cart/total.py" },
    summary: "80 lines",
  }),
  call("r3", "grep", "Search for Decimal", { summary: "14 matches in 3 files" }),
];

function edited(itemId: string, path: string, hunkState: "pending" | "applied"): [ToolCall, Proposal] {
  const hunks = [
    hunk(
      `${itemId}-h1`,
      2,
      "    return sum(lines)\n",
      "    return sum(lines, start=Decimal(0))\n",
      hunkState,
    ),
  ];
  const made = { ...proposal(`p-${itemId}`, "t1", [file(path, BASE, hunks, { added: 1, removed: 1 })]) };
  return [
    call(itemId, "edit_file", `Edit ${path}`, {
      effect: "write",
      arguments: { path },
      proposalId: made.proposalId,
      state: hunkState === "pending" ? "awaitingApproval" : "succeeded",
    }),
    { ...made, toolCallIds: [itemId], state: hunkState === "pending" ? "pending" : "closed" } as Proposal,
  ];
}

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function drawing(blobId: string, size: number) {
  return version({ size, picture: { blobId, size }, mediaType: "image/png" });
}

/** A command whose changes are of every kind. */
const BINARIES = edited("b1", "/w/tools/release.sh", "pending");
BINARIES[1].rows = [
  row("b-mode", "/w/tools/release.sh", { kind: "mode", title: "becomes executable" }),
  row("b-logo", "/w/docs/logo.png", {
    before: drawing("old", 9120),
    after: drawing("new", 12_480),
    title: "picture, 12,480 bytes",
  }),
  row("b-link", "/w/current", {
    kind: "link",
    before: null,
    after: version({ kind: "link", target: "../releases/2" }),
    title: "link to ../releases/2",
    lines: [{ tone: "warning", text: "It leads out of the workspace." }],
  }),
  row("b-gone", "/w/docs/old.pdf", {
    kind: "deletion",
    after: null,
    title: "deleted, 2,048 bytes",
    state: "conflicted",
    reason: "The file has changed since.",
  }),
  row("b-git", "/w", {
    kind: "git",
    before: null,
    after: null,
    title: "2 commits on main",
    lines: [
      { tone: "good", text: "3f1c2d0 Round totals with Decimal" },
      { tone: "plain", text: "    src/cart/total.py" },
      { tone: "bad", text: "Moves the tag v1, which cannot be undone." },
    ],
    needs: ["b1-h1", "b-mode"],
  }),
  row("b-late", "/w/cache.db", { undecidable: "Amanu was stopped before this was decided." }),
];

const PARTS: CommandPart[] = [
  { text: "git fetch origin", decision: "ask", rule: "", reason: "Uses the network." },
  { text: "git log --oneline -5", decision: "allow", rule: "read-only", reason: "Only reads." },
];
const LINE = "git fetch origin && git log --oneline -5";
const ASKED: Approval = question({
  toolCallId: "c1",
  title: `Run ${LINE}`,
  detail: LINE,
  command: LINE,
  parts: PARTS,
  grants: ["network"],
  likelyGrants: ["network"],
  scopes: [
    { scope: "once", rule: "", explanation: "" },
    {
      scope: "session",
      rule: "run_shell_command(git fetch:*)",
      explanation: "Allows git fetch, with any words after it.",
    },
    {
      scope: "workspace",
      rule: "run_shell_command(git fetch:*)",
      explanation: "Allows git fetch, with any words after it.",
    },
  ],
  lines: [{ tone: "plain", text: "Needs approval: no rule allows it" }],
});
const WAITS = run("c1", LINE, { state: "awaitingApproval" });

const CHOICE: Question = {
  kind: "question",
  itemId: "q1",
  turnId: "t1",
  agentId: null,
  toolCallId: "ask-1",
  asker: "Amanu",
  title: "Which rounding?",
  fields: [
    {
      fieldId: "f1",
      kind: "choice",
      header: "Rounding",
      text: "How are totals rounded?",
      options: [
        { label: "Half to even", description: "What banks do, and Decimal by default." },
        { label: "Half up", description: "What customers expect." },
      ],
      other: true,
      required: true,
      placeholder: "",
      default: null,
    },
  ],
  state: "open",
  answers: {},
  note: "",
  client: null,
  summary: "",
} as Question;

const CONTEXT: NonNullable<SessionState["usage"]> = {
  inputTokens: 41_000,
  cacheReadTokens: 30_000,
  cacheWriteTokens: 4_000,
  outputTokens: 2_300,
  thoughtTokens: 0,
  costUsd: 0.12,
  contextTokens: 41_000,
  contextWindow: 200_000,
  toolTokens: 9_000,
  context: {
    system: 4_000,
    tools: 9_000,
    memory: 1_000,
    conversation: 12_000,
    toolOutput: 15_000,
    reserved: 30_000,
    free: 129_000,
    tier: "roomy",
    servers: [],
  },
  summary: "41,000 in, 2,300 out, $0.12",
  cost: "$0.12",
  percent: 24,
  fullness: "24% full",
};

function agent(more: Partial<SubAgent>): SubAgent {
  return {
    agentId: "agent-1",
    name: "investigator",
    description: "find where totals are rounded",
    sessionId: "child-1",
    toolCallId: "g1",
    background: false,
    state: "running",
    startedAt: AT,
    endedAt: null,
    steps: 4,
    costUsd: 0.02,
    activity: "Search for quantize",
    summary: "Running: 4 steps, $0.02",
    told: false,
    report: "",
    ...more,
  };
}

function listed(sessionId: string, title: string, more: Partial<SessionSummary>): SessionSummary {
  return summary({ sessionId, title, modelId: "anthropic:opus", createdAt: AT, updatedAt: AT, ...more });
}

export const SESSIONS: SessionSummary[] = [
  listed("s2", "Fetch what is new upstream", {
    status: "waiting",
    questions: [{ toolCallId: "c1", title: `Run ${LINE}`, questionId: null }],
    changes: 2,
    files: 2,
    added: 14,
    removed: 3,
    cost: "$0.08",
  }),
  listed("s3", "Round totals half to even in every module that prints a price", {
    status: "running",
    files: 4,
    added: 120,
    removed: 31,
    cost: "$0.42",
  }),
  listed("s1", "Totals with Decimal", { cost: "$0.12" }),
  listed("s4", "Why the nightly build fails", { status: "interrupted", changes: 3, cost: "$1.20" }),
  listed("s5", "", {}),
];

function shows(given: Partial<SessionState>): ToView[] {
  return [
    {
      type: "models",
      models: [model("anthropic:opus", { name: "Claude Opus 4.5" })],
      defaultModelId: "anthropic:opus",
    },
    { type: "commands", commands: [] },
    { type: "sessions", sessions: SESSIONS, current: "s1" },
    {
      type: "session",
      state: state({
        title: "Totals with Decimal",
        modelId: "anthropic:opus",
        effort: "high",
        usage: CONTEXT,
        sandbox: sandbox("bubblewrap"),
        ...given,
      }),
      seq: 0,
      client: "c1",
      remember: "s1",
    },
    {
      type: "looking",
      active: { path: "/w/src/cart/total.py", lines: { start: 39, end: 46 }, selectedText: "x" },
      shared: true,
    },
  ];
}

const TURN = { turnId: "t1", modelId: "anthropic:opus", steps: 3, routed: null };
const EDIT = edited("e1", "src/cart/total.py", "pending");
const APPLIED = ["total", "parser", "a_rather_long_name_of_a_module", "names"].map((name, at) =>
  edited(`e${at + 2}`, `src/cart/${name}.py`, "applied"),
);
const PROMPT = user("Use Decimal for totals, and look whether the tests still pass.");

function asks(approval: Approval, ...items: Item[]): ToView[] {
  return shows({ items: [PROMPT, ...items], approvals: [approval], turn: TURN });
}

/** By name. */
export const FACES: Record<string, Step[]> = {
  welcome: [
    ...shows({ sessionId: "", title: "", usage: null }),
    { type: "starters", file: "src/cart/total.py", problems: 2, changes: 3 },
  ],
  hindered: [
    ...shows({ sessionId: "", title: "", usage: null }),
    {
      type: "hindrance",
      hindrance: { text: "There is no model yet.", actions: ["setKey", "signIn", "tour"] },
    },
  ],
  answer: shows({
    items: [
      { ...PROMPT, attachments: [{ kind: "file", path: "src/cart/total.py", lines: { start: 0, end: 9 } }] },
      answer(ANSWER),
    ],
  }),
  rows: [
    ...shows({
      items: [
        PROMPT,
        { kind: "thought", itemId: "th1", turnId: "t1", subject: "Looking", text: "**Looking**\n\nat it" },
        ...READS,
        answer("It adds floats.", "a0"),
        ...APPLIED.map(([edit]) => edit),
        run("c2", "python -m pytest -q", { summary: "12 passed in 0.31s", output: "12 passed in 0.31s" }),
        run("c3", "npm run lint -- --max-warnings 0 src/cart", {
          state: "failed",
          summary: "exit code 1",
          output: "2 problems",
          error: "It ended with exit code 1.",
        }),
        answer("All totals are `Decimal` now.", "a2"),
      ],
      proposals: APPLIED.map(([, each]) => each),
      todos: [
        { text: "Use Decimal", status: "done" },
        { text: "Run the tests", status: "inProgress" },
        { text: "Say what changed", status: "pending" },
      ],
      todosSummary: "1 of 3 done: Run the tests",
    }),
    { type: "press", what: ".looked summary" },
    { type: "press", what: ".changes .unfold" },
    { type: "press", what: ".todos summary" },
  ],
  command: asks(ASKED, ...READS, WAITS),
  commandEdited: [...asks(ASKED, WAITS), { type: "press", what: ".approval .edit" }],
  edit: shows({
    items: [PROMPT, EDIT[0]],
    proposals: [EDIT[1]],
    approvals: [
      question({ toolCallId: "e1", title: EDIT[0].title, proposalId: EDIT[1].proposalId, command: null }),
    ],
    turn: TURN,
  }),
  binaries: [
    ...shows({
      items: [PROMPT, BINARIES[0]],
      proposals: [BINARIES[1]],
      approvals: [
        question({
          toolCallId: "b1",
          title: BINARIES[0].title,
          proposalId: BINARIES[1].proposalId,
          command: null,
        }),
      ],
      turn: TURN,
    }),
    { type: "press", what: ".hunks .fold button" },
    { type: "press", what: ".changes .unfold" },
    ...["old", "new"].map((blobId): Step => ({ type: "picture", blobId, source: PIXEL })),
  ],
  plan: asks(
    question({
      toolCallId: "pl1",
      title: "Carry out the plan",
      document: "plan",
      command: null,
      lines: [{ tone: "plain", text: "The plan has 3 steps." }],
    }),
    call("pl1", "submit_plan", "Submit a plan", { state: "awaitingApproval" }),
  ),
  question: shows({ items: [PROMPT, CHOICE], questions: [CHOICE], turn: TURN }),
  agents: shows({
    items: [
      PROMPT,
      call("g1", "run_agent", "investigator: find where totals are rounded", { state: "executing" }),
      { ...READS[0]!, itemId: "n1", agentId: "agent-1" },
      { ...READS[2]!, itemId: "n2", agentId: "agent-1" },
      { ...answer("They are rounded in two places.", "n3"), agentId: "agent-1" },
      call("g2", "run_agent", "reviewer: read the diff"),
    ],
    agents: [
      agent({}),
      agent({
        agentId: "agent-2",
        name: "reviewer",
        description: "read the diff",
        toolCallId: "g2",
        sessionId: "child-2",
        state: "completed",
        endedAt: AT,
        activity: "",
        summary: "Completed: 9 steps, $0.05",
      }),
    ],
    turn: TURN,
  }),
  failed: shows({
    items: [
      PROMPT,
      {
        kind: "notice",
        itemId: "no1",
        turnId: "t1",
        agentId: null,
        level: "error",
        code: "providerError",
        text: "Anthropic refuses the key: it is not valid.",
        detail: "401 invalid x-api-key",
      },
    ],
    lastTurn: {
      kind: "turnEnded",
      turnId: "t1",
      reason: "failed",
      message: "Anthropic refuses the key.",
      canContinue: true,
      usage: null,
    },
    trusted: false,
  }),
  sessions: [...shows({ items: [PROMPT, answer("Done.")] }), { type: "showSessions" }],
  running: [
    ...shows({
      items: [PROMPT, run("c2", "npm test", { state: "executing", output: "ok 1 rounds\nok 2 adds\n" })],
      turn: TURN,
      queue: [
        { promptId: "x1", text: "Then write the changelog for it, and bump the version", attachments: [] },
      ],
    }),
    {
      type: "notification",
      level: "info",
      text: "The key is saved.",
      toolCallId: null,
      actions: ["selectModel"],
    },
    { type: "write", text: "Also look at the docs" },
  ],
  mentions: [
    ...shows({ items: [PROMPT, answer("Done.")] }),
    { type: "write", text: "see @to" },
    {
      type: "mentions",
      text: "see @to",
      typed: "@to",
      incomplete: false,
      items: [
        { text: "@src/cart/total.py", detail: "src/cart", kind: "file" },
        { text: "@tools/", detail: "folder", kind: "folder" },
        { text: "#symbol:total", detail: "function in src/cart/total.py", kind: "symbol" },
        { text: "#problems", detail: "what the editor marks", kind: "problems" },
      ],
    },
  ],
  context: [...shows({ items: [PROMPT, answer("Done.")] }), { type: "showContext" }],
};
