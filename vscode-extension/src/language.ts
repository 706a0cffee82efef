import * as vscode from "vscode";
import { type Answers, text } from "./client";
import { findingsOf } from "./context";
import type {
  EditorLocationsResult,
  EditorStatus,
  EditorSymbolsResult,
  FileFindings,
  Location,
  Symbol,
} from "./protocol";

/**
 * Milliseconds after a language was first asked about in which "nothing found" may mean that its server is still
 * starting. VS Code does not say which it is.
 */
const STARTING = 10_000;
/** Places or symbols told at most: more than a model would read. */
const MOST = 200;

const firstAsked = new Map<string, number>();

/** What VS Code's language servers know, asked by the daemon. */
export const language: Omit<Answers, "amanu/editor/apply"> = {
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
};

async function places(
  command: string,
  params: { path: string; line: number; character: number },
): Promise<EditorLocationsResult> {
  return answering(async () => {
    const document = await vscode.workspace.openTextDocument(params.path);
    const at = position(document, params.line, params.character);
    const found = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>(
      command,
      document.uri,
      at,
    );
    return { status: await statusOf(document, found.length), locations: found.slice(0, MOST).map(described) };
  });
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

/** The daemon counts code points, VS Code UTF-16 units. Beyond the end is the end. */
function position(document: vscode.TextDocument, line: number, character: number): vscode.Position {
  const at = Math.min(Math.max(line, 1), document.lineCount) - 1;
  const before = [...document.lineAt(at).text].slice(0, character).join("");
  return new vscode.Position(at, before.length);
}

function described(found: vscode.Location | vscode.LocationLink): Location {
  const { uri, range } =
    "targetUri" in found
      ? { uri: found.targetUri, range: found.targetSelectionRange ?? found.targetRange }
      : found;
  return { path: uri.fsPath, startLine: range.start.line + 1, endLine: range.end.line + 1 };
}

function nested(symbol: vscode.DocumentSymbol, path: string, container: string): Symbol[] {
  const { name, kind, range, children } = symbol;
  return [
    {
      name,
      kind: kindName(kind),
      path,
      startLine: range.start.line + 1,
      endLine: range.end.line + 1,
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
    startLine: location.range.start.line + 1,
    endLine: location.range.end.line + 1,
    container: containerName,
  };
}

function kindName(kind: vscode.SymbolKind): string {
  return (vscode.SymbolKind[kind] ?? "symbol").toLowerCase();
}
