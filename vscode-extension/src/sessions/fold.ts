import type {
  Event,
  Item,
  ItemDelta,
  Job,
  Proposal,
  Question,
  SessionChanged,
  SessionState,
  SubAgent,
  Todo,
} from "../protocol";

/** The kinds of items this client can draw; others are ignored, as the protocol asks. */
const KINDS: ReadonlySet<string> = new Set<Item["kind"]>([
  "userMessage",
  "thought",
  "answer",
  "toolCall",
  "todoList",
  "notice",
  "citations",
  "question",
]);

/** Background commands that a session keeps. */
const MAX_JOBS = 20;

/** Sub-agents that a session keeps. */
const MAX_AGENTS = 20;

const NONE: readonly string[] = [];

/**
 * A session and the one way it changes. The same fold exists in Python and Lua; `protocol/fixtures/*.json` specify it.
 *
 * Folding costs the same at the first event and at the thousandth, but for withdrawals.
 */
export class Folded {
  private at = new Map<string, number>();
  /** Ids in their order: of the session's own items ("") and of those of each sub-agent. */
  private byAgent = new Map<string, string[]>();
  /** Where an item stands among those. */
  private places = new Map<string, number>();

  constructor(readonly state: SessionState) {
    state.agents ??= []; // a daemon from before there were any is still a daemon
    this.reindex();
  }

  item(itemId: string): Item | undefined {
    const at = this.at.get(itemId);
    return at === undefined ? undefined : this.state.items[at];
  }

  /** The ids of the items of one sub-agent, or of the session's own (null). The array is another one when it did more
   * than grow. */
  ids(agentId: string | null): readonly string[] {
    return this.byAgent.get(agentId ?? "") ?? NONE;
  }

  /** Where the item stands among those of the same hand. */
  placeOf(itemId: string): number | undefined {
    return this.places.get(itemId);
  }

  /** Put earlier items, from `amanu/history/page`, before the first one. */
  prepend(items: Item[], hasEarlier: boolean): void {
    this.state.items = [...items.filter((item) => !this.at.has(item.itemId)), ...this.state.items];
    this.state.hasEarlier = hasEarlier;
    this.reindex();
  }

  /** Apply one event in place. Never fails: an event about something unknown changes nothing. */
  fold(event: Event): void {
    const state = this.state;
    switch (event.kind) {
      case "itemDelta":
        this.append(event);
        break;
      case "itemStarted":
      case "itemChanged":
      case "itemCompleted":
        this.put(event.item);
        break;
      case "itemsWithdrawn":
        this.remove(event.itemIds);
        state.questions = state.questions.filter(({ itemId }) => !event.itemIds.includes(itemId));
        break;
      case "itemsReplaced":
        this.remove(event.withdrawn);
        for (const item of event.items) this.put(item);
        break;
      case "approvalRequested":
        state.approvals = [
          ...state.approvals.filter((each) => each.toolCallId !== event.approval.toolCallId),
          event.approval,
        ];
        break;
      case "approvalResolved":
        state.approvals = state.approvals.filter((each) => each.toolCallId !== event.toolCallId);
        break;
      case "proposalChanged":
        this.putProposal(event.proposal);
        break;
      case "turnStarted":
        state.turn = { turnId: event.turnId, modelId: event.modelId, steps: 0, routed: null };
        state.lastTurn = null;
        break;
      case "turnRouted":
        if (state.turn?.turnId === event.turnId)
          state.turn = { ...state.turn, modelId: event.modelId, routed: event.reason };
        break;
      case "stepEnded":
        if (state.turn?.turnId === event.turnId) state.turn = { ...state.turn, steps: event.step };
        break;
      case "turnEnded":
        state.turn = null;
        state.lastTurn = event;
        state.approvals = state.approvals.filter(({ agentId }) => outlivesTurn(state, agentId));
        state.retry = null;
        if (state.todos.every(({ status }) => status === "done" || status === "cancelled"))
          this.setTodos([], "");
        break;
      case "promptQueued":
        state.queue = [...state.queue, event.prompt];
        break;
      case "promptUnqueued":
        state.queue = state.queue.filter((each) => each.promptId !== event.promptId);
        break;
      case "retryChanged":
        state.retry = event.retry;
        break;
      case "sessionRewound": {
        const at = this.at.get(event.itemId);
        state.items = at === undefined ? event.items : state.items.slice(0, at);
        state.lastTurn = null;
        this.setTodos(event.todos, event.todosSummary);
        state.plan = event.plan ?? state.plan;
        state.questions = state.questions.filter(({ turnId }) => !event.turnIds.includes(turnId));
        this.reindex();
        break;
      }
      case "usageChanged":
        state.usage = event.usage;
        break;
      case "jobChanged":
        putJob(state, event.job);
        break;
      case "jobProgress":
        state.jobs = state.jobs.map((job) =>
          job.jobId === event.jobId
            ? { ...job, lastLine: event.lastLine, outputSize: event.outputSize }
            : job,
        );
        break;
      case "agentChanged":
        putAgent(state, event.agent);
        break;
      case "sessionChanged":
        changeSession(state, event);
        break;
    }
  }

  private put(item: Item): void {
    if (!KINDS.has(item.kind)) return;
    if (item.kind === "question") this.putQuestion(item);
    const at = this.at.get(item.itemId);
    if (at === undefined) {
      this.at.set(item.itemId, this.state.items.length);
      this.state.items.push(item);
      this.line(item);
    } else {
      this.state.items[at] = item;
    }
    if (item.kind === "todoList") this.setTodos(item.todos, item.summary);
  }

  private setTodos(todos: Todo[], summary: string): void {
    this.state.todos = todos;
    this.state.todosSummary = summary;
  }

  private putQuestion(question: Question): void {
    const others = this.state.questions.filter(({ itemId }) => itemId !== question.itemId);
    this.state.questions = question.state === "open" ? [...others, question] : others;
  }

  private append(delta: ItemDelta): void {
    const item = this.item(delta.itemId);
    if (item?.kind === "thought" || item?.kind === "answer")
      this.put({ ...item, text: item.text + delta.text });
    else if (item?.kind === "toolCall") this.put({ ...item, output: item.output + delta.text });
  }

  private remove(itemIds: string[]): void {
    if (!itemIds.some((id) => this.at.has(id))) return;
    const gone = new Set(itemIds);
    this.state.items = this.state.items.filter((item) => !gone.has(item.itemId));
    this.reindex();
  }

  private reindex(): void {
    this.at = new Map(this.state.items.map((item, at) => [item.itemId, at]));
    this.byAgent = new Map();
    this.places = new Map();
    for (const item of this.state.items) this.line(item);
  }

  /** The last of its hand. */
  private line(item: Item): void {
    const agentId = agentOf(item) ?? "";
    const ids = this.byAgent.get(agentId) ?? [];
    if (ids.length === 0) this.byAgent.set(agentId, ids);
    this.places.set(item.itemId, ids.length);
    ids.push(item.itemId);
  }

  private putProposal(proposal: Proposal): void {
    const proposals = this.state.proposals;
    const at = proposals.findIndex((each) => each.proposalId === proposal.proposalId);
    const known = proposals[at];
    if (known === undefined) {
      proposals.push(proposal);
      return;
    }
    // later versions leave out a base text that has not changed
    const earlier = new Map(known.files.map((file) => [file.path, file]));
    const files = proposal.files.map((file) => {
      const was = earlier.get(file.path);
      return was?.baseBlob === file.baseBlob ? { ...file, baseText: file.baseText ?? was.baseText } : file;
    });
    proposals[at] = { ...proposal, files };
  }
}

/** The sub-agent whose work the item shows; null: the session's own. */
export function agentOf(item: Item): string | null {
  return "agentId" in item ? item.agentId : null;
}

/** Replace the job of the same id in its place, or append; then forget the first that ended, if there are many. */
function putJob(state: SessionState, job: Job): void {
  if (state.jobs.some((known) => known.jobId === job.jobId)) {
    state.jobs = state.jobs.map((known) => (known.jobId === job.jobId ? job : known));
    return;
  }
  const jobs = [...state.jobs, job];
  const ended = jobs.length > MAX_JOBS ? jobs.findIndex((known) => known.state !== "running") : -1;
  state.jobs = jobs.filter((_, at) => at !== ended);
}

/** As `putJob`. */
function putAgent(state: SessionState, agent: SubAgent): void {
  if (state.agents.some((known) => known.agentId === agent.agentId)) {
    state.agents = state.agents.map((known) => (known.agentId === agent.agentId ? agent : known));
    return;
  }
  const agents = [...state.agents, agent];
  const ended = agents.length > MAX_AGENTS ? agents.findIndex((known) => !works(known)) : -1;
  state.agents = agents.filter((_, at) => at !== ended);
}

/** Whether the sub-agent waits for the user. */
export function waitsForUser({ approvals, questions }: SessionState, { agentId }: SubAgent): boolean {
  return [...approvals, ...questions].some((asked) => asked.agentId === agentId);
}

/** Whether a sub-agent in the background asks: it goes on without the turn. */
function outlivesTurn(state: SessionState, agentId: string | null): boolean {
  return state.agents.some((agent) => agent.agentId === agentId && agent.background && works(agent));
}

export function works(agent: SubAgent): boolean {
  return agent.state === "waiting" || agent.state === "running";
}

function changeSession(state: SessionState, event: SessionChanged): void {
  state.roots = event.roots ?? state.roots;
  state.title = event.title ?? state.title;
  state.mode = event.mode ?? state.mode;
  state.modelId = event.modelId ?? state.modelId;
  state.effort = event.effort ?? state.effort;
  state.serviceTier = event.serviceTier ?? state.serviceTier;
  state.trusted = event.trusted ?? state.trusted;
  state.trustChanged = event.trustChanged ?? state.trustChanged;
  state.sandbox = event.sandbox ?? state.sandbox;
  state.plan = event.plan ?? state.plan;
  state.parentSessionId = event.parentSessionId ?? state.parentSessionId;
  state.agent = event.agent ?? state.agent;
  state.purpose = event.purpose ?? state.purpose;
  state.closed = event.closed ?? state.closed;
}
