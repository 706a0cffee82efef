import * as vscode from "vscode";
import { advice } from "../daemon/advice";
import { page } from "../chat/page";
import { type Daemon, text } from "../daemon/client";
import type { OpenChats } from "../chat/openChats";
import type { Pages } from "../editor/pages";
import type { McpServer } from "../protocol";
import { run } from "../daemon/run";
import { env, type Setup } from "../daemon/setup";
import { oneLine, visible } from "../editor/visible";
import type { ToServersHost, ToServersPage, Wish } from "./messages";
import type { Servers } from "./servers";

/** Milliseconds the daemon's command may take to print a log. */
const WITHIN = 20_000;
const LOG_LINES = "400";
const STALE = "It has changed since you saw it, so nothing was done. Review it again.";

/** *Amanu: MCP Servers*: a page with every server of the session's folders, and the user's decisions on them. */
export class ServersPage implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private ready = false;
  private wanted: string | undefined;
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly folder: vscode.Uri,
    private readonly openChats: OpenChats,
    private readonly daemon: Daemon,
    private readonly servers: Servers,
    private readonly setup: Setup,
    private readonly pages: Pages,
  ) {
    this.subscription = servers.onChanged(() => this.draw());
  }

  /** Show the page, and on it a server. */
  async show(name?: string): Promise<void> {
    await this.openChats.active.begin(); // servers are listed for a session
    this.wanted = name;
    if (this.panel === undefined) this.open();
    else this.panel.reveal();
    await this.servers.refresh();
    this.draw();
  }

  dispose(): void {
    this.subscription.dispose();
    this.panel?.dispose();
  }

  private open(): void {
    const dist = vscode.Uri.joinPath(this.folder, "dist", "mcp");
    const panel = vscode.window.createWebviewPanel("amanu.mcp", "MCP Servers", vscode.ViewColumn.Active, {
      enableScripts: true,
      enableCommandUris: false,
      localResourceRoots: [dist],
    });
    this.panel = panel;
    panel.webview.onDidReceiveMessage((message: ToServersHost) => this.receive(message));
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.ready = false;
    });
    const uri = (name: string) => panel.webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    panel.webview.html = page(uri("main.js"), uri("mcp.css"), panel.webview.cspSource);
  }

  private draw(): void {
    if (!this.ready) return;
    const { servers, deferred, summary } = this.servers.list;
    this.post({ type: "servers", servers, deferred, nothing: servers.length === 0 ? advice(summary) : "" });
    if (this.wanted !== undefined) this.post({ type: "show", name: this.wanted });
    this.wanted = undefined;
  }

  private post(message: ToServersPage): void {
    void this.panel?.webview.postMessage(message);
  }

  private async receive(message: ToServersHost): Promise<void> {
    if (message.type === "ready") {
      this.ready = true;
      return this.draw();
    }
    const { name } = message;
    try {
      const said = await this.carryOut(message);
      const [first = ""] = said.split("\n"); // all else the page shows
      this.post({ type: "told", name, level: "info", text: first });
      await this.servers.refresh();
    } catch (error) {
      this.post({ type: "told", name, level: "error", text: text(error) });
    }
  }

  /** Do it; returns what came of it, in words. What the page says was seen counts only if it is what we know. */
  private async carryOut(wish: Wish): Promise<string> {
    const { sessionId } = this.openChats.state;
    const { name } = wish;
    const server = this.servers.list.servers.find((each) => each.name === name);
    if (server === undefined) throw new Error(`There is no MCP server ${oneLine(name)} here.`);
    switch (wish.type) {
      case "approve": {
        const { digest } = server;
        if (wish.digest !== digest) throw new Error(STALE);
        if (!(await agreed(`Approve the MCP server ${oneLine(name)}?`, start(server), "Approve"))) return "";
        return (await this.daemon.request("amanu/mcp/approve", { sessionId, name, digest })).summary;
      }
      case "approveTools": {
        const { toolsDigest, changedTools } = server;
        if (wish.digest !== toolsDigest) throw new Error(STALE);
        const names = changedTools.map((tool) => oneLine(tool.name)).join(", ");
        const question = `Approve the new or changed tools of ${oneLine(name)}?`;
        const detail = `${names}\n\nTheir text goes to the model as the page shows it.`;
        if (!(await agreed(question, detail, "Approve tools"))) return "";
        return (await this.daemon.request("amanu/mcp/approveTools", { sessionId, name, toolsDigest }))
          .summary;
      }
      case "turnOff":
        return (await this.daemon.request("amanu/mcp/turnOff", { sessionId, name })).summary;
      case "restart":
        return (await this.daemon.request("amanu/mcp/restart", { sessionId, name })).summary;
      case "signIn": {
        const { url, summary } = await this.daemon.request("amanu/mcp/signIn", { sessionId, name });
        if (url !== null && /^https?:\/\//i.test(url)) await vscode.env.openExternal(vscode.Uri.parse(url));
        return summary;
      }
      case "logs":
        await this.logs(name);
        return "";
    }
  }

  /** What the server wrote to its standard error, on a page of its own. */
  private async logs(name: string): Promise<void> {
    const found = this.setup.find();
    if (!("command" in found)) throw new Error(found.missing);
    const asked = { env: { ...env(), NO_COLOR: "1" }, signal: AbortSignal.timeout(WITHIN) };
    const { output } = await run(found.command, ["mcp", "logs", "--lines", LOG_LINES, name], asked);
    await this.pages.show(`Amanu MCP ${oneLine(name)}.log`, `${visible(output)}\n`);
  }
}

/** What a yes starts: all of it, for nobody reads it elsewhere. */
function start({ target, access, source }: McpServer): string {
  return [visible(target), visible(access), `Configured in: ${visible(source)}`].join("\n\n");
}

/** Asked by VS Code itself: the page draws what strangers wrote. */
async function agreed(question: string, detail: string, yes: string): Promise<boolean> {
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
}
