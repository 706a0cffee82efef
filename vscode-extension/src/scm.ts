import * as vscode from "vscode";
import { name, plural, type Row, rows, title, whereabouts } from "./changes";
import { waits } from "./hunks";
import { baselineUri, type Proposals } from "./proposals";
import type { Sessions } from "./sessions";

/** A row of the list, as the commands of its menu get it. */
interface RowState extends vscode.SourceControlResourceState {
  row: Row;
}

export function isRow(given: unknown): given is RowState {
  return typeof given === "object" && given !== null && "row" in given;
}

/**
 * What waits for the user, in whichever session, in the Source Control view, and in the gutter what a rule applied and nobody looked at.
 * Only there while something is: nobody wants one more empty list.
 */
export class Changes implements vscode.QuickDiffProvider, vscode.FileDecorationProvider, vscode.Disposable {
  private readonly decorated = new vscode.EventEmitter<vscode.Uri[]>();
  readonly onDidChangeFileDecorations = this.decorated.event;
  private control:
    { source: vscode.SourceControl; groups: Record<Group, vscode.SourceControlResourceGroup> } | undefined;
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
        if (event.kind === "proposalChanged") this.draw();
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
    this.control?.source.dispose();
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
    if (found.length === 0) {
      this.control?.source.dispose();
      this.control = undefined;
      return;
    }
    this.control ??= this.create();
    const { source, groups } = this.control;
    groups.conflicts.resourceStates = found.filter((row) => row.conflicts > 0).map(state);
    groups.review.resourceStates = found.filter((row) => row.conflicts === 0).map(state);
    source.count = found.length;
  }

  private create() {
    const source = vscode.scm.createSourceControl("amanu", "Amanu");
    source.inputBox.visible = false;
    source.quickDiffProvider = this;
    const groups = {
      conflicts: source.createResourceGroup("conflicts", "Conflicts"),
      review: source.createResourceGroup("review", "Changes to review"),
    };
    for (const group of Object.values(groups)) group.hideWhenEmpty = true;
    return { source, groups };
  }
}

type Group = "conflicts" | "review";

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
