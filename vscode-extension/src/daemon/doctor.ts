import * as vscode from "vscode";
import { type Daemon, roots } from "./client";
import type { OpenChats } from "../chat/openChats";
import type { Pages } from "../editor/pages";
import { homedir } from "node:os";
import { type Known, problemReport, report } from "./report";
import { run } from "./run";
import { env, type Setup } from "./setup";

const PAGE = "Amanu Doctor.txt";
const REPORT = "Amanu Report.md";
/** Milliseconds the daemon's own doctor may take. */
const WITHIN = 60_000;

/** *Amanu: Doctor*: what the extension knows and what `amanu doctor` says, on a page nobody has to save. */
export class Doctor {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly openChats: OpenChats,
    private readonly daemon: Daemon,
    private readonly setup: Setup,
    private readonly pages: Pages,
  ) {}

  async show(): Promise<void> {
    const progress = { location: vscode.ProgressLocation.Window, title: "Amanu Doctor" };
    const known = await vscode.window.withProgress(progress, () => this.examine(["doctor"]));
    await this.pages.show(PAGE, report(known));
    const found = this.setup.find();
    if ("command" in found || !found.install) return;
    if (await vscode.window.showWarningMessage(found.missing, "Install the Daemon"))
      await vscode.commands.executeCommand("amanu.install");
  }

  /** *Amanu: Report a Problem*: nothing is sent, and no file is written. */
  async report(): Promise<void> {
    const progress = { location: vscode.ProgressLocation.Window, title: "Amanu: Report a Problem" };
    const known = await vscode.window.withProgress(progress, () => this.examine(["doctor", "--report"]));
    await this.pages.show(REPORT, problemReport(known, homedir()), "markdown");
  }

  private async examine(verb: string[]): Promise<Known> {
    const found = this.setup.find();
    const settings = vscode.workspace.getConfiguration("amanu.server");
    const asked = { env: { ...env(), NO_COLOR: "1" }, signal: AbortSignal.timeout(WITHIN) };
    return {
      extension: String((this.context.extension.packageJSON as { version: string }).version),
      bundled: this.setup.bundle?.version,
      editor: `${vscode.env.appName} ${vscode.version}`,
      remote: vscode.env.remoteName,
      trusted: vscode.workspace.isTrusted,
      folders: roots(),
      found,
      connection: this.daemon.connection,
      sandbox: this.openChats.state.sandbox,
      settings: settings.get<Record<string, string>>("environment", {}),
      daemon: "command" in found ? await run(found.command, verb, asked) : undefined,
    };
  }
}
