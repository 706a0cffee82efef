import * as vscode from "vscode";
import { lastTurn, name, type Row, type Target, whereabouts } from "./changes";
import type { Desks } from "./desks";
import type { Edits } from "./edits";
import { DONE, locate, OPEN, type Place, waits } from "./hunks";
import type { Hunk } from "./protocol";
import { BASE, PROPOSED, type Proposals } from "./proposals";
import { isRow } from "./scm";
import type { Sessions } from "./sessions";
import { why } from "./why";

/** What yes and no are called. */
const WORDS = {
  open: ["Accept", "Reject"],
  conflicted: ["Try again", "Reject"],
  review: ["Keep", "Undo"],
} as const;

/** What a change of a whole file is called. */
const WHOLE = { edit: "", create: " the new file", delete: " the deletion", rename: " the rename" } as const;

/** Review in editors: lenses, hovers and decorations for what waits, in the diff and in the file itself. */
export class Review implements vscode.CodeLensProvider, vscode.HoverProvider, vscode.Disposable {
  private readonly lenses = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.lenses.event;
  private readonly removed = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("diffEditor.removedLineBackground"),
    // high contrast themes have no such background
    borderColor: new vscode.ThemeColor("editorGutter.deletedBackground"),
    borderStyle: "solid",
    borderWidth: "0 0 0 2px",
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  private readonly inserted = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderColor: new vscode.ThemeColor("editorGutter.addedBackground"),
    borderStyle: "dashed",
    borderWidth: "0 0 1px 0",
  });
  /** What would stand there, in short, after the line: an editor has no room for lines that are not in its text. */
  private readonly ghost = vscode.window.createTextEditorDecorationType({
    after: {
      color: new vscode.ThemeColor("editorCodeLens.foreground"),
      margin: "0 0 0 2em",
      fontStyle: "italic",
    },
  });
  private readonly subscriptions: vscode.Disposable[];
  /** The contexts VS Code knows. */
  private readonly told = new Map<string, boolean>();

  constructor(
    private readonly sessions: Sessions,
    private readonly desks: Desks,
    private readonly proposals: Proposals,
    private readonly edits: Edits,
  ) {
    const everywhere = [{ scheme: PROPOSED }, { scheme: "file" }];
    this.subscriptions = [
      this.lenses,
      this.removed,
      this.inserted,
      this.ghost,
      vscode.languages.registerCodeLensProvider(everywhere, this),
      vscode.languages.registerHoverProvider(everywhere, this),
      sessions.onReset(() => this.refresh()),
      sessions.onLeft(() => this.refresh()),
      sessions.onEvent(({ sessionId, event }) => {
        if (event.kind !== "proposalChanged") return;
        proposals.changed({ sessionId, event });
        this.refresh();
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => this.decorate()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (proposals.waiting.some(({ file }) => whereabouts(file) === document.uri.path)) this.refresh();
      }),
      ...this.commands(),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    return this.at(document).flatMap(({ target, places }) => {
      const { proposalId } = target.proposal;
      const lens = (line: number, title: string, command: string, ...rest: unknown[]) =>
        new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
          title,
          command,
          arguments: [proposalId, target.file.path, ...rest],
        });
      const proposed = document.uri.scheme === PROPOSED;
      const last = Math.max(0, document.lineCount - 1);
      // what is decided already looks like the rest in the diff
      const decided = proposed
        ? this.proposals
            .places(document)
            .filter(({ hunk, lines }) => DONE.has(hunk.state) && waits(hunk) === undefined && lines > 0)
            .map(({ start }) => lens(Math.min(start, last), "$(pass) applied", ""))
        : [];
      const perHunk = places.flatMap(({ hunk, start }, at) => {
        const line = Math.min(start, last);
        const [yes, no] =
          WORDS[waits(hunk) === "review" ? "review" : hunk.state === "conflicted" ? "conflicted" : "open"];
        const what = WHOLE[target.file.change];
        return [
          lens(line, `$(check) ${yes}${what}`, "amanu.acceptHunk", hunk.hunkId),
          lens(line, `$(${no === "Undo" ? "discard" : "x"}) ${no}${what}`, "amanu.rejectHunk", hunk.hunkId),
          ...(proposed
            ? []
            : [lens(line, `Amanu: −${hunk.oldLines} +${hunk.newLines}, show diff`, "amanu.openDiff")]),
          ...(places.length < 2 ? [] : [lens(line, `${at + 1} of ${places.length}`, "amanu.nextHunk")]),
        ];
      });
      if (places.length < 2) return [...perHunk, ...decided];
      const open = places.filter(({ hunk }) => waits(hunk) === "decision").length;
      const [yes, no] = WORDS[open > 0 ? "open" : "review"];
      return [
        lens(0, `$(check-all) ${yes} all ${places.length}`, "amanu.acceptFile"),
        lens(0, `$(${open > 0 ? "close-all" : "discard"}) ${no} all`, "amanu.rejectFile"),
        ...perHunk,
        ...decided,
      ];
    });
  }

  /** Why a change is there: nothing in it is more than text. */
  provideHover(document: vscode.TextDocument, position: vscode.Position): vscode.Hover | undefined {
    const found = this.at(document).flatMap(({ target, places }) => {
      const { items = [] } = this.sessions.get(target.sessionId)?.state ?? {};
      return places
        .filter(({ start, lines }) => position.line >= start && position.line < start + Math.max(1, lines))
        .map((place) => why(items, target, place, document.uri.scheme !== PROPOSED));
    });
    return found.length === 0 ? undefined : new vscode.Hover(found);
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  /** The diff of a file of a proposal; of the first that waits when it is not said which. */
  async openDiff(proposalId?: string, path?: string, preserveFocus = false): Promise<void> {
    const target =
      this.proposals.all
        .filter(({ proposal }) => proposal.proposalId === proposalId)
        .find(({ file }) => path === undefined || file.path === path) ?? this.proposals.waiting[0];
    if (target === undefined) this.nothing();
    else await this.show(target, 1, preserveFocus);
  }

  private commands(): vscode.Disposable[] {
    const on = (name: string, work: (...given: unknown[]) => Promise<unknown>) =>
      vscode.commands.registerCommand(name, (...given: unknown[]) =>
        this.desks.attempt(() => work(...given)),
      );
    const id = (given: unknown) => (typeof given === "string" && given !== "" ? given : undefined);
    const { edits, proposals } = this;
    /** The paths of rows of the list of changes, or of the file before the user. */
    const paths = (given: unknown[]): string[] => {
      const shown = vscode.window.activeTextEditor?.document.uri;
      const rows = given.filter(isRow).map(({ row }) => row.path);
      return rows.length > 0 || shown === undefined ? rows : [shown.path];
    };
    const settle =
      (yes: boolean) =>
      (...given: unknown[]) =>
        this.settle(this.chosen(given), yes);
    return [
      on("amanu.acceptHunk", (proposal, path, hunk) =>
        this.decideHunk(true, id(proposal), id(path), id(hunk)),
      ),
      on("amanu.rejectHunk", (proposal, path, hunk) =>
        this.decideHunk(false, id(proposal), id(path), id(hunk)),
      ),
      on("amanu.rejectBecause", () => this.rejectBecause()),
      on("amanu.reviewAfter", () => this.setReview("after")),
      on("amanu.reviewBefore", () => this.setReview("before")),
      on("amanu.keepHunk", (proposal, path, hunk) => this.decideHunk(true, id(proposal), id(path), id(hunk))),
      on("amanu.undoHunk", () => this.undoHunk()),
      on("amanu.acceptFile", settle(true)),
      on("amanu.rejectFile", settle(false)),
      on("amanu.keepFile", settle(true)),
      on("amanu.acceptAll", () => this.settle(proposals.waiting, true)),
      // what is applied is taken back by undo, which shows first what that means
      on("amanu.rejectAll", () => this.settle(proposals.waiting, false, "decision")),
      on("amanu.undoFile", async (...given) => {
        for (const path of paths(given))
          for (const sessionId of this.sessionsAt(path))
            await edits.undo(sessionId, { path }, `Undo Amanu's changes of ${name(path)}`);
      }),
      on("amanu.undoTurn", (turnId, session) => this.undoTurn(id(turnId), id(session))),
      on("amanu.undoSession", () => edits.undo(this.desks.state.sessionId, {}, "Undo all of the session")),
      on("amanu.redo", (turnId, session) => this.redo(id(turnId), id(session))),
      on("amanu.restore", (turnId, session) =>
        edits.restore(id(session) ?? this.desks.state.sessionId, id(turnId)),
      ),
      on("amanu.reviewAll", (turnId) => this.reviewAll(id(turnId))),
      on("amanu.reviewSession", () => proposals.showSession(this.desks.state)),
      on("amanu.openDiff", (given, path) =>
        isRow(given) ? this.openRow(given.row) : this.openDiff(id(given), id(path)),
      ),
      on("amanu.nextHunk", () => this.go(1)),
      on("amanu.previousHunk", () => this.go(-1)),
    ];
  }

  /** What a lens, rows of the list, or the file before the user name. */
  private chosen(given: unknown[]): Target[] {
    const rows = given.filter(isRow);
    if (rows.length > 0) return rows.flatMap(({ row }) => row.targets);
    const [proposalId, path] = given;
    if (typeof proposalId === "string")
      return this.proposals.waiting.filter(
        ({ proposal, file }) => proposal.proposalId === proposalId && file.path === path,
      );
    const editor = vscode.window.activeTextEditor;
    return editor === undefined ? [] : this.at(editor.document).map(({ target }) => target);
  }

  /** Yes or no to all that waits in these files, or to what waits for one thing. */
  private async settle(chosen: Target[], yes: boolean, only?: "decision"): Promise<void> {
    if (chosen.length === 0) return this.openDiff();
    await this.proposals.settle(chosen, (hunk) => only === undefined || waits(hunk) === only, yes);
  }

  private async decideHunk(yes: boolean, proposalId?: string, path?: string, hunkId?: string): Promise<void> {
    const known = this.proposals.waiting.find(
      ({ proposal, file }) => proposal.proposalId === proposalId && file.path === path,
    );
    if (known !== undefined && hunkId !== undefined) return this.settleHunk(known, hunkId, yes);
    // by keyboard: what the cursor is in. What the user does not look at is shown first
    const editor = vscode.window.activeTextEditor;
    const found = editor ? this.at(editor.document) : [];
    if (editor === undefined || found.length === 0) return this.openDiff();
    for (const { target, places } of found) {
      const here = places.find((place) => covers(place, editor.selection.active.line));
      if (here !== undefined) return this.settleHunk(target, here.hunk.hunkId, yes);
    }
    return this.go(1);
  }

  /** No to the open change at the cursor, and why: the model hears it. */
  private async rejectBecause(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const found = editor ? this.at(editor.document, (hunk) => OPEN.has(hunk.state)) : [];
    for (const { target, places } of found) {
      const here = places.find((place) => covers(place, editor?.selection.active.line ?? 0));
      if (here === undefined) continue;
      const title = `Reject the change of ${name(target.file.path)}`;
      const reason = await vscode.window.showInputBox({ title, prompt: "Why? The model is told." });
      if (reason === undefined) return;
      // meanwhile it may have moved
      const now = this.proposals.waiting.find(
        ({ proposal, file }) =>
          proposal.proposalId === target.proposal.proposalId && file.path === target.file.path,
      );
      if (now === undefined) return this.nothing();
      return this.settleHunk(now, here.hunk.hunkId, false, reason.trim() || null);
    }
    if (found.some(({ places }) => places.length > 0)) return this.go(1);
    return this.openDiff();
  }

  /** Review what the file before the user shows, else the first that waits, at another time. */
  private async setReview(review: "before" | "after"): Promise<void> {
    const what = review === "after" ? "decision" : "review";
    const fits = ({ file }: Target) => file.hunks.some((hunk) => waits(hunk) === what);
    const editor = vscode.window.activeTextEditor;
    const here = editor ? this.at(editor.document).map(({ target }) => target) : [];
    const target = here.find(fits) ?? this.proposals.waiting.find(fits);
    if (target === undefined) this.nothing();
    else await this.edits.setReview(target.sessionId, target.proposal, review);
  }

  private settleHunk(
    target: Target,
    hunkId: string,
    yes: boolean,
    reason: string | null = null,
  ): Promise<void> {
    return this.proposals.settle([target], (hunk) => hunk.hunkId === hunkId, yes, reason);
  }

  /** Take back the change at the cursor, also one the user said yes to. */
  private async undoHunk(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const found = editor ? this.at(editor.document, (hunk) => hunk.state === "applied") : [];
    for (const { target, places } of found) {
      const here = places.find((place) => covers(place, editor?.selection.active.line ?? 0));
      const { sessionId, proposal } = target;
      const scope = {
        proposalId: proposal.proposalId,
        hunkIds: here === undefined ? [] : [here.hunk.hunkId],
      };
      if (here !== undefined) return this.edits.undo(sessionId, scope);
    }
    this.desks.tell({ level: "info", text: "Here is no change of Amanu's." });
  }

  private async undoTurn(turnId?: string, sessionId = this.desks.state.sessionId): Promise<void> {
    const { proposals = [] } = this.sessions.get(sessionId)?.state ?? {};
    const turn = turnId ?? lastTurn(proposals, (hunk) => hunk.state === "applied");
    if (turn === undefined) return this.nothing();
    await this.edits.undo(sessionId, { turnId: turn }, "Undo this turn");
  }

  private async redo(turnId?: string, sessionId = this.desks.state.sessionId): Promise<void> {
    const { proposals = [] } = this.sessions.get(sessionId)?.state ?? {};
    const turn = turnId ?? lastTurn(proposals, (hunk) => hunk.state === "reverted");
    if (turn === undefined) return this.nothing();
    await this.edits.decide(sessionId, { turnId: turn }, "redo");
  }

  /** The sessions that have changed the file; the active chat's, which says so, when none has. */
  private sessionsAt(path: string): string[] {
    const applied = this.proposals.all.filter(
      ({ file }) => whereabouts(file) === path && file.hunks.some((hunk) => hunk.state === "applied"),
    );
    const sessions = [...new Set(applied.map(({ sessionId }) => sessionId))];
    return sessions.length > 0 ? sessions : [this.desks.state.sessionId];
  }

  /** All that waits in one editor; of one turn also what does not wait any more. */
  private async reviewAll(turnId?: string): Promise<void> {
    const { waiting } = this.proposals;
    const ofTurn = this.proposals.all.filter(({ proposal }) => proposal.turnId === turnId);
    const shown = turnId === undefined ? waiting : ofTurn;
    const [only] = shown;
    if (only === undefined) this.nothing();
    else if (shown.length === 1) await this.show(only, 1);
    else
      await this.proposals.showAll(turnId === undefined ? "Changes to review" : "Changes of the turn", shown);
  }

  private openRow(row: Row): Promise<void> {
    const target = row.targets.find(({ file }) => file.hunks.some((hunk) => waits(hunk) === "decision"));
    const [first] = row.targets;
    return first === undefined ? Promise.resolve() : this.show(target ?? first, 1);
  }

  /** Open the diff of a file with the cursor in its first change, or in its last. */
  private async show(target: Target, step: 1 | -1, preserveFocus = false): Promise<void> {
    await this.proposals.show(target, preserveFocus);
    const editor = vscode.window.activeTextEditor;
    if (preserveFocus || editor === undefined) return;
    const places = this.placesIn(editor.document);
    const place = step > 0 ? places[0] : places.at(-1);
    if (place !== undefined) reveal(editor, place);
  }

  private async go(step: 1 | -1): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const places = editor ? this.placesIn(editor.document) : [];
    if (editor === undefined || places.length === 0) return this.openDiff();
    const line = editor.selection.active.line;
    const onward =
      step > 0 ? places.find((each) => each.start > line) : places.findLast((each) => each.start < line);
    const elsewhere = onward ? undefined : this.nextFile(editor.document, step);
    if (elsewhere !== undefined) return this.show(elsewhere, step);
    const place = onward ?? (step > 0 ? places[0] : places.at(-1));
    if (place !== undefined) reveal(editor, place);
  }

  /** The next file with something that waits, round and round; undefined when there is no other. */
  private nextFile(document: vscode.TextDocument, step: 1 | -1): Target | undefined {
    const { waiting } = this.proposals;
    const here = this.at(document)[0]?.target;
    const at = waiting.findIndex((each) => each.file === here?.file);
    const next = waiting[(at + step + waiting.length) % waiting.length];
    return next?.file === here?.file ? undefined : next;
  }

  private placesIn(document: vscode.TextDocument): Place[] {
    return this.at(document)
      .flatMap((each) => each.places)
      .sort((a, b) => a.start - b.start);
  }

  /** What waits in a document (or is `wanted`), and where; files where nothing does are left out. */
  private at(
    document: vscode.TextDocument,
    wanted: (hunk: Hunk) => boolean = (hunk) => waits(hunk) !== undefined,
  ): { target: Target; places: Place[] }[] {
    if (document.uri.scheme === PROPOSED) {
      const target = this.proposals.target(document.uri);
      const places = target ? this.proposals.places(document).filter(({ hunk }) => wanted(hunk)) : [];
      return target ? [{ target, places }] : [];
    }
    if (document.uri.scheme !== "file") return [];
    return this.proposals.all
      .filter(({ file }) => whereabouts(file) === document.uri.path && file.hunks.some(wanted))
      .map((target) => ({
        target,
        // a side with no lines stands before the line at its start
        places: locate(document.getText(), target.file.baseText ?? "", target.file.hunks, wanted),
      }));
  }

  private nothing(): void {
    this.desks.tell({ level: "info", text: "Nothing waits for your review." });
  }

  private refresh(): void {
    this.lenses.fire();
    this.decorate();
    const hunks = this.proposals.all.flatMap(({ file }) => file.hunks);
    const contexts = {
      "amanu.pending": hunks.some((hunk) => waits(hunk) !== undefined),
      "amanu.open": hunks.some((hunk) => waits(hunk) === "decision"),
      "amanu.review": hunks.some((hunk) => waits(hunk) === "review"),
      "amanu.undoable": hunks.some((hunk) => hunk.state === "applied"),
      "amanu.redoable": hunks.some((hunk) => hunk.state === "reverted"),
    };
    for (const [key, value] of Object.entries(contexts))
      if (this.told.get(key) !== value) {
        this.told.set(key, value);
        void vscode.commands.executeCommand("setContext", key, value);
      }
  }

  private decorate(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.scheme !== "file" || inDiff(editor)) continue;
      // what is applied stands there, with marks in the gutter
      const places = this.placesIn(editor.document).filter(({ hunk }) => waits(hunk) === "decision");
      const decoration = (from: number, to: number): vscode.DecorationOptions => ({
        range: new vscode.Range(from, 0, Math.max(from, to), 0),
      });
      const old = places.filter((place) => place.hunk.oldLines > 0);
      editor.setDecorations(
        this.removed,
        old.map((each) => decoration(each.start, each.start + each.hunk.oldLines - 1)),
      );
      const fresh = places.filter((place) => place.hunk.oldLines === 0);
      editor.setDecorations(
        this.inserted,
        fresh.map((each) => decoration(Math.max(0, each.start - 1), Math.max(0, each.start - 1))),
      );
      editor.setDecorations(
        this.ghost,
        places.map((each) => {
          const end = editor.document.lineAt(
            Math.min(Math.max(0, each.start + each.hunk.oldLines - 1), editor.document.lineCount - 1),
          ).range.end;
          const after = { contentText: inShort(each.hunk) };
          return { range: new vscode.Range(end, end), renderOptions: { after } };
        }),
      );
    }
  }
}

/** Characters of proposed text shown after a line. */
const SHORT = 120;

/** The proposed text in one line; of a line that stays much the same, from where it differs. */
function inShort({ oldText, newText, state }: Hunk): string {
  if (state === "conflicted") return "→ in conflict with what was changed here since: nothing is overwritten";
  const lines = linesOf(newText);
  const old = linesOf(oldText);
  if (lines.length === 0) return "→ removed";
  const first = lines.find((line) => line.trim() !== "")?.trim() ?? "blank";
  const shown = lines.length === 1 && old.length === 1 ? tail(old[0]?.trim() ?? "", first) : first;
  const cut = shown.length > SHORT ? `${shown.slice(0, SHORT)}…` : shown;
  return lines.length === 1 ? `→ ${cut}` : `→ ${cut} … ${lines.length} lines`;
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r\n|\r|\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** `line` from the word on in which it begins to differ from `old`. */
function tail(old: string, line: string): string {
  let same = 0;
  while (same < line.length && line[same] === old[same]) same++;
  const word = line.lastIndexOf(" ", same) + 1;
  return word > 0 ? `…${line.slice(word)}` : line;
}

function inDiff(editor: vscode.TextEditor): boolean {
  return vscode.window.visibleTextEditors.some(
    (other) => other.document.uri.scheme === BASE && other.viewColumn === editor.viewColumn,
  );
}

/** The line above belongs to a change: its lenses stand there. */
function covers({ start, lines }: Place, line: number): boolean {
  return line >= start - 1 && line < start + Math.max(1, lines);
}

function reveal(editor: vscode.TextEditor, place: Place): void {
  const at = new vscode.Position(Math.min(place.start, editor.document.lineCount - 1), 0);
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
