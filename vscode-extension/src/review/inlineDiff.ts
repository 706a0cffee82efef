import * as vscode from "vscode";

/**
 * Give a proposed text its language's twin, `amanu-python` for `python`, in which diffs are inline. VS Code lays out a
 * diff as its settings say, and these differ by language, never by diff: only so is ours inline and git's as the user
 * likes it (package.json, `configurationDefaults`). The twin has the colours of the language, and no language servers or
 * formatters, which would take what is proposed for the user's. A language without a twin keeps its own.
 */
export async function inline(document: vscode.TextDocument): Promise<void> {
  const twin = `amanu-${document.languageId}`;
  if ((await vscode.languages.getLanguages()).includes(twin))
    await vscode.languages.setTextDocumentLanguage(document, twin);
}
