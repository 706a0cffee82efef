// Beside ours in the window that tests share: a test that fails, while it is wanted; and an answer when VS Code has
// seen what changed in the workspace.
const fs = require("node:fs");
const vscode = require("vscode");

let tests;

function addTest() {
  tests = vscode.tests.createTestController("t", "T");
  const uri = vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, "add.ts");
  const item = tests.createTestItem("adds", "adds up", uri);
  item.range = new vscode.Range(0, 0, 3, 1);
  tests.items.add(item);
  tests.createRunProfile(
    "Run",
    vscode.TestRunProfileKind.Run,
    (request) => {
      const run = tests.createTestRun(request);
      const message = vscode.TestMessage.diff("the sum is wrong", "3", "4");
      message.location = new vscode.Location(uri, new vscode.Range(1, 0, 1, 10));
      run.failed(item, message);
      run.end();
    },
    true,
  );
}

// VS Code keeps documents for minutes after their editors were closed. One that has another text than the file of that
// name, which is the next test's, is not read again yet.
function isStale(document) {
  if (document.uri.scheme !== "file") return false;
  try {
    return fs.readFileSync(document.uri.fsPath, "utf8") !== document.getText();
  } catch {
    return false;
  }
}

// Some are not read again ever, unless one asks for it.
async function answer(uri) {
  for (let looks = 0; vscode.workspace.textDocuments.some(isStale); looks++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (looks % 20 === 19) await readAgain();
  }
  fs.rmSync(uri.fsPath, { force: true });
}

async function readAgain() {
  for (const document of vscode.workspace.textDocuments.filter(isStale)) {
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  }
  await vscode.commands.executeCommand("workbench.action.closeAllEditors");
}

// What a test typed and did not save. VS Code keeps it with the document, when one closes the editor without saving.
async function revert() {
  for (const document of vscode.workspace.textDocuments)
    if (document.isDirty && document.uri.scheme === "file") {
      await vscode.window.showTextDocument(document);
      await vscode.commands.executeCommand("workbench.action.files.revert");
    }
}

exports.activate = (context) => {
  const [folder] = vscode.workspace.workspaceFolders;
  const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(folder, ".seen"));
  watcher.onDidCreate(answer);
  watcher.onDidChange(answer);
  context.subscriptions.push(
    watcher,
    vscode.commands.registerCommand("helper.revert", revert),
    vscode.commands.registerCommand("helper.addTest", addTest),
    vscode.commands.registerCommand("helper.removeTest", () => tests.dispose()),
  );
};
