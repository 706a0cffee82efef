import * as vscode from "vscode";

/** Files looked at, and offered, at most; and for how long, in milliseconds, the list of them is believed. */
const LOOKED_AT = 20_000;
const OFFERED = 12;
const BELIEVED = 10_000;

let known: Promise<string[]> | undefined;
let since = 0;

/** Workspace files that fit what is typed after `@`, best first, as paths relative to their folder. */
export async function findFiles(query: string): Promise<string[]> {
  if (known === undefined || Date.now() - since > BELIEVED) {
    since = Date.now();
    known = Promise.resolve(
      vscode.workspace.findFiles("**/*", "**/{node_modules,.git,.venv,__pycache__}/**", LOOKED_AT),
    ).then((uris) => uris.map((uri) => vscode.workspace.asRelativePath(uri, false)));
  }
  return rank(await known, query).slice(0, OFFERED);
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
