import * as vscode from "vscode";
import { plural } from "../review/changes";
import { Chat } from "./chat";
import type { Sessions } from "../sessions/sessions";
import type { AttachmentInput } from "../protocol";
import type { ToView } from "./messages";
import { Panel, type Shared } from "./panel";
import { TAB, Tab } from "./tab";

/** The chats of a window on the screen: the view of the side bar, and those in editor tabs. */
export class Chats implements vscode.WebviewViewProvider, vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly sideBar: Panel;
  private readonly tabs = new Set<Tab>();
  private view: vscode.WebviewView | undefined;
  /** How many questions wait. */
  private questions = 0;
  private readonly shared: Shared;

  constructor(
    shared: Omit<Shared, "open" | "delete">,
    private readonly sessions: Sessions,
    chat: Chat,
    memory: vscode.Memento,
  ) {
    this.shared = {
      ...shared,
      open: (sessionId, from) => this.open(sessionId, from),
      delete: (sessionId, title) => this.delete(sessionId, title),
    };
    this.sideBar = new Panel(chat, this.shared, memory);
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.badge(this.questions);
    const seen = () => (this.sideBar.visible = view.visible);
    view.onDidChangeVisibility(seen);
    view.onDidDispose(() => {
      if (this.view !== view) return; // it was moved, and is there again already
      this.view = undefined;
      this.sideBar.visible = false;
    });
    this.sideBar.drawIn(view.webview);
    seen();
  }

  /** A tab comes back after the window was loaded anew, with the session its view remembers. */
  async deserializeWebviewPanel(editor: vscode.WebviewPanel, kept: unknown): Promise<void> {
    const known = typeof kept === "object" && kept !== null && "sessionId" in kept ? kept.sessionId : "";
    const { chat } = this.tab(editor, typeof known === "string" ? known : "").panel;
    // not waited for: VS Code shows the tab when this returns
    if (this.shared.daemon.connection.status === "ready") void chat.attempt(() => chat.connected());
  }

  /** A chat in an editor tab: of that session, or a new one. */
  async openInEditor(sessionId = ""): Promise<void> {
    const shown = [...this.tabs].find(({ panel }) => sessionId !== "" && shows(panel, sessionId));
    if (shown !== undefined) return shown.reveal();
    const editor = vscode.window.createWebviewPanel(TAB, "Chat", vscode.ViewColumn.Active, {
      enableFindWidget: true,
    });
    const { panel } = this.tab(editor, "");
    panel.post({ type: "focus" });
    this.shared.openChats.activate(panel.chat);
    await (sessionId === "" ? panel.chat.fresh() : panel.chat.open(sessionId));
  }

  /** A new session in the side bar: what a tab shows, only the user's word in that tab replaces. */
  async startSession(): Promise<void> {
    await this.sideBar.chat.fresh();
    await this.reveal(this.sideBar, { type: "focus" });
  }

  /** The side bar's chat goes on in an editor tab. */
  async moveToEditor(): Promise<void> {
    const { chat } = this.sideBar;
    await this.openInEditor(chat.state.sessionId);
    if (chat.state.sessionId !== "") await chat.fresh();
  }

  /** How many questions wait, on the view's icon. Nothing takes the focus. */
  badge(waiting: number): void {
    this.questions = waiting;
    if (this.view)
      this.view.badge =
        waiting === 0
          ? undefined
          : { value: waiting, tooltip: `Amanu is waiting for ${plural(waiting, "decision")}` };
  }

  /** To a screen reader; nothing is shown. */
  announce(text: string): void {
    this.active.post({ type: "announce", text });
  }

  /** Whether that session's chat is on the screen. */
  shows(sessionId: string): boolean {
    return this.panels.some((panel) => panel.chat.visible && panel.chat.state.sessionId === sessionId);
  }

  /** Show the active chat, and there what the messages want. */
  show(...messages: ToView[]): Promise<void> {
    return this.reveal(this.active, ...messages);
  }

  /** Puts the text, if any, into the prompt box, unless the user has begun a prompt. */
  focus(text = ""): Promise<void> {
    const draft: ToView[] = text === "" ? [] : [{ type: "draft", text }];
    return this.show(...draft, { type: "focus" });
  }

  /** Lay it into the prompt box, where the user goes on. */
  attachToPrompt(attachment: AttachmentInput): Promise<void> {
    return this.show({ type: "attach", attachment }, { type: "focus" });
  }

  /** Put a prompt back into the box of the chat that shows the session. */
  giveBack(sessionId: string, text: string, attachments: AttachmentInput[]): Promise<void> {
    return this.reveal(
      this.showing(sessionId) ?? this.active,
      { type: "giveBack", text, attachments },
      { type: "focus" },
    );
  }

  /** Show a session where it is, else in the side bar; or the list of them. */
  async showSession(sessionId: string | undefined): Promise<void> {
    if (sessionId === undefined) return this.show({ type: "showSessions" });
    const panel = this.showing(sessionId) ?? this.sideBar;
    await this.reveal(panel);
    if (!shows(panel, sessionId)) await panel.chat.open(sessionId);
    panel.post({ type: "focus" });
  }

  /** Show a session beside what is asked about it: that has the focus. */
  async accompany(sessionId: string): Promise<void> {
    const panel = this.showing(sessionId) ?? this.sideBar;
    if (panel.chat.visible) this.shared.openChats.activate(panel.chat);
    else await this.reveal(panel);
    if (!shows(panel, sessionId)) await panel.chat.open(sessionId);
  }

  dispose(): void {
    for (const each of [this.sideBar, ...this.tabs]) each.dispose();
  }

  /** What a view wants to see: where it is shown already, else there. */
  private async open(sessionId: string, from: Panel | "editor"): Promise<void> {
    if (from === "editor") return this.openInEditor(sessionId);
    const shown = this.showing(sessionId);
    if (shown !== undefined && shown !== from) return this.reveal(shown, { type: "focus" });
    await from.chat.open(sessionId);
  }

  private async delete(sessionId: string, title: string): Promise<void> {
    const question = `Delete “${title}” for good?`;
    const yes = await vscode.window.showWarningMessage(question, { modal: true }, "Delete");
    if (yes !== "Delete") return;
    for (const panel of this.panels.filter((each) => shows(each, sessionId))) await this.clear(panel);
    await this.shared.daemon.request("amanu/session/delete", { sessionId });
    await this.shared.overview.refresh();
  }

  /** The session of that chat goes: so does its tab, but for text the user typed there. */
  private async clear(panel: Panel): Promise<void> {
    const tab = this.tabOf(panel);
    if (tab !== undefined && !panel.hasUnsent) return tab.close();
    await panel.chat.fresh();
    if (panel.hasUnsent)
      panel.chat.tell({
        level: "info",
        text: "The session was deleted. Your prompt is still here: send it to start a new session.",
      });
  }

  private async reveal(panel: Panel, ...messages: ToView[]): Promise<void> {
    this.shared.openChats.activate(panel.chat);
    const tab = this.tabOf(panel);
    if (tab !== undefined) tab.reveal();
    else await vscode.commands.executeCommand("amanu.chat.focus");
    for (const message of messages) panel.post(message);
  }

  private tab(editor: vscode.WebviewPanel, sessionId: string): Tab {
    const { daemon, openChats, folder } = this.shared;
    // VS Code remembers it: the view's own memory comes with the tab
    const shown = { get: () => sessionId || undefined, set: () => undefined };
    const chat = new Chat(daemon, this.sessions, shown);
    openChats.add(chat);
    const panel = new Panel(chat, this.shared);
    const tab: Tab = new Tab(
      editor,
      panel,
      vscode.Uri.joinPath(folder, "media"),
      () => openChats.activate(chat),
      () => {
        this.tabs.delete(tab);
        openChats.remove(chat);
        tab.dispose();
      },
    );
    this.tabs.add(tab);
    return tab;
  }

  private tabOf(panel: Panel): Tab | undefined {
    return [...this.tabs].find((tab) => tab.panel === panel);
  }

  private get panels(): Panel[] {
    return [this.sideBar, ...[...this.tabs].map(({ panel }) => panel)];
  }

  private get active(): Panel {
    return this.panels.find(({ chat }) => chat === this.shared.openChats.active) ?? this.sideBar;
  }

  private showing(sessionId: string): Panel | undefined {
    const found = this.panels.filter((panel) => shows(panel, sessionId));
    return found.find((panel) => panel === this.active) ?? found[0];
  }
}

function shows({ chat }: Panel, sessionId: string): boolean {
  return chat.state.sessionId === sessionId;
}
