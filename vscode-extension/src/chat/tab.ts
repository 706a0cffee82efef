import * as vscode from "vscode";
import type { SessionState } from "../protocol";
import { oneLine } from "../editor/visible";
import type { Panel } from "./panel";

/** What VS Code calls the editors of chats. */
export const TAB = "amanu.chat";
/** Characters of a tab's title. */
const TITLE = 40;

/** A chat in an editor tab: its title is the session's, its icon shows whether it works or waits for the user. */
export class Tab implements vscode.Disposable {
  private icon = "";
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly editor: vscode.WebviewPanel,
    readonly panel: Panel,
    private readonly media: vscode.Uri,
    active: () => void,
    closed: () => void,
  ) {
    const { chat } = panel;
    const seen = () => {
      panel.visible = editor.visible;
      if (editor.active) active();
    };
    this.subscriptions = [
      editor.onDidChangeViewState(seen),
      editor.onDidDispose(closed),
      chat.onReset(() => this.draw()),
      chat.onEvent(({ event }) => {
        if (event.kind !== "itemDelta") this.draw();
      }),
    ];
    panel.drawIn(editor.webview);
    seen();
    this.draw();
  }

  reveal(): void {
    this.editor.reveal();
  }

  close(): void {
    this.editor.dispose();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
    this.panel.dispose();
    this.panel.chat.dispose();
  }

  private draw(): void {
    const { state } = this.panel.chat;
    const title = oneLine(state.title, TITLE) || (state.sessionId === "" ? "New Chat" : "Untitled");
    if (title !== this.editor.title) this.editor.title = title;
    const icon = doing(state);
    if (icon === this.icon) return;
    this.icon = icon;
    const path = (theme: string) => vscode.Uri.joinPath(this.media, "tab", `${icon}-${theme}.svg`);
    this.editor.iconPath = { light: path("light"), dark: path("dark") };
  }
}

function doing({ approvals, questions, turn }: SessionState): "waiting" | "running" | "idle" {
  if (approvals.length + questions.length > 0) return "waiting";
  return turn === null ? "idle" : "running";
}
