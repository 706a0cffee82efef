import * as vscode from "vscode";
import type { Place } from "../editor/context";

/** What Amanu writes for some lines, below them in the editor, until it is whole. */
export class InlineLiveEdit implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("amanu.inline", "Amanu");
  private thread: vscode.CommentThread | undefined;
  private place: Place | undefined;

  begin(place: Place, instruction: string): void {
    this.end();
    const { document, lines } = place;
    const last = Math.min(lines.end, document.lineCount) - 1;
    const range = new vscode.Range(Math.min(lines.start, last), 0, last, 0);
    const thread = this.controller.createCommentThread(document.uri, range, []);
    thread.canReply = false;
    thread.label = instruction;
    thread.contextValue = "writing";
    // an unresolved one makes VS Code open its Comments panel
    thread.state = vscode.CommentThreadState.Resolved;
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    this.thread = thread;
    this.place = place;
    this.say(new vscode.MarkdownString("Thinking…"), "");
  }

  /** The text so far. */
  show(text: string): void {
    if (text === "" || this.place === undefined) return;
    this.say(new vscode.MarkdownString().appendCodeblock(text, this.place.document.languageId), "writing…");
  }

  /** Why there is no edit: it stays until it is closed. */
  fail(message: string): void {
    if (this.thread === undefined) return;
    this.thread.contextValue = "failed";
    this.say(new vscode.MarkdownString().appendText(message), "no edit");
  }

  end(): void {
    this.thread?.dispose();
    this.thread = undefined;
    this.place = undefined;
  }

  dispose(): void {
    this.end();
    this.controller.dispose();
  }

  private say(body: vscode.MarkdownString, label: string): void {
    if (this.thread === undefined) return;
    const mode = vscode.CommentMode.Preview;
    this.thread.comments = [{ body, mode, author: { name: "Amanu" }, label }];
  }
}
