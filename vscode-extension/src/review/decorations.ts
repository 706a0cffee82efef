import * as vscode from "vscode";
import { BASE, PROPOSED } from "./proposals";
import { newLines } from "./newLines";
import type { LocatedChange, Places } from "./places";

/** A bar in the margin; its blue stands out on light and dark alike. */
const MARK =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#3794ff" d="M10 0h3v16h-3z"/></svg>';

/**
 * In the file itself: text that was applied and nobody kept is green, a line left where lines went away, and where
 * something is proposed a mark beside the lines it is about. What is proposed is in no buffer, and not drawn into one.
 */
export class Decorations implements vscode.Disposable {
  private readonly added = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("diffEditor.insertedLineBackground"),
    // high contrast themes have no such background
    borderColor: new vscode.ThemeColor("editorGutter.addedBackground"),
    borderStyle: "solid",
    borderWidth: "0 0 0 2px",
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.addedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly removed = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderColor: new vscode.ThemeColor("editorGutter.deletedBackground"),
    borderStyle: "solid",
    borderWidth: "1px 0 0 0",
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.deletedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly proposed = vscode.window.createTextEditorDecorationType({
    gutterIconPath: vscode.Uri.parse(`data:image/svg+xml;utf8,${encodeURIComponent(MARK)}`),
    gutterIconSize: "contain",
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });

  constructor(private readonly places: Places) {}

  draw(): void {
    for (const editor of vscode.window.visibleTextEditors)
      if (editor.document.uri.scheme === "file" && !inDiff(editor)) this.mark(editor);
      else if (editor.document.uri.scheme === PROPOSED) this.markNew(editor);
  }

  dispose(): void {
    for (const each of [this.added, this.removed, this.proposed]) each.dispose();
  }

  /** A new file is compared with nothing, and is green all the same. */
  private markNew(editor: vscode.TextEditor): void {
    const all = new vscode.Range(0, 0, Math.max(0, editor.document.lineCount - 2), 0);
    editor.setDecorations(this.added, isInTab(editor) ? [all] : []);
  }

  private mark(editor: vscode.TextEditor): void {
    const last = editor.document.lineCount - 1;
    const changes = this.places.in(editor.document);
    const range = (start: number, lines: number) => {
      const from = Math.min(start, last);
      return new vscode.Range(from, 0, Math.min(from + Math.max(0, lines - 1), last), 0);
    };
    const ranges = (test: (change: LocatedChange) => boolean) =>
      changes.filter(test).map(({ start, lines }) => range(start, lines));
    const applied = ({ hunk }: LocatedChange) => hunk.waits === "review";
    editor.setDecorations(
      this.added,
      changes
        .filter((each) => applied(each) && each.lines > 0)
        .flatMap(({ hunk, start }) => newLines(hunk).map(({ from, lines }) => range(start + from, lines))),
    );
    editor.setDecorations(
      this.removed,
      ranges((each) => applied(each) && each.lines === 0),
    );
    editor.setDecorations(
      this.proposed,
      ranges((each) => !applied(each)),
    );
  }
}

/** A diff has its own colours. */
function inDiff(editor: vscode.TextEditor): boolean {
  return vscode.window.visibleTextEditors.some(
    (other) => other.document.uri.scheme === BASE && other.viewColumn === editor.viewColumn,
  );
}

/** It is in a tab of its own, and not a side of a diff. */
function isInTab({ document, viewColumn }: vscode.TextEditor): boolean {
  return vscode.window.tabGroups.all.some(
    ({ activeTab, viewColumn: column }) =>
      column === viewColumn &&
      activeTab?.input instanceof vscode.TabInputText &&
      activeTab.input.uri.toString() === document.uri.toString(),
  );
}
