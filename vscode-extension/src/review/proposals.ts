import * as vscode from "vscode";
import { changesOf, isDecidable, scopeOf, type Target, targets, title, waiting, withHunks } from "./changes";
import type { OpenChats } from "../chat/openChats";
import type { Decided, Edits } from "./edits";
import { inline } from "./inlineDiff";
import type { Hunk, Proposal, ProposalReviseResult, ProposedFile, SessionState } from "../protocol";
import type { SessionEvent, Sessions } from "../sessions/sessions";
import { CHANGED, closeGone, reopen } from "./tabs";
import type { ProposedTexts, Texts } from "./texts";
import { titled, visible } from "../editor/visible";

/** The proposed side of a diff, writable: edit, then accept. */
export const PROPOSED = "amanu-proposal";
/** The side it is compared with: the text the proposal was computed from, or (by its authority) the file's text without
 * what we did to it. These are files, too: VS Code brings no other diffs back when a window is loaded anew. */
export const BASE = "amanu-base";
/** The file's text without what a rule applied and nobody looked at, and without all that a session applied. */
export type Baseline = "unreviewed" | "session";

/** Before the text where `files.encoding` is not UTF-8: VS Code reads UTF-8 then, too. */
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Milliseconds after the start in which sessions may yet come whose documents are asked for. */
const LOADING = 20_000;

/** Milliseconds that VS Code has to read a document again. */
const READING = 2000;

/** Documents of which the texts are kept: two for each file of a big review. */
const KEPT = 200;

const MOVED_ON =
  "The proposal has changed since this text was shown, so your unsaved edits of it were not taken. Copy what you need, then revert the file.";
const OUTSIDE =
  "Edits outside the proposed changes are not taken: undo them here, make them in the file itself, then decide.";

/** The text of a document of ours; of a proposed one with its hunks, whose places are in it. */
interface Content {
  text: string;
  bytes: Uint8Array;
  hunks: Hunk[];
}

/** The same, as it was at that time. */
interface Read extends Content {
  mtime: number;
  /** The version of the document that had this text, where it was taken from an unsaved one. */
  since: number | null;
}

/** Proposals as documents: what VS Code reads, what the user makes of it, and the decision with their own text. */
export class Proposals implements vscode.FileSystemProvider {
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changes.event;
  /** What VS Code last read: an unsaved document was made from that, whatever the proposal has become since. */
  private readonly reads = new Map<string, Read>();
  /** When the bases changed last that VS Code read. */
  private readonly bases = new Map<string, number>();
  /** The documents asked for last. */
  private readonly cached = new Map<string, { mtime: number; content: Promise<Content> }>();
  /** Documents that are saved only to be clean again: their text was read before. */
  private readonly settling = new Set<string>();
  private readonly started = Date.now();
  private times = new Map<string, number>();
  /** Where renamed files were when we last heard of them, by proposal and path. */
  private readonly renamed = new Map<string, string>();
  /** Files and rows as they were told last. */
  private readonly told = new Map<string, string>();
  /** Files that were deleted or taken back, as those. */
  private readonly gone = new Set<string>();

  constructor(
    private readonly sessions: Pick<Sessions, "states" | "get" | "onReset">,
    private readonly openChats: Pick<OpenChats, "tell" | "attempt">,
    private readonly edits: Edits,
    private readonly texts: Pick<Texts, "of" | "waiting" | "baseline">,
  ) {}

  /** All files of all proposals of all sessions with something that waits for the user, in order. */
  get waiting(): Target[] {
    return waiting(this.sessions.states);
  }

  /** Those that wait in one session. */
  waitingIn(sessionId: string): Target[] {
    return waiting(this.sessions.states.filter((state) => state.sessionId === sessionId));
  }

  /** The sessions with something that waits. */
  get owners(): SessionState[] {
    return this.sessions.states.filter((state) => waiting([state]).length > 0);
  }

  get all(): Target[] {
    return targets(this.sessions.states);
  }

  /** The session's name, where more than one has something that waits. */
  whose(sessionId: string): string | undefined {
    const { owners } = this;
    const owner = owners.find((state) => state.sessionId === sessionId);
    return owner === undefined || owners.length < 2 ? undefined : titled(owner);
  }

  /** The change a document of ours shows. */
  target({ query }: vscode.Uri): Target | undefined {
    const { proposalId, path, rowId } = subject(query);
    return this.all.find(
      ({ proposal, file, row }) =>
        proposal.proposalId === proposalId && (row === undefined ? file.path === path : row.rowId === rowId),
    );
  }

  /** The hunks of a proposed text that VS Code has read, with their places in it; those that are others by now are not
   * offered. */
  shown(uri: vscode.Uri): Hunk[] {
    const hunks = this.target(uri)?.file.hunks ?? [];
    const read = this.reads.get(uri.toString());
    if (read === undefined) return hunks;
    const now = new Map(hunks.map((hunk) => [hunk.hunkId, hunk]));
    return read.hunks.flatMap(({ hunkId, newText, proposedLines }) => {
      const hunk = now.get(hunkId);
      return hunk?.newText === newText ? [{ ...hunk, proposedLines }] : [];
    });
  }

  /** The version of the document in which the hunks shown have their places; null: the text that was read. */
  since(uri: vscode.Uri): number | null {
    return this.reads.get(uri.toString())?.since ?? null;
  }

  /**
   * Yes or no to hunks and rows that wait: accept or reject what is open (accepted with what the user made of it in the
   * diff), keep or undo what a rule applied. All of one proposal is decided at once, whatever files it is in: a
   * decision makes a new version of the proposal.
   */
  async settle(
    named: Target[],
    wanted: (hunk: Hunk) => boolean,
    yes: boolean,
    reason: string | null = null,
  ): Promise<void> {
    const chosen = named.filter(isDecidable);
    const [lost] = named;
    if (chosen.length === 0 && lost?.row !== undefined)
      this.openChats.tell({ level: "info", text: visible(lost.row.undecidable) }, lost.sessionId);
    for (const proposalId of new Set(chosen.map(({ proposal }) => proposal.proposalId))) {
      const own = chosen.filter(({ proposal }) => proposal.proposalId === proposalId);
      let proposal = own[0]?.proposal;
      for (const target of own) proposal = proposal && (await this.take({ ...target, proposal }));
      if (proposal !== undefined) await this.settleOne(own, proposal, wanted, yes, reason);
    }
  }

  private async settleOne(
    chosen: Target[],
    proposal: Proposal,
    wanted: (hunk: Hunk) => boolean,
    yes: boolean,
    reason: string | null,
  ): Promise<void> {
    const [first] = chosen;
    if (first === undefined) return;
    const { sessionId } = first;
    const open = withHunks(chosen, (hunk) => hunk.waits === "decision" && wanted(hunk));
    const review = withHunks(chosen, (hunk) => hunk.waits === "review" && wanted(hunk));
    const no = { decision: "reject", reason };
    const decided: Decided = {
      hunks: open.flatMap((target) => {
        const hunks = target.row === undefined ? target.file.hunks : [];
        return hunks.map(({ hunkId }) => ({ hunkId, ...(yes ? { decision: "accept" } : no) }));
      }),
      rows: open.flatMap(({ row }) =>
        row === undefined ? [] : [{ rowId: row.rowId, ...(yes ? { decision: "accept" } : no) }],
      ),
    };
    const some = decided.hunks.length + decided.rows.length > 0;
    if (some) await this.edits.resolve(sessionId, proposal, decided);
    if (review.length === 0) return;
    const { proposalId } = proposal;
    const scope = scopeOf(proposalId, review);
    const { proposals = [] } = this.sessions.get(sessionId)?.state ?? {};
    const now = proposals.find((each) => each.proposalId === proposalId) ?? proposal;
    if (yes) await this.edits.decide(sessionId, scope, "keep", some ? [now] : [proposal]);
    else await this.edits.undo(sessionId, scope);
  }

  /** The native diff, at the user's action: against what is proposed, or against the file when nothing is open. */
  async show(target: Target, preserveFocus = false): Promise<void> {
    const [base, after] = sides(target);
    if (after.scheme === PROPOSED) await inline(await vscode.workspace.openTextDocument(after));
    const applied = after.scheme !== PROPOSED || target.row?.state === "applied";
    const what = applied ? "(by Amanu)" : "(proposed)";
    const whose = this.whose(target.sessionId);
    const options = { preview: true, preserveFocus };
    const heading = [title(target), what, ...(whose === undefined ? [] : [`· ${whose}`])].join(" ");
    if (base === undefined) await vscode.commands.executeCommand("vscode.open", after, options, heading);
    else await vscode.commands.executeCommand("vscode.diff", base, after, heading, options);
  }

  /** All that is applied in the session, each file once, without what the user typed between. */
  async showSession(session: SessionState): Promise<void> {
    const done = targets([session]).filter(({ file }) => file.hunks.some((hunk) => hunk.state === "applied"));
    const [files, rows] = [done.filter(({ row }) => !row), done.filter(({ row }) => row)];
    const paths = [...new Set(files.map(({ file }) => file.presentPath))];
    const all = [
      ...paths.map((path) => [
        vscode.Uri.file(path),
        baselineUri(path, "session", session.sessionId),
        vscode.Uri.file(path),
      ]),
      ...rows.map((target) => [vscode.Uri.file(target.file.presentPath), ...sides(target)]),
    ];
    if (all.length === 0)
      this.openChats.tell({ level: "info", text: "Amanu has not changed anything in this session." });
    else await vscode.commands.executeCommand("vscode.changes", CHANGED, all);
  }

  /** A session's proposal changed: documents are read again. */
  changed({ event }: Pick<SessionEvent, "event">): void {
    if (event.kind !== "proposalChanged") return;
    const { proposal } = event;
    for (const change of changesOf(proposal)) {
      const { file, row } = change;
      const target = { proposal, ...change };
      if (!this.isNews(target)) continue;
      this.touchSides(target);
      if (row !== undefined) continue;
      const now = file.presentPath;
      this.touchBaselines(now);
      const key = `${proposal.proposalId} ${file.path}`;
      if (file.change === "rename") this.follow(key, file.path, now);
      else this.leave(key, file);
    }
  }

  /** The user typed in a file, of which the daemon tells only if it moves a change: what is proposed for it, and what
   * it is compared with, is read again. */
  typed(path: string): void {
    const own = this.waiting.filter(({ file, row }) => row === undefined && file.presentPath === path);
    if (own.length > 0) this.touchBaselines(path);
    for (const target of own) this.touchSides(target);
  }

  private touchBaselines(path: string): void {
    this.touch(baselineUri(path, "unreviewed"));
    for (const { sessionId } of this.sessions.states) this.touch(baselineUri(path, "session", sessionId));
  }

  /** Wait until the document has the present proposed text: VS Code reads it a moment after it was told to. */
  async upToDate(document: vscode.TextDocument): Promise<void> {
    if (document.isDirty || document.uri.scheme !== PROPOSED || !this.target(document.uri)) return;
    const { text } = await this.content(document.uri);
    const reads = () => document.getText() === text;
    if (reads()) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        subscription.dispose();
        resolve();
      };
      const timer = setTimeout(end, READING);
      const subscription = vscode.workspace.onDidChangeTextDocument(() => reads() && end());
    });
  }

  /** VS Code drops the news of a base it has asked for and not opened yet: told again. */
  opened(document: vscode.TextDocument): void {
    const key = document.uri.toString();
    if (document.uri.scheme === BASE && this.bases.get(key) !== this.time(key)) this.touch(document.uri);
    if (document.uri.scheme === PROPOSED) void inline(document);
  }

  // FileSystemProvider: only what documents need; everything else is no permission

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    await this.attached(uri);
    const key = uri.toString();
    // one that is saved only to be clean again must not be told that it moved on meanwhile
    const held = this.settling.has(key) ? this.reads.get(key) : undefined;
    const mtime = held?.mtime ?? this.time(key);
    const size = (held ?? (await this.content(uri))).bytes.length;
    const stat = { type: vscode.FileType.File, ctime: 0, mtime, size };
    const target = this.target(uri);
    const fixed = describesRow(uri) || (target !== undefined && isDeletion(target));
    return fixed ? { ...stat, permissions: vscode.FilePermission.Readonly } : stat;
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    await this.attached(uri);
    const key = uri.toString();
    const mtime = this.time(key);
    const content = await this.content(uri);
    if (uri.scheme === BASE) this.bases.set(key, mtime);
    if (uri.scheme === PROPOSED && mtime >= (this.reads.get(key)?.mtime ?? 0))
      this.reads.set(key, { ...content, mtime, since: null });
    return content.bytes;
  }

  /** A window that is loaded anew asks for the documents of its tabs before it has their sessions. */
  private async attached(uri: vscode.Uri): Promise<void> {
    const rest = this.started + LOADING - Date.now();
    if (this.known(uri) || rest <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, rest);
      const subscription = this.sessions.onReset(() => {
        if (!this.known(uri)) return;
        clearTimeout(timer);
        subscription.dispose();
        resolve();
      });
    });
  }

  private known(uri: vscode.Uri): boolean {
    if (uri.authority === "") return this.target(uri) !== undefined;
    return uri.query === "" || this.sessions.get(uri.query) !== undefined;
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    const target = this.target(uri);
    if (target === undefined) throw vscode.FileSystemError.FileNotFound(uri);
    if (target.row !== undefined) throw vscode.FileSystemError.NoPermissions(uri);
    if (!this.settling.has(uri.toString())) {
      const text = Buffer.from(content)
        .toString("utf8")
        .replace(/^\uFEFF/, "");
      const since = documentOf(uri)?.version ?? null;
      if ((await this.revise(target, text, since)) === undefined)
        throw vscode.FileSystemError.Unavailable(MOVED_ON);
    }
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

  /** Ask for the texts of files of a session at once, before an editor reads them one by one. */
  readAhead(sessionId: string, own: Target[]): void {
    const waiting = this.texts.waiting(sessionId).catch(() => undefined); // who reads one hears why
    const expected = ({ file, row }: Target) => !row && file.hunks.some(({ waits }) => waits !== "");
    for (const target of own.filter(expected))
      for (const uri of [proposedUri(target), baseUri(target)])
        this.keep(uri, this.askedAhead(uri, target, waiting));
  }

  private async askedAhead(
    uri: vscode.Uri,
    target: Target,
    waiting: Promise<((target: Target) => ProposedTexts | undefined) | undefined>,
  ): Promise<Content> {
    const texts = (await waiting)?.(target);
    return texts === undefined ? this.ask(uri) : this.side(uri, this.target(uri) ?? target, texts);
  }

  /** Asked of the daemon once, until a proposal changes. */
  private content(uri: vscode.Uri): Promise<Content> {
    const known = this.cached.get(uri.toString());
    return known?.mtime === this.time(uri.toString()) ? known.content : this.keep(uri, this.ask(uri));
  }

  private keep(uri: vscode.Uri, content: Promise<Content>): Promise<Content> {
    const key = uri.toString();
    const mtime = this.time(key);
    this.cached.delete(key);
    this.cached.set(key, { mtime, content });
    content.catch(() => this.cached.delete(key));
    const [oldest] = this.cached.keys();
    if (this.cached.size > KEPT && oldest !== undefined) this.cached.delete(oldest);
    return content;
  }

  private async ask(uri: vscode.Uri): Promise<Content> {
    const { authority, path, query } = uri;
    if (authority !== "")
      return contentOf(uri, await this.texts.baseline(path, query || null, authority === "unreviewed"));
    const target = this.target(uri);
    if (target === undefined) throw vscode.FileSystemError.FileNotFound(uri);
    const texts = await this.texts.of(target);
    return this.side(uri, this.target(uri) ?? target, texts);
  }

  /** The text of one side of a diff. */
  private side(uri: vscode.Uri, { proposal, file }: Target, texts: ProposedTexts): Content {
    const { proposed, base, version, hunks } = texts;
    if (uri.scheme === BASE) return contentOf(uri, base);
    const decided = proposal.version === version ? file.hunks.filter(({ waits }) => waits === "") : [];
    return contentOf(uri, proposed, [...hunks, ...decided]);
  }

  /** Read the user's edits from an unsaved diff, and leave it clean. Undefined if they cannot be taken. */
  private async take(target: Target): Promise<Proposal | undefined> {
    const uri = proposedUri(target);
    const document = documentOf(uri);
    if (!document?.isDirty) return target.proposal;
    // before savers-that-format touch it
    const revised = await this.revise(target, document.getText(), document.version);
    if (revised === undefined) {
      this.openChats.tell({ level: "warning", text: MOVED_ON }, target.sessionId);
      return undefined;
    }
    if (revised.outside) return undefined; // what a yes would write is not all that is shown
    this.settling.add(uri.toString());
    try {
      await document.save();
    } finally {
      this.settling.delete(uri.toString());
    }
    return revised.proposal;
  }

  /** Tell the daemon what the user made of the proposed text, in that version of the document; undefined if the proposed
   * text is another one by now. */
  private async revise(
    target: Target,
    edited: string,
    since: number | null,
  ): Promise<ProposalReviseResult | undefined> {
    const key = proposedUri(target).toString();
    const read = this.reads.get(key);
    const { proposed, version } = await this.texts.of(target);
    const seen = read !== undefined && read.text !== proposed ? read.text : null; // the file was typed in meanwhile
    const { sessionId, proposal, file } = target;
    let revised: ProposalReviseResult;
    try {
      revised = await this.edits.revise(sessionId, { ...proposal, version }, file.path, edited, seen);
    } catch (error) {
      if (seen === null) throw error;
      // what is typed elsewhere moves a long file's text without an event: reverted, the document has the new one
      this.touch(proposedUri(target));
      this.touch(baseUri(target));
      return undefined;
    }
    if (revised.outside) this.openChats.tell({ level: "warning", text: OUTSIDE }, sessionId);
    if (read !== undefined) {
      const now = await this.texts.of({ ...target, proposal: revised.proposal });
      // who types on is not read to again: only what is typed from here on moves the hunks
      this.reads.set(key, { ...read, text: now.proposed, hunks: now.hunks, since });
    }
    return revised;
  }

  /** A renamed file stays open if it was. */
  private follow(key: string, from: string, now: string): void {
    const was = this.renamed.get(key) ?? from;
    this.renamed.set(key, now);
    if (was !== now) void reopen(vscode.Uri.file(was), vscode.Uri.file(now));
  }

  /** A file that is gone is left: its document would stay open, and pass for text of the user's. */
  private leave(key: string, file: ProposedFile): void {
    const gone = isGone(file);
    const was = this.gone.has(key);
    if (gone) this.gone.add(key);
    else this.gone.delete(key);
    if (gone && !was) void closeGone(vscode.Uri.file(file.path));
  }

  /** Whether a file or row is another one than in the version before: of many, most are the same. */
  private isNews(target: Pick<Target, "proposal" | "file" | "row">): boolean {
    const key = proposedUri(target).toString();
    const { baseSha256, baseVersion, presentPath, hunks } = target.file;
    const now = JSON.stringify([baseSha256, baseVersion, presentPath, hunks, target.row]);
    const isNews = this.told.get(key) !== now;
    this.told.set(key, now);
    return isNews;
  }

  private touchSides(target: Pick<Target, "proposal" | "file" | "row">): void {
    this.touch(proposedUri(target));
    this.touch(baseUri(target));
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

/** What one of our documents is of: a file of a proposal, or a row. */
interface Subject {
  proposalId: string;
  path: string | undefined;
  rowId: string | undefined;
}

export function subject(query: string): Subject {
  const [proposalId = "", ...rest] = query.split(" ");
  const of = rest.join(" ");
  const isFile = of.startsWith("/");
  return { proposalId, path: isFile ? of : undefined, rowId: isFile || of === "" ? undefined : of };
}

export function proposedUri(target: Pick<Target, "proposal" | "file" | "row">): vscode.Uri {
  return vscode.Uri.from({ scheme: PROPOSED, ...address(target, PROPOSED) });
}

function baseUri(target: Pick<Target, "proposal" | "file" | "row">): vscode.Uri {
  return vscode.Uri.from({ scheme: BASE, ...address(target, BASE) });
}

/**
 * A document's path is there to be read: VS Code shows all of it above the text. What the document is of, its query says.
 * A renamed file's two sides have the two names: by that VS Code knows a rename. A row's name has an ending of its own,
 * so that the description of a picture is not taken for one.
 */
function address(
  { proposal: { proposalId }, file, row }: Pick<Target, "proposal" | "file" | "row">,
  scheme: string,
): Pick<vscode.Uri, "path" | "query"> {
  const query = `${proposalId} ${row?.rowId ?? file.path}`;
  if (row === undefined)
    return { path: shownPath(scheme === PROPOSED ? (file.newPath ?? file.path) : file.path), query };
  return { path: shownPath(file.path + (row.kind === "git" ? "/.git" : `.${row.kind}`)), query };
}

/** The path of the file that is shown: itself, or what would become of it. */
export function filePath(uri: Pick<vscode.Uri, "scheme" | "path" | "query">): string {
  return (uri.scheme === PROPOSED ? subject(uri.query).path : undefined) ?? uri.path;
}

/** A file's path as that of a document of ours: from the workspace on. */
export function shownPath(path: string): string {
  return `/${vscode.workspace.asRelativePath(vscode.Uri.file(path))}`.replace(/^\/+/, "/");
}

/** Whether one of our documents describes a row, and is not the text of a file. */
export function describesRow({ scheme, query }: Pick<vscode.Uri, "scheme" | "query">): boolean {
  return [PROPOSED, BASE].includes(scheme) && subject(query).rowId !== undefined;
}

/** Of one session, or of all. */
export function baselineUri(path: string, baseline: Baseline, sessionId = ""): vscode.Uri {
  return vscode.Uri.file(path).with({ scheme: BASE, query: sessionId, authority: baseline });
}

/** There is nothing before a new file: compared with an empty text it would begin with a line that is taken away. */
export function sides(target: Target): [before: vscode.Uri | undefined, after: vscode.Uri] {
  const proposed = proposedUri(target);
  const file = vscode.Uri.file(target.file.presentPath);
  const gone = target.file.change === "delete";
  const open = target.file.hunks.some((hunk) => hunk.waits === "decision");
  const after = open || gone || target.row ? proposed : file;
  const fresh = target.file.change === "create" && target.row === undefined && after === proposed;
  return [fresh ? undefined : baseUri(target), after];
}

function isDeletion({ file, row }: Target): boolean {
  return file.change === "delete" && row === undefined;
}

/** A deletion that was applied, a new file that was taken back. */
function isGone({ change, hunks }: ProposedFile): boolean {
  const state = { delete: "applied", create: "reverted", edit: undefined, rename: undefined }[change];
  return state !== undefined && hunks.some((hunk) => hunk.state === state);
}

function documentOf(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
}

function contentOf(uri: vscode.Uri, text: string, hunks: Hunk[] = []): Content {
  const encoding = vscode.workspace.getConfiguration("files", uri).get<string>("encoding");
  return { text, hunks, bytes: Buffer.concat([encoding === "utf8" ? Buffer.of() : BOM, Buffer.from(text)]) };
}
