import { createHash } from "node:crypto";
import * as vscode from "vscode";
import type { EditorApplyParams, EditorApplyResult, TextEdit } from "../protocol";

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
  for (const [start, end, newText] of inUtf16(before, params.edits))
    edit.replace(
      document.uri,
      new vscode.Range(document.positionAt(start), document.positionAt(end)),
      newText,
    );
  if (!(await vscode.workspace.applyEdit(edit)))
    return { status: "conflict", message: "VS Code refused the edit." };
  const sha = sha256(document.getText());
  // not `workspace.save`, which does nothing for a document without a tab
  const saved = params.save ? await document.save() : false;
  return { status: "success", sha256: sha, version: document.version, saved };
}

/** Edits count code points, VS Code counts UTF-16 units. The edits are in order. */
export function inUtf16(text: string, edits: TextEdit[]): [number, number, string][] {
  let points = 0;
  let units = 0;
  const unit = (point: number): number => {
    while (points < point && units < text.length) {
      units += (text.codePointAt(units) as number) > 0xffff ? 2 : 1;
      points += 1;
    }
    return units;
  };
  return edits.map((edit) => [unit(edit.start), unit(edit.end), edit.newText]);
}

export function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
