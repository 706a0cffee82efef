import * as vscode from "vscode";
import { called, plural, scopeOf, type Target, withHunks } from "./changes";
import type { SeenFile } from "../chat/messages";
import type { OpenChats } from "../chat/openChats";
import type { Edits } from "./edits";
import { sessionOf } from "./list";
import type { Proposals } from "./proposals";
import type { Merge } from "./merge";
import type { Navigation } from "./navigation";
import type { Owner } from "./owner";
import { changeKey, type LocatedChange, type Places, type Wanted } from "./places";
import { isOnScreen, type Seen } from "./seen";
import { comparedNotebook } from "./tabs";

/** The change a lens stands above. */
export interface NamedChange {
  proposalId: string;
  path: string;
  hunkId: string;
}

/** What waits for what. */
export type Only = "decision" | "review";

/** Milliseconds for which the status bar says why nothing was accepted. */
const HINT = 6000;

/** Yes and no, from keys, lenses and lists. What was not on screen is shown, and accepted when it was looked at. */
export class Decisions {
  constructor(
    private readonly openChats: OpenChats,
    private readonly proposals: Proposals,
    private readonly edits: Edits,
    private readonly places: Places,
    private readonly navigation: Navigation,
    private readonly seen: Seen,
    private readonly owner: Owner,
    private readonly merge: Merge,
  ) {}

  /** The change a lens stands above, or that at the cursor. */
  async decide(yes: boolean, lens?: NamedChange): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (lens !== undefined) return this.decideNamed(yes, lens);
    if (await this.decideNotebook(yes)) return;
    const change = editor && this.places.at(editor.document, editor.selection.active.line);
    if (editor === undefined || change === undefined) await this.goOn(1);
    else if (!isOnScreen(editor, change)) await this.navigation.reveal(editor, change);
    else await this.settleOne(change, yes);
  }

  /** All of the notebook whose cells are compared in front: its hunks are of lines, which are not seen there. */
  private async decideNotebook(yes: boolean): Promise<boolean> {
    const uri = comparedNotebook();
    const target = uri && this.proposals.target(uri);
    if (target === undefined) return false;
    await this.navigation.inEditor(() => this.settle([target], yes));
    return true;
  }

  /** What a rule applied, from the diff that opens in the gutter: the change on that line, from 0. */
  async decideAt(uri: vscode.Uri, line: number, yes: boolean): Promise<void> {
    const document = await vscode.workspace.openTextDocument(uri);
    const change = this.places.at(document, line, (hunk) => hunk.waits === "review");
    if (change === undefined) this.nothing();
    else await this.settleOne(change, yes);
  }

  /** No to the open change at the cursor, and why: the model hears it. */
  async rejectBecause(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const change = this.atCursor((hunk) => hunk.waits === "decision");
    if (editor === undefined || change === undefined) return this.goOn(1);
    if (!isOnScreen(editor, change)) return this.navigation.reveal(editor, change);
    const { proposal, file, row } = change.target;
    const title = `Reject the change in ${called(file.presentPath, row)}`;
    const reason = await vscode.window.showInputBox({ title, prompt: "Why? The model sees your reason." });
    if (reason === undefined) return;
    const now = this.named(proposal.proposalId, file.path, change.hunk.hunkId); // it may have moved meanwhile
    if (now === undefined) return this.nothing();
    await this.settleOne({ ...change, target: now }, false, reason.trim() || null);
  }

  /** Have the model make a change again: the one a lens stands above, or that in conflict at the cursor. */
  async retry(lens?: NamedChange): Promise<void> {
    const change = lens === undefined ? this.atCursor(({ state }) => state === "conflicted") : undefined;
    const target = lens === undefined ? change?.target : this.named(lens.proposalId, lens.path, lens.hunkId);
    const hunkId = lens?.hunkId ?? change?.hunk.hunkId;
    if (target === undefined) return this.goOn(1);
    const { sessionId, proposal } = target;
    const scope = scopeOf(
      proposal.proposalId,
      withHunks([target], (hunk) => hunk.hunkId === hunkId),
    );
    await this.navigation.inEditor(() => this.edits.retry(sessionId, proposal, scope));
  }

  /** Merge a change by hand: the one a lens stands above, or that in conflict at the cursor. */
  async mergeByHand(lens?: NamedChange): Promise<void> {
    const at = lens === undefined ? this.atCursor(({ state }) => state === "conflicted") : undefined;
    const target = at?.target ?? (lens && this.named(lens.proposalId, lens.path, lens.hunkId));
    const hunkId = lens?.hunkId ?? at?.hunk.hunkId;
    if (target === undefined) return this.goOn(1);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(target.file.presentPath));
    const change = this.places.in(document).find(({ hunk }) => hunk.hunkId === hunkId);
    if (change === undefined || !this.merge.fits(change)) return this.nothing();
    await this.merge.open(change, document);
  }

  /**
   * Settle all that a session (the named one, else the one at the cursor) changes in the file that the user sees. A yes
   * counts only once all of it was on screen: until then, each press shows the next change.
   */
  async settleFile(yes: boolean, sessionId?: string): Promise<void> {
    if (await this.decideNotebook(yes)) return;
    const editor = vscode.window.activeTextEditor;
    const own = sessionId ?? (editor && this.owner.of(editor));
    const all = editor === undefined ? [] : this.places.in(editor.document);
    const changes = all.filter(({ target }) => target.sessionId === own);
    if (editor === undefined || changes.length === 0) return this.goOn(1);
    this.seen.look(editor);
    const unseen = changes.filter((change) => !this.seen.has(change));
    const [first] = unseen;
    if (yes && first !== undefined) {
      vscode.window.setStatusBarMessage(
        `$(eye) ${unseen.length} of ${changes.length} changes not seen yet: look at them, then accept again`,
        HINT,
      );
      return this.navigation.reveal(editor, first);
    }
    const shown = new Set(changes.map(changeKey)); // what the text does not show yet, nobody has seen
    const files = [...new Set(changes.map(({ target }) => target))].flatMap((target) =>
      withHunks([target], (hunk) => shown.has(changeKey({ target, hunk }))),
    );
    await this.navigation.inEditor(() => this.settle(files, yes));
  }

  /** Decide files and rows of a list as they were seen there: what has changed since is left for another look. */
  async settleSeen(files: SeenFile[], yes: boolean, only?: Only): Promise<void> {
    const found = this.proposals.waiting.filter(({ proposal, file, row }) =>
      files.some(
        (each) =>
          each.proposalId === proposal.proposalId &&
          each.version === proposal.version &&
          each.path === file.path &&
          each.rowId === row?.rowId,
      ),
    );
    if (found.length < files.length)
      this.openChats.tell({
        level: "warning",
        text: "Some changes were updated in the meantime. Review them again.",
      });
    if (found.length > 0) await this.settle(found, yes, only);
  }

  /** All that waits in the session of a group of the list, which may have been decided elsewhere meanwhile; without one
   * in the session a command means. */
  async settleSession(group: unknown, yes: boolean, only?: Only): Promise<void> {
    const listed = sessionOf(group);
    const chosen = this.proposals.waitingIn(listed ?? this.owner.sessionId);
    if (listed !== undefined && chosen.length === 0) this.nothing();
    else await this.settle(chosen, yes, only);
  }

  /** All that waits in these files, or that waits for one thing. */
  async settle(chosen: Target[], yes: boolean, only?: Only): Promise<void> {
    if (chosen.length === 0) return this.goOn(1);
    await this.proposals.settle(chosen, (hunk) => only === undefined || hunk.waits === only, yes);
  }

  /** Review what the file before the user shows, else the first that waits, at another time. */
  async setReview(review: "before" | "after"): Promise<void> {
    const what = review === "after" ? "decision" : "review";
    const fits = ({ file }: Target) => file.hunks.some((hunk) => hunk.waits === what);
    const { document } = vscode.window.activeTextEditor ?? {};
    const here = document === undefined ? [] : this.places.targets(document);
    const target = here.find(fits) ?? this.proposals.waitingIn(this.owner.sessionId).find(fits);
    if (target === undefined) this.nothing();
    else await this.edits.setReview(target.sessionId, target.proposal, review);
  }

  /** Take back the change at the cursor, also one the user said yes to. */
  async undoHunk(): Promise<void> {
    const change = this.atCursor((hunk) => hunk.state === "applied");
    if (change === undefined)
      return this.openChats.tell({ level: "info", text: "There is no change by Amanu at the cursor." });
    const { sessionId, proposal } = change.target;
    const only = withHunks([change.target], ({ hunkId }) => hunkId === change.hunk.hunkId);
    await this.edits.undo(sessionId, scopeOf(proposal.proposalId, only));
  }

  /** To the next change, when something was to be decided where nothing is. */
  async goOn(step: 1 | -1, from?: string): Promise<void> {
    if (!(await this.navigation.go(step, from))) this.nothing();
  }

  nothing(): void {
    const others = this.proposals.owners.length;
    const text =
      others === 0
        ? "There is nothing to review."
        : `There is nothing to review in this session. “Amanu: Review All Sessions” shows what waits in ${plural(others, "other")}.`;
    this.openChats.tell({ level: "info", text });
  }

  private async decideNamed(yes: boolean, { proposalId, path, hunkId }: NamedChange): Promise<void> {
    const target = this.named(proposalId, path, hunkId);
    const hunk = target?.file.hunks.find((each) => each.hunkId === hunkId);
    if (target === undefined || hunk === undefined) return this.nothing();
    await this.settleOne({ target, hunk }, yes);
  }

  private settleOne(
    change: Pick<LocatedChange, "target" | "hunk">,
    yes: boolean,
    reason: string | null = null,
  ): Promise<void> {
    const wanted: Wanted = (hunk) => changeKey({ ...change, hunk }) === changeKey(change);
    return this.navigation.inEditor(() => this.proposals.settle([change.target], wanted, yes, reason));
  }

  private atCursor(wanted: Wanted): LocatedChange | undefined {
    const editor = vscode.window.activeTextEditor;
    return editor && this.places.at(editor.document, editor.selection.active.line, wanted);
  }

  /** The file or row with that change, while something of it waits. */
  private named(proposalId: string, path: string, hunkId: string): Target | undefined {
    return this.proposals.waiting.find(
      ({ proposal, file }) =>
        proposal.proposalId === proposalId &&
        file.path === path &&
        file.hunks.some((hunk) => hunk.hunkId === hunkId),
    );
  }
}
