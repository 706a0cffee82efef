import { relative } from "node:path";
import * as vscode from "vscode";
import { contains } from "../editor/paths";
import { visible } from "../editor/visible";

/** Transcripts: what was typed stands behind a prompt, what was printed between. */
const TRANSCRIPTS: ReadonlySet<string> = new Set(["console", "shellsession", "sh-session"]);

/** Put code of an answer where the cursors of the last editor are, as an edit that can be undone. False without one. */
export async function insertCode(text: string): Promise<boolean> {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (editor === undefined) return false;
  await vscode.window.showTextDocument(editor.document, {
    viewColumn: editor.viewColumn ?? vscode.ViewColumn.Active,
  });
  return editor.edit((edit) => {
    for (const selection of editor.selections) edit.replace(selection, text);
  });
}

/** Type a command of an answer into a terminal. It runs when the user presses Enter, not before: one of several lines,
 * or with a character that is not seen, would do more than is seen, and is refused. */
export function typeInTerminal(text: string, language: string): boolean {
  const command = commandOf(text, language);
  if (command === undefined || /[\n\t]/.test(command)) return false;
  const terminal = vscode.window.activeTerminal ?? vscode.window.createTerminal("Amanu");
  terminal.show();
  terminal.sendText(command, false);
  return true;
}

/** The commands of a block; undefined where there is none, or more in it than is seen. */
export function commandOf(text: string, language: string): string | undefined {
  const lines = text.trim().split("\n");
  const typed = TRANSCRIPTS.has(language) ? lines.filter((line) => /^[$>] /.test(line)) : [];
  const command = typed.length > 0 ? typed.map((line) => line.slice(2)).join("\n") : lines.join("\n");
  const seen = !/[\0-\x08\x0b-\x1f\x7f]/.test(command) && visible(command) === command;
  return command !== "" && seen ? command : undefined;
}

/** The file in the editor, if it lies in one of the folders. */
export function editedFile(folders: string[]): string | undefined {
  const { uri } = (vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0])?.document ?? {};
  const inside = uri?.scheme === "file" && folders.some((folder) => contains(folder, uri.fsPath));
  return inside ? uri.fsPath : undefined;
}

/** The prompt that has code proposed as a change to a file. Its fence is longer than any in the code. */
export function application(file: string, folders: string[], code: string, language: string): string {
  const [root = ""] = folders;
  const path = folders.length === 1 && contains(root, file) ? relative(root, file) : file;
  const fences = (code.match(/`{3,}/g) ?? []).map(({ length }) => length);
  const fence = "`".repeat(Math.max(2, ...fences) + 1);
  return `/apply ${path}\n\n${fence}${language}\n${code}\n${fence}`;
}
