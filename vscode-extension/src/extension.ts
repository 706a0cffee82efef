import * as vscode from "vscode";
import { Actions } from "./actions";
import { Approvals } from "./approvals";
import { Questions } from "./questions";
import { Running } from "./running";
import { apply } from "./apply";
import { showAudit } from "./audit";
import { BaseTexts } from "./baseTexts";
import { Chats } from "./chat/chats";
import { messageMenu } from "./chat/messageMenu";
import { TAB } from "./chat/tab";
import { Daemon, roots, text } from "./client";
import { commands } from "./commands";
import { Comments } from "./comments";
import { writeCommitMessage } from "./commit";
import { Context } from "./context";
import { Desk } from "./desk";
import { Desks } from "./desks";
import { Doctor } from "./doctor";
import { EditorModels } from "./editorModels";
import { Edits } from "./edits";
import { Ended } from "./ended";
import { Findings } from "./findings";
import { Inline } from "./inline";
import { Highlighter } from "./highlight/highlighter";
import { language } from "./language";
import { ServersPage } from "./mcp/page";
import { Servers } from "./mcp/servers";
import { ModelList } from "./modelList";
import { ModelPicker } from "./modelPicker";
import { Overview } from "./overview";
import { Pages } from "./pages";
import { openPlan } from "./plan";
import { BASE, PROPOSED, Proposals } from "./proposals";
import { Review } from "./review";
import { Changes } from "./scm";
import { Sessions } from "./sessions";
import { SettingsPage } from "./settings/page";
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
      "amanu/event": (message) => sessions.receive(message),
      "amanu/session/listChanged": () => overview.soon(),
      "amanu/mcp/changed": () => servers.soon(),
    },
    {
      "amanu/editor/apply": apply,
      ...language,
      "amanu/model/run": (params, token) => editorModels.run(params, token),
    },
  );
  const shown = new Shown(context.globalStorageUri.fsPath, roots(), context.workspaceState);
  const sessions = new Sessions(daemon);
  const desks = new Desks();
  const desk = new Desk(daemon, sessions, shown);
  desks.add(desk);
  const overview = new Overview(daemon, sessions, desks, (sessionId) => chats.showSession(sessionId));
  const servers = new Servers(daemon, desks);
  const models = new ModelList(daemon);
  const editorModels = new EditorModels(daemon, () => models.refresh(), log);
  const looking = new Context(daemon, context.workspaceState);
  const edits = new Edits(
    sessions,
    desks,
    daemon,
    (sessionId, text, attachments) => void chats.giveBack(sessionId, text, attachments),
  );
  const proposals = new Proposals(sessions, desks, edits, new BaseTexts(daemon));
  const review = new Review(sessions, desks, proposals, edits);
  const pages = new Pages();
  const highlighter = new Highlighter(context.extensionUri);
  const chats = new Chats(
    {
      folder: context.extensionUri,
      daemon,
      desks,
      context: looking,
      edits,
      overview,
      models,
      highlighter,
      openDiff: (proposalId, path, rowId) => review.openDiff(proposalId, path, false, rowId),
      audit: (call) => showAudit(desks, daemon, pages, call),
      showCommand: (sessionId, toolCallId) => running.showCommand(sessionId, toolCallId),
      log,
    },
    sessions,
    desk,
    context.workspaceState,
  );
  review.onCame((words) => chats.announce(words));
  const picker = new ModelPicker(desks, daemon, () => models.refresh());
  const settings = new SettingsPage(context.extensionUri, daemon, picker, () => models.refresh());
  const mcp = new ServersPage(context.extensionUri, desks, daemon, servers, setup, pages);
  const shownPlans = new Set<string>();
  const approvals = new Approvals(desks, daemon, pages, (proposalId) => review.openDiff(proposalId));
  const running = new Running(desks, sessions, daemon, servers, (sessionId) => chats.showSession(sessionId));
  const doctor = new Doctor(context, desks, daemon, setup, pages);
  const trust = new Trust(desks, daemon, pages);

  context.subscriptions.push(
    log,
    setup,
    daemon,
    desks,
    sessions,
    shown,
    highlighter,
    overview,
    review,
    new Changes(sessions, proposals),
    new Comments(sessions, desks, context.workspaceState, () => looking.flush()),
    new Actions(
      {
        say: async (text, attachments) => {
          await chats.show();
          looking.flush();
          await desks.active.prompt(text, attachments, desks.state.turn === null ? "send" : "steer");
        },
        attach: (attachment) => chats.attachToPrompt(attachment),
      },
      (work) => desks.attempt(work),
    ),
    new Inline(daemon, sessions, desks, {
      diff: (proposalId) => review.openDiff(proposalId),
      reject: (proposalId) => review.reject(proposalId),
      chat: (sessionId) => chats.showSession(sessionId),
    }),
    vscode.commands.registerCommand("amanu.commitMessage", (given?: { rootUri?: vscode.Uri }) =>
      desks.attempt(() => writeCommitMessage(daemon, desks.state.sessionId, given)),
    ),
    new Findings(sessions),
    chats,
    models,
    editorModels,
    looking,
    pages,
    servers,
    mcp,
    settings,
    vscode.commands.registerCommand("amanu.settings", () => desks.attempt(() => settings.show())),
    running,
    new Ended(overview, {
      shows: (sessionId) => chats.shows(sessionId),
      lastTurn: (sessionId) => sessions.get(sessionId)?.state.lastTurn ?? undefined,
      show: (sessionId) => void desks.attempt(() => chats.showSession(sessionId)),
    }),
    vscode.commands.registerCommand("amanu.mcp", (name?: unknown) =>
      desks.attempt(() => mcp.show(typeof name === "string" ? name : undefined)),
    ),
    new Status(desks, sessions, daemon, overview, (waiting) => chats.badge(waiting)),
    vscode.window.registerWebviewViewProvider("amanu.chat", chats),
    vscode.window.registerWebviewPanelSerializer(TAB, chats),
    vscode.workspace.registerFileSystemProvider(PROPOSED, proposals, { isCaseSensitive: true }),
    vscode.workspace.registerFileSystemProvider(BASE, proposals, { isCaseSensitive: true, isReadonly: true }),
    vscode.workspace.onDidOpenTextDocument((document) => proposals.opened(document)),
    ...messageMenu(desks, chats, edits),
    ...commands(
      desks,
      daemon,
      chats,
      models,
      picker,
      overview,
      approvals,
      new Questions(desks),
      setup,
      doctor,
      trust,
      log,
    ),
    daemon.onConnection(({ status }) => {
      if (status !== "ready") return;
      void Promise.all(desks.open.map((each) => each.attempt(() => each.connected()))).then(() =>
        overview.soon(),
      );
      void sessions.catchUp();
      servers.soon();
    }),
    sessions.onEvent(({ sessionId, event }) => {
      if (desks.showing(sessionId) === undefined) return;
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
