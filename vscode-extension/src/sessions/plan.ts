import * as vscode from "vscode";
import type { Approval } from "../protocol";

/** Open the plan that is asked about as a document, where the user edits and comments on it. */
export async function openPlan(approval: Approval | undefined): Promise<void> {
  if (!approval?.document) return;
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(approval.document));
  await vscode.window.showTextDocument(document, { preview: false, preserveFocus: true });
}
