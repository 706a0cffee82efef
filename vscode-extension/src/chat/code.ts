import * as vscode from "vscode";
import { visible } from "../visible";

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
export function typeInTerminal(text: string): boolean {
  const command = text.trim();
  if (command === "" || /[\0-\x1f\x7f]/.test(command) || visible(command) !== command) return false;
  const terminal = vscode.window.activeTerminal ?? vscode.window.createTerminal("Amanu");
  terminal.show();
  terminal.sendText(command, false);
  return true;
}
