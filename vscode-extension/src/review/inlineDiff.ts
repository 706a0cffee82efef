import * as vscode from "vscode";

/** All there are, asked for once: a review may open many documents, and the twins are ours. */
let languages: Thenable<string[]> | undefined;

/**
 * Give a proposed text its language's twin, `amanu-python` for `python`, in which diffs are inline. VS Code lays out a
 * diff as its settings say, and these differ by language, never by diff: only so is ours inline and git's as the user
 * likes it (package.json, `configurationDefaults`). The twin has the colours of the language, and no language servers or
 * formatters, which would take what is proposed for the user's. A language without a twin keeps its own.
 */
export async function inline(document: vscode.TextDocument): Promise<void> {
  const twin = `amanu-${document.languageId}`;
  languages ??= vscode.languages.getLanguages();
  if ((await languages).includes(twin)) await vscode.languages.setTextDocumentLanguage(document, twin);
}
