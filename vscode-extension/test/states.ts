import type {
  Approval,
  ApprovalAnswer,
  Grant,
  ModelInfo,
  Scope,
  SessionState,
  SessionSummary,
  ToolCall,
  CommandSandbox,
} from "../src/protocol";
import { GRANTS, SCOPES } from "../src/labels";

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
  movable: false,
  notUndone: [],
};
const ASKED: Approval = {
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
  answers: [],
  lines: [{ tone: "plain", text: "Needs approval: no rule allows it" }],
};

export function approvalAnswer(
  label: string,
  action: ApprovalAnswer["action"],
  more: Partial<ApprovalAnswer> = {},
): ApprovalAnswer {
  const plain = {
    scope: "once",
    grants: [],
    rule: "",
    explanation: "",
    mode: null,
    freshContext: false,
  } as const;
  return { label, action, ...plain, grants: [], asks: "", further: false, ...more };
}

/** The answers as the daemon has them (`permissions/answers.py`): what the call wants is granted by the first. */
function answersTo({ scopes, grants, likelyGrants, proposalId, command }: Approval): ApprovalAnswer[] {
  const first = grants.filter((grant) => likelyGrants.includes(grant));
  const ways = [first, ...(first.length > 0 ? [[]] : []), ...grants.map((grant) => [grant])].filter(
    (way, at, all) => all.findIndex((each) => `${each}` === `${way}`) === at,
  );
  const verb = proposalId === null ? "Allow" : "Accept all";
  const allow = (scope: Scope, rule: string, explanation: string, way: Grant[], further = false) => {
    const granted = way.map((grant) => GRANTS[grant].name).join(" and ");
    const words = granted || (first.length > 0 ? "without network access" : "");
    const label = `${verb} ${SCOPES[scope]} ${words}`.trim();
    const marked = rule.replace(/^(\w+)/, `$1${way.map((grant) => `+${grant}`).join("")}`);
    return approvalAnswer(label, "allow", { scope, grants: way, rule: marked, explanation, further });
  };
  const kept = scopes.filter(({ scope }) => scope !== "once");
  const keep = (way: Grant[]) =>
    kept.map(({ scope, rule, explanation }) => allow(scope, rule, explanation, way, way !== first));
  const edit = { grants: first, asks: "command" } as const;
  return [
    ...ways.map((way) => allow("once", "", "", way)),
    ...(proposalId === null ? [] : [approvalAnswer("Review hunk by hunk", "review")]),
    ...keep(first),
    ...(command === null ? [] : [approvalAnswer("Edit the command", "editCommand", edit)]),
    approvalAnswer("Reject", "reject"),
    approvalAnswer("Reject with a reason", "reject", { asks: "reason" }),
    ...ways.filter((way) => way !== first && way.length > 0).flatMap(keep),
  ];
}

/** The same question, changed. */
export function question(changes: Partial<Approval> = {}): Approval {
  const asked = { ...ASKED, ...changes };
  return { ...asked, answers: changes.answers ?? answersTo(asked) };
}

export const APPROVAL = question();

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
    lastPrompt: "",
    lastAnswer: "",
    archived: false,
    parentSessionId: null,
    agent: null,
    purpose: "chat",
    ...given,
  };
}
