import * as vscode from "vscode";
import type { OpenChats } from "../chat/openChats";
import { split } from "./hunks";
import { describesRow, filePath, PROPOSED, subject } from "./proposals";
import type { CommentAttachmentInput } from "../protocol";
import type { Sessions } from "../sessions/sessions";

/** Where those not sent yet are kept: a window that is loaded again must not lose them. */
const KEPT = "amanu.comments";

/** A thread as it is kept: lines from 0. */
interface Kept {
  uri: string;
  start: number;
  end: number;
  said: string[];
}

/** What is said when nothing but comments goes along. */
const SAID = "See my comments on these lines.";

/** What the user says about lines: gathered in threads beside them, and sent to the model together. */
export class Comments implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("amanu", "Comments for Amanu");
  private readonly threads = new Set<vscode.CommentThread>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly openChats: OpenChats,
    /** The prompt goes out with what the editor shows. */
    private readonly memory: vscode.Memento,
    private readonly flush: () => void,
  ) {
    this.controller.options = { prompt: "Comment for Amanu…", placeHolder: "What should be different here?" };
    this.controller.commentingRangeProvider = {
      // in files the gutter is full enough: there a command does it
      provideCommentingRanges: ({ uri, lineCount }) =>
        (uri.scheme === PROPOSED && !describesRow(uri)) || this.isPlan(uri)
          ? [new vscode.Range(0, 0, Math.max(0, lineCount - 1), 0)]
          : [],
    };
    const on = (name: string, work: (given: never) => Promise<unknown>) =>
      vscode.commands.registerCommand(name, (given: never) => openChats.attempt(() => work(given)));
    this.subscriptions = [
      this.controller,
      on("amanu.comment", () => this.ask()),
      on("amanu.addComment", async (reply: vscode.CommentReply) => this.add(reply.thread, reply.text)),
      on("amanu.sendComment", async (reply: vscode.CommentReply) => {
        this.add(reply.thread, reply.text);
        await this.send();
      }),
      on("amanu.sendComments", () => this.send()),
      on("amanu.dropComment", async (thread: vscode.CommentThread) => this.drop(thread)),
      sessions.onLeft(({ proposals }) => {
        // its proposals are gone, and with them the lines
        for (const thread of this.threads)
          if (proposals.some(({ proposalId }) => isOf(thread, proposalId))) this.drop(thread);
      }),
    ];
    for (const { uri, start, end, said } of memory.get<Kept[]>(KEPT, [])) {
      const range = new vscode.Range(start, 0, end, 0);
      const thread = this.controller.createCommentThread(vscode.Uri.parse(uri), range, []);
      for (const text of said) this.add(thread, text);
    }
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  /** The plan of a session, which waits for approval or did. */
  private isPlan({ scheme, fsPath }: vscode.Uri): boolean {
    const paths = this.sessions.states.flatMap(({ plan, approvals }) => [
      plan?.path,
      ...approvals.map(({ document }) => document),
    ]);
    return scheme === "file" && paths.includes(fsPath);
  }

  /** A comment on the selection, or on the line of the cursor, in any file. */
  private async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const schemes = ["file", PROPOSED];
    const { uri } = editor?.document ?? {};
    if (editor === undefined || uri === undefined || !schemes.includes(uri.scheme) || describesRow(uri))
      return this.openChats.tell({ level: "info", text: "There is no file to comment on." });
    const { start, end } = lines(editor.selection);
    const where = start === end ? `line ${start + 1}` : `lines ${start + 1}–${end + 1}`;
    const text = await vscode.window.showInputBox({
      title: `Comment on ${where}`,
      prompt: "Collected until you run Amanu: Send Comments.",
      ignoreFocusOut: true, // the chat may take the focus, and what is typed would be lost
    });
    if (!text?.trim()) return;
    const range = new vscode.Range(start, 0, end, 0);
    this.add(this.controller.createCommentThread(uri, range, []), text);
  }

  private add(thread: vscode.CommentThread, text: string): void {
    const comment: vscode.Comment = {
      body: text,
      mode: vscode.CommentMode.Preview,
      author: { name: "You" },
      label: "not sent yet",
    };
    thread.comments = [...thread.comments, comment];
    thread.label = "For Amanu";
    // an unresolved one makes VS Code open its Comments panel (package.json, `comments.openView`)
    thread.state = vscode.CommentThreadState.Resolved;
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Collapsed; // the lines below are read next
    this.threads.add(thread);
    this.tell();
  }

  private drop(thread: vscode.CommentThread): void {
    this.threads.delete(thread);
    thread.dispose();
    this.tell();
  }

  /** All of them, with one prompt for each session: into the running turn, if one runs. They stay when they are not taken. */
  private async send(): Promise<void> {
    if (this.threads.size === 0)
      return this.openChats.tell({ level: "info", text: "There are no comments to send." });
    const bySession = new Map<string, vscode.CommentThread[]>();
    for (const thread of this.threads) {
      const sessionId = this.sessionOf(thread.uri);
      bySession.set(sessionId, [...(bySession.get(sessionId) ?? []), thread]);
    }
    for (const [sessionId, threads] of bySession) {
      const attachments: CommentAttachmentInput[] = [];
      for (const thread of threads) {
        const document = await vscode.workspace.openTextDocument(thread.uri);
        const said = texts(thread).join("\n");
        attachments.push(attachment(thread.uri, thread.range, document.getText(), said));
      }
      this.flush();
      const chat = this.openChats.showing(sessionId) ?? this.openChats.active;
      if (chat.state.sessionId !== sessionId) await chat.open(sessionId);
      await chat.prompt(SAID, attachments, chat.state.turn === null ? "send" : "steer");
      for (const thread of threads) this.drop(thread);
    }
  }

  /** The session that proposes the text; of files that of the active chat. */
  private sessionOf(uri: vscode.Uri): string {
    const proposing = this.sessions.states.find(({ proposals }) =>
      proposals.some(({ proposalId }) => proposalId === proposalOf(uri)),
    );
    return (proposing ?? this.openChats.state).sessionId;
  }

  private tell(): void {
    void vscode.commands.executeCommand("setContext", "amanu.comments", this.threads.size > 0);
    const kept = [...this.threads].map((thread): Kept => {
      const [start, end] = [thread.range?.start.line ?? 0, thread.range?.end.line ?? 0];
      return { uri: thread.uri.toString(), start, end, said: texts(thread) };
    });
    void this.memory.update(KEPT, kept);
  }
}

function isOf({ uri }: vscode.CommentThread, proposalId: string): boolean {
  return proposalOf(uri) === proposalId;
}

/** Null of a file. */
function proposalOf({ scheme, query }: Pick<vscode.Uri, "scheme" | "query">): string | null {
  return scheme === PROPOSED ? subject(query).proposalId : null;
}

function texts({ comments }: vscode.CommentThread): string[] {
  return comments.map(({ body }) => (typeof body === "string" ? body : body.value));
}

/** A comment as the daemon wants it. Without a range it is about the whole text. */
export function attachment(
  uri: Pick<vscode.Uri, "scheme" | "path" | "query">,
  range: LineRange | undefined,
  text: string,
  comment: string,
): CommentAttachmentInput {
  const all = split(text);
  // a thread's range names its lines, whatever the characters are
  const start = range?.start.line ?? 0;
  const end = range?.end.line ?? Math.max(0, all.length - 1);
  return {
    kind: "comment",
    path: filePath(uri),
    lines: { start, end: end + 1 },
    text: all.slice(start, end + 1).join(""),
    comment,
    proposalId: proposalOf(uri),
  };
}

interface LineRange {
  start: { line: number; character: number };
  end: { line: number; character: number };
}

/** First and last line, from 0. A selection of whole lines ends at the start of the one after them. */
function lines({ start, end }: LineRange): { start: number; end: number } {
  const whole = end.line > start.line && end.character === 0;
  return { start: start.line, end: whole ? end.line - 1 : end.line };
}
