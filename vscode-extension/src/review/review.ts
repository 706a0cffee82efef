import * as vscode from "vscode";
import type { Entry, Target } from "./changes";
import type { SeenFile } from "../chat/messages";
import type { OpenChats } from "../chat/openChats";
import type { Pages } from "../editor/pages";
import type { Edits } from "./edits";
import type { Hunk } from "../protocol";
import { PROPOSED, type Proposals } from "./proposals";
import { Decisions, type NamedChange, type Only } from "./decisions";
import { Decorations } from "./decorations";
import { FilesEditor } from "./files";
import { grouped } from "./grouped";
import { Lenses } from "./lenses";
import { Merge } from "./merge";
import { Navigation } from "./navigation";
import { Owner } from "./owner";
import { Places } from "./places";
import { Seen } from "./seen";
import { WayBack } from "./wayBack";
import { openable } from "./rows";
import { isEntry, listedEntries, sessionOf } from "./list";
import type { Sessions } from "../sessions/sessions";

/** What VS Code is told of the changes, for menus and keys. */
const CONTEXTS: Record<string, (hunk: Hunk) => boolean> = {
  "amanu.pending": (hunk) => hunk.waits !== "",
  "amanu.open": (hunk) => hunk.waits === "decision",
  "amanu.review": (hunk) => hunk.waits === "review",
  "amanu.conflicted": (hunk) => hunk.state === "conflicted",
  "amanu.undoable": (hunk) => hunk.state === "applied",
  "amanu.redoable": (hunk) => hunk.state === "reverted",
};

const FILES: Record<string, Only> = { "amanu.openFiles": "decision", "amanu.reviewFiles": "review" };

/** Review in editors: what is shown there, the way from change to change, and what is said to them. */
export class Review implements vscode.Disposable {
  private readonly places: Places;
  private readonly owner: Owner;
  private readonly files: FilesEditor;
  private readonly lenses: Lenses;
  private readonly decorations: Decorations;
  private readonly navigation: Navigation;
  /** The user was brought to a change, in words. */
  readonly onCame: vscode.Event<string>;
  private readonly decisions: Decisions;
  private readonly wayBack: WayBack;
  private readonly subscriptions: vscode.Disposable[];
  /** The files with something that waits: typing elsewhere costs nothing. */
  private waiting: ReadonlySet<string> = new Set();
  /** The contexts as VS Code knows them. */
  private readonly contexts = new Map<string, string>();

  constructor(
    sessions: Sessions,
    private readonly openChats: OpenChats,
    private readonly proposals: Proposals,
    edits: Edits,
    pages: Pages,
  ) {
    this.places = new Places(proposals);
    const seen = new Seen(this.places);
    this.owner = new Owner(openChats, this.places);
    this.files = new FilesEditor(proposals);
    const merge = new Merge(pages, edits, proposals);
    this.lenses = new Lenses(this.places, proposals, sessions, merge);
    this.decorations = new Decorations(this.places);
    this.navigation = new Navigation(this.places, proposals, this.owner, this.files);
    this.onCame = this.navigation.onCame;
    this.decisions = new Decisions(
      openChats,
      proposals,
      edits,
      this.places,
      this.navigation,
      seen,
      this.owner,
      merge,
    );
    this.wayBack = new WayBack(sessions, openChats, proposals, edits);
    const everywhere = [{ scheme: PROPOSED }, { scheme: "file" }];
    this.subscriptions = [
      this.places,
      seen,
      merge,
      this.owner,
      this.decorations,
      this.navigation,
      vscode.languages.registerCodeLensProvider(everywhere, this.lenses),
      vscode.languages.registerHoverProvider(everywhere, this.lenses),
      sessions.onReset(() => this.refresh()),
      sessions.onLeft(() => this.refresh()),
      sessions.onEvent(({ sessionId, event }) => {
        if (event.kind === "sessionChanged") this.lenses.refresh(); // its name
        if (event.kind !== "proposalChanged") return;
        proposals.changed({ event });
        const decided = this.navigation.decided(sessionId, event.proposal);
        this.refresh();
        // VS Code does not ask again for the lenses of an editor that the focus leaves at once
        void decided.then(() => this.lenses.refresh());
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => this.decorations.draw()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document.uri.scheme === PROPOSED || this.waiting.has(document.uri.path)) this.draw();
      }),
      ...this.commands(),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  /** Open the diff of a file of a proposal, or of that change; if neither is named, of the first that waits. */
  async openDiff(proposalId?: string, path?: string, preserveFocus = false, hunkId = ""): Promise<void> {
    if (!(await this.navigation.open(proposalId, path, { preserveFocus, hunkId }))) this.decisions.nothing();
  }

  /** No to what is open of that proposal, said in an editor. */
  async reject(proposalId: string): Promise<void> {
    const own = this.proposals.all.filter(({ proposal }) => proposal.proposalId === proposalId);
    await this.navigation.inEditor(() => this.decisions.settle(own, false, "decision"));
  }

  private commands(): vscode.Disposable[] {
    const on = (command: string, work: (...given: unknown[]) => Promise<unknown>) =>
      vscode.commands.registerCommand(command, (...given: unknown[]) =>
        this.openChats.attempt(() => work(...given)),
      );
    const { decisions, navigation, owner, proposals, wayBack } = this;
    const decide =
      (yes: boolean) =>
      (...given: unknown[]) =>
        decisions.decide(yes, lens(given));
    const settle =
      (yes: boolean) =>
      (...given: unknown[]) => {
        const listed = listedEntries(given).flatMap(({ targets }) => targets);
        return listed.length > 0 ? decisions.settle(listed, yes) : decisions.settleFile(yes, id(given[0]));
      };
    const meant = (given: unknown) => sessionOf(given) ?? owner.sessionId;
    const go =
      (step: 1 | -1) =>
      (...given: unknown[]) => {
        const from = lens(given);
        return decisions.goOn(step, from && `${from.proposalId} ${from.hunkId}`);
      };
    return [
      on("amanu.acceptHunk", decide(true)),
      on("amanu.keepHunk", decide(true)),
      on("amanu.rejectHunk", decide(false)),
      on("amanu.keepHunkAt", (uri, changes, at) =>
        decisions.decideAt(uri as vscode.Uri, lineOf(changes, at), true),
      ),
      on("amanu.undoHunkAt", (uri, changes, at) =>
        decisions.decideAt(uri as vscode.Uri, lineOf(changes, at), false),
      ),
      on("amanu.rejectBecause", () => decisions.rejectBecause()),
      on("amanu.undoHunk", () => decisions.undoHunk()),
      on("amanu.retryHunk", (...given) => decisions.retry(lens(given))),
      on("amanu.mergeHunk", (...given) => decisions.mergeByHand(lens(given))),
      on("amanu.reviewAfter", () => decisions.setReview("after")),
      on("amanu.reviewBefore", () => decisions.setReview("before")),
      on("amanu.acceptFile", settle(true)),
      on("amanu.keepFile", settle(true)),
      on("amanu.rejectFile", settle(false)),
      on("amanu.settle", (files, yes, only) =>
        decisions.settleSeen(files as SeenFile[], yes === true, (only ?? undefined) as Only | undefined),
      ),
      on("amanu.acceptAll", (group) => decisions.settleSession(group, true)),
      // what is applied is taken back by undo, which shows first what that means
      on("amanu.rejectAll", (group) => decisions.settleSession(group, false, "decision")),
      on("amanu.undoFile", (...given) => wayBack.undoFiles(given)),
      on("amanu.undoTurn", (turnId, session) => wayBack.undoTurn(id(turnId), id(session))),
      on("amanu.undoSession", () => wayBack.undoSession()),
      on("amanu.redo", (turnId, session) => wayBack.redo(id(turnId), id(session))),
      on("amanu.restore", (turnId, session) => wayBack.restore(id(turnId), id(session))),
      on("amanu.reviewAll", (given, sessionId) => this.reviewAll(id(sessionId) ?? meant(given), id(given))),
      on("amanu.reviewAllSessions", () => this.reviewAllSessions()),
      on("amanu.reviewSession", () => proposals.showSession(this.openChats.state)),
      on("amanu.openDiff", async (given, path, hunkId) => {
        if (isEntry(given)) return this.openEntry(given.entry);
        if (await navigation.open(id(given), id(path), { hunkId: id(hunkId) ?? "" })) return undefined;
        return decisions.nothing();
      }),
      on("amanu.openFile", () => this.openFile()),
      on("amanu.nextHunk", go(1)),
      on("amanu.previousHunk", go(-1)),
    ];
  }

  /** All of a session that waits in one editor; of one turn also what does not wait any more. */
  private async reviewAll(sessionId: string, turnId?: string): Promise<void> {
    const { all } = this.proposals;
    const shown =
      turnId === undefined
        ? this.proposals.waitingIn(sessionId)
        : all.filter((each) => each.sessionId === sessionId && each.proposal.turnId === turnId);
    const [only] = shown;
    const whose = this.proposals.whose(sessionId);
    const what = turnId === undefined ? "Changes to review" : "Changes in this turn";
    if (only === undefined) this.decisions.nothing();
    else if (shown.length === 1) await this.navigation.showDiff(only);
    else {
      await this.files.open(whose === undefined ? what : `${what} in ${whose}`, shown);
      await this.navigation.show(only);
    }
  }

  /** Which session, or which file of one: each decision is about one session. */
  private async reviewAllSessions(): Promise<void> {
    const { owners } = this.proposals;
    if (owners.length === 0) return this.decisions.nothing();
    const chosen = await vscode.window.showQuickPick(grouped(owners), {
      title: "Review All Sessions",
      placeHolder: "A session's changes together, or one file",
      matchOnDescription: true,
    });
    if (chosen?.entry !== undefined) await this.openEntry(chosen.entry);
    else if (chosen?.sessionId !== undefined) await this.reviewAll(chosen.sessionId);
  }

  private async openEntry({ targets }: Entry): Promise<void> {
    const target =
      targets.find(({ file }) => file.hunks.some((hunk) => hunk.waits === "decision")) ?? targets[0];
    if (target !== undefined) await this.navigation.show(target);
  }

  /** The file itself, of the diff before the user. */
  private async openFile(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.scheme !== PROPOSED) return;
    const target = this.proposals.target(editor.document.uri);
    if (target === undefined) return this.decisions.nothing();
    const { file, row } = target;
    const path = row && openable(row);
    if (row === undefined)
      await vscode.window.showTextDocument(vscode.Uri.file(file.presentPath), {
        selection: editor.selection,
      });
    else if (path === undefined)
      this.openChats.tell({ level: "info", text: "There is no file in the workspace to open." });
    else await vscode.commands.executeCommand("vscode.open", vscode.Uri.file(path));
  }

  private refresh(): void {
    this.waiting = new Set(this.waitingFiles.map(({ file }) => file.presentPath));
    this.draw();
    const hunks = this.proposals.all.flatMap(({ file }) => file.hunks);
    for (const [key, test] of Object.entries(CONTEXTS)) this.tell(key, hunks.some(test));
    for (const [key, what] of Object.entries(FILES)) this.tell(key, this.filesThatWait(what));
    this.tell("amanu.severalSessions", this.proposals.owners.length > 1);
  }

  /** The files with hunks that wait, without rows. */
  private get waitingFiles(): Target[] {
    return this.proposals.waiting.filter(({ row }) => row === undefined);
  }

  private draw(): void {
    this.lenses.refresh();
    this.decorations.draw();
  }

  /** For the buttons of their editors. */
  private filesThatWait(what: Only): string[] {
    const found = this.waitingFiles.filter(({ file }) => file.hunks.some((hunk) => hunk.waits === what));
    return [...new Set(found.map(({ file }) => vscode.Uri.file(file.presentPath).fsPath))];
  }

  private tell(key: string, value: unknown): void {
    const told = JSON.stringify(value);
    if (this.contexts.get(key) === told) return;
    this.contexts.set(key, told);
    void vscode.commands.executeCommand("setContext", key, value);
  }
}

function id(given: unknown): string | undefined {
  return typeof given === "string" && given !== "" ? given : undefined;
}

/** The change a lens stands above. */
function lens([proposal, file, hunk]: unknown[]): NamedChange | undefined {
  const [proposalId, path, hunkId] = [id(proposal), id(file), id(hunk)];
  if (proposalId === undefined || path === undefined || hunkId === undefined) return undefined;
  return { proposalId, path, hunkId };
}

/** The line, from 0, at which a change of the gutter begins, as VS Code gives it to the buttons of its diff. */
function lineOf(changes: unknown, at: unknown): number {
  const lines = (changes as { modifiedStartLineNumber: number; modifiedEndLineNumber: number }[])[Number(at)];
  if (lines === undefined) return -1;
  const { modifiedStartLineNumber: start, modifiedEndLineNumber: end } = lines;
  return end === 0 ? start : start - 1; // where only lines were removed, VS Code names the line before
}
