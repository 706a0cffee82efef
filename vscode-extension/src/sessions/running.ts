import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import type { OpenChats } from "../chat/openChats";
import { CallTerminals } from "./callTerminals";
import { waitsForUser, works } from "./fold";
import { JobTerminals } from "./jobs";
import { headline, needsUser, type Servers } from "../mcp/servers";
import type { Event, Item, Job, McpServer, SubAgent, ToolCall } from "../protocol";
import type { Sessions } from "./sessions";
import { oneLine, plain } from "../editor/visible";

const STOP: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("debug-stop"), tooltip: "Stop" };
/** The tool that runs commands. */
const COMMAND = "run_shell_command";
/** Characters of a line of the list. */
const LINE = 200;

/** A row of the list: choosing it shows more, its button stops it. */
interface Row extends vscode.QuickPickItem {
  id?: string;
  show?(): unknown;
  stop?(): Promise<unknown>;
}

/** What goes on beside the conversation: sub-agents, background commands, MCP servers. How much, in the status bar; a list. */
export class Running implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("amanu.jobs", vscode.StatusBarAlignment.Left, -1);
  private readonly terminals: JobTerminals;
  private readonly calls: CallTerminals;
  private readonly subscriptions: vscode.Disposable[];
  /** Draws the list anew, while it is open. */
  private redraw: (() => void) | undefined;

  constructor(
    private readonly openChats: OpenChats,
    private readonly sessions: Sessions,
    private readonly daemon: Daemon,
    private readonly servers: Servers,
    private readonly open: (sessionId: string) => Promise<void>,
  ) {
    this.terminals = new JobTerminals(sessions, daemon);
    this.calls = new CallTerminals(sessions, daemon);
    this.item.name = "Amanu: Running Agents, Commands and Servers";
    this.item.command = "amanu.jobs";
    this.subscriptions = [
      this.item,
      this.terminals,
      this.calls,
      openChats.onReset(() => this.changed()),
      openChats.onEvent(({ event }) => {
        if (isAbout(event)) this.changed();
      }),
      servers.onChanged(() => this.changed()),
      vscode.commands.registerCommand("amanu.jobs", () => openChats.attempt(async () => this.list())),
    ];
    this.changed();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  /** Show what a command prints in a terminal tab, whether its turn waits for it or not. */
  showCommand(sessionId: string, callId: string): void {
    const job = this.sessions.get(sessionId)?.state.jobs.find(({ toolCallId }) => toolCallId === callId);
    if (job === undefined) this.calls.show(sessionId, callId);
    else this.terminals.show(sessionId, job);
  }

  private changed(): void {
    const { jobs, agents } = this.openChats.state;
    const { servers } = this.servers.list;
    const going = [
      ...agents.filter(works).map(agentLine),
      ...jobs.filter(runs).map((job) => `${job.jobId}: ${oneLine(job.title)} · ${oneLine(job.summary)}`),
    ];
    const waiting = servers.filter(needsUser);
    const parts = [
      going.length > 0 ? `$(server-process) ${going.length}` : "",
      waiting.length > 0 ? `$(plug) ${waiting.length}` : "",
    ].filter(Boolean);
    if (parts.length > 0) {
      this.item.text = parts.join(" ");
      this.item.tooltip = [
        ...(going.length > 0 ? [`Agents and commands running: ${going.length}`, ...going] : []),
        ...(waiting.length > 0 ? ["MCP servers that need attention"] : []),
        ...waiting.map((server) => oneLine(headline(server), LINE)),
      ].join("\n");
      this.item.show();
    } else this.item.hide();
    this.redraw?.();
  }

  private list(): void {
    if (this.rows().length === 0)
      return this.openChats.tell({ level: "info", text: "Nothing else is running in this session." });
    const pick = vscode.window.createQuickPick<Row>();
    pick.title = "Agents, Commands, Servers";
    pick.placeholder =
      "Choose an agent to open its session, a command to see its output, a server for its page";
    pick.keepScrollPosition = true;
    this.redraw = () => {
      const active = pick.activeItems[0]?.id;
      pick.items = this.rows();
      pick.activeItems = pick.items.filter(({ id }) => id !== undefined && id === active);
    };
    this.redraw();
    pick.onDidTriggerItemButton(({ item }) => {
      pick.hide();
      void this.openChats.attempt(async () => item.stop?.());
    });
    pick.onDidAccept(() => {
      const [chosen] = pick.selectedItems;
      pick.hide();
      void this.openChats.attempt(async () => chosen?.show?.());
    });
    pick.onDidHide(() => {
      this.redraw = undefined;
      pick.dispose();
    });
    pick.show();
  }

  private rows(): Row[] {
    const { jobs, agents } = this.openChats.state;
    return [
      ...group("agents", agents.toReversed(), (agent) => this.agentRow(agent)),
      ...group("commands", this.openChats.state.items.filter(executes), (call) => this.callRow(call)),
      ...group("background commands", jobs.toReversed(), (job) => this.jobRow(job)),
      ...group("MCP servers", this.servers.list.servers, serverRow),
    ];
  }

  private agentRow(agent: SubAgent): Row {
    const { sessionId } = this.openChats.state;
    const { agentId } = agent;
    const going = works(agent);
    return {
      id: agentId,
      label: `${going ? "$(play)" : "$(circle-slash)"} ${plain(`${agent.name}: ${agent.description}`)}`,
      description: plain(`${agentId} · ${agent.summary}`),
      detail: waitsForUser(this.openChats.state, agent) ? "Waiting for your answer" : plain(agent.activity),
      buttons: going ? [STOP] : [],
      show: () => this.open(agent.sessionId),
      stop: () => this.daemon.request("amanu/agent/stop", { sessionId, agentId }),
    };
  }

  private callRow({ itemId, title }: ToolCall): Row {
    return {
      id: itemId,
      label: `$(play) ${plain(title)}`,
      description: "the turn is waiting for it",
      buttons: [STOP],
      show: () => this.showCommand(this.openChats.state.sessionId, itemId),
      stop: () => this.openChats.active.stop(),
    };
  }

  private jobRow(job: Job): Row {
    const { sessionId } = this.openChats.state;
    const { jobId } = job;
    return {
      id: jobId,
      label: `${runs(job) ? "$(play)" : "$(circle-slash)"} ${plain(job.title)}`,
      description: `${jobId} · ${plain(job.summary)}${runs(job) ? ` for ${ran(job)}` : ""}`,
      detail: plain(job.lastLine),
      buttons: runs(job) ? [STOP] : [],
      show: () => this.terminals.show(sessionId, job),
      stop: () => this.daemon.request("amanu/job/stop", { sessionId, jobId }),
    };
  }
}

const SERVERS: Record<McpServer["state"], string> = {
  unapproved: "$(question)",
  off: "$(circle-slash)",
  configured: "$(circle-outline)",
  starting: "$(loading~spin)",
  ready: "$(pass)",
  failed: "$(error)",
  needsSignIn: "$(question)",
};

function serverRow(server: McpServer): Row {
  return {
    id: `server ${server.name}`,
    label: `${SERVERS[server.state]} ${plain(headline(server), LINE)}`,
    detail: plain(server.reason, LINE),
    show: () => vscode.commands.executeCommand("amanu.mcp", server.name),
  };
}

function group<T>(label: string, list: T[], row: (one: T) => Row): Row[] {
  return list.length === 0 ? [] : [{ label, kind: vscode.QuickPickItemKind.Separator }, ...list.map(row)];
}

function agentLine({ agentId, name, description, activity }: SubAgent): string {
  return oneLine([`${agentId}: ${name}: ${description}`, activity].filter(Boolean).join(" · "), LINE);
}

function isAbout({ kind }: Event): boolean {
  return kind === "agentChanged" || kind === "jobChanged" || kind === "jobProgress";
}

/** A command that a turn waits for. */
function executes(item: Item): item is ToolCall {
  return item.kind === "toolCall" && item.tool === COMMAND && item.state === "executing";
}

function runs({ state }: Job): boolean {
  return state === "running";
}

function ran(job: Job): string {
  const seconds = Math.max(0, Math.floor((Date.now() - job.startedAt) / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
