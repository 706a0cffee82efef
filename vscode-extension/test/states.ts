import type {
  Approval,
  ModelInfo,
  SessionState,
  SessionSummary,
  ToolCall,
  CommandSandbox,
} from "../src/protocol";

/** A session's state, with what the test cares about. */
export function state(given: Partial<SessionState> = {}): SessionState {
  return {
    sessionId: "s1",
    title: "A session",
    roots: ["/w"],
    mode: "ask",
    modelId: "scripted:demo",
    effort: null,
    serviceTier: null,
    trusted: true,
    trustChanged: false,
    sandbox: null,
    plan: null,
    readOnly: false,
    closed: false,
    turn: null,
    lastTurn: null,
    items: [],
    hasEarlier: false,
    approvals: [],
    questions: [],
    proposals: [],
    queue: [],
    retry: null,
    usage: null,
    todos: [],
    todosSummary: "",
    jobs: [],
    agents: [],
    parentSessionId: null,
    agent: null,
    atWork: false,
    purpose: "chat",
    ...given,
  };
}

export function sandbox(tier: CommandSandbox["tier"], summary = "What it says."): CommandSandbox {
  return { tier, summary, brief: "", writes: "workspace", network: false, place: null };
}

/** A command that waits for the user, and the question about it. */
export const CALL: ToolCall = {
  kind: "toolCall",
  agentId: null,
  itemId: "c1",
  turnId: "t1",
  tool: "run_shell_command",
  title: "Run make",
  effect: "run",
  arguments: { command: "make" },
  state: "awaitingApproval",
  output: "",
  blob: null,
  summary: "",
  proposalId: null,
  decision: null,
  error: null,
  sandbox: null,
  warns: false,
  notUndone: [],
};
export const APPROVAL: Approval = {
  toolCallId: "c1",
  title: "Run make",
  detail: "make",
  effect: "run",
  rule: "no rule allows it",
  scopes: [
    { scope: "once", rule: "", explanation: "" },
    {
      scope: "session",
      rule: "run_shell_command(make)",
      explanation: "Allows make, with any words after it.",
    },
  ],
  proposalId: null,
  askedAt: 0,
  digest: "d1",
  parts: [],
  sandbox: null,
  grants: [],
  agentId: null,
  agent: "",
  likelyGrants: [],
  blocked: "",
  document: null,
  command: "make",
  originalCommand: null,
  options: [{ grants: [], label: "", mode: null, freshContext: false }],
  lines: [{ tone: "plain", text: "Needs approval: no rule allows it" }],
};

/** The same question, changed; what it wants is granted by the first answer, as the daemon has it. */
export function question(changes: Partial<Approval> = {}): Approval {
  const { likelyGrants, grants } = { ...APPROVAL, ...changes };
  const first = grants.filter((grant) => likelyGrants.includes(grant));
  return {
    ...APPROVAL,
    options: [{ grants: first, label: "", mode: null, freshContext: false }],
    ...changes,
  };
}

export function model(modelId: string, given: Partial<ModelInfo> = {}): ModelInfo {
  return {
    modelId,
    name: modelId,
    contextWindow: 1000,
    maxOutput: 100,
    inputPrice: null,
    outputPrice: null,
    cacheReadPrice: null,
    cacheWritePrice: null,
    longPrompt: null,
    searchPrice: null,
    otherPrices: null,
    thinking: false,
    images: false,
    efforts: [],
    serviceTiers: {},
    defaultEffort: null,
    factsFrom: "",
    retires: null,
    successor: null,
    available: true,
    unavailable: null,
    ...given,
  };
}

/** A session in the list. */
export function summary(given: Partial<SessionSummary>): SessionSummary {
  return {
    sessionId: "s",
    title: "",
    roots: ["/w"],
    modelId: "m",
    createdAt: 0,
    updatedAt: 0,
    status: "idle",
    questions: [],
    changes: 0,
    files: 0,
    added: 0,
    removed: 0,
    cost: "",
    parentSessionId: null,
    agent: null,
    purpose: "chat",
    ...given,
  };
}
