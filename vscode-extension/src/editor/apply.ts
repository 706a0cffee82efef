import { createHash } from "node:crypto";
import * as vscode from "vscode";
import type { EditorApplyParams, EditorApplyResult } from "../protocol";

/**
 * Apply edits to an open document, in one tick and as one undo step, only if its text is the expected one. Saved only
 * when asked. What is not open, or has changed, is said and left alone.
 */
export async function apply(params: EditorApplyParams): Promise<EditorApplyResult> {
  const document = vscode.workspace.textDocuments.find(
    (each) => each.uri.scheme === "file" && each.uri.fsPath === params.path && !each.isClosed,
  );
  if (document === undefined) return { status: "notOpen" };
  const before = document.getText();
  if (sha256(before) !== params.expectedSha256)
    return { status: "conflict", message: "The text in the editor has changed meanwhile." };

  const edit = new vscode.WorkspaceEdit();
  for (const {
    range: { start, end },
    newText,
  } of params.edits) {
    const range = new vscode.Range(start.line, start.character, end.line, end.character);
    if (!document.validateRange(range).isEqual(range))
      return { status: "error", message: "An edit is outside of the text." };
    edit.replace(document.uri, range, newText);
  }
  if (!(await vscode.workspace.applyEdit(edit)))
    return { status: "conflict", message: "VS Code refused the edit." };
  const [sha, version] = [sha256(document.getText()), document.version]; // a formatter may change it on save
  // not `workspace.save`, which does nothing for a document without a tab
  const saved = params.save ? await document.save() : false;
  return { status: "success", sha256: sha, version, saved };
}

export function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
