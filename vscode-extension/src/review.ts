import * as vscode from "vscode";
import type { Desk } from "./desk";
import { locate, OPEN, type Place } from "./hunks";
import type { Hunk } from "./protocol";
import { BASE, PROPOSED, type Proposals, type Target } from "./proposals";

/** Review in editors: lenses and decorations for what is undecided, in the diff and in the file itself. */
export class Review implements vscode.CodeLensProvider, vscode.Disposable {
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

  constructor(
    private readonly desk: Desk,
    private readonly proposals: Proposals,
  ) {
    this.subscriptions = [
      this.lenses,
      this.removed,
      this.inserted,
      this.ghost,
      vscode.languages.registerCodeLensProvider([{ scheme: PROPOSED }, { scheme: "file" }], this),
      desk.onReset(() => this.refresh()),
      desk.onEvent(({ event }) => {
        if (event.kind !== "proposalChanged") return;
        proposals.changed(event.proposal);
        this.refresh();
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => this.decorate()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (proposals.open.some(({ file }) => file.path === document.uri.path)) this.refresh();
      }),
      ...this.commands(),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    return this.at(document).flatMap(({ target, places }) => {
      const open = places.filter((place) => OPEN.has(place.hunk.state));
      const { proposalId } = target.proposal;
      const lens = (line: number, title: string, command: string, ...rest: unknown[]) =>
        new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
          title,
          command,
          arguments: [proposalId, target.file.path, ...rest],
        });
      const last = Math.max(0, document.lineCount - 1);
      const perHunk = open.flatMap(({ hunk, start }) => {
        const line = Math.min(start, last);
        return [
          lens(
            line,
            hunk.state === "conflicted" ? "$(check) Try again" : "$(check) Accept",
            "amanu.acceptHunk",
            hunk.hunkId,
          ),
          lens(line, "$(x) Reject", "amanu.rejectHunk", hunk.hunkId),
          ...(document.uri.scheme === PROPOSED
            ? []
            : [lens(line, `Amanu: −${hunk.oldLines} +${hunk.newLines}, show diff`, "amanu.openDiff")]),
        ];
      });
      if (open.length < 2) return perHunk;
      return [
        lens(0, `$(check-all) Accept all ${open.length}`, "amanu.acceptFile"),
        lens(0, "$(close-all) Reject all", "amanu.rejectFile"),
        ...perHunk,
      ];
    });
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  /** The diff of a file of a proposal; of the first undecided one when it is not said which. */
  async openDiff(proposalId?: string, path?: string, preserveFocus = false): Promise<void> {
    const target =
      this.desk.state.proposals
        .filter((proposal) => proposal.proposalId === proposalId)
        .flatMap((proposal) => proposal.files.map((file) => ({ proposal, file })))
        .find(({ file }) => path === undefined || file.path === path) ?? this.proposals.open[0];
    if (target === undefined) this.desk.tell({ level: "info", text: "Nothing waits for your review." });
    else await this.proposals.show(target, preserveFocus);
  }

  private commands(): vscode.Disposable[] {
    const on = (name: string, work: (...given: string[]) => Promise<unknown>) =>
      vscode.commands.registerCommand(name, (...given: unknown[]) =>
        this.desk.attempt(() => work(...given.map((each) => (typeof each === "string" ? each : "")))),
      );
    return [
      on("amanu.acceptHunk", (proposal, path, hunk) => this.decide("accept", "hunk", proposal, path, hunk)),
      on("amanu.rejectHunk", (proposal, path, hunk) => this.decide("reject", "hunk", proposal, path, hunk)),
      on("amanu.acceptFile", (proposal, path) => this.decide("accept", "file", proposal, path)),
      on("amanu.rejectFile", (proposal, path) => this.decide("reject", "file", proposal, path)),
      on("amanu.openDiff", (proposal, path) => this.openDiff(proposal || undefined, path || undefined)),
      on("amanu.nextHunk", () => this.go(1)),
      on("amanu.previousHunk", () => this.go(-1)),
    ];
  }

  private async decide(
    decision: "accept" | "reject",
    what: "hunk" | "file",
    proposalId?: string,
    path?: string,
    hunkId?: string,
  ): Promise<void> {
    const known = this.proposals.open.find(
      ({ proposal, file }) => proposal.proposalId === proposalId && file.path === path,
    );
    if (known !== undefined) {
      const open = known.file.hunks.filter((hunk) => OPEN.has(hunk.state)).map((hunk) => hunk.hunkId);
      return this.proposals.decide(known, hunkId ? [hunkId] : open, decision);
    }
    // by keyboard: what the cursor is in, or the next after it
    const editor = vscode.window.activeTextEditor;
    const [found] = editor ? this.at(editor.document) : [];
    if (editor === undefined || found === undefined) return this.openDiff();
    const open = found.places.filter((place) => OPEN.has(place.hunk.state));
    const line = editor.selection.active.line;
    // the line above belongs to it: its lenses stand there. What the person does not look at is shown first
    const here = open.find(
      (place) => line >= place.start - 1 && line < place.start + Math.max(1, place.lines),
    );
    if (what === "hunk" && here === undefined) return this.go(1);
    const chosen = what === "file" ? open : here ? [here] : [];
    await this.proposals.decide(
      found.target,
      chosen.map((place) => place.hunk.hunkId),
      decision,
    );
  }

  private async go(step: 1 | -1): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const places = (editor ? this.at(editor.document) : [])
      .flatMap((each) => each.places)
      .filter((place) => OPEN.has(place.hunk.state))
      .sort((a, b) => a.start - b.start);
    if (editor === undefined || places.length === 0) return this.openDiff();
    const line = editor.selection.active.line;
    const onward =
      step > 0 ? places.find((each) => each.start > line) : places.findLast((each) => each.start < line);
    const elsewhere = onward ? undefined : this.nextFile(editor.document, step);
    if (elsewhere !== undefined) return this.proposals.show(elsewhere);
    const place = onward ?? (step > 0 ? places[0] : places.at(-1));
    if (place === undefined) return;
    const at = new vscode.Position(Math.min(place.start, editor.document.lineCount - 1), 0);
    editor.selection = new vscode.Selection(at, at);
    editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  /** The next file with something undecided, round and round; undefined when there is no other. */
  private nextFile(document: vscode.TextDocument, step: 1 | -1): Target | undefined {
    const open = this.proposals.open;
    const here = this.at(document)[0]?.target;
    const at = open.findIndex((each) => each.file === here?.file);
    const next = open[(at + step + open.length) % open.length];
    return next?.file === here?.file ? undefined : next;
  }

  /** What is undecided in a document, and where. */
  private at(document: vscode.TextDocument): { target: Target; places: Place[] }[] {
    if (document.uri.scheme === PROPOSED) {
      const target = this.proposals.target(document.uri);
      return target ? [{ target, places: this.proposals.places(document) }] : [];
    }
    if (document.uri.scheme !== "file") return [];
    return this.proposals.open
      .filter(({ file }) => file.path === document.uri.path)
      .map((target) => ({
        target,
        // a side with no lines stands before the line at its start
        places: locate(document.getText(), target.file.baseText ?? "", target.file.hunks),
      }));
  }

  private refresh(): void {
    this.lenses.fire();
    this.decorate();
    void vscode.commands.executeCommand("setContext", "amanu.pending", this.proposals.open.length > 0);
  }

  private decorate(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.scheme !== "file" || inDiff(editor)) continue;
      const places = this.at(editor.document).flatMap((each) => each.places);
      const decoration = (place: Place, from: number, to: number): vscode.DecorationOptions => ({
        range: new vscode.Range(from, 0, Math.max(from, to), 0),
        hoverMessage: hover(place),
      });
      const old = places.filter((place) => place.hunk.oldLines > 0);
      editor.setDecorations(
        this.removed,
        old.map((each) => decoration(each, each.start, each.start + each.hunk.oldLines - 1)),
      );
      const fresh = places.filter((place) => place.hunk.oldLines === 0);
      editor.setDecorations(
        this.inserted,
        fresh.map((each) => decoration(each, Math.max(0, each.start - 1), Math.max(0, each.start - 1))),
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
function inShort({ oldText, newText }: Hunk): string {
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

function hover(place: Place): vscode.MarkdownString {
  const text = new vscode.MarkdownString("Amanu proposes:");
  const signed = (sign: string, lines: string) =>
    lines === ""
      ? ""
      : lines
          .replace(/\r?\n$/, "")
          .split(/\r?\n/)
          .map((line) => `${sign}${line}\n`)
          .join("");
  return text.appendCodeblock(signed("-", place.hunk.oldText) + signed("+", place.hunk.newText), "diff");
}
