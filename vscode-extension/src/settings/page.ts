import { dirname } from "node:path";
import * as vscode from "vscode";
import { page } from "../chat/page";
import { type Daemon, roots, text } from "../daemon/client";
import type { ModelPicker } from "../models/picker";
import type { Elsewhere, ToSettingsHost, ToSettingsPage } from "./messages";

/** About what a wish was: the key of a setting, or this. */
export const RULES = "rules";

const COMMANDS: Record<Elsewhere, string> = {
  keys: "amanu.setKey",
  mcp: "amanu.mcp",
  restart: "amanu.restart",
};

/** *Amanu: Settings*: a page over the user's `config.toml` and rules. The daemon checks and writes. */
export class SettingsPage implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private ready = false;
  private path = "";
  private readonly saved: vscode.Disposable;

  constructor(
    private readonly folder: vscode.Uri,
    private readonly daemon: Daemon,
    private readonly models: ModelPicker,
    /** The models there are, or the default one, may be others now. */
    private readonly changed: () => Promise<void>,
  ) {
    this.saved = vscode.workspace.onDidSaveTextDocument(({ uri }) => {
      if (uri.fsPath === this.path) void this.draw();
    });
  }

  async show(): Promise<void> {
    await this.daemon.settled();
    if (this.panel !== undefined) {
      this.panel.reveal();
      return this.draw();
    }
    const dist = vscode.Uri.joinPath(this.folder, "dist", "settings");
    const panel = vscode.window.createWebviewPanel(
      "amanu.settings",
      "Amanu Settings",
      vscode.ViewColumn.Active,
      {
        enableScripts: true,
        enableCommandUris: false,
        localResourceRoots: [dist],
      },
    );
    this.panel = panel;
    panel.webview.onDidReceiveMessage((message: ToSettingsHost) => this.receive(message));
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.ready = false;
    });
    const uri = (name: string) => panel.webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    panel.webview.html = page(uri("main.js"), uri("settings.css"), panel.webview.cspSource);
  }

  dispose(): void {
    this.saved.dispose();
    this.panel?.dispose();
  }

  private async draw(): Promise<void> {
    if (!this.ready) return;
    try {
      const { path, settings } = await this.daemon.request("amanu/settings/list", {});
      this.path = path;
      const { rules } = await this.daemon.request("amanu/rule/list", { roots: roots() });
      this.post({ type: "settings", path, settings, rules });
    } catch (error) {
      this.post({ type: "unreadable", text: text(error) });
    }
  }

  private post(message: ToSettingsPage): void {
    void this.panel?.webview.postMessage(message);
  }

  private async receive(message: ToSettingsHost): Promise<void> {
    const about = "key" in message ? message.key : RULES;
    try {
      const summary = await this.carryOut(message);
      if (summary === undefined) return;
      await this.draw();
      this.post({ type: "told", about, level: "info", text: summary });
    } catch (error) {
      await this.draw(); // what the user entered is not what holds
      this.post({ type: "told", about, level: "error", text: text(error) });
    }
  }

  /** Do it; returns what came of it, in words, when something was changed. */
  private async carryOut(wish: ToSettingsHost): Promise<string | undefined> {
    switch (wish.type) {
      case "ready":
        this.ready = true;
        await this.draw();
        return undefined;
      case "set":
        return this.set(wish.key, wish.value);
      case "choose": {
        const modelId = await this.models.choose(`Model for ${wish.key}`);
        return modelId && this.set(wish.key, modelId);
      }
      case "open":
        await this.open(wish.line);
        return undefined;
      case "addRule": {
        const { decision, rule } = wish;
        return (await this.daemon.request("amanu/rule/add", { decision, rule })).summary;
      }
      case "removeRule": {
        const { type: _, ...rule } = wish;
        return (await this.daemon.request("amanu/rule/remove", rule)).summary;
      }
      case "preview": {
        const { rule, decision } = wish;
        const { valid, explanation } = await this.daemon.request("amanu/rule/preview", { rule, decision });
        this.post({ type: "preview", rule, valid, text: explanation });
        return undefined;
      }
      case "go":
        if (Object.hasOwn(COMMANDS, wish.to)) await vscode.commands.executeCommand(COMMANDS[wish.to]);
        return undefined;
    }
  }

  private async set(key: string, value: unknown): Promise<string> {
    const { summary } = await this.daemon.request("amanu/settings/set", { key, value });
    await this.changed();
    return summary;
  }

  /** Show the file at a line; one that does not exist yet is made, empty. */
  private async open(line: number | null): Promise<void> {
    if (this.path === "") return;
    const uri = vscode.Uri.file(this.path);
    const exists = await Promise.resolve(vscode.workspace.fs.stat(uri)).catch(() => undefined);
    if (exists === undefined) {
      await vscode.workspace.fs.createDirectory(vscode.Uri.file(dirname(this.path)));
      await vscode.workspace.fs.writeFile(uri, new Uint8Array());
    }
    const at = line ?? 0;
    await vscode.window.showTextDocument(uri, { selection: new vscode.Range(at, 0, at, 0) });
  }
}
