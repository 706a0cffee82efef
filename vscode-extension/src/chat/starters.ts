import * as vscode from "vscode";
import type { ToView } from "./messages";

/** What we use of VS Code's own Git extension. */
interface Git {
  getAPI(version: 1): {
    repositories: { state: { workingTreeChanges: unknown[]; indexChanges: unknown[] } }[];
  };
}

/** What there is to begin with: the file before the user, how many errors and warnings it has, and how many files Git
 * sees changed. */
export function starters(file: string | null): Extract<ToView, { type: "starters" }> {
  const found = file === null ? [] : vscode.languages.getDiagnostics(vscode.Uri.file(file));
  const problems = found.filter(({ severity }) => severity <= vscode.DiagnosticSeverity.Warning).length;
  return { type: "starters", file, problems, changes: changes() };
}

function changes(): number {
  const git = vscode.extensions.getExtension<Git>("vscode.git");
  if (git === undefined || !git.isActive) return 0; // to wake it is not worth a button
  const { repositories } = git.exports.getAPI(1);
  return repositories.reduce(
    (sum, { state }) => sum + state.workingTreeChanges.length + state.indexChanges.length,
    0,
  );
}
