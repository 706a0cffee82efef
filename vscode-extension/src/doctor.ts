import * as vscode from "vscode";
import { type Daemon, roots } from "./client";
import { report } from "./report";
import { run } from "./run";
import { env, type Setup } from "./setup";

const SCHEME = "amanu-doctor";
const PAGE = vscode.Uri.from({ scheme: SCHEME, path: "/Amanu Doctor.txt" });
/** Milliseconds the daemon's own doctor may take. */
const WITHIN = 60_000;

/** *Amanu: Doctor*: what the extension knows and what `amanu doctor` says, on a page nobody has to save. */
export class Doctor implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private text = "";

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly daemon: Daemon,
    private readonly setup: Setup,
  ) {}

  provideTextDocumentContent(): string {
    return this.text;
  }

  dispose(): void {
    this.changed.dispose();
  }

  register(): vscode.Disposable {
    return vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  async show(): Promise<void> {
    const progress = { location: vscode.ProgressLocation.Window, title: "Amanu Doctor" };
    this.text = await vscode.window.withProgress(progress, () => this.examine());
    this.changed.fire(PAGE);
    const document = await vscode.workspace.openTextDocument(PAGE);
    await vscode.window.showTextDocument(document, { preview: true });
    const found = this.setup.find();
    if ("command" in found || !found.install) return;
    if (await vscode.window.showWarningMessage(found.missing, "Install the Daemon"))
      await vscode.commands.executeCommand("amanu.install");
  }

  private async examine(): Promise<string> {
    const found = this.setup.find();
    const settings = vscode.workspace.getConfiguration("amanu.server");
    const asked = { env: { ...env(), NO_COLOR: "1" }, signal: AbortSignal.timeout(WITHIN) };
    return report({
      extension: String((this.context.extension.packageJSON as { version: string }).version),
      bundled: this.setup.bundle?.version,
      editor: `${vscode.env.appName} ${vscode.version}`,
      remote: vscode.env.remoteName,
      trusted: vscode.workspace.isTrusted,
      folders: roots(),
      found,
      connection: this.daemon.connection,
      settings: settings.get<Record<string, string>>("environment", {}),
      daemon: "command" in found ? await run(found.command, ["doctor"], asked) : undefined,
    });
  }
}
