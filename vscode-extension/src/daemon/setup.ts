import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";
import { type NotYet, roots, text } from "./client";
import { environment, findDaemon, type Found } from "./daemon";
import { forPip, install, InstallFailed, installed, program, readBundle, unsupported } from "./install";
import { findPython, PROBE, type Probe, read } from "./python";
import { run } from "./run";

/** Milliseconds an interpreter may take to say what it is. */
const PROBE_WITHIN = 15_000;

/** The line to the daemon, as far as the set-up is concerned with it. */
interface Line {
  readonly connection: { status: string };
  start(): Promise<void>;
  restart(): Promise<void>;
}

/** Where the daemon is, and how it comes there. */
export class Setup implements vscode.Disposable {
  /** What is being done, while no daemon can be used. */
  private busy = "";
  /** Why the last attempt to install failed. */
  private failure = "";
  private running: Promise<boolean> | undefined;
  private readonly closing = new AbortController();
  /** Aborted when the window closes. */
  readonly closed = this.closing.signal;
  private readonly storage: string;
  readonly bundle;

  constructor(
    context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.storage = context.globalStorageUri.fsPath;
    this.bundle = readBundle(context.extensionPath);
  }

  dispose(): void {
    this.closing.abort();
  }

  /** What to start, or why nothing can be. */
  resolve(): Executable | NotYet {
    if (this.busy) return { missing: this.busy, busy: true, install: false };
    const found = this.find();
    if ("missing" in found)
      return found.install && this.failure ? { ...found, missing: this.failure } : found;
    return { command: found.command, args: ["serve"], options: { cwd: homedir(), env: env() } };
  }

  find(): Found {
    const own = installed(this.storage);
    return findDaemon({
      setting: setting("server.path"),
      installed: own && program(own),
      path: path(),
      folders: roots(),
      windows: process.platform === "win32",
    });
  }

  /** The command *Install the Daemon*. */
  async install(line: Line): Promise<void> {
    const sentence = unsupported(process.platform) ?? this.useless();
    if (sentence !== undefined) {
      const settings = "Open Settings";
      const chosen = await vscode.window.showWarningMessage(
        sentence,
        ...(setting("server.path") ? [settings] : []),
      );
      if (chosen) await vscode.commands.executeCommand("workbench.action.openSettings", "amanu.server.path");
      return;
    }
    const found = this.find();
    const there = "command" in found;
    if (there && this.running === undefined) {
      const question =
        found.from === "storage"
          ? `Amanu's daemon ${this.bundle?.version} is installed already. Install it again?`
          : `Amanu uses ${found.command}, found on PATH. Install a daemon of this extension's own, and use that one instead?`;
      if (!(await vscode.window.showInformationMessage(question, "Install"))) return;
    }
    if (await this.attempt(line, "Installing", !there)) await line.restart();
    else if (line.connection.status !== "ready") await line.start(); // to say what stands in the way
  }

  /** Before the daemon starts: one that this extension installed is brought to the version that comes with it now. */
  async update(line: Line): Promise<void> {
    const own = installed(this.storage);
    const found = this.find();
    if (own && this.bundle && "command" in found && found.from === "storage" && own.id !== this.bundle.id)
      await this.attempt(line, "Updating", true);
  }

  /** True when it is there afterwards. `blocking`: nothing can be used meanwhile. */
  private attempt(line: Line, doing: string, blocking: boolean): Promise<boolean> {
    this.running ??= this.work(line, doing, blocking).finally(() => {
      this.running = undefined;
      this.busy = "";
    });
    return this.running;
  }

  private async work(line: Line, doing: string, blocking: boolean): Promise<boolean> {
    this.failure = "";
    if (blocking) {
      this.busy = `${doing} Amanu's daemon…`;
      await line.start();
    }
    const progress = {
      location: vscode.ProgressLocation.Notification,
      title: `${doing} Amanu's daemon`,
      cancellable: true,
    };
    try {
      return await vscode.window.withProgress(progress, (report, token) => this.perform(report, token));
    } catch (error) {
      this.log.error(error instanceof Error ? error : String(error));
      const sentence = error instanceof InstallFailed ? error.message : `It failed: ${text(error)}`;
      const what =
        doing === "Updating"
          ? "could not be updated; the one installed before is used"
          : "could not be installed";
      this.failure = `Amanu's daemon ${what}. ${sentence}`;
      void this.complain(this.failure);
      return false;
    }
  }

  private async perform(
    report: vscode.Progress<{ message?: string; increment?: number }>,
    token: vscode.CancellationToken,
  ): Promise<boolean> {
    const cancelled = new AbortController();
    token.onCancellationRequested(() => cancelled.abort());
    const signal = AbortSignal.any([cancelled.signal, this.closed]);
    let done = 0;
    const step = (message: string, share: number) => {
      this.log.info(message);
      report.report({ message, increment: Math.max(0, share - done) * 100 });
      done = Math.max(done, share);
    };
    step("Looking for Python", 0);
    const python = await findPython(
      { setting: setting("python"), path: path(), folders: roots(), platform: process.platform },
      probe,
    );
    if ("missing" in python) throw new InstallFailed(python.missing);
    if (this.bundle === undefined) return false; // `useless` has said so
    const proxy = vscode.workspace.getConfiguration("http").inspect<string>("proxy")?.globalValue ?? "";
    const made = await install({
      bundle: this.bundle,
      storage: this.storage,
      python,
      env: forPip(withoutKeys(), proxy),
      signal,
      step,
      log: (said) => this.log.info(said),
      run,
      again: installed(this.storage)?.id === this.bundle.id,
    });
    this.log.info(made === undefined ? "cancelled" : `installed ${made.id} in ${made.folder}`);
    return made !== undefined;
  }

  private async complain(sentence: string): Promise<void> {
    const python = sentence.includes("Install Python") ? ["Get Python"] : [];
    const chosen = await vscode.window.showErrorMessage(sentence, "Try Again", ...python, "Show Logs");
    if (chosen === "Try Again") await vscode.commands.executeCommand("amanu.install");
    if (chosen === "Get Python")
      await vscode.env.openExternal(vscode.Uri.parse("https://www.python.org/downloads/"));
    if (chosen === "Show Logs") this.log.show();
  }

  /** Why installing would change nothing, if so. */
  private useless(): string | undefined {
    if (this.bundle === undefined)
      return "This build of the extension carries no daemon: it was not made by “make vsix”.";
    const path = setting("server.path");
    return path
      ? `The setting amanu.server.path names ${path}, and that one is used. Empty it to use one the extension installs.`
      : undefined;
  }
}

/** The daemon's environment. */
export function env(): Record<string, string> {
  const settings = vscode.workspace.getConfiguration("amanu.server");
  return environment(settings.get<Record<string, string> | null>("environment") ?? {});
}

/** The environment of what sets the daemon up: Python and pip need no keys. */
function withoutKeys(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env()).filter(
      ([name]) => /^PIP_/i.test(name) || !/KEY|TOKEN|SECRET|PASSW|CREDENTIAL/i.test(name),
    ),
  );
}

function setting(name: string): string {
  const value = vscode.workspace.getConfiguration("amanu").get<unknown>(name);
  return typeof value === "string" ? value : ""; // settings are written by hand
}

function path(): string {
  const { PATH, Path } = env();
  return PATH ?? Path ?? "";
}

const probe: Probe = async (command) => {
  const { code, output } = await run(command, PROBE, {
    env: withoutKeys(),
    signal: AbortSignal.timeout(PROBE_WITHIN),
  });
  return code === 0 ? read(output) : undefined;
};
