import * as vscode from "vscode";
import { allowable } from "./allowable";
import { type Daemon, roots } from "../daemon/client";
import { type Notification, tooSoon, whyIgnored } from "../chat/chat";
import type { OpenChats } from "../chat/openChats";
import type { Approval, OpenQuestion, SessionSummary } from "../protocol";
import type { Sessions } from "./sessions";
import { message, oneLine, TITLE, titled } from "../editor/visible";

/** Milliseconds in which changes of the list become one question to the daemon. */
const GATHER = 300;
const SESSIONS = 200;
/** Milliseconds a question must have been on the screen before a yes to it counts, as in the daemon. */
const READ = 500;
const ALLOW = "Allow";
const SHOW = "Show";

/**
 * All sessions of this window's folder, as the daemon lists them. When one that is not on the screen begins to wait for the
 * user, that is announced, once for each question.
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
    private readonly attached: Pick<Sessions, "follow" | "get">,
    private readonly openChats: Pick<OpenChats, "open" | "state" | "attempt" | "tell">,
    /** Show that session, or the list. */
    private readonly show: (sessionId: string | undefined) => Promise<void>,
  ) {}

  /** Those that no chat shows. */
  get others(): SessionSummary[] {
    const shown = this.openChats.open.map(({ state }) => state.sessionId);
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
    this.changed.fire();
    await this.attached.follow(this.sessions);
    this.announce();
  }

  /** The session that waits elsewhere; of several, the one longest without news. */
  get waiting(): string | undefined {
    const elsewhere = this.sessions.filter(({ sessionId }) => sessionId !== this.openChats.state.sessionId);
    return elsewhere.findLast(({ questions }) => questions.length > 0)?.sessionId;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
  }

  private announce(): void {
    const seen = this.openChats.open.filter(({ visible }) => visible).map(({ state }) => state.sessionId);
    const fresh = this.sessions
      .filter(({ sessionId, purpose }) => !seen.includes(sessionId) && purpose !== "rewrite") // it opens before the user by itself
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
    if (fresh.length === 1) void this.openChats.attempt(() => this.ask(first.session, first.questions));
    else void this.openChats.attempt(() => this.askAll(fresh.map(({ session }) => session)));
  }

  private async askAll(sessions: SessionSummary[]): Promise<void> {
    const words = `${sessions.length} sessions are waiting for you: ${sessions.map(titled).join(", ")}`;
    if (await vscode.window.showInformationMessage(message(words), SHOW)) await this.show(undefined);
  }

  /** What a session waits for; with a yes for what one line says all of. */
  private async ask(session: SessionSummary, questions: OpenQuestion[]): Promise<void> {
    const { sessionId } = session;
    const approval = questions.length === 1 ? this.approval(sessionId, questions[0]) : undefined;
    const whole = approval && allowable(approval);
    const words = `${titled(session)} is waiting for you: ${whole ?? asked(questions)}`;
    const shownAt = Date.now();
    const buttons = whole === undefined ? [SHOW] : [ALLOW, SHOW];
    const chosen = await vscode.window.showInformationMessage(message(words), ...buttons);
    if (chosen === undefined) return;
    if (chosen !== ALLOW || approval === undefined) return this.show(sessionId);
    const ignored = await this.allow(sessionId, approval, shownAt);
    if (ignored === undefined) return;
    await this.show(sessionId);
    this.openChats.tell(ignored, sessionId);
  }

  /** Yes to what the notification showed, once. Tells why it was ignored, if it was. */
  private async allow(
    sessionId: string,
    { toolCallId, digest }: Approval,
    shownAt: number,
  ): Promise<Notification | undefined> {
    if (Date.now() - shownAt < READ) return tooSoon(toolCallId);
    const answer = { toolCallId, digest, decision: "allow" as const, scope: "once" as const, grants: [] };
    return whyIgnored(
      await this.daemon.request("amanu/approval/resolve", { sessionId, ...answer }),
      toolCallId,
    );
  }

  private approval(sessionId: string, question: OpenQuestion | undefined): Approval | undefined {
    if (question === undefined || question.questionId !== null) return undefined;
    const { approvals = [] } = this.attached.get(sessionId)?.state ?? {};
    return approvals.find(({ toolCallId }) => toolCallId === question.toolCallId);
  }

  private knows(session: SessionSummary, question: OpenQuestion): boolean {
    return this.known.has(key(session, question));
  }
}

function asked([first, ...more]: OpenQuestion[]): string {
  const words = oneLine(first?.title ?? "", TITLE);
  return more.length === 0 ? words : `${words} (and ${more.length} more)`;
}

function key({ sessionId }: SessionSummary, { toolCallId, questionId }: OpenQuestion): string {
  return `${sessionId} ${questionId ?? toolCallId}`;
}
