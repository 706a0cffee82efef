import * as vscode from "vscode";
import { type Daemon, roots } from "./client";
import type { Desks } from "./desks";
import type { Pages } from "./pages";
import { report } from "./report";
import { run } from "./run";
import { env, type Setup } from "./setup";

const PAGE = "Amanu Doctor.txt";
/** Milliseconds the daemon's own doctor may take. */
const WITHIN = 60_000;

/** *Amanu: Doctor*: what the extension knows and what `amanu doctor` says, on a page nobody has to save. */
export class Doctor {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly desks: Desks,
    private readonly daemon: Daemon,
    private readonly setup: Setup,
    private readonly pages: Pages,
  ) {}

  async show(): Promise<void> {
    const progress = { location: vscode.ProgressLocation.Window, title: "Amanu Doctor" };
    await this.pages.show(PAGE, await vscode.window.withProgress(progress, () => this.examine()));
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
      sandbox: this.desks.state.sandbox,
      settings: settings.get<Record<string, string>>("environment", {}),
      daemon: "command" in found ? await run(found.command, ["doctor"], asked) : undefined,
    });
  }
}
