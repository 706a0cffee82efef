import * as vscode from "vscode";
import type { OpenChats } from "../chat/openChats";
import { PROPOSED } from "./proposals";
import type { Places } from "./places";

/**
 * The session that a command means if it names none: in an editor that shows changes, the one that made them; anywhere
 * else the one whose chat is in front. Never any other.
 */
export class Owner implements vscode.Disposable {
  /** The user worked in a chat last, and not in an editor. */
  private inChat = true;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly openChats: Pick<OpenChats, "state" | "onUsed" | "focused">,
    private readonly places: Pick<Places, "in" | "targets">,
  ) {
    this.subscriptions = [
      openChats.onUsed(() => (this.inChat = true)),
      vscode.window.onDidChangeTextEditorSelection(({ kind }) => {
        const { Keyboard, Mouse } = vscode.TextEditorSelectionChangeKind;
        if (kind === Keyboard || kind === Mouse) this.inChat = false;
      }),
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        // beside a chat that has the focus an editor comes to the front when another one closes
        if (editor !== undefined && openChats.focused === undefined) this.inChat = false;
      }),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  get sessionId(): string {
    const editor = vscode.window.activeTextEditor;
    const shown = this.inChat || editor === undefined ? undefined : this.of(editor);
    return shown ?? this.inFront;
  }

  /** The session whose change is at the cursor, else in the file; of several, the one whose chat is in front. */
  of({ document, selection }: vscode.TextEditor): string | undefined {
    if (document.uri.scheme === PROPOSED) return this.places.targets(document)[0]?.sessionId;
    const changes = this.places.in(document);
    const { line } = selection.active;
    const at = changes.filter(({ start, lines }) => line >= start && line < start + Math.max(1, lines));
    const found = at.length > 0 ? at : changes;
    const own = found.find(({ target }) => target.sessionId === this.inFront);
    return (own ?? found[0])?.target.sessionId;
  }

  /** What a sub-agent changes is its parent's. */
  private get inFront(): string {
    const { sessionId, parentSessionId } = this.openChats.state;
    return parentSessionId ?? sessionId;
  }
}
