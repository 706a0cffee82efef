import * as vscode from "vscode";
import type { Daemon } from "./client";
import type { AttachmentInput } from "./protocol";

/** Milliseconds the cursor must rest before the daemon hears of it. */
const REST = 200;
/** Characters of a selection that are told; the daemon can read the rest. */
const SELECTED = 20_000;

/** Tells the daemon what the person looks at, as it changes. */
export class Context implements vscode.Disposable {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = "";
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly daemon: Daemon) {
    this.subscriptions = [
      vscode.window.onDidChangeActiveTextEditor(() => this.soon()),
      vscode.window.onDidChangeTextEditorSelection(() => this.soon()),
      daemon.onConnection(() => {
        this.last = "";
        this.soon();
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const each of this.subscriptions) each.dispose();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), REST);
  }

  private tell(): void {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || editor.document.uri.scheme !== "file") return; // the chat has the focus: as before
    const { selection, document } = editor;
    const active = {
      path: document.uri.fsPath,
      startLine: selection.start.line + 1,
      endLine: selection.end.line + 1,
      selectedText: selection.isEmpty ? null : document.getText(selection).slice(0, SELECTED),
    };
    const now = JSON.stringify(active);
    if (now === this.last || this.daemon.connection.status !== "ready") return;
    this.last = now;
    this.daemon.notify("amanu/editor/contextChanged", { active });
  }
}

/** The selection of the active editor as it stands there, or its file when nothing is selected. */
export function selection(): AttachmentInput | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || editor.document.uri.scheme !== "file") return undefined;
  const { selection: range, document } = editor;
  const path = document.uri.fsPath;
  if (range.isEmpty) return { kind: "file", path };
  const [startLine, endLine] = [range.start.line + 1, range.end.line + (range.end.character === 0 ? 0 : 1)];
  return { kind: "selection", path, startLine, endLine, text: document.getText(range) };
}
