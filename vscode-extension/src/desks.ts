import * as vscode from "vscode";
import type { Desk, Told } from "./desk";
import type { Event, SessionState } from "./protocol";

/** The chats of this window. The active one is that which had the focus last: commands are about its session. */
export class Desks implements vscode.Disposable {
  private readonly all = new Map<Desk, vscode.Disposable[]>();
  private current: Desk | undefined;
  private readonly events = new vscode.EventEmitter<{ event: Event; seq: number }>();
  private readonly resets = new vscode.EventEmitter<void>();
  private readonly changes = new vscode.EventEmitter<void>();
  private readonly uses = new vscode.EventEmitter<void>();
  /** An event was folded into the active chat's state. */
  readonly onEvent = this.events.event;
  /** The active chat's state is another one, or another chat is active. */
  readonly onReset = this.resets.event;
  /** Some chat shows another session, or a chat has come or gone. */
  readonly onShown = this.changes.event;
  /** The user does something in a chat: the active one from now on. */
  readonly onUsed = this.uses.event;
  /** The chat that has the keyboard's focus. */
  focused: Desk | undefined;

  get active(): Desk {
    if (this.current === undefined) throw new Error("There is no chat yet.");
    return this.current;
  }

  /** Of the active chat. */
  get state(): SessionState {
    return this.active.state;
  }

  get open(): Desk[] {
    return [...this.all.keys()];
  }

  /** The first one is the side bar's: it stays, and is active whenever no other chat is. */
  add(desk: Desk): void {
    this.current ??= desk;
    this.all.set(desk, [
      desk.onEvent((event) => desk === this.current && this.events.fire(event)),
      desk.onReset(() => {
        this.changes.fire();
        if (desk === this.current) this.resets.fire();
      }),
    ]);
    this.changes.fire();
  }

  remove(desk: Desk): void {
    for (const each of this.all.get(desk) ?? []) each.dispose();
    this.all.delete(desk);
    const [first] = this.all.keys();
    if (desk === this.current && first !== undefined) this.activate(first);
    this.changes.fire();
  }

  activate(desk: Desk): void {
    if (!this.all.has(desk)) return;
    const before = this.current;
    this.current = desk;
    this.uses.fire();
    if (desk !== before) this.resets.fire();
  }

  /** The chat that shows the session; the active one where several do. */
  showing(sessionId: string): Desk | undefined {
    if (sessionId === this.state.sessionId) return this.active;
    return this.open.find(({ state }) => state.sessionId === sessionId);
  }

  /** Say it in the chat of that session, or in the active one. */
  tell(told: Told, sessionId = this.state.sessionId): void {
    (this.showing(sessionId) ?? this.active).tell(told);
  }

  /** Do something that may be refused; a refusal is told in words, in the active chat. */
  attempt<T>(work: () => Promise<T>, near?: string): Promise<T | undefined> {
    return this.active.attempt(work, near);
  }

  dispose(): void {
    for (const [desk, subscriptions] of this.all) for (const each of [...subscriptions, desk]) each.dispose();
    for (const each of [this.events, this.resets, this.changes, this.uses]) each.dispose();
  }
}
