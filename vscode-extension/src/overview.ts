import * as vscode from "vscode";
import { type Daemon, roots } from "./client";
import type { Desks } from "./desks";
import type { OpenQuestion, SessionSummary } from "./protocol";
import type { Sessions } from "./sessions";
import { message, oneLine } from "./visible";

/** Milliseconds in which changes of the list become one question to the daemon. */
const GATHER = 300;
const SESSIONS = 200;
/** Characters of a title, and of what is asked. */
const TITLE = 60;

/**
 * All sessions of this window's folder, as the daemon lists them. When one that is not shown begins to wait for the user,
 * that is announced, once for each question.
 */
export class Overview implements vscode.Disposable {
  sessions: SessionSummary[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChanged = this.changed.event;
  /** The questions that were announced, or on the screen. */
  private readonly known = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly daemon: Pick<Daemon, "request">,
    private readonly attached: Pick<Sessions, "follow">,
    private readonly desks: Pick<Desks, "open" | "attempt">,
    /** Show that session, or the list. */
    private readonly show: (sessionId: string | undefined) => Promise<void>,
  ) {}

  /** Those that no chat shows. */
  get others(): SessionSummary[] {
    const shown = this.desks.open.map(({ state }) => state.sessionId);
    return this.sessions.filter(({ sessionId }) => !shown.includes(sessionId));
  }

  /** The list has changed. */
  soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.refresh().catch(() => undefined); // the next change asks again
    }, GATHER);
  }

  async refresh(): Promise<void> {
    const root = roots()[0];
    const params = { limit: SESSIONS, ...(root === undefined ? {} : { root }) };
    const { sessions } = await this.daemon.request("amanu/session/list", params);
    // a daemon from before it told questions is still a daemon
    this.sessions = sessions.map((each) => ({ ...each, questions: each.questions ?? [] }));
    this.attached.follow(this.sessions);
    this.announce();
    this.changed.fire();
  }

  /** Go to what waits elsewhere. False when nothing does. */
  async answer(): Promise<boolean> {
    const waiting = this.others.filter(({ questions }) => questions.length > 0);
    if (waiting.length > 0) await this.show(waiting.length === 1 ? waiting[0]?.sessionId : undefined);
    return waiting.length > 0;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
  }

  private announce(): void {
    const fresh = this.others
      .filter(({ purpose }) => purpose !== "rewrite") // it opens before the user by itself
      .map((session) => ({
        session,
        questions: session.questions.filter((each) => !this.knows(session, each)),
      }))
      .filter(({ questions }) => questions.length > 0);
    this.known.clear();
    for (const session of this.sessions)
      for (const question of session.questions) this.known.add(key(session, question));
    const [first] = fresh;
    if (first === undefined) return;
    const only = fresh.length === 1 ? first.session.sessionId : undefined;
    const words =
      only === undefined
        ? `${fresh.length} sessions wait for you: ${fresh.map(({ session }) => titled(session)).join(", ")}`
        : `${titled(first.session)} waits for you: ${asked(first.questions)}`;
    void vscode.window
      .showInformationMessage(message(words), "Show")
      .then((chosen) => chosen && this.desks.attempt(() => this.show(only)));
  }

  private knows(session: SessionSummary, question: OpenQuestion): boolean {
    return this.known.has(key(session, question));
  }
}

/** A session by its title, quoted. */
export function titled({ title }: Pick<SessionSummary, "title">): string {
  return `“${oneLine(title, TITLE) || "Untitled"}”`;
}

function asked([first, ...more]: OpenQuestion[]): string {
  const words = oneLine(first?.title ?? "", TITLE);
  return more.length === 0 ? words : `${words} (and ${more.length} more)`;
}

function key({ sessionId }: SessionSummary, { toolCallId, questionId }: OpenQuestion): string {
  return `${sessionId} ${questionId ?? toolCallId}`;
}
