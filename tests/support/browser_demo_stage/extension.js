// Beside ours in `make demo-vscode`: the file that the prompt is about, and the prompt, once in each new window.
const vscode = require("vscode");

exports.activate = async (context) => {
  if (context.workspaceState.get("staged")) return;
  await context.workspaceState.update("staged", true);
  const [folder] = vscode.workspace.workspaceFolders;
  await vscode.window.showTextDocument(vscode.Uri.joinPath(folder.uri, "cart.py"), { preview: false });
  await vscode.commands.executeCommand("amanu.focus", process.env.AMANU_DEMO_PROMPT);
};
