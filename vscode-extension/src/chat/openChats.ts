import * as vscode from "vscode";
import type { Chat, Notification } from "./chat";
import type { Event, SessionState } from "../protocol";

/** The chats of this window. The active one is that which had the focus last: commands are about its session. */
export class OpenChats implements vscode.Disposable {
  private readonly all = new Map<Chat, vscode.Disposable[]>();
  private current: Chat | undefined;
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
  focused: Chat | undefined;

  get active(): Chat {
    if (this.current === undefined) throw new Error("There is no chat yet.");
    return this.current;
  }

  /** Of the active chat. */
  get state(): SessionState {
    return this.active.state;
  }

  get open(): Chat[] {
    return [...this.all.keys()];
  }

  /** The first one is the side bar's: it stays, and is active whenever no other chat is. */
  add(chat: Chat): void {
    this.current ??= chat;
    this.all.set(chat, [
      chat.onEvent((event) => chat === this.current && this.events.fire(event)),
      chat.onReset(() => {
        this.changes.fire();
        if (chat === this.current) this.resets.fire();
      }),
    ]);
    this.changes.fire();
  }

  remove(chat: Chat): void {
    for (const each of this.all.get(chat) ?? []) each.dispose();
    this.all.delete(chat);
    const [first] = this.all.keys();
    if (chat === this.current && first !== undefined) this.activate(first);
    this.changes.fire();
  }

  activate(chat: Chat): void {
    if (!this.all.has(chat)) return;
    const before = this.current;
    this.current = chat;
    this.uses.fire();
    if (chat !== before) this.resets.fire();
  }

  /** The chat that shows the session; the active one where several do. */
  showing(sessionId: string): Chat | undefined {
    if (sessionId === this.state.sessionId) return this.active;
    return this.open.find(({ state }) => state.sessionId === sessionId);
  }

  /** Say it in the chat of that session, or in the active one. */
  tell(told: Notification, sessionId = this.state.sessionId): void {
    (this.showing(sessionId) ?? this.active).tell(told);
  }

  /** Do something that may be refused; a refusal is told in words, in the active chat. */
  attempt<T>(work: () => Promise<T>, toolCallId?: string): Promise<T | undefined> {
    return this.active.attempt(work, toolCallId);
  }

  dispose(): void {
    for (const [chat, subscriptions] of this.all) for (const each of [...subscriptions, chat]) each.dispose();
    for (const each of [this.events, this.resets, this.changes, this.uses]) each.dispose();
  }
}
