import * as vscode from "vscode";

/** The user was asked before. */
const ASKED = "amanu.askedForChatKeys";
const TAKE = "Use for Amanu";

/** Ask once whether VS Code's own chat may lose its keys to ours. Where that chat is off, they are ours anyway. */
export async function offerChatKeys(memory: Pick<vscode.Memento, "get" | "update">): Promise<void> {
  const settings = vscode.workspace.getConfiguration("amanu");
  const isOff = vscode.workspace.getConfiguration("chat").get<boolean>("disableAIFeatures", false);
  const isSet = settings.inspect<boolean>("takesChatKeys")?.globalValue !== undefined;
  if (isOff || isSet || memory.get<boolean>(ASKED, false)) return;
  await memory.update(ASKED, true);
  const [edit, chat] = process.platform === "darwin" ? ["⌘I", "⌥⌘I"] : ["Ctrl+I", "Ctrl+Alt+I"];
  const answer = await vscode.window.showInformationMessage(
    `Use ${edit} to edit and ${chat} to chat with Amanu? VS Code's own chat has these keys now.`,
    TAKE,
    "Not Now",
  );
  if (answer === TAKE) await settings.update("takesChatKeys", true, vscode.ConfigurationTarget.Global);
}
