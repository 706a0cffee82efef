import * as vscode from "vscode";
import { PROPOSED } from "./proposals";
import { changeKey, type LocatedChange, type Places } from "./places";

/** Which changes were on screen, in the text they have now: nothing else is accepted by a key or a lens. */
export class Seen implements vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly places: Places) {
    this.subscriptions = [
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => this.look(textEditor)),
      vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach((each) => this.look(each))),
    ];
  }

  has({ target, hunk }: LocatedChange): boolean {
    return this.texts.get(changeKey({ target, hunk })) === hunk.newText;
  }

  look(editor: vscode.TextEditor): void {
    const shown = this.places.in(editor.document).filter((change) => isOnScreen(editor, change));
    for (const change of shown) this.texts.set(changeKey(change), change.hunk.newText);
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }
}

/** Whether the change's new text, or the place it left, is on screen. What is proposed is in no file. */
export function isOnScreen(
  { document, visibleRanges }: vscode.TextEditor,
  { hunk, start, lines }: LocatedChange,
): boolean {
  if (document.uri.scheme !== PROPOSED && hunk.waits === "decision") return false;
  return visibleRanges.some(
    (range) => range.end.line >= start && range.start.line < start + Math.max(1, lines),
  );
}
