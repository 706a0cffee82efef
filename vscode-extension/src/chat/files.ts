import * as vscode from "vscode";
import { plain } from "../editor/visible";
import { within } from "./incoming";

/** Files offered at most. */
const OFFERED = 12;

/** Where nobody's own files are. */
const ELSEWHERE = "**/{node_modules,.git,.venv,__pycache__}/**";

/** Show the file at `full`, at a line (from 1), else the one in the workspace whose path ends with what was named, `path`;
 * of several the user chooses. A folder is shown where files are listed. False when there is none. */
export async function open(full: string, path: string, line: number | null): Promise<boolean> {
  const uri = vscode.Uri.file(full);
  const there = await Promise.resolve(vscode.workspace.fs.stat(uri)).catch(() => undefined);
  if (there?.type === vscode.FileType.Directory) {
    await vscode.commands.executeCommand("revealInExplorer", uri);
    return true;
  }
  const uris = there === undefined ? await ending(path) : [uri];
  const chosen = uris.length > 1 ? await choose(path, uris) : uris[0];
  const at = Math.max(0, (line ?? 1) - 1);
  const selection = line === null ? {} : { selection: new vscode.Range(at, 0, at, 0) };
  if (chosen !== undefined) await vscode.commands.executeCommand("vscode.open", chosen, selection);
  return uris.length > 0;
}

/** The file that code is for which names `path`: the one there, else the one whose path ends so, of several the user's
 * choice; else a new one. Undefined when the user chooses none. */
export async function find(path: string, folders: string[]): Promise<string | undefined> {
  const full = within(path, folders);
  if (full === undefined) return undefined;
  const there = await Promise.resolve(vscode.workspace.fs.stat(vscode.Uri.file(full))).catch(() => undefined);
  const uris = there === undefined ? await ending(path) : [];
  return uris.length > 1 ? (await choose(path, uris))?.fsPath : (uris[0]?.fsPath ?? full);
}

/** The files of the workspace whose path ends so. */
async function ending(path: string): Promise<vscode.Uri[]> {
  const named = path.replace(/^(\.\/)+/, "");
  const pattern = `**/${named.replaceAll(/[*?[\]{}]/g, "?")}`;
  const uris = await vscode.workspace.findFiles(pattern, ELSEWHERE, OFFERED);
  return uris.filter((each) => each.path.endsWith(`/${named}`));
}

async function choose(path: string, uris: vscode.Uri[]): Promise<vscode.Uri | undefined> {
  const items = uris.map((uri) => ({ label: plain(vscode.workspace.asRelativePath(uri)), uri }));
  return (await vscode.window.showQuickPick(items, { title: plain(path) }))?.uri;
}
