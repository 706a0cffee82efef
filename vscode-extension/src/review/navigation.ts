import * as vscode from "vscode";
import { name, type Target, targets, title } from "./changes";
import type { Hunk, Proposal } from "../protocol";
import { PROPOSED, proposedUri, type Proposals } from "./proposals";
import { closeDiff } from "./tabs";
import type { FilesEditor } from "./files";
import type { Owner } from "./owner";
import { changeKey, type LocatedChange, type Places } from "./places";
import { oneLine } from "../editor/visible";

/** Milliseconds for which the status bar says that nothing is left. */
const SAID = 8000;

/** Characters of a text that are spoken. */
const SPOKEN = 200;

/** Where to go in a file: to that hunk, to its first or last change, or to where a line of the file went. */
interface Aim {
  hunkId?: string;
  step?: 1 | -1;
  line?: number;
  preserveFocus?: boolean;
}

/** From change to change, over all files: what is proposed in its diff, in the file's place, what is applied in the file. */
export class Navigation implements vscode.Disposable {
  private readonly came = new vscode.EventEmitter<string>();
  /** The user was brought to a change: what a screen reader should say of it. */
  readonly onCame = this.came.event;
  /** Files whose diff was shown, by proposal: who goes back to the file is left there. */
  private readonly offered = new Set<string>();
  /** Files whose tab gave way to their diff. */
  private readonly replaced = new Set<string>();
  /** How many decisions that were made in an editor are under way. */
  private deciding = 0;
  /** The step that is under way. */
  private last: Promise<unknown> = Promise.resolve();
  private readonly subscription = vscode.window.onDidChangeActiveTextEditor(
    (editor) => void this.offer(editor),
  );

  constructor(
    private readonly places: Places,
    private readonly proposals: Proposals,
    private readonly owner: Owner,
    private readonly files: FilesEditor,
  ) {}

  dispose(): void {
    this.subscription.dispose();
    this.came.dispose();
  }

  /** The next change of the session after that one, or after the cursor; round and round. False when nothing waits. */
  go(step: 1 | -1, from?: string): Promise<boolean> {
    return this.inTurn(() => this.step(step, from));
  }

  /** Run one step after another: each starts where the one before has led. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.last.then(work);
    this.last = done.catch(() => undefined);
    return done;
  }

  private async step(step: 1 | -1, from?: string): Promise<boolean> {
    const editor = vscode.window.activeTextEditor;
    const all = editor === undefined ? [] : this.places.in(editor.document);
    const named = all.find((each) => changeKey(each) === from)?.target.sessionId;
    const sessionId = named ?? this.owner.sessionId;
    const changes = all.filter(({ target }) => target.sessionId === sessionId);
    if (editor === undefined || (changes.length === 0 && this.files.files.length === 0)) return this.open();
    const at = changes.findIndex((each) => changeKey(each) === from);
    const onward = at < 0 ? this.beyond(editor, changes, step) : changes[at + step];
    const elsewhere = onward === undefined ? this.nextFile(editor.document, sessionId, step) : undefined;
    const change = onward ?? (step > 0 ? changes[0] : changes.at(-1));
    if (elsewhere !== undefined) await this.show(elsewhere, { step });
    else if (change !== undefined) await this.reveal(editor, change);
    return elsewhere !== undefined || change !== undefined;
  }

  /** Go to a change that waits: to that one, else to the session's first. False when nothing waits. */
  async open(proposalId?: string, path?: string, aim: Aim = {}): Promise<boolean> {
    const editor = vscode.window.activeTextEditor;
    const { sessionId } = this.owner;
    const here = proposalId === undefined ? this.undecided(editor, sessionId) : undefined;
    if (editor !== undefined && here !== undefined) {
      await this.showDiff(here, { line: this.movedLine(editor, here) });
      return true;
    }
    const own = this.proposals.all.filter(({ proposal }) => proposal.proposalId === proposalId);
    const target =
      own.find(({ file }) => file.path === path && file.hunks.some(({ hunkId }) => hunkId === aim.hunkId)) ??
      own.find(({ file }) => path === undefined || file.path === path) ??
      this.proposals.waitingIn(sessionId)[0];
    if (target !== undefined) await this.showDiff(target, aim);
    return target !== undefined;
  }

  /** What is proposed in its diff, what is applied where it stands. */
  async show(target: Target, aim: Aim = {}): Promise<void> {
    const there = await this.files.goTo(target);
    if (there !== undefined) return this.aim(aim, there);
    const open = target.file.hunks.some((hunk) => hunk.waits === "decision");
    if (open || target.file.change === "delete" || target.row !== undefined)
      return this.showDiff(target, aim);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(target.file.presentPath));
    await vscode.window.showTextDocument(document, { preview: true });
    this.aim(aim);
  }

  /** To the change, in the diff when it is proposed. */
  async reveal(editor: vscode.TextEditor, change: LocatedChange): Promise<void> {
    if (change.hunk.waits === "decision" && editor.document.uri.scheme !== PROPOSED)
      return this.showDiff(change.target, { hunkId: change.hunk.hunkId });
    goToLine(editor, change.start);
    this.came.fire(this.described(change));
  }

  async showDiff(target: Target, aim: Aim = { step: 1 }): Promise<void> {
    const uri = proposedUri(target);
    this.offered.add(uri.toString());
    if (isPreview(vscode.Uri.file(target.file.presentPath))) this.replaced.add(uri.toString());
    await this.proposals.show(target, aim.preserveFocus);
    if (aim.preserveFocus !== true) this.aim(aim, uri);
  }

  /** Decide something in an editor: when its diff closes by that, the user goes on in the editor behind it. */
  async inEditor(decide: () => Promise<void>): Promise<void> {
    this.deciding += 1;
    try {
      await decide();
    } finally {
      this.deciding -= 1;
    }
  }

  /**
   * Nothing is left to decide in these files: their diffs close, and a file that gave way comes back. In the editor of
   * several files the next change is shown.
   */
  async decided(sessionId: string, proposal: Proposal): Promise<void> {
    const preserveFocus = this.deciding === 0; // else who decided in the chat would be torn out of it
    const together = this.files.files.length > 0;
    await this.files.closeDone();
    if (!preserveFocus && this.proposals.waitingIn(sessionId).length === 0) this.sayDone();
    if (together && !preserveFocus) return this.inTurn(() => this.goOnTogether());
    for (const target of targets([{ sessionId, proposals: [proposal] }])) {
      const { file, row } = target;
      // an applied file is reviewed in its own editor, an applied row in the document where it was proposed
      const stays = (hunk: Hunk) => (row === undefined ? hunk.waits === "decision" : hunk.waits !== "");
      if (file.hunks.some(stays)) continue;
      const uri = proposedUri(target);
      const { activeTextEditor } = vscode.window;
      const shown = activeTextEditor?.document.uri.toString() === uri.toString();
      const line = activeTextEditor?.selection.active.line ?? 0;
      const back = this.replaced.delete(uri.toString()) && shown;
      await closeDiff(uri, preserveFocus);
      if (!back || file.change !== "edit") continue;
      const at = new vscode.Range(line, 0, line, 0);
      const options = { preview: true, selection: at, preserveFocus };
      await vscode.window.showTextDocument(vscode.Uri.file(file.path), options);
    }
    if (!preserveFocus && vscode.window.tabGroups.activeTabGroup.activeTab === undefined)
      return this.inTurn(() => this.goOnAlone(sessionId));
  }

  private sayDone(): void {
    const text = "All changes of this session are reviewed.";
    vscode.window.setStatusBarMessage(`$(pass) ${text}`, SAID);
    this.came.fire(text);
  }

  /** Behind the diff that closed there was no other editor: the user would look at nothing. */
  private async goOnAlone(sessionId: string): Promise<void> {
    const [next] = this.proposals.waitingIn(sessionId);
    if (next !== undefined) await this.show(next);
  }

  private async goOnTogether(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) return;
    await this.proposals.upToDate(editor.document);
    const line = editor.selection.active.line;
    if (editor !== vscode.window.activeTextEditor || this.files.files.length === 0) return;
    if (this.places.at(editor.document, line) === undefined) await this.step(1);
  }

  /** Who comes to a file that something is proposed for sees it with that; once, for they may want the file itself. */
  private async offer(editor: vscode.TextEditor | undefined): Promise<void> {
    const target = editor && this.undecided(editor, this.owner.of(editor) ?? "");
    const wanted = vscode.workspace.getConfiguration("amanu").get<boolean>("diffInPlace", true);
    if (
      !wanted ||
      editor === undefined ||
      target === undefined ||
      this.offered.has(proposedUri(target).toString())
    )
      return;
    await this.showDiff(target, { line: this.movedLine(editor, target) });
  }

  /** What is proposed for the file the editor shows, in that session. */
  private undecided(editor: vscode.TextEditor | undefined, sessionId: string): Target | undefined {
    if (editor?.document.uri.scheme !== "file") return undefined;
    const found = this.places.targets(editor.document, (hunk) => hunk.waits === "decision");
    return found.find((target) => target.sessionId === sessionId);
  }

  /** Where a line of the file is in what is proposed. */
  private movedLine({ document, selection }: vscode.TextEditor, target: Target): number {
    const line = selection.active.line;
    const before = this.places.in(document).findLast((each) => each.target === target && each.start <= line);
    if (before === undefined) return line;
    const end = before.start + before.lines;
    const { proposedLines } = before.hunk;
    return line < end ? proposedLines.start : proposedLines.end + line - end;
  }

  private aim({ hunkId, step = 1, line }: Aim, uri?: vscode.Uri): void {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || (uri !== undefined && editor.document.uri.toString() !== uri.toString()))
      return;
    const changes = this.places.in(editor.document);
    const change =
      changes.find(({ hunk }) => hunk.hunkId === hunkId) ?? (step > 0 ? changes[0] : changes.at(-1));
    const start = line ?? change?.start;
    if (start !== undefined) goToLine(editor, start);
    if (line === undefined && change !== undefined) this.came.fire(this.described(change));
  }

  private described(change: LocatedChange): string {
    const { of, count } = this.places.numbers(change.target.sessionId);
    return `Change ${of.get(changeKey(change))} of ${count}. ${spoken(change)}`;
  }

  private beyond(
    { document, selection }: vscode.TextEditor,
    changes: LocatedChange[],
    step: 1 | -1,
  ): LocatedChange | undefined {
    const { line } = selection.active;
    if (step < 0) return changes.findLast(({ start }) => start < line);
    // in the file itself one that is proposed was not shown yet, though the cursor is in it
    const unseen = ({ hunk, start }: LocatedChange) =>
      document.uri.scheme !== PROPOSED && hunk.waits === "decision" && start >= line;
    return changes.find((each) => each.start > line || unseen(each));
  }

  /**
   * The next file of the session with something that waits, round and round; undefined when there is no other. In the
   * editor of several files one of those, as long as something waits there.
   */
  private nextFile(document: vscode.TextDocument, sessionId: string, step: 1 | -1): Target | undefined {
    const here = this.places.targets(document).find((target) => target.sessionId === sessionId)?.file;
    const waits = new Set(this.proposals.waiting.map(({ file }) => file));
    const together = this.files.files;
    const inOrder = together.some(({ file }) => waits.has(file))
      ? together
      : this.proposals.waitingIn(sessionId);
    const files = step > 0 ? inOrder : inOrder.toReversed();
    const at = files.findIndex(({ file }) => file === here);
    const onward = [...files.slice(at + 1), ...files.slice(0, Math.max(at, 0))];
    return onward.find(({ file }) => file !== here && waits.has(file));
  }
}

/** Where a change is, what it removes and what it adds. */
export function spoken({ target, hunk, start }: Pick<LocatedChange, "target" | "hunk" | "start">): string {
  const said = (words: string, text: string) => (text === "" ? [] : [`${words}: ${oneLine(text, SPOKEN)}.`]);
  if (target.row !== undefined)
    return [`${title(target)}.`, ...target.row.lines.map(({ text }) => oneLine(text, SPOKEN))].join(" ");
  return [
    `${name(target.file.path)}, line ${start + 1}.`,
    ...said("Removed", hunk.oldText),
    ...said("Added", hunk.newText),
  ].join(" ");
}

function goToLine(editor: vscode.TextEditor, line: number): void {
  const at = new vscode.Position(Math.min(line, editor.document.lineCount - 1), 0);
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

/** The active tab shows the file, and gives way to what is opened next. */
function isPreview(uri: vscode.Uri): boolean {
  const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
  return (
    tab !== undefined &&
    tab.isPreview &&
    tab.input instanceof vscode.TabInputText &&
    tab.input.uri.toString() === uri.toString()
  );
}
