import * as vscode from "vscode";
import type { Desk } from "./desk";
import { compose, OPEN, ownTexts, type Place, SHOWN } from "./hunks";
import type { HunkDecision, Proposal, ProposedFile } from "./protocol";

/** The proposed side of a diff, writable: edit, then accept. */
export const PROPOSED = "amanu-proposal";
/** The side it is compared with: the text the proposal was computed from. */
export const BASE = "amanu-base";

/** Before the text, so that VS Code reads UTF-8 whatever `files.encoding` says. */
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** A composed text, where its hunks are, and the file it was composed from. */
interface Made {
  text: string;
  places: Place[];
  file: ProposedFile;
}

/** The same, as VS Code read it, and when. */
interface Given extends Made {
  mtime: number;
  size: number;
}

/** A file of a proposal. */
export interface Target {
  proposal: Proposal;
  file: ProposedFile;
}

/** Proposals as documents: what VS Code reads, what the person makes of it, and the decision with their own text. */
export class Proposals implements vscode.FileSystemProvider, vscode.TextDocumentContentProvider {
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changes.event;
  private readonly moved = new vscode.EventEmitter<vscode.Uri>();
  /** A base is another text now: the person's typing moved it. */
  readonly onDidChange = this.moved.event;
  /** What VS Code last read: an unsaved document was made from that, whatever the proposal has become since. */
  private readonly given = new Map<string, Given>();
  /** The person's own texts of undecided hunks, by document and hunk. */
  private readonly own = new Map<string, Map<string, string>>();
  /** Documents that are saved only to be clean again: their text was read before. */
  private readonly settling = new Set<string>();
  private times = new Map<string, number>();

  constructor(private readonly desk: Desk) {}

  /** All files of all proposals of the session that have something open, in order. */
  get open(): Target[] {
    return this.all.filter(({ file }) => file.hunks.some((hunk) => OPEN.has(hunk.state)));
  }

  /** The file a document of ours shows. */
  target(uri: vscode.Uri): Target | undefined {
    return this.all.find(({ proposal, file }) => proposal.proposalId === uri.query && file.path === uri.path);
  }

  /** The proposed text as it stands, with the person's own texts, and where its hunks are. */
  composed(target: Target): { text: string; places: Place[] } {
    const own = this.own.get(proposedUri(target).toString());
    return compose(target.file.baseText ?? "", target.file.hunks, SHOWN, own);
  }

  /** Where the hunks are in the document, saved or not. */
  places(document: vscode.TextDocument): Place[] {
    const target = this.target(document.uri);
    if (target === undefined) return [];
    if (!document.isDirty) return this.composed(target).places;
    const { text, places, file } = this.read(target);
    const known = this.own.get(document.uri.toString());
    const { texts } = ownTexts(text, places, document.getText());
    const now = new Map(target.file.hunks.map((hunk) => [hunk.hunkId, hunk]));
    const there = compose(
      file.baseText ?? "",
      file.hunks,
      SHOWN,
      new Map([...(known ?? []), ...texts]),
    ).places;
    return there.flatMap((place) => {
      const hunk = now.get(place.hunk.hunkId);
      return hunk === undefined ? [] : [{ ...place, hunk }];
    });
  }

  /** Accept or reject hunks; accepted ones with what the person made of them in the diff. */
  async decide(
    target: Target,
    hunkIds: string[],
    decision: "accept" | "reject",
    reason?: string,
  ): Promise<void> {
    await this.take(target);
    const own = this.own.get(proposedUri(target).toString());
    const hunks = hunkIds.map((hunkId): HunkDecision => {
      if (decision === "accept") return { hunkId, decision, newText: own?.get(hunkId) ?? null };
      return { hunkId, decision, ...(reason ? { reason } : {}) };
    });
    await this.desk.resolveHunks(target.proposal, hunks);
  }

  /** The native diff, at the person's action. */
  async show(target: Target, preserveFocus = false): Promise<void> {
    const name = target.file.path.split(/[\\/]/).pop() ?? target.file.path;
    const proposed = proposedUri(target);
    await vscode.commands.executeCommand(
      "vscode.diff",
      proposed.with({ scheme: BASE }),
      proposed,
      `${name} (proposed)`,
      {
        preview: true,
        preserveFocus,
      },
    );
  }

  /** The session's proposals changed: documents are read again, and diffs with nothing left to decide are closed. */
  changed(proposal: Proposal): void {
    for (const file of proposal.files) {
      const uri = proposedUri({ proposal, file });
      const own = this.own.get(uri.toString());
      for (const hunk of file.hunks) if (!OPEN.has(hunk.state)) own?.delete(hunk.hunkId);
      this.touch(uri);
      this.moved.fire(uri.with({ scheme: BASE }));
      if (file.hunks.every((hunk) => !OPEN.has(hunk.state))) void closeDiff(uri);
    }
  }

  // FileSystemProvider: only what documents need; everything else is no permission

  stat(uri: vscode.Uri): vscode.FileStat {
    const key = uri.toString();
    // one that is saved only to be clean again must not be told that it moved on meanwhile
    const held = this.settling.has(key) ? this.given.get(key) : undefined;
    const size = held?.size ?? this.content(uri).length;
    return { type: vscode.FileType.File, ctime: 0, mtime: held?.mtime ?? this.time(key), size };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    const content = this.content(uri);
    const target = this.target(uri);
    const key = uri.toString();
    if (target) this.given.set(key, { ...this.made(target), mtime: this.time(key), size: content.length });
    return content;
  }

  private content(uri: vscode.Uri): Uint8Array {
    const target = this.target(uri);
    if (target === undefined) throw vscode.FileSystemError.FileNotFound(uri);
    return Buffer.concat([BOM, Buffer.from(this.composed(target).text, "utf8")]);
  }

  writeFile(uri: vscode.Uri, content: Uint8Array): void {
    const target = this.target(uri);
    if (target === undefined) throw vscode.FileSystemError.FileNotFound(uri);
    if (!this.settling.has(uri.toString()))
      this.learn(
        target,
        Buffer.from(content)
          .toString("utf8")
          .replace(/^\uFEFF/, ""),
      );
    this.touch(uri);
  }

  watch(): vscode.Disposable {
    return { dispose: () => undefined };
  }

  readDirectory(): [] {
    return [];
  }

  createDirectory(): void {
    throw vscode.FileSystemError.NoPermissions();
  }

  delete(): void {
    throw vscode.FileSystemError.NoPermissions();
  }

  rename(): void {
    throw vscode.FileSystemError.NoPermissions();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.target(uri)?.file.baseText ?? "";
  }

  private get all(): Target[] {
    return this.desk.state.proposals.flatMap((proposal) =>
      proposal.files.map((file) => ({ proposal, file })),
    );
  }

  /** Read the person's edits from an unsaved diff, and leave it clean. */
  private async take(target: Target): Promise<void> {
    const uri = proposedUri(target);
    const document = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
    if (!document?.isDirty) return;
    this.learn(target, document.getText()); // before savers-that-format touch it
    this.settling.add(uri.toString());
    try {
      await document.save();
    } finally {
      this.settling.delete(uri.toString());
    }
  }

  private learn(target: Target, edited: string): void {
    const key = proposedUri(target).toString();
    const { text, places } = this.read(target);
    const { texts, outside } = ownTexts(text, places, edited);
    this.own.set(key, new Map([...(this.own.get(key) ?? []), ...texts]));
    if (outside)
      this.desk.tell({
        level: "warning",
        text: "What you edited outside of the proposed changes was not taken: edit the file itself for that.",
      });
  }

  private read(target: Target): Made {
    return this.given.get(proposedUri(target).toString()) ?? this.made(target);
  }

  private made(target: Target): Made {
    return { ...this.composed(target), file: target.file };
  }

  private time(key: string): number {
    return this.times.get(key) ?? 1;
  }

  private touch(uri: vscode.Uri): void {
    const last = this.times.get(uri.toString()) ?? 1;
    this.times.set(uri.toString(), Math.max(Date.now(), last + 1));
    this.changes.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }
}

export function proposedUri({ proposal, file }: Target): vscode.Uri {
  return vscode.Uri.from({ scheme: PROPOSED, path: file.path, query: proposal.proposalId });
}

async function closeDiff(uri: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const ours = tabs.filter(
    ({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.toString() === uri.toString(),
  );
  if (ours.length > 0 && !ours.some((tab) => tab.isDirty)) await vscode.window.tabGroups.close(ours, true);
}
