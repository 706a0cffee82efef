import * as vscode from "vscode";
import { type Daemon, roots } from "../daemon/client";
import { contains } from "./paths";
import type {
  ActiveEditor,
  AttachmentInput,
  ContextChangedParams,
  FileFindings,
  Finding,
  LineRange,
} from "../protocol";

/** Milliseconds the editor must rest before the daemon hears of it. */
const REST = 200;
/** Characters of a selection that are told; the daemon can read the rest. */
const SELECTED = 20_000;
/** Open files, files with findings, and findings of one file that are told. */
const FILES = 200;
const FINDINGS = 50;
/** Whether the file before the user goes along with prompts, for this window. */
const SHARED = "amanu.shareActive";

/** Tells the daemon what the user looks at, and only what changed of it. */
export class Context implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  /** What goes along with a prompt is another thing now. */
  readonly onChanged = this.changed.event;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private told: { active: string; openFiles: string; findings: Map<string, string> } = nothing();
  /** Files whose findings may have changed; undefined: all. */
  private stale: Set<string> | undefined;
  private active: ActiveEditor = {};
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly daemon: Daemon,
    private readonly memory: vscode.Memento,
  ) {
    this.subscriptions = [
      this.changed,
      vscode.window.onDidChangeActiveTextEditor(() => this.soon()),
      vscode.window.onDidChangeActiveNotebookEditor(() => this.soon()),
      vscode.window.onDidChangeTextEditorSelection(() => this.soon()),
      vscode.window.tabGroups.onDidChangeTabs(() => this.soon()),
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        for (const uri of uris) this.stale?.add(uri.toString());
        this.soon();
      }),
      daemon.onConnection(() => {
        this.told = nothing(); // another daemon knows nothing
        this.stale = undefined;
        this.flush(); // before a prompt that waited for the line
      }),
    ];
    this.soon();
  }

  get shared(): boolean {
    return this.memory.get<boolean>(SHARED, true);
  }

  /** Let the file before the user go along with prompts, or not. */
  async share(shared: boolean): Promise<void> {
    await this.memory.update(SHARED, shared);
    this.tell();
    this.changed.fire();
  }

  /** The file before the user, also when it is not shared. */
  get looking(): ActiveEditor {
    return this.active;
  }

  /** Tell what has not been told yet: something is about to be said. */
  flush(): void {
    clearTimeout(this.timer);
    this.tell();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const each of this.subscriptions) each.dispose();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), REST);
  }

  private tell(): void {
    const editor = vscode.window.activeTextEditor;
    const notebook = vscode.window.activeNotebookEditor?.notebook.uri;
    // lines of a cell are no lines of its file
    if (isOwn(notebook)) this.look({ path: notebook.fsPath });
    // without one the chat has the focus, or a picture or a session's plan is shown: as before while its file is in a tab
    if (editor !== undefined && isOwn(editor.document.uri)) this.look(activeEditor(editor));
    const openFiles = filesInTabs();
    if (this.active.path && !openFiles.includes(this.active.path)) this.look({});
    if (this.daemon.connection.status !== "ready") return;
    const change: ContextChangedParams = {};
    const active = this.shared ? this.active : {};
    if (JSON.stringify(active) !== this.told.active) change.active = active;
    if (JSON.stringify(openFiles) !== this.told.openFiles) change.openFiles = openFiles;
    const findings = this.changedFindings();
    if (findings.length > 0) change.findings = findings;
    if (Object.keys(change).length === 0) return;
    this.told.active = JSON.stringify(active);
    this.told.openFiles = JSON.stringify(openFiles);
    this.daemon.notify("amanu/editor/contextChanged", change);
  }

  private look(active: ActiveEditor): void {
    if (JSON.stringify(active) === JSON.stringify(this.active)) return;
    this.active = active;
    this.changed.fire();
  }

  /** Files whose findings differ from what was told, each with all it has now. */
  private changedFindings(): FileFindings[] {
    const uris = this.stale
      ? [...this.stale].map((uri) => vscode.Uri.parse(uri))
      : vscode.languages.getDiagnostics().map(([uri]) => uri);
    this.stale = new Set();
    const folders = roots();
    return uris.flatMap((uri): FileFindings[] => {
      const path = uri.fsPath;
      if (uri.scheme !== "file" || !folders.some((folder) => contains(folder, path))) return [];
      const findings = findingsOf(vscode.languages.getDiagnostics(uri));
      const now = findings.length === 0 ? undefined : JSON.stringify(findings);
      const known = this.told.findings;
      if (known.get(path) === now || (known.size >= FILES && !known.has(path))) return [];
      if (now === undefined) known.delete(path);
      else known.set(path, now);
      return [{ path, findings }];
    });
  }
}

/** Whether it is a file of the workspace. */
function isOwn(uri: vscode.Uri | undefined): uri is vscode.Uri {
  return uri?.scheme === "file" && roots().some((folder) => contains(folder, uri.fsPath));
}

function nothing(): { active: string; openFiles: string; findings: Map<string, string> } {
  return { active: "{}", openFiles: "[]", findings: new Map() };
}

/** What is before the user, and what of it is selected. */
export function activeEditor({ selection, document }: vscode.TextEditor): ActiveEditor {
  return {
    path: document.uri.fsPath,
    lines: lines(selection),
    selectedText: selection.isEmpty ? null : document.getText(selection).slice(0, SELECTED),
  };
}

function filesInTabs(): string[] {
  const inputs = vscode.window.tabGroups.all.flatMap((group) => group.tabs.map((tab) => tab.input));
  const paths = inputs.flatMap((input) =>
    (input instanceof vscode.TabInputText || input instanceof vscode.TabInputNotebook) &&
    input.uri.scheme === "file"
      ? [input.uri.fsPath]
      : [],
  );
  return [...new Set(paths)].slice(0, FILES);
}

/** Findings as the daemon wants them, the worst first; our own marks are none. */
export function findingsOf(diagnostics: readonly vscode.Diagnostic[]): Finding[] {
  const severities = ["error", "warning", "information", "hint"] as const;
  return diagnostics
    .filter((each) => each.source !== "amanu")
    .sort((a, b) => a.severity - b.severity || a.range.start.line - b.range.start.line)
    .slice(0, FINDINGS)
    .map(({ range, severity, message, source, code }) => ({
      lines: allLines(range),
      severity: severities[severity] ?? "information",
      message,
      source: source ?? "",
      code: String(typeof code === "object" ? code.value : (code ?? "")),
    }));
}

/** The selection of the active editor as it stands there, or its file when nothing is selected. */
export function selection(): AttachmentInput | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) return undefined;
  const { selection: range, document } = editor;
  const saved = document.uri.scheme === "file";
  const path = saved ? document.uri.fsPath : document.fileName;
  if (range.isEmpty && saved) return { kind: "file", path };
  // what is on no disk goes along as text
  const taken = range.isEmpty ? new vscode.Range(0, 0, document.lineCount, 0) : range;
  const text = document.getText(taken);
  return text === "" ? undefined : { kind: "selection", path, lines: lines(taken), text };
}

/** Lines of a file. */
export interface Place {
  document: vscode.TextDocument;
  lines: LineRange;
}

/** The lines of a range. One that ends before the first character of a line takes nothing of it. */
export function lines({ start, end }: vscode.Range): LineRange {
  return { start: start.line, end: Math.max(start.line, end.line - (end.character === 0 ? 1 : 0)) + 1 };
}

/** The lines of a range, also the one before whose first character it ends. */
export function allLines({ start, end }: vscode.Range): LineRange {
  return { start: start.line, end: end.line + 1 };
}
