import * as vscode from "vscode";
import type { Desk } from "../desk";
import type { AttachmentInput } from "../protocol";
import type { ToView } from "./messages";
import { Panel, type Shared } from "./panel";

/** The chats of a window on the screen: the view of the side bar. */
export class Chats implements vscode.WebviewViewProvider, vscode.Disposable {
  private readonly sideBar: Panel;
  private view: vscode.WebviewView | undefined;
  /** How many questions wait. */
  private questions = 0;

  constructor(
    private readonly shared: Shared,
    private readonly desk: Desk,
    memory: vscode.Memento,
  ) {
    this.sideBar = new Panel(desk, shared, memory);
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.badge(this.questions);
    view.onDidDispose(() => {
      this.view = undefined;
      this.sideBar.detach();
    });
    this.sideBar.drawIn(view.webview);
  }

  /** How many questions wait, on the view's icon. Nothing takes the focus. */
  badge(waiting: number): void {
    this.questions = waiting;
    if (this.view)
      this.view.badge =
        waiting === 0
          ? undefined
          : { value: waiting, tooltip: `Amanu waits for ${waiting} of your decisions` };
  }

  /** Whether that session's chat is on the screen. */
  shows(sessionId: string): boolean {
    return this.view?.visible === true && this.desk.state.sessionId === sessionId;
  }

  /** Show the active chat, and there what the message wants. */
  async show(...messages: ToView[]): Promise<void> {
    await vscode.commands.executeCommand("amanu.chat.focus");
    for (const message of messages) this.sideBar.post(message);
  }

  focus(): Promise<void> {
    return this.show({ type: "focus" });
  }

  /** Lay it into the prompt box, where the user goes on. */
  attachToPrompt(attachment: AttachmentInput): Promise<void> {
    return this.show({ type: "attach", attachment }, { type: "focus" });
  }

  /** Put a prompt back into the box of the chat that shows the session. */
  giveBack(_sessionId: string, text: string, attachments: AttachmentInput[]): Promise<void> {
    return this.show({ type: "giveBack", text, attachments }, { type: "focus" });
  }

  /** Show a session, or the list of them. */
  async showSession(sessionId: string | undefined): Promise<void> {
    if (sessionId === undefined) return this.show({ type: "showSessions" });
    await this.show();
    await this.shared.desks.active.open(sessionId);
    this.sideBar.post({ type: "focus" });
  }

  dispose(): void {
    this.sideBar.dispose();
  }
}
