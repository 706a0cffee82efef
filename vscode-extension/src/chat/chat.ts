import { IGNORED } from "../labels";
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { advised } from "../daemon/advice";
import type { Action, How } from "./messages";
import { type Daemon, Refused, roots, text } from "../daemon/client";
import type {
  Effort,
  ApprovalResolveParams,
  ApprovalResolveResult,
  AttachmentInput,
  Event,
  Mode,
  SessionState,
} from "../protocol";
import type { Session } from "../sessions/session";
import type { Sessions } from "../sessions/sessions";
import type { RememberedSession } from "../sessions/rememberedSession";

/** Bytes of a picture at most: what one answer of the daemon holds. */
const PICTURE = 4_194_304;

/** Something to say that is no part of the conversation. */
export interface Notification {
  level: "info" | "warning" | "error";
  text: string;
  /** The tool call it is about. */
  toolCallId?: string;
  actions?: Action[];
}

/** An answer came within half a second of its question; `toolCallId` is the call asked about. */
export function tooSoon(toolCallId: string): Notification {
  return { level: "info", text: IGNORED.tooSoon, toolCallId };
}

/** A yes to something else than is asked by now; `toolCallId` is the call asked about. */
export function stale(toolCallId: string): Notification {
  return { level: "warning", text: IGNORED.stale, toolCallId };
}

/** Why an answer came to nothing; undefined when it was taken. */
export function whyIgnored(
  { status, summary }: ApprovalResolveResult,
  toolCallId: string,
): Notification | undefined {
  if (status === "tooSoon") return tooSoon(toolCallId);
  if (status === "stale") return stale(toolCallId);
  return status === "alreadyResolved" ? { level: "info", text: summary } : undefined;
}

/** Between two notifications that the user types; the daemon ignores more frequent ones. */
const BEGIN_MS = 60_000;

/** The session one chat shows, or a blank one until it begins, and the user's intents on it. It decides nothing. */
export class Chat implements vscode.Disposable {
  /** Whether the chat is on the screen. */
  visible = false;
  private session: Session | undefined;
  /** The session to come back to after a reload. */
  sessionId: string;
  private blank: SessionState = empty();
  /** What the user chose for the blank one; else it begins in the mode that is configured, which `blank` shows. */
  private mode: Mode | null = null;
  private creating: Promise<void> | undefined;
  private restoring: Promise<void> | undefined;
  /** When the daemon was last told that the user types (`Date.now()`). */
  private begun = 0;
  private readonly events = new vscode.EventEmitter<{ event: Event; seq: number }>();
  private readonly resets = new vscode.EventEmitter<void>();
  private readonly words = new vscode.EventEmitter<Notification>();
  /** An event was folded into `state`. */
  readonly onEvent = this.events.event;
  /** `state` is another one. */
  readonly onReset = this.resets.event;
  readonly onNotification = this.words.event;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly daemon: Daemon,
    private readonly sessions: Sessions,
    private readonly shown: Pick<RememberedSession, "get" | "set">,
  ) {
    this.sessionId = shown.get() ?? "";
    const own = (sessionId: string) => this.session?.state.sessionId === sessionId;
    this.subscriptions = [
      this.events,
      this.resets,
      this.words,
      sessions.onEvent(({ sessionId, event, seq }) => own(sessionId) && this.events.fire({ event, seq })),
      sessions.onReset((sessionId) => own(sessionId) && this.resets.fire()),
      sessions.onFailed(
        ({ sessionId, error }) =>
          own(sessionId) && this.tell({ level: "error", text: text(error), actions: ["restart", "logs"] }),
      ),
    ];
  }

  get state(): SessionState {
    return this.session?.state ?? this.blank;
  }

  get seq(): number {
    return this.session?.lastSeq ?? 0;
  }

  /** The session plays a script: the model is none to go on with. */
  get scripted(): boolean {
    return this.state.modelId.startsWith("scripted:");
  }

  drawn(seq: number): void {
    this.session?.drawn(seq);
  }

  tell(told: Notification): void {
    this.words.fire(told);
  }

  /** Do something that may be refused; a refusal is told in words. */
  async attempt<T>(work: () => Promise<T>, toolCallId?: string): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const actions = error instanceof Refused ? remedies(error) : or(advised(text(error)), "logs");
      this.tell({ level: "error", text: text(error), actions, ...(toolCallId ? { toolCallId } : {}) });
      return undefined;
    }
  }

  /** The line stands (again): go on with what was shown, or with what this window showed last. */
  connected(): Promise<void> {
    this.restoring = this.restore().finally(() => {
      this.restoring = undefined;
    });
    return this.restoring;
  }

  private async restore(): Promise<void> {
    if (this.session !== undefined) return this.session.catchUp();
    if (this.sessionId === "") return void this.showConfiguredMode();
    try {
      await this.open(this.sessionId);
    } catch (error) {
      if (error instanceof Refused && error.data?.kind === "sessionNotFound")
        this.remember(""); // deleted elsewhere: a new one then
      else if (this.daemon.connection.status === "ready") throw error; // else it is tried with the next line
    }
  }

  async open(sessionId: string): Promise<void> {
    this.show(await this.sessions.open(sessionId));
  }

  /** A clean sheet. The session itself is made with the first prompt: nobody wants a list full of empty ones. */
  async fresh(): Promise<void> {
    const { effort } = this.state;
    const modelId = this.scripted ? "" : this.state.modelId;
    // all at once: a prompt may come while the daemon still hears of it
    const left = this.leave();
    this.blank = { ...empty(), modelId, effort };
    this.mode = null;
    this.remember("");
    this.resets.fire();
    void this.showConfiguredMode();
    await left;
  }

  private async showConfiguredMode(): Promise<void> {
    try {
      const { settings } = await this.daemon.request("amanu/settings/list", {});
      const mode = settings.find(({ key }) => key === "mode")?.value as Mode;
      if (this.session === undefined && this.mode === null) this.changeBlank({ mode });
    } catch {
      // its session will tell
    }
  }

  async prompt(
    said: string,
    attachments: AttachmentInput[],
    how: How,
    promptId: string = randomUUID(),
  ): Promise<void> {
    const params = { promptId, text: said, attachments };
    await this.begin();
    const { sessionId, turn } = this.state;
    if (how === "steer" && turn !== null) {
      try {
        await this.daemon.request("amanu/prompt/steer", { ...params, sessionId, turnId: turn.turnId });
        return;
      } catch (error) {
        if (!(error instanceof Refused) || error.data?.kind !== "staleTurn") throw error; // over meanwhile: a new turn
      }
    }
    await this.daemon.request("amanu/prompt/send", { ...params, sessionId });
  }

  /** Have a session, if there is none yet. */
  async begin(): Promise<void> {
    await this.daemon.settled();
    await this.restoring?.catch(() => undefined); // said elsewhere; a new session it is, then
    if (this.session !== undefined) {
      if (this.state.closed) await this.session.catchUp(); // a sub-agent's, which has ended: it goes on
      return;
    }
    this.creating ??= this.create().finally(() => {
      this.creating = undefined;
    });
    await this.creating;
  }

  async unqueue(promptId: string): Promise<void> {
    await this.daemon.request("amanu/prompt/unqueue", { sessionId: this.state.sessionId, promptId });
  }

  async stop(): Promise<void> {
    const { sessionId, turn } = this.state;
    if (turn !== null) await this.daemon.request("amanu/turn/cancel", { sessionId, turnId: turn.turnId });
  }

  async stopAgent(agentId: string): Promise<void> {
    await this.daemon.request("amanu/agent/stop", { sessionId: this.state.sessionId, agentId });
  }

  async compact(): Promise<void> {
    const { sessionId } = this.state;
    if (sessionId === "") return this.tell({ level: "info", text: "There is nothing to compact yet." });
    const { status } = await this.daemon.request("amanu/session/compact", { sessionId });
    if (status === "queued")
      this.tell({
        level: "info",
        text: "The conversation is compacted at the next step of the running turn.",
      });
  }

  async resolve(answer: Omit<ApprovalResolveParams, "sessionId">): Promise<void> {
    const { sessionId } = this.state;
    const result = await this.daemon.request("amanu/approval/resolve", { ...answer, sessionId });
    const ignored = whyIgnored(result, answer.toolCallId);
    if (ignored !== undefined) this.tell(ignored);
  }

  /** Answer a question, or decline to. */
  async answer(
    questionId: string,
    outcome: "answered" | "declined",
    answers: { [fieldId: string]: unknown },
    note: string,
  ): Promise<void> {
    const { sessionId } = this.state;
    const params = { sessionId, questionId, outcome, answers, note };
    const result = await this.daemon.request("amanu/question/answer", params);
    if (result.status === "alreadyAnswered") this.tell({ level: "info", text: result.summary });
  }

  /** Tells the daemon that the user types: it reopens the connection to the model's service if that was closed. */
  beginPrompt(): void {
    const now = Date.now();
    if (now - this.begun < BEGIN_MS) return;
    this.begun = now;
    const { sessionId, modelId } = this.state;
    void this.daemon.notify("amanu/prompt/begin", sessionId ? { sessionId } : { modelId: modelId || null });
  }

  async setMode(mode: Mode): Promise<void> {
    if (this.session === undefined) {
      this.mode = mode;
      this.changeBlank({ mode });
    } else await this.daemon.request("amanu/session/setMode", { sessionId: this.state.sessionId, mode });
  }

  async setModel(modelId: string): Promise<void> {
    if (this.session === undefined) this.changeBlank({ modelId });
    else await this.daemon.request("amanu/session/setModel", { sessionId: this.state.sessionId, modelId });
  }

  async setEffort(effort: Effort): Promise<void> {
    if (this.session === undefined) this.changeBlank({ effort });
    else await this.daemon.request("amanu/session/setEffort", { sessionId: this.state.sessionId, effort });
  }

  async rename(sessionId: string, title: string): Promise<void> {
    await this.daemon.request("amanu/session/rename", { sessionId, title });
  }

  /** Fetch items before the first one shown. */
  async earlier(): Promise<{ items: SessionState["items"]; hasEarlier: boolean } | undefined> {
    const session = this.session;
    const first = this.state.items[0];
    if (session === undefined || first === undefined || !this.state.hasEarlier) return undefined;
    const { sessionId } = this.state;
    const page = await this.daemon.request("amanu/history/page", {
      sessionId,
      beforeItemId: first.itemId,
      limit: 100,
    });
    if (session !== this.session) return undefined;
    session.items.prepend(page.items, page.hasEarlier);
    return page;
  }

  /** A picture of the conversation as a `data:` address; "" when it cannot be had. */
  async picture(blobId: string, mediaType: string): Promise<string> {
    const { sessionId } = this.state;
    const params = { sessionId, blobId, encoding: "base64" as const, limit: PICTURE };
    const { text: data, nextOffset } = await this.daemon.request("amanu/blob/get", params);
    return nextOffset === null ? `data:${mediaType};base64,${data}` : "";
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
    void this.leave();
  }

  private async create(): Promise<void> {
    const folders = roots();
    if (folders.length === 0) throw new Refused("Open a folder first.", undefined);
    const { modelId, effort } = this.blank;
    const params = {
      sessionId: randomUUID(),
      roots: folders,
      mode: this.mode,
      modelId: modelId || null,
      effort,
    };
    this.remember(params.sessionId); // a reload before the answer comes back to it
    this.show(this.sessions.created(await this.daemon.request("amanu/session/create", params)));
  }

  private show(session: Session): void {
    void this.leave();
    this.session = session;
    this.remember(session.state.sessionId);
    this.resets.fire();
  }

  private remember(sessionId: string): void {
    this.sessionId = sessionId;
    this.shown.set(sessionId || undefined);
  }

  private async leave(): Promise<void> {
    const session = this.session;
    this.session = undefined;
    if (session !== undefined) await this.sessions.release(session.state.sessionId);
  }

  private changeBlank(change: Partial<SessionState>): void {
    this.blank = { ...this.blank, ...change };
    this.resets.fire();
  }
}

function remedies(error: Refused): Action[] {
  switch (error.data?.kind) {
    case "authRequired":
      return or(advised(error.message), "setKey");
    case "modelNotFound":
    case "modelUnavailable":
      return ["selectModel", "setKey"];
    case "internalError":
    case "storageError":
      return ["logs"];
    default:
      return [];
  }
}

function or(actions: Action[], otherwise: Action): Action[] {
  return actions.length > 0 ? actions : [otherwise];
}

function empty(): SessionState {
  return {
    sessionId: "",
    title: "",
    roots: roots(),
    mode: "ask",
    modelId: "",
    effort: null,
    serviceTier: null,
    trusted: vscode.workspace.isTrusted,
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
  };
}
