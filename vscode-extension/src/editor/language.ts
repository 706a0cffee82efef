import * as vscode from "vscode";
import { sha256 } from "./apply";
import { type Answers, text } from "../daemon/client";
import { allLines, findingsOf } from "./context";
import type {
  Call,
  EditorCallHierarchyResult,
  EditorHoverResult,
  EditorLocationsResult,
  EditorRenameResult,
  EditorStatus,
  EditorSymbolsResult,
  FileFindings,
  Location,
  Position,
  Range,
  RenamedFile,
  Symbol,
  TextEdit,
} from "../protocol";

/**
 * Milliseconds after a language was first asked about in which "nothing found" may mean that its server is still
 * starting. VS Code does not say which it is.
 */
const STARTING = 10_000;
/** Places or symbols told at most: more than a model would read. */
const MOST = 200;

const firstAsked = new Map<string, number>();

/** What VS Code's language servers know, asked by the daemon. */
export const language: {
  [M in Exclude<keyof Answers, "amanu/editor/apply" | "amanu/model/run">]: (
    params: Parameters<Answers[M]>[0],
  ) => ReturnType<Answers[M]>;
} = {
  "amanu/editor/diagnostics": async ({ paths }) => {
    const all: [vscode.Uri, vscode.Diagnostic[]][] =
      paths === undefined || paths.length === 0
        ? vscode.languages.getDiagnostics()
        : paths.map((path) => {
            const uri = vscode.Uri.file(path);
            return [uri, vscode.languages.getDiagnostics(uri)];
          });
    const files = all.flatMap(([uri, found]): FileFindings[] => {
      const findings = findingsOf(found);
      return uri.scheme === "file" && findings.length > 0 ? [{ path: uri.fsPath, findings }] : [];
    });
    return { status: "success", files: files.slice(0, MOST) };
  },
  "amanu/editor/definition": (params) => places("vscode.executeDefinitionProvider", params),
  "amanu/editor/references": (params) => places("vscode.executeReferenceProvider", params),
  "amanu/editor/symbols": ({ path, query }) => (path ? symbolsOf(path) : symbolsLike(query ?? "")),
  "amanu/editor/hover": hover,
  "amanu/editor/callHierarchy": calls,
  "amanu/editor/rename": rename,
};

interface Place {
  path: string;
  position: Position;
}

async function places(command: string, params: Place): Promise<EditorLocationsResult> {
  return answering(async () => {
    const document = await vscode.workspace.openTextDocument(params.path);
    const at = position(params);
    const found = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>(
      command,
      document.uri,
      at,
    );
    return { status: await statusOf(document, found.length), locations: found.slice(0, MOST).map(described) };
  });
}

async function hover(params: Place): Promise<EditorHoverResult> {
  return answering(async () => {
    const document = await vscode.workspace.openTextDocument(params.path);
    const at = position(params);
    const found = await vscode.commands.executeCommand<vscode.Hover[]>(
      "vscode.executeHoverProvider",
      document.uri,
      at,
    );
    const parts = found
      .flatMap(({ contents }) => contents.map(markdown))
      .filter((part) => part.trim() !== "");
    return { status: await statusOf(document, parts.length), text: parts.join("\n\n") };
  });
}

async function calls(
  params: Place & { direction: "incoming" | "outgoing" },
): Promise<EditorCallHierarchyResult> {
  return answering(async () => {
    const document = await vscode.workspace.openTextDocument(params.path);
    const at = position(params);
    const items = await vscode.commands.executeCommand<vscode.CallHierarchyItem[]>(
      "vscode.prepareCallHierarchy",
      document.uri,
      at,
    );
    const incoming = params.direction === "incoming";
    const found = await Promise.all(
      items.map((item) =>
        vscode.commands.executeCommand<
          (vscode.CallHierarchyIncomingCall | vscode.CallHierarchyOutgoingCall)[]
        >(incoming ? "vscode.provideIncomingCalls" : "vscode.provideOutgoingCalls", item),
      ),
    );
    const status = await statusOf(document, items.length);
    return { status, calls: found.flat().slice(0, MOST).map(describedCall) };
  });
}

/** The edits are computed, and left to the daemon: it proposes them. */
async function rename(params: Place & { newName: string }): Promise<EditorRenameResult> {
  return answering(async () => {
    const document = await vscode.workspace.openTextDocument(params.path);
    const at = position(params);
    let edit: vscode.WorkspaceEdit | undefined;
    try {
      edit = await vscode.commands.executeCommand<vscode.WorkspaceEdit | undefined>(
        "vscode.executeDocumentRenameProvider",
        document.uri,
        at,
        params.newName,
      );
    } catch (error) {
      // without a server this is an error as well
      const status = await statusOf(document, 0);
      return status === "success" ? { status: "error", message: text(error) } : { status };
    }
    const files = edit === undefined ? [] : renamedFiles(edit);
    if (files === undefined)
      return { status: "error", message: "The rename would also create or delete files." };
    return { status: await statusOf(document, files.length), files };
  });
}

/** What a rename changes, by file; undefined when it creates or deletes some. */
export function renamedFiles(edit: vscode.WorkspaceEdit): RenamedFile[] | undefined {
  type File = RenamedFile & { edits: TextEdit[] };
  const files = new Map<string, File>();
  const file = (path: string): File => {
    const known = files.get(path);
    if (known !== undefined) return known;
    const document = vscode.workspace.textDocuments.find(
      (each) => each.uri.scheme === "file" && each.uri.fsPath === path && !each.isClosed,
    );
    const fresh = { path, sha256: document === undefined ? null : sha256(document.getText()), edits: [] };
    files.set(path, fresh);
    return fresh;
  };
  const before = new Map<string, string>();
  for (const { _type, from, to } of operations(edit)) {
    if (_type !== FILE_OPERATION) continue;
    if (from === undefined || to === undefined) return undefined;
    before.set(to.toString(), named(from));
    Object.assign(file(named(from)), { newPath: named(to) });
  }
  for (const [uri, edits] of edit.entries())
    for (const { range, newText } of edits)
      file(before.get(uri.toString()) ?? named(uri)).edits.push({ range: plain(range), newText });
  return [...files.values()];
}

const FILE_OPERATION = 1;

/**
 * VS Code's API gives only the edits of texts. This private method also lists the operations on files and is as old as
 * they are; without it, the text edits would be taken for the whole rename.
 */
function operations(edit: vscode.WorkspaceEdit): { _type: number; from?: vscode.Uri; to?: vscode.Uri }[] {
  return (edit as unknown as { _allEntries(): ReturnType<typeof operations> })._allEntries();
}

/** The path of a file on the disk; of anything else its address, which the daemon refuses. */
function named(uri: vscode.Uri): string {
  return uri.scheme === "file" ? uri.fsPath : uri.toString();
}

async function symbolsOf(path: string): Promise<EditorSymbolsResult> {
  return answering(async () => {
    const document = await vscode.workspace.openTextDocument(path);
    const found = await vscode.commands.executeCommand<
      (vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined
    >("vscode.executeDocumentSymbolProvider", document.uri);
    const symbols = (found ?? []).flatMap((symbol) =>
      "location" in symbol ? [information(symbol)] : nested(symbol, path, ""),
    );
    return { status: await statusOf(document, symbols.length), symbols: symbols.slice(0, MOST) };
  });
}

async function symbolsLike(query: string): Promise<EditorSymbolsResult> {
  return answering(async () => {
    const found = await vscode.commands.executeCommand<vscode.SymbolInformation[]>(
      "vscode.executeWorkspaceSymbolProvider",
      query,
    );
    const symbols = found.filter((symbol) => symbol.location.uri.scheme === "file").map(information);
    // nobody can be asked whether there is a server for no file in particular
    return { status: symbols.length > 0 ? "success" : "noServer", symbols: symbols.slice(0, MOST) };
  });
}

/** What goes wrong in a language server is an answer, not an error of ours. */
async function answering<R extends { status: EditorStatus; message?: string | null }>(
  work: () => Promise<R>,
): Promise<R | { status: "error"; message: string }> {
  try {
    return await work();
  } catch (error) {
    return { status: "error", message: text(error) };
  }
}

/** Nothing found: because there is nothing, no server, or none yet? Only the outline tells that nobody provides one. */
async function statusOf(document: vscode.TextDocument, found: number): Promise<EditorStatus> {
  const since = firstAsked.get(document.languageId) ?? Date.now();
  firstAsked.set(document.languageId, since);
  if (found > 0) return "success";
  if (Date.now() - since < STARTING) return "starting";
  const outline = await vscode.commands.executeCommand<unknown[] | undefined>(
    "vscode.executeDocumentSymbolProvider",
    document.uri,
  );
  return outline === undefined ? "noServer" : "success";
}

function position({ position: { line, character } }: Place): vscode.Position {
  return new vscode.Position(line, character);
}

function plain({ start, end }: vscode.Range): Range {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}

function described(found: vscode.Location | vscode.LocationLink): Location {
  const { uri, range } =
    "targetUri" in found
      ? { uri: found.targetUri, range: found.targetSelectionRange ?? found.targetRange }
      : found;
  return { path: uri.fsPath, lines: allLines(range) };
}

function markdown(content: vscode.MarkdownString | vscode.MarkedString): string {
  if (typeof content === "string") return content;
  return "language" in content ? `\`\`\`${content.language}\n${content.value}\n\`\`\`` : content.value;
}

function describedCall(call: vscode.CallHierarchyIncomingCall | vscode.CallHierarchyOutgoingCall): Call {
  const { name, kind, uri, selectionRange, range } = "from" in call ? call.from : call.to;
  return {
    symbol: {
      name,
      kind: kindName(kind),
      path: uri.fsPath,
      lines: { start: selectionRange.start.line, end: range.end.line + 1 },
    },
    lines: [...new Set(call.fromRanges.map(({ start }) => start.line))],
  };
}

function nested(symbol: vscode.DocumentSymbol, path: string, container: string): Symbol[] {
  const { name, kind, range, children } = symbol;
  return [
    {
      name,
      kind: kindName(kind),
      path,
      lines: allLines(range),
      container,
    },
    ...children.flatMap((child) => nested(child, path, container ? `${container}.${name}` : name)),
  ];
}

function information({ name, kind, location, containerName }: vscode.SymbolInformation): Symbol {
  return {
    name,
    kind: kindName(kind),
    path: location.uri.fsPath,
    lines: allLines(location.range),
    container: containerName,
  };
}

function kindName(kind: vscode.SymbolKind): string {
  return (vscode.SymbolKind[kind] ?? "symbol").toLowerCase();
}
