import * as vscode from "vscode";
import { called, entries, type Entry, isDecidable, needing, plural, title } from "./changes";
import type { Proposals } from "./proposals";
import type { SessionState } from "../protocol";
import type { Sessions } from "../sessions/sessions";
import { rowTitle } from "./rows";
import { titled, visible } from "../editor/visible";

/** The view of the list. */
export const LIST = "amanu.changes";
/** The beginning of the ids of the sessions' groups. */
const REVIEW = "review:";

/** A session in the list, as the commands of its menu receive it. */
interface Group {
  id: string;
  owner: SessionState;
}

/** An entry of the list, as the commands of its menu receive it. */
interface Listed {
  /** The same for as long as the entry is there: VS Code keeps what is selected and folded by it. */
  id: string;
  entry: Entry;
}

type Node = Group | Listed;

export function isEntry(given: unknown): given is Listed {
  return typeof given === "object" && given !== null && "entry" in given;
}

function isGroup(given: unknown): given is Group {
  return typeof given === "object" && given !== null && "owner" in given;
}

/** The entries a command was given: that of the menu, and with it all that are selected if it is one of them. */
export function listedEntries(given: unknown[]): Entry[] {
  return [
    ...new Map(
      given
        .flat()
        .filter(isEntry)
        .map((each) => [each.id, each.entry]),
    ).values(),
  ];
}

/** The session that a menu of the list is about: that of its group, also when nothing of it waits any more. */
export function sessionOf(given: unknown): string | undefined {
  return isGroup(given) ? given.owner.sessionId : undefined;
}

/**
 * What waits for the user, each session's under its name. A view of its own beside git's: a second provider of source
 * control would take the branch's place in the status bar, and empty the graph, whenever one chooses an entry.
 */
export class ChangesList
  implements vscode.TreeDataProvider<Node>, vscode.FileDecorationProvider, vscode.Disposable
{
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly decorated = new vscode.EventEmitter<vscode.Uri[]>();
  readonly onDidChangeFileDecorations = this.decorated.event;
  private readonly view: vscode.TreeView<Node>;
  /** The entries by path. */
  private listed = new Map<string, Entry[]>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly proposals: Pick<Proposals, "owners">,
  ) {
    this.view = vscode.window.createTreeView(LIST, {
      treeDataProvider: this,
      canSelectMany: true,
      showCollapseAll: false,
    });
    this.subscriptions = [
      this.changed,
      this.decorated,
      this.view,
      vscode.window.registerFileDecorationProvider(this),
      sessions.onReset(() => this.draw()),
      sessions.onLeft(() => this.draw()),
      sessions.onEvent(({ event }) => {
        if (event.kind === "proposalChanged" || event.kind === "sessionChanged") this.draw();
      }),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined)
      return this.proposals.owners.map((owner) => ({ id: REVIEW + owner.sessionId, owner }));
    if (!("owner" in node)) return [];
    const found = entries([node.owner]);
    const inOrder = [
      ...found.filter(({ conflicts }) => conflicts > 0),
      ...found.filter(({ conflicts }) => conflicts === 0),
    ];
    return inOrder.map((entry) => ({
      id: `${node.owner.sessionId} ${entry.row?.kind ?? "text"} ${entry.path}`,
      entry,
    }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return "owner" in node ? group(node) : item(node);
  }

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    const here = uri.scheme === "file" ? this.listed.get(uri.path) : undefined;
    if (here === undefined) return undefined;
    const count = here.reduce((sum, { open, review }) => sum + open + review, 0);
    return { badge: count > 9 ? "9+" : String(count), tooltip: `Amanu: ${said(here)}` };
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
    const count = found.length;
    const waits = `${plural(count, "file")} to review`;
    this.view.description = waits; // VS Code folds what extensions add here, until one opens it
    this.view.badge = count > 0 ? { value: count, tooltip: `Amanu: ${waits}` } : undefined;
    this.changed.fire();
  }
}

function group({ id, owner }: Group): vscode.TreeItem {
  return {
    id,
    label: titled(owner),
    description: plural(entries([owner]).length, "file"),
    collapsibleState: vscode.TreeItemCollapsibleState.Expanded,
    contextValue: "session",
  };
}

function item(node: Listed): vscode.TreeItem {
  const { id, entry } = node;
  const { path, row, targets, open } = entry;
  const latest = targets.at(-1);
  const label = latest && !row ? title(latest) : called(path, row);
  return {
    id,
    label,
    description: summary(entry),
    resourceUri: vscode.Uri.file(row?.kind === "git" ? `${path}/.git` : path),
    iconPath: vscode.ThemeIcon.File,
    // VS Code adds the tooltip of the file's badge, which has the summary
    tooltip: row === undefined ? visible(path) : `${visible(path)}: ${summary(entry)}`,
    accessibilityInformation: { label: `${label}, ${summary(entry)}` },
    collapsibleState: vscode.TreeItemCollapsibleState.None,
    command: { command: "amanu.openDiff", title: "Show the change", arguments: [node] },
    contextValue: targets.some(isDecidable) ? (open > 0 ? "open" : "review") : "undecidable",
  };
}

function said(listed: Entry[] = []): string {
  return listed.map(summary).join("; ");
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
