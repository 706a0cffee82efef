import { basename } from "node:path";
import * as vscode from "vscode";
import { plain } from "../editor/visible";
import { pictureAt, within } from "./incoming";

/** Files offered at most. */
const OFFERED = 12;

/** Files that are looked through for the names that an answer has. */
const SEARCHED = 500;
/** Bytes of a picture of the workspace that an answer shows. */
const PICTURE_BYTES = 5_000_000;

/** Where nobody's own files are. */
const ELSEWHERE = "**/{node_modules,.git,.venv,__pycache__}/**";

/** Show the file at `full`, at a line (from 1), else the one in the workspace whose path ends with what was named, `path`;
 * of several the user chooses. A folder is shown where files are listed. False when there is none. */
export async function open(full: string, path: string, line: number | null): Promise<boolean> {
  const uri = vscode.Uri.file(full);
  const there = await stat(full);
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
  const there = await stat(full);
  const uris = there === undefined ? await ending(path) : [];
  return uris.length > 1 ? (await choose(path, uris))?.fsPath : (uris[0]?.fsPath ?? full);
}

/** Those of the paths that lead to a file or folder, or are the end of a file's path. */
export async function existing(paths: string[], folders: string[]): Promise<string[]> {
  const there = await Promise.all(
    paths.map(async (path) => {
      const full = within(path, folders);
      return full !== undefined && (await stat(full)) !== undefined;
    }),
  );
  const left = paths.filter((path, at) => !there[at] && !path.endsWith("/"));
  const names = [...new Set(left.map((path) => escaped(basename(path))))];
  const pattern = names.length === 1 ? `**/${names[0]}` : `**/{${names.join(",")}}`;
  const uris = names.length > 0 ? await vscode.workspace.findFiles(pattern, ELSEWHERE, SEARCHED) : [];
  return paths.filter(
    (path, at) => there[at] || uris.some((each) => each.path.endsWith(`/${path.replace(/^(\.\/)+/, "")}`)),
  );
}

/** A picture of the workspace as a `data:` address; "" where there is none, or it is too big. */
export async function workspacePicture(path: string, folders: string[]): Promise<string> {
  const place = pictureAt(path, folders);
  const found = place && (await stat(place.full));
  if (place === undefined || found?.type !== vscode.FileType.File || found.size > PICTURE_BYTES) return "";
  const data = await vscode.workspace.fs.readFile(vscode.Uri.file(place.full));
  return `data:${place.mediaType};base64,${Buffer.from(data).toString("base64")}`;
}

function stat(full: string): Promise<vscode.FileStat | undefined> {
  return Promise.resolve(vscode.workspace.fs.stat(vscode.Uri.file(full))).catch(() => undefined);
}

function escaped(name: string): string {
  return name.replaceAll(/[*?[\]{},]/g, "?");
}

/** The files of the workspace whose path ends so. */
async function ending(path: string): Promise<vscode.Uri[]> {
  const named = path.replace(/^(\.\/)+/, "");
  const pattern = `**/${escaped(named)}`;
  const uris = await vscode.workspace.findFiles(pattern, ELSEWHERE, OFFERED);
  return uris.filter((each) => each.path.endsWith(`/${named}`));
}

async function choose(path: string, uris: vscode.Uri[]): Promise<vscode.Uri | undefined> {
  const items = uris.map((uri) => ({ label: plain(vscode.workspace.asRelativePath(uri)), uri }));
  return (await vscode.window.showQuickPick(items, { title: plain(path) }))?.uri;
}
