import * as vscode from "vscode";
import { baselineUri, type Proposals } from "./proposals";
import type { Sessions } from "../sessions/sessions";

/** Milliseconds without typing after which the texts a file is compared with are asked for again. */
const REST = 300;

/** The part of the API of VS Code's git extension that is used. */
interface Git {
  getAPI(version: 1): { onDidOpenRepository: vscode.Event<unknown> };
}

/**
 * In the gutter what a rule applied and nobody looked at. VS Code takes marks there from a provider of source control
 * only, and a provider is a repository to it: ours has nothing else, and is there only while such a file is on screen.
 */
export class Gutter implements vscode.QuickDiffProvider, vscode.Disposable {
  private source: vscode.SourceControl | undefined;
  private readonly subscriptions: vscode.Disposable[];
  /** Path → the timer that runs while the user types in the file. */
  private readonly rests = new Map<string, ReturnType<typeof setTimeout>>();
  private isGone = false;

  constructor(
    sessions: Pick<Sessions, "onReset" | "onLeft" | "onEvent">,
    private readonly proposals: Pick<Proposals, "waiting" | "typed">,
  ) {
    this.subscriptions = [
      sessions.onReset(() => this.draw()),
      sessions.onLeft(() => this.draw()),
      sessions.onEvent(({ event }) => event.kind === "proposalChanged" && this.draw()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) this.rest(document.uri);
      }),
    ];
    void this.stayBehindGit();
  }

  dispose(): void {
    this.isGone = true;
    this.leave();
    for (const timer of this.rests.values()) clearTimeout(timer);
    for (const each of this.subscriptions) each.dispose();
  }

  /** The text the gutter compares a file with. Only files a rule changed: elsewhere the gutter is git's alone. */
  provideOriginalResource(uri: vscode.Uri): vscode.Uri | undefined {
    return this.isMarked(uri) ? baselineUri(uri.path, "unreviewed") : undefined;
  }

  private draw(): void {
    const { visibleTextEditors } = vscode.window;
    if (!visibleTextEditors.some(({ document }) => this.isMarked(document.uri))) return this.leave();
    if (this.source !== undefined) return;
    this.source = vscode.scm.createSourceControl("amanu", "Amanu");
    this.source.inputBox.visible = false;
    this.source.quickDiffProvider = this;
  }

  private leave(): void {
    this.source?.dispose();
    this.source = undefined;
  }

  private isMarked(uri: vscode.Uri): boolean {
    if (uri.scheme !== "file") return false;
    return this.proposals.waiting.some(
      ({ file, row }) =>
        !row && file.presentPath === uri.path && file.hunks.some((hunk) => hunk.waits === "review"),
    );
  }

  /** The texts a file is compared with have the user's typing, too: else that would look like a change of ours. */
  private rest(uri: vscode.Uri): void {
    if (uri.scheme !== "file") return;
    clearTimeout(this.rests.get(uri.path));
    const end = () => {
      this.rests.delete(uri.path);
      this.proposals.typed(uri.path);
    };
    this.rests.set(uri.path, setTimeout(end, REST));
  }

  /** The first provider there is gets the status bar and the graph: come again after each repository of git's. */
  private async stayBehindGit(): Promise<void> {
    const git = vscode.extensions.getExtension<Git>("vscode.git");
    if (git === undefined) return;
    try {
      const api = (await git.activate()).getAPI(1);
      if (this.isGone) return;
      this.subscriptions.push(
        api.onDidOpenRepository(() => {
          this.leave();
          this.draw();
        }),
      );
    } catch {
      // git is disabled: nothing to stay behind
    }
  }
}
