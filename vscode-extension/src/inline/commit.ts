import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";

/** As much of the API of VS Code's git extension as is used. */
interface Repository {
  rootUri: vscode.Uri;
  inputBox: { value: string };
  state: { indexChanges: unknown[] };
  diff(cached?: boolean): Promise<string>;
  log(options: { maxEntries: number }): Promise<{ message: string }[]>;
}

interface Git {
  getAPI(version: 1): { repositories: Repository[]; getRepository(uri: vscode.Uri): Repository | null };
}

/** Commits whose first lines show the style. */
const STYLE = 10;
/** Milliseconds for which what it took stays in the status bar. */
const TOLD = 8000;

/** Fill the message box of Source Control with a message for what is staged, else for all changes. Never commits. */
export async function writeCommitMessage(
  daemon: Daemon,
  /** The session that its cost is counted to, if any. */
  sessionId: string,
  given?: { rootUri?: vscode.Uri },
): Promise<void> {
  const repository = await chosen(given);
  if (repository === undefined) return;
  const staged = repository.state.indexChanges.length > 0;
  const diff = await repository.diff(staged);
  if (diff.trim() === "") {
    void vscode.window.showInformationMessage(
      "There are no changes to describe. New files must be staged first.",
    );
    return;
  }
  const commits = await repository.log({ maxEntries: STYLE }).catch(() => []); // none yet
  const subjects = commits.map(({ message }) => message.split("\n", 1)[0] ?? "");
  const params = { root: repository.rootUri.fsPath, diff, subjects, sessionId: sessionId || null };
  await daemon.settled();
  const before = repository.inputBox.value;
  const result = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "Writing a commit message", cancellable: true },
    (_, token) =>
      daemon.request("amanu/commit/message", params, token).catch((error: unknown) => {
        if (!token.isCancellationRequested) throw error;
        return undefined;
      }),
  );
  if (result === undefined) return;
  if (repository.inputBox.value !== before && repository.inputBox.value !== "") return; // the user wrote one meanwhile
  repository.inputBox.value = result.message;
  vscode.window.setStatusBarMessage(`Commit message written: ${result.spend.summary}`, TOLD);
  if (result.leftOut.length > 0)
    void vscode.window.showInformationMessage(
      `Not shown to the model, because it may hold secrets: ${result.leftOut.join(", ")}`,
    );
}

async function chosen(given?: { rootUri?: vscode.Uri }): Promise<Repository | undefined> {
  const extension = vscode.extensions.getExtension<Git>("vscode.git");
  const api = (await extension?.activate())?.getAPI(1);
  if (api === undefined || api.repositories.length === 0) {
    void vscode.window.showInformationMessage("No git repository is open.");
    return undefined;
  }
  const uri = given?.rootUri ?? vscode.window.activeTextEditor?.document.uri;
  return (uri && api.getRepository(uri)) ?? api.repositories[0];
}
