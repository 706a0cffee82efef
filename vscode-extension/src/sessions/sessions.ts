import * as vscode from "vscode";
import { waiting } from "../review/changes";
import type { Daemon } from "../daemon/client";
import type { Event, EventMessage, SessionResult, SessionState, SessionSummary } from "../protocol";
import { Session } from "./session";

/** Sessions that no chat shows and that are followed all the same, because something of them waits for the user. */
const FOLLOWED = 20;

/** An event of a session that was folded into its state. */
export interface SessionEvent {
  sessionId: string;
  event: Event;
  seq: number;
}

/**
 * The sessions this window is attached to: those that chats show, and those that wait for the user or have changes to
 * review, though no chat shows them. So review works for each of them, whatever chat is before the user.
 */
export class Sessions implements vscode.Disposable {
  private readonly attached = new Map<string, Session>();
  private readonly attaching = new Map<string, Promise<Session>>();
  /** How many chats show a session. */
  private readonly chats = new Map<string, number>();
  /** Those that are followed though no chat shows them. */
  private followed: ReadonlySet<string> = new Set();
  private readonly events = new vscode.EventEmitter<SessionEvent>();
  private readonly resets = new vscode.EventEmitter<string>();
  private readonly left = new vscode.EventEmitter<SessionState>();
  private readonly failures = new vscode.EventEmitter<{ sessionId: string; error: unknown }>();
  readonly onEvent = this.events.event;
  /** The state of that session is another one, or there is one now. */
  readonly onReset = this.resets.event;
  /** That session is not followed any more. */
  readonly onLeft = this.left.event;
  /** What was missed of that session could not be fetched. */
  readonly onFailed = this.failures.event;

  constructor(private readonly daemon: Pick<Daemon, "request" | "notify">) {}

  /** In the order in which they were attached. */
  get states(): SessionState[] {
    return [...this.attached.values()].map(({ state }) => state);
  }

  get(sessionId: string): Session | undefined {
    return this.attached.get(sessionId);
  }

  receive(message: EventMessage): void {
    this.attached.get(message.sessionId)?.receive(message);
  }

  /** Attach a chat to a session. The chat gives it back with `release`. */
  async open(sessionId: string): Promise<Session> {
    this.count(sessionId, 1);
    try {
      return await this.attach(sessionId);
    } catch (error) {
      this.count(sessionId, -1);
      throw error;
    }
  }

  /** Like `open`, of a session that was just created. */
  created(result: SessionResult): Session {
    this.count(result.state.sessionId, 1);
    return this.adopt(result);
  }

  /** A chat shows it no more. Its turn, if one runs, goes on. Resolves when the daemon knows. */
  async release(sessionId: string): Promise<void> {
    this.count(sessionId, -1);
    const session = this.attached.get(sessionId);
    // what has begun to wait since the list came is not let go
    if (session !== undefined && !this.shown(sessionId) && waits(session.state))
      this.followed = new Set([...this.followed, sessionId]);
    await this.drop(sessionId);
  }

  /** Follow those that wait for the user or have changes to review, and none besides that no chat shows. Resolves when
   * they are attached. */
  async follow(sessions: SessionSummary[]): Promise<void> {
    const waiting = sessions.filter(({ questions, changes }) => questions.length > 0 || changes > 0);
    const busy = [...this.attached.values()].filter(({ state }) => waits(state));
    const ids = [...busy.map(({ state }) => state.sessionId), ...waiting.map(({ sessionId }) => sessionId)];
    this.followed = new Set([...new Set(ids)].slice(0, FOLLOWED));
    for (const sessionId of this.attached.keys()) void this.drop(sessionId);
    const unattached = [...this.followed].filter((sessionId) => !this.attached.has(sessionId));
    // what cannot be attached was deleted meanwhile, or the next list tries again
    await Promise.allSettled(unattached.map((each) => this.attach(each).then(() => this.drop(each))));
  }

  /** The line stands again: fetch what was missed of those that no chat shows; chats fetch their own. */
  async catchUp(): Promise<void> {
    const unshown = [...this.attached].filter(([sessionId]) => !this.shown(sessionId));
    await Promise.all(unshown.map(([, session]) => session.catchUp()));
  }

  dispose(): void {
    for (const session of this.attached.values()) session.close();
    for (const each of [this.events, this.resets, this.left, this.failures]) each.dispose();
  }

  private attach(sessionId: string): Promise<Session> {
    const known = this.attached.get(sessionId);
    if (known !== undefined) return Promise.resolve(known);
    const attaching = this.attaching.get(sessionId) ?? this.request(sessionId);
    this.attaching.set(sessionId, attaching);
    return attaching;
  }

  private async request(sessionId: string): Promise<Session> {
    try {
      const { state, epoch, fromSeq } = await this.daemon.request("amanu/session/attach", { sessionId });
      if (state === null) throw new Error(`The daemon sent nothing of the session ${sessionId}.`);
      return this.adopt({ state, epoch, fromSeq });
    } finally {
      this.attaching.delete(sessionId);
    }
  }

  private adopt(result: SessionResult): Session {
    const { sessionId } = result.state;
    const session = new Session(
      {
        attach: (sessionId, epoch, sinceSeq) =>
          this.daemon.request("amanu/session/attach", { sessionId, epoch, sinceSeq }),
        ack: (sessionId, seq) => this.daemon.notify("amanu/event/ack", { sessionId, seq }),
      },
      result,
      {
        event: (event, seq) => {
          this.events.fire({ sessionId, event, seq });
          if (!this.shown(sessionId)) session.drawn(seq); // nobody draws: the daemon need not wait
        },
        replaced: () => this.resets.fire(sessionId),
        failed: (error) => this.failed(sessionId, error),
      },
    );
    this.attached.get(sessionId)?.close();
    this.attached.set(sessionId, session);
    this.resets.fire(sessionId);
    return session;
  }

  private failed(sessionId: string, error: unknown): void {
    if (this.shown(sessionId)) this.failures.fire({ sessionId, error });
    else this.forget(sessionId); // the next list brings it again, if it still waits
  }

  /** Detach from a session that nobody wants. */
  private async drop(sessionId: string): Promise<void> {
    if (this.shown(sessionId) || this.followed.has(sessionId) || !this.forget(sessionId)) return;
    await this.daemon.request("amanu/session/detach", { sessionId }).catch(() => undefined);
  }

  private forget(sessionId: string): boolean {
    const session = this.attached.get(sessionId);
    if (session === undefined) return false;
    this.attached.delete(sessionId);
    session.close();
    this.left.fire(session.state);
    return true;
  }

  private shown(sessionId: string): boolean {
    return this.chats.has(sessionId);
  }

  private count(sessionId: string, change: number): void {
    const chats = (this.chats.get(sessionId) ?? 0) + change;
    if (chats > 0) this.chats.set(sessionId, chats);
    else this.chats.delete(sessionId);
  }
}

/** Whether there is a reason to follow it though no chat shows it: it works, asks, or has changes to review. */
function waits(state: SessionState): boolean {
  if (state.closed || state.parentSessionId !== null) return false; // what an agent proposes is its parent's
  const { turn, approvals, questions, jobs } = state;
  const asks = approvals.length > 0 || questions.length > 0;
  const works = turn !== null || jobs.some((job) => job.state === "running");
  return asks || works || waiting([state]).length > 0;
}
