import * as vscode from "vscode";
import { Actions } from "./actions";
import { Approvals } from "./approvals";
import { Questions } from "./questions";
import { Running } from "./running";
import { apply } from "./apply";
import { showAudit } from "./audit";
import { Panel } from "./chat/panel";
import { Daemon, roots, text } from "./client";
import { commands } from "./commands";
import { Comments } from "./comments";
import { Context } from "./context";
import { Desk } from "./desk";
import { Doctor } from "./doctor";
import { Edits } from "./edits";
import { Findings } from "./findings";
import { Highlighter } from "./highlight/highlighter";
import { language } from "./language";
import { ServersPage } from "./mcp/page";
import { Servers } from "./mcp/servers";
import { Overview } from "./overview";
import { Pages } from "./pages";
import { openPlan } from "./plan";
import { BASE, PROPOSED, Proposals } from "./proposals";
import { Review } from "./review";
import { Changes } from "./scm";
import { Setup } from "./setup";
import { Shown } from "./shown";
import { Status } from "./status";
import { Trust } from "./trust";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Amanu", { log: true });
  const setup = new Setup(context, log);
  const daemon = new Daemon(
    () => setup.resolve(),
    log,
    {
      "amanu/event": (message) => desk.receive(message),
      "amanu/session/listChanged": () => overview.soon(),
      "amanu/mcp/changed": () => servers.soon(),
    },
    { "amanu/editor/apply": apply, ...language },
  );
  const shown = new Shown(context.globalStorageUri.fsPath, roots(), context.workspaceState);
  const desk = new Desk(daemon, shown);
  const overview = new Overview(daemon, desk, (sessionId) => panel.showSession(sessionId));
  const servers = new Servers(daemon, desk);
  const looking = new Context(daemon, context.workspaceState);
  const edits = new Edits(desk, daemon, (text, attachments) => {
    void vscode.commands.executeCommand("amanu.chat.focus");
    panel.post({ type: "giveBack", text, attachments });
    panel.post({ type: "focus" });
  });
  const proposals = new Proposals(desk, edits);
  const review = new Review(desk, proposals, edits);
  const pages = new Pages();
  const highlighter = new Highlighter(context.extensionUri);
  const panel = new Panel(
    context.extensionUri,
    desk,
    daemon,
    looking,
    context.workspaceState,
    edits,
    overview,
    (proposalId, path) => review.openDiff(proposalId, path),
    (call) => showAudit(desk, daemon, pages, call),
    highlighter,
    log,
  );
  const mcp = new ServersPage(context.extensionUri, desk, daemon, servers, setup, pages);
  const shownPlans = new Set<string>();
  const approvals = new Approvals(desk, daemon, pages, (proposalId) => review.openDiff(proposalId));
  const doctor = new Doctor(context, desk, daemon, setup, pages);
  const trust = new Trust(desk, daemon, pages);

  context.subscriptions.push(
    log,
    setup,
    daemon,
    desk,
    shown,
    highlighter,
    overview,
    review,
    new Changes(desk, proposals),
    new Comments(desk, proposals, context.workspaceState, () => looking.flush()),
    new Actions(
      {
        say: async (text, attachments) => {
          await vscode.commands.executeCommand("amanu.chat.focus");
          looking.flush();
          await desk.prompt(text, attachments, desk.state.turn === null ? "send" : "steer");
        },
        attach: (attachment) => panel.attachToPrompt(attachment),
      },
      (work) => desk.attempt(work),
    ),
    new Findings(desk),
    panel,
    looking,
    pages,
    servers,
    mcp,
    new Running(desk, daemon, servers, (sessionId) => panel.showSession(sessionId)),
    vscode.commands.registerCommand("amanu.mcp", (name?: unknown) =>
      desk.attempt(() => mcp.show(typeof name === "string" ? name : undefined)),
    ),
    new Status(desk, daemon, overview, (waiting) => panel.badge(waiting)),
    vscode.window.registerWebviewViewProvider("amanu.chat", panel),
    vscode.workspace.registerFileSystemProvider(PROPOSED, proposals, { isCaseSensitive: true }),
    vscode.workspace.registerTextDocumentContentProvider(BASE, proposals),
    vscode.workspace.onDidOpenTextDocument((document) => proposals.opened(document)),
    ...commands(desk, daemon, panel, overview, approvals, new Questions(desk), setup, doctor, trust, log),
    daemon.onConnection(({ status }) => {
      if (status === "ready") void desk.attempt(() => desk.connected()).then(() => overview.soon());
      if (status === "ready") servers.soon();
    }),
    desk.onEvent(({ event }) => {
      const asked = event.kind === "approvalRequested" ? event.approval : undefined;
      if (asked?.document && !shownPlans.has(asked.toolCallId)) {
        shownPlans.add(asked.toolCallId); // once: what the user closed stays closed
        void openPlan(asked);
      }
      const wanted = vscode.workspace.getConfiguration("amanu").get<boolean>("openDiffs", false);
      if (wanted && event.kind === "approvalRequested" && event.approval.proposalId !== null)
        void review.openDiff(event.approval.proposalId, undefined, true);
    }),
    // what the daemon hears at the start has changed
    vscode.workspace.onDidGrantWorkspaceTrust(() => daemon.restart()),
    vscode.workspace.onDidChangeConfiguration(() => daemon.reconsider()),
  );
  // the walkthrough is offered from now on; without that, VS Code would open it by itself after the installation
  void vscode.commands.executeCommand("setContext", "amanu.active", true);
  void setup
    .update(daemon)
    .catch((error: unknown) => log.error(text(error)))
    .then(() => daemon.start());
}
