import * as vscode from "vscode";
import type { Target } from "./changes";
import { type Proposals, sides } from "./proposals";

/** Milliseconds in which VS Code goes to a file of an editor. */
const GOING = 3000;

/** A file or row in the editor: its proposal, and the documents that stay the same for as long as it is open. */
interface Shown {
  proposalId: string;
  path: string;
  rowId: string | undefined;
  /** None of a new file. */
  originalUri: vscode.Uri | undefined;
  modifiedUri: vscode.Uri;
}

interface Opened {
  heading: string;
  files: Shown[];
}

/** The editor of several files of one session. VS Code does not say what such an editor shows: that is remembered here. */
export class FilesEditor {
  private opened: Opened[] = [];

  constructor(private readonly proposals: Pick<Proposals, "all" | "readAhead">) {}

  async open(heading: string, targets: Target[]): Promise<void> {
    const labels = tabs().map(({ label }) => label);
    this.opened = this.opened.filter((each) => labels.some((label) => isNamed(label, each)));
    const files = targets.map((target) => {
      const [originalUri, modifiedUri] = sides(target);
      return {
        proposalId: target.proposal.proposalId,
        path: target.file.path,
        rowId: target.row?.rowId,
        originalUri,
        modifiedUri,
      };
    });
    this.opened.push({ heading, files });
    const [first] = targets;
    if (first !== undefined) this.proposals.readAhead(first.sessionId, targets);
    const resources = files.map((file) => [vscode.Uri.file(file.path), file.originalUri, file.modifiedUri]);
    await vscode.commands.executeCommand("vscode.changes", heading, resources);
    if (files[0] !== undefined) await inFront(files[0].modifiedUri);
  }

  /** The files, as they are now, of the one in front, when the cursor is in one of them. */
  get files(): Target[] {
    return this.current?.files.flatMap((file) => this.target(file) ?? []) ?? [];
  }

  /** Go to a file of the one in front, if it is there: its editor has the focus then. */
  async goTo(target: Target): Promise<vscode.Uri | undefined> {
    const { current } = this;
    if (current === undefined) return undefined;
    const to = current.files.findIndex((shown) => isOf(target, shown));
    if (to < 0) return undefined;
    const from = current.files.findIndex(isInFront);
    const passed = current.files.slice(to + 1, from + 1);
    const back = to < from && !passed.some((shown) => this.begins(shown));
    await walk(current, from, to, back ? -1 : 1);
    const there = current.files[to];
    const editor = vscode.window.activeTextEditor;
    if (there === undefined || editor === undefined || !isInFront(there)) return undefined;
    park(editor, 1); // VS Code's status bar tells a file's line only when the cursor moves in it
    return there.modifiedUri;
  }

  /** Close those in which nothing waits any more. */
  async closeDone(): Promise<void> {
    const done = tabs().filter(({ label }) => {
      const named = this.opened.filter((each) => isNamed(label, each));
      return named.length > 0 && named.every(({ files }) => files.every((file) => !this.waits(file)));
    });
    if (done.length > 0) await vscode.window.tabGroups.close(done, true);
  }

  private get current(): Opened | undefined {
    const { activeTab } = vscode.window.tabGroups.activeTabGroup;
    return this.opened.findLast(
      (each) => activeTab !== undefined && isNamed(activeTab.label, each) && each.files.some(isInFront),
    );
  }

  private target(shown: Shown): Target | undefined {
    return this.proposals.all.find((target) => isOf(target, shown));
  }

  /** Its first lines are taken away: VS Code does not leave such a file backwards. */
  private begins(shown: Shown): boolean {
    const hunks = this.target(shown)?.file.hunks ?? [];
    return hunks.some(({ newText, proposedLines }) => newText === "" && proposedLines.start === 0);
  }

  private waits(shown: Shown): boolean {
    return this.target(shown)?.file.hunks.some((hunk) => hunk.waits !== "") ?? false;
  }
}

function isOf({ proposal, file, row }: Target, shown: Shown): boolean {
  return shown.proposalId === proposal.proposalId && shown.path === file.path && shown.rowId === row?.rowId;
}

function isInFront({ modifiedUri }: Shown): boolean {
  return vscode.window.activeTextEditor?.document.uri.toString() === modifiedUri.toString();
}

function tabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

/** VS Code adds how many files there are. */
function isNamed(label: string, { heading }: Opened): boolean {
  return label.startsWith(`${heading} (`);
}

/** From file to file with VS Code's own keys: only these take the focus along. They lead round and round. */
async function walk({ files }: Opened, from: number, to: number, step: 1 | -1): Promise<void> {
  const key = step > 0 ? "multiDiffEditor.goToNextChange" : "multiDiffEditor.goToPreviousChange";
  for (let at = from; at !== to;) {
    at = (at + step + files.length) % files.length;
    const next = files[at];
    const editor = vscode.window.activeTextEditor;
    if (next === undefined || editor === undefined) return;
    park(editor, step);
    await vscode.commands.executeCommand(key);
    await inFront(next.modifiedUri);
    if (!isInFront(next)) return;
  }
}

/** Put the cursor past all changes of the file. */
function park(editor: vscode.TextEditor, step: 1 | -1): void {
  const end = new vscode.Position(step > 0 ? editor.document.lineCount - 1 : 0, 0);
  editor.selection = new vscode.Selection(end, end);
}

/** Until the editor of the document has come to the front; VS Code says so a moment after it has done it. */
function inFront(uri: vscode.Uri): Promise<void> {
  const shows = (editor?: vscode.TextEditor) => editor?.document.uri.toString() === uri.toString();
  if (shows(vscode.window.activeTextEditor)) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      subscription.dispose();
      resolve();
    };
    const timer = setTimeout(end, GOING);
    const subscription = vscode.window.onDidChangeActiveTextEditor((editor) => shows(editor) && end());
  });
}
