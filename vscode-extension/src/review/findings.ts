import * as vscode from "vscode";
import { within } from "../chat/incoming";
import { finding, FINDINGS } from "../chat/view/places";
import type { Event } from "../protocol";
import type { Sessions } from "../sessions/sessions";
import { visible } from "../editor/visible";

/** What reviewing sub-agents find, as comments beside the lines it is about, until the user takes them away or the same
 * agent finds something else. */
export class Findings implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("amanu-findings", "Findings for you");
  /** By session and agent. */
  private readonly threads = new Map<string, vscode.CommentThread[]>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(sessions: Sessions) {
    this.subscriptions = [
      this.controller,
      sessions.onEvent(({ sessionId, event }) =>
        this.hear(event, sessionId, sessions.get(sessionId)?.state.roots ?? []),
      ),
      vscode.commands.registerCommand("amanu.dropFinding", (thread: vscode.CommentThread) =>
        thread.dispose(),
      ),
      vscode.commands.registerCommand("amanu.dropFindings", () => this.clear()),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  private hear(event: Event, sessionId: string, roots: string[]): void {
    if (event.kind !== "itemCompleted" || event.item.kind !== "notice" || event.item.code !== FINDINGS)
      return;
    const { agent, comments } = comment(event.item.text);
    const key = `${sessionId} ${agent}`;
    for (const thread of this.threads.get(key) ?? []) thread.dispose();
    const threads = comments.flatMap(({ path, line, words }) => {
      const full = within(path, roots);
      return full === undefined ? [] : [this.thread(agent, vscode.Uri.file(full), line, words)];
    });
    this.threads.set(key, threads);
  }

  private thread(agent: string, uri: vscode.Uri, line: number, words: string): vscode.CommentThread {
    const comments = [{ body: words, mode: vscode.CommentMode.Preview, author: { name: agent } }];
    const range = new vscode.Range(line - 1, 0, line - 1, 0);
    const thread = this.controller.createCommentThread(uri, range, comments);
    thread.label = `Found by ${agent}`;
    thread.canReply = false;
    thread.state = vscode.CommentThreadState.Resolved; // as in comments.ts: no panel opens by itself
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Collapsed;
    return thread;
  }

  private clear(): void {
    for (const threads of this.threads.values()) for (const thread of threads) thread.dispose();
    this.threads.clear();
  }
}

/** The findings of a notice: who has them, and each with its place. Lines from 1. */
export function comment(text: string): {
  agent: string;
  comments: { path: string; line: number; words: string }[];
} {
  const [head = "", ...lines] = text.split("\n");
  const comments = lines.flatMap((each) => {
    const found = finding(each);
    if (found === undefined || found.place.line === null || found.place.line < 1) return [];
    return [{ path: found.place.path, line: found.place.line, words: visible(found.words) }];
  });
  return { agent: visible(head.split(" ", 1)[0] ?? ""), comments };
}
