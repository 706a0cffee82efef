import * as vscode from "vscode";
import { called, entries, type Entry, isDecidable, needing, plural, title } from "./changes";
import { baselineUri, type Proposals } from "./proposals";
import type { SessionState } from "../protocol";
import type { Sessions } from "../sessions/sessions";
import { rowTitle } from "./rows";
import { titled, visible } from "../editor/visible";

const SOURCE = "amanu";
/** The beginning of the ids of the sessions' groups. */
const REVIEW = "review:";

/** An entry of the list, as the commands of its menu receive it. */
interface EntryState extends vscode.SourceControlResourceState {
  entry: Entry;
}

export function isEntry(given: unknown): given is EntryState {
  return typeof given === "object" && given !== null && "entry" in given;
}

/** The session that a menu of the list is about: that of its group, else the only one in the list. */
export function sessionOf(given: unknown, owners: SessionState[]): string | undefined {
  if (typeof given !== "object" || given === null || !("id" in given)) return undefined;
  if (given.id === SOURCE) return owners.length === 1 ? owners[0]?.sessionId : undefined;
  return owners.find(({ sessionId }) => given.id === REVIEW + sessionId)?.sessionId;
}

/**
 * What waits for the user, in whichever session, in the Source Control view, and in the gutter what a rule applied and nobody looked at.
 * Only there while something is: nobody wants one more empty list.
 */
export class Changes implements vscode.QuickDiffProvider, vscode.FileDecorationProvider, vscode.Disposable {
  private readonly decorated = new vscode.EventEmitter<vscode.Uri[]>();
  readonly onDidChangeFileDecorations = this.decorated.event;
  private source: vscode.SourceControl | undefined;
  /** A group for each session, and before them one for what does not fit any more. */
  private readonly groups = new Map<string, vscode.SourceControlResourceGroup>();
  /** The entries by path. */
  private listed = new Map<string, Entry[]>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly proposals: Proposals,
  ) {
    this.subscriptions = [
      this.decorated,
      vscode.window.registerFileDecorationProvider(this),
      sessions.onReset(() => this.draw()),
      sessions.onLeft(() => this.draw()),
      sessions.onEvent(({ event }) => {
        if (event.kind === "proposalChanged" || event.kind === "sessionChanged") this.draw();
      }),
    ];
  }

  /** The text the gutter compares a file with. Only files a rule changed: elsewhere the gutter is git's alone. */
  provideOriginalResource(uri: vscode.Uri): vscode.Uri | undefined {
    if (uri.scheme !== "file") return undefined;
    const applied = this.proposals.waiting.some(
      ({ file, row }) =>
        !row && file.presentPath === uri.path && file.hunks.some((hunk) => hunk.waits === "review"),
    );
    return applied ? baselineUri(uri.path, "unreviewed") : undefined;
  }

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    const here = uri.scheme === "file" ? this.listed.get(uri.path) : undefined;
    if (here === undefined) return undefined;
    const count = here.reduce((sum, { open, review }) => sum + open + review, 0);
    return { badge: count > 9 ? "9+" : String(count), tooltip: `Amanu: ${said(here)}` };
  }

  dispose(): void {
    this.source?.dispose();
    for (const each of this.subscriptions) each.dispose();
  }

  private draw(): void {
    const found = entries(this.sessions.states);
    const before = this.listed;
    this.listed = new Map();
    for (const entry of found) this.listed.set(entry.path, [...(this.listed.get(entry.path) ?? []), entry]);
    const changed = [...new Set([...before.keys(), ...this.listed.keys()])].filter(
      (path) => said(before.get(path)) !== said(this.listed.get(path)),
    );
    if (changed.length > 0) this.decorated.fire(changed.map((path) => vscode.Uri.file(path)));
    const { owners } = this.proposals;
    const wanted = owners.map((owner) => ({
      id: `${REVIEW}${owner.sessionId}`,
      label: owners.length > 1 ? titled(owner) : "Changes to review",
      entries: entries([owner]),
    }));
    const conflicts = wanted.flatMap((group) => group.entries).filter((entry) => entry.conflicts > 0);
    this.leave(new Set(wanted.map(({ id }) => id)), found.length === 0);
    if (found.length === 0) return;
    this.source ??= this.create();
    this.source.count = found.length;
    this.fill("conflicts", "Conflicts", conflicts);
    for (const group of wanted)
      this.fill(
        group.id,
        group.label,
        group.entries.filter((entry) => entry.conflicts === 0),
      );
  }

  private leave(wanted: ReadonlySet<string>, all: boolean): void {
    for (const [id, group] of this.groups) {
      if (!all && (wanted.has(id) || !id.startsWith(REVIEW))) continue;
      group.dispose();
      this.groups.delete(id);
    }
    if (!all) return;
    this.source?.dispose();
    this.source = undefined;
  }

  private fill(id: string, label: string, found: Entry[]): void {
    const group = this.groups.get(id) ?? this.source?.createResourceGroup(id, label);
    if (group === undefined) return;
    this.groups.set(id, group);
    group.hideWhenEmpty = true;
    group.label = label;
    group.resourceStates = found.map((entry, at) => state(entry, found[at - 1]?.path === entry.path));
  }

  private create(): vscode.SourceControl {
    const source = vscode.scm.createSourceControl(SOURCE, "Amanu");
    source.inputBox.visible = false;
    source.quickDiffProvider = this;
    return source;
  }
}

function said(listed: Entry[] = []): string {
  return listed.map(summary).join("; ");
}

/** `below`: the entry before it is at the same path. */
function state(entry: Entry, below: boolean): EntryState {
  const { path, row, targets, open } = entry;
  const latest = targets.at(-1);
  return {
    entry,
    resourceUri: vscode.Uri.file(listedPath(entry, below)),
    command: { command: "amanu.openDiff", title: "Show the change", arguments: [{ entry }] },
    contextValue: targets.some(isDecidable) ? (open > 0 ? "open" : "review") : "undecidable",
    decorations: {
      tooltip: `${latest && !row ? title(latest) : called(path, row)}: ${summary(entry)}`,
      strikeThrough: targets[0]?.file.change === "delete",
    },
  };
}

/** A distinct path for VS Code's list, which names each entry by its path and shows a path once. */
function listedPath({ path, row }: Entry, below: boolean): string {
  if (row?.kind === "git") return `${path}/.git`;
  return below && row !== undefined ? `${path} (${row.kind})` : path;
}

/** An entry in words: "+4 −2, 3 to decide, 1 to keep or undo". */
export function summary(entry: Entry): string {
  return entry.row === undefined ? counted(entry) : `${rowTitle(entry.row)}, ${counted(entry)}`;
}

function counted({ row, open, review, conflicts, added, removed, targets }: Entry): string {
  if (row !== undefined && !targets.some(isDecidable)) return visible(row.undecidable);
  return [
    ...(row === undefined ? [`+${added} −${removed}`] : []),
    ...(open - conflicts > 0 ? [`${open - conflicts} to decide${needing(row)}`] : []),
    ...(review > 0 ? [`${review} to keep or undo`] : []),
    ...(conflicts > 0 ? [plural(conflicts, "conflict")] : []),
  ].join(", ");
}
