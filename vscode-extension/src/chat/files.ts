import * as vscode from "vscode";
import { plain } from "../visible";

/** Files looked at, and offered, at most; and for how long, in milliseconds, the list of them is believed. */
const LOOKED_AT = 20_000;
const OFFERED = 12;
const BELIEVED = 10_000;

/** Where nobody's own files are. */
const ELSEWHERE = "**/{node_modules,.git,.venv,__pycache__}/**";

let known: Promise<string[]> | undefined;
let since = 0;

/** Workspace files that fit what is typed after `@`, best first, as paths relative to their folder. */
export async function findFiles(query: string): Promise<string[]> {
  if (known === undefined || Date.now() - since > BELIEVED) {
    since = Date.now();
    known = Promise.resolve(vscode.workspace.findFiles("**/*", ELSEWHERE, LOOKED_AT)).then((uris) =>
      uris.map((uri) => vscode.workspace.asRelativePath(uri, false)),
    );
  }
  return rank(await known, query).slice(0, OFFERED);
}

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

/** Those that contain the letters of `query` in order: by name before by path, together before apart, short before long. */
export function rank(paths: string[], query: string): string[] {
  const wanted = query.toLowerCase();
  const scored = paths.flatMap((path) => {
    const lower = path.toLowerCase();
    const name = lower.slice(lower.lastIndexOf("/") + 1);
    const score = name.startsWith(wanted) ? 0 : name.includes(wanted) ? 1 : lower.includes(wanted) ? 2 : 3;
    return score === 3 && !inOrder(lower, wanted) ? [] : [{ path, score }];
  });
  scored.sort((a, b) => a.score - b.score || a.path.length - b.path.length || a.path.localeCompare(b.path));
  return scored.map((each) => each.path);
}

function inOrder(text: string, letters: string): boolean {
  let at = 0;
  for (const letter of letters) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
