import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";
import { Approvals } from "./approvals";
import { apply } from "./apply";
import { Panel } from "./chat/panel";
import { Daemon, roots } from "./client";
import { commands } from "./commands";
import { Context } from "./context";
import { environment, findDaemon } from "./daemon";
import { Desk } from "./desk";
import { language } from "./language";
import { BASE, PROPOSED, Proposals } from "./proposals";
import { Review } from "./review";
import { Status } from "./status";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Amanu", { log: true });
  const daemon = new Daemon(
    () => resolve(context),
    log,
    {
      "amanu/event": (message) => desk.receive(message),
      "amanu/session/listChanged": () => listSoon(),
    },
    { "amanu/editor/apply": apply, ...language },
  );
  const desk = new Desk(daemon, context.workspaceState);
  const looking = new Context(daemon, context.workspaceState);
  const proposals = new Proposals(desk);
  const review = new Review(desk, proposals);
  const panel = new Panel(context.extensionUri, desk, daemon, looking, (proposalId, path) =>
    review.openDiff(proposalId, path),
  );
  const approvals = new Approvals(desk, daemon, (proposalId) => review.openDiff(proposalId));
  const listSoon = gathered(() => panel.listSessions());

  context.subscriptions.push(
    log,
    daemon,
    desk,
    review,
    panel,
    looking,
    new Status(desk, daemon, (waiting) => panel.badge(waiting)),
    vscode.window.registerWebviewViewProvider("amanu.chat", panel),
    vscode.workspace.registerFileSystemProvider(PROPOSED, proposals, { isCaseSensitive: true }),
    vscode.workspace.registerTextDocumentContentProvider(BASE, proposals),
    ...commands(desk, daemon, panel, approvals, log),
    daemon.onConnection(({ status }) => {
      if (status === "ready") void desk.attempt(() => desk.connected());
    }),
    desk.onEvent(({ event }) => {
      const wanted = vscode.workspace.getConfiguration("amanu").get<boolean>("openDiffs", false);
      if (wanted && event.kind === "approvalRequested" && event.approval.proposalId !== null)
        void review.openDiff(event.approval.proposalId, undefined, true);
    }),
    // what the daemon hears at the start has changed
    vscode.workspace.onDidGrantWorkspaceTrust(() => daemon.restart()),
    vscode.workspace.onDidChangeConfiguration(() => daemon.reconsider()),
  );
  void daemon.start();
}

/** What to start, or why nothing can be. */
function resolve(context: vscode.ExtensionContext): Executable | { missing: string } {
  const settings = vscode.workspace.getConfiguration("amanu.server");
  const env = environment(settings.get<Record<string, string>>("environment", {}));
  const found = findDaemon({
    setting: settings.get<string>("path", ""),
    storage: context.globalStorageUri.fsPath,
    path: env.PATH ?? env.Path ?? "",
    folders: roots(),
    windows: process.platform === "win32",
  });
  if ("missing" in found) return found;
  return { command: found.command, args: ["serve"], options: { cwd: homedir(), env } };
}

/** Milliseconds in which calls become one. */
const GATHER = 300;

function gathered(work: () => Promise<unknown>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      work().catch(() => undefined); // the list is asked for again when it is opened
    }, GATHER);
  };
}
