import * as vscode from "vscode";

/** The editor of all that is applied in a session. */
export const CHANGED = "Changes in this session";

/** Show the file under its new name where its tab was; nothing that was not open, and nothing with unsaved text. */
export async function reopen(from: vscode.Uri, to: vscode.Uri): Promise<void> {
  for (const group of vscode.window.tabGroups.all)
    for (const tab of group.tabs) {
      if (!(tab.input instanceof vscode.TabInputText) || tab.input.uri.toString() !== from.toString())
        continue;
      if (tab.isDirty) continue;
      const options = { viewColumn: group.viewColumn, preview: tab.isPreview, preserveFocus: true };
      if (tab.isActive) await vscode.window.showTextDocument(to, options);
      await vscode.window.tabGroups.close(tab, true);
    }
  await closeGone(from);
}

/** Close what shows a file that is not there any more, as VS Code does when one deletes it in its Explorer. */
export async function closeGone(uri: vscode.Uri): Promise<void> {
  const shows = ({ input, label }: vscode.Tab) =>
    input instanceof vscode.TabInputText
      ? input.uri.toString() === uri.toString()
      : input instanceof vscode.TabInputTextDiff
        ? input.modified.toString() === uri.toString()
        : label.startsWith(CHANGED); // VS Code does not say what an editor of several files shows
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const found = tabs.filter((tab) => shows(tab) && !tab.isDirty);
  if (found.length > 0) await vscode.window.tabGroups.close(found, true);
}

/** Close what shows a proposed text. */
export async function closeDiff(uri: vscode.Uri, preserveFocus: boolean): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const ours = tabs.filter(({ input }) => shownBy(input)?.toString() === uri.toString());
  if (ours.length > 0 && !ours.some((tab) => tab.isDirty))
    await vscode.window.tabGroups.close(ours, preserveFocus);
}

/** The document in a tab, or on the right side of its diff. */
function shownBy(input: unknown): vscode.Uri | undefined {
  if (input instanceof vscode.TabInputText) return input.uri;
  return input instanceof vscode.TabInputTextDiff || input instanceof vscode.TabInputNotebookDiff
    ? input.modified
    : undefined;
}

/** The notebook whose cells are compared in front. */
export function comparedNotebook(): vscode.Uri | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  return input instanceof vscode.TabInputNotebookDiff ? input.modified : undefined;
}
