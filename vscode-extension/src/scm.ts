import * as vscode from "vscode";
import { name, plural, type Row, rows, title, whereabouts } from "./changes";
import { waits } from "./hunks";
import { baselineUri, type Proposals } from "./proposals";
import type { SessionState } from "./protocol";
import type { Sessions } from "./sessions";
import { titled } from "./visible";

const SOURCE = "amanu";
/** The beginning of the ids of the sessions' groups. */
const REVIEW = "review:";

/** A row of the list, as the commands of its menu get it. */
interface RowState extends vscode.SourceControlResourceState {
  row: Row;
}

export function isRow(given: unknown): given is RowState {
  return typeof given === "object" && given !== null && "row" in given;
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
  private rows = new Map<string, Row>();
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
      ({ file }) => whereabouts(file) === uri.path && file.hunks.some((hunk) => waits(hunk) === "review"),
    );
    return applied ? baselineUri(uri.path, "unreviewed") : undefined;
  }

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    const row = uri.scheme === "file" ? this.rows.get(uri.path) : undefined;
    if (row === undefined) return undefined;
    const count = row.open + row.review;
    return { badge: count > 9 ? "9+" : String(count), tooltip: `Amanu: ${summary(row)}` };
  }

  dispose(): void {
    this.source?.dispose();
    for (const each of this.subscriptions) each.dispose();
  }

  private draw(): void {
    const found = rows(this.sessions.states);
    const before = this.rows;
    this.rows = new Map(found.map((row) => [row.path, row]));
    const changed = [...new Set([...before.keys(), ...this.rows.keys()])].filter(
      (path) => said(before.get(path)) !== said(this.rows.get(path)),
    );
    if (changed.length > 0) this.decorated.fire(changed.map((path) => vscode.Uri.file(path)));
    const { owners } = this.proposals;
    const wanted = owners.map((owner) => ({
      id: `${REVIEW}${owner.sessionId}`,
      label: owners.length > 1 ? titled(owner) : "Changes to review",
      rows: rows([owner]),
    }));
    const conflicts = wanted.flatMap((group) => group.rows).filter((row) => row.conflicts > 0);
    this.leave(new Set(wanted.map(({ id }) => id)), found.length === 0);
    if (found.length === 0) return;
    this.source ??= this.create();
    this.source.count = found.length;
    this.fill("conflicts", "Conflicts", conflicts);
    for (const group of wanted)
      this.fill(
        group.id,
        group.label,
        group.rows.filter((row) => row.conflicts === 0),
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

  private fill(id: string, label: string, found: Row[]): void {
    const group = this.groups.get(id) ?? this.source?.createResourceGroup(id, label);
    if (group === undefined) return;
    this.groups.set(id, group);
    group.hideWhenEmpty = true;
    group.label = label;
    group.resourceStates = found.map(state);
  }

  private create(): vscode.SourceControl {
    const source = vscode.scm.createSourceControl(SOURCE, "Amanu");
    source.inputBox.visible = false;
    source.quickDiffProvider = this;
    return source;
  }
}

function said(row: Row | undefined): string {
  return row === undefined ? "" : summary(row);
}

function state(row: Row): RowState {
  const files = row.targets.map(({ file }) => file);
  const [first] = files;
  return {
    row,
    resourceUri: vscode.Uri.file(row.path),
    command: { command: "amanu.openDiff", title: "Show the change", arguments: [{ row }] },
    contextValue: row.open > 0 ? "open" : "review",
    decorations: {
      tooltip: `${files.map(title).at(-1) ?? name(row.path)}: ${summary(row)}`,
      strikeThrough: first?.change === "delete",
    },
  };
}

/** A row in words: "+4 −2, 3 to decide, 1 to keep or undo". */
export function summary({ open, review, conflicts, added, removed }: Row): string {
  return [
    `+${added} −${removed}`,
    ...(open - conflicts > 0 ? [`${open - conflicts} to decide`] : []),
    ...(review > 0 ? [`${review} to keep or undo`] : []),
    ...(conflicts > 0 ? [plural(conflicts, "conflict")] : []),
  ].join(", ");
}
