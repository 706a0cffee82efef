import * as vscode from "vscode";
import { Actions } from "./inline/actions";
import { Approvals } from "./sessions/approvals";
import { Questions } from "./sessions/questions";
import { Running } from "./sessions/running";
import { apply } from "./editor/apply";
import { showAudit } from "./sessions/audit";
import { offerChatKeys } from "./chat/keys";
import { Chats } from "./chat/chats";
import { messageMenu } from "./chat/messageMenu";
import { TAB } from "./chat/tab";
import { Daemon, roots, text } from "./daemon/client";
import { commands } from "./sessions/commands";
import { Comments } from "./review/comments";
import { writeCommitMessage } from "./inline/commit";
import { Context } from "./editor/context";
import { Chat } from "./chat/chat";
import { OpenChats } from "./chat/openChats";
import { Doctor } from "./daemon/doctor";
import { EditorModels } from "./models/editorModels";
import { Edits } from "./review/edits";
import { Ended } from "./sessions/ended";
import { Findings } from "./review/findings";
import { Gutter } from "./review/gutter";
import { Inline } from "./inline/inline";
import { Highlighter } from "./highlight/highlighter";
import { language } from "./editor/language";
import { ServersPage } from "./mcp/page";
import { Servers } from "./mcp/servers";
import { ModelList } from "./models/list";
import { ModelPicker } from "./models/picker";
import { Overview } from "./sessions/overview";
import { Pages } from "./editor/pages";
import { openPlan } from "./sessions/plan";
import { ChangesList } from "./review/list";
import { BASE, PROPOSED, Proposals } from "./review/proposals";
import { Review } from "./review/review";
import { Sessions } from "./sessions/sessions";
import { SettingsPage } from "./settings/page";
import { Setup } from "./daemon/setup";
import { RememberedSession } from "./sessions/rememberedSession";
import { Status } from "./sessions/status";
import { Texts } from "./review/texts";
import { Trust } from "./daemon/trust";

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
  const shown = new RememberedSession(context.globalStorageUri.fsPath, roots(), context.workspaceState);
  const sessions = new Sessions(daemon);
  const openChats = new OpenChats();
  const chat = new Chat(daemon, sessions, shown);
  openChats.add(chat);
  const overview = new Overview(daemon, sessions, openChats, (sessionId) => chats.showSession(sessionId));
  const servers = new Servers(daemon, openChats);
  const models = new ModelList(daemon);
  const editorModels = new EditorModels(daemon, () => models.refresh(), log);
  const looking = new Context(daemon, context.workspaceState);
  const edits = new Edits(
    sessions,
    openChats,
    daemon,
    (sessionId, text, attachments) => void chats.giveBack(sessionId, text, attachments),
  );
  const proposals = new Proposals(sessions, openChats, edits, new Texts(daemon));
  const pages = new Pages();
  const review = new Review(sessions, openChats, proposals, edits, pages);
  const highlighter = new Highlighter(context.extensionUri);
  const chats = new Chats(
    {
      folder: context.extensionUri,
      daemon,
      openChats,
      context: looking,
      edits,
      overview,
      models,
      highlighter,
      openDiff: (proposalId, path, rowId) => review.openDiff(proposalId, path, false, rowId),
      audit: (call) => showAudit(openChats, daemon, pages, call),
      showCommand: (sessionId, toolCallId) => running.showCommand(sessionId, toolCallId),
      log,
    },
    sessions,
    chat,
    context.workspaceState,
  );
  review.onCame((words) => chats.announce(words));
  const picker = new ModelPicker(openChats, daemon, () => models.refresh());
  const settings = new SettingsPage(context.extensionUri, daemon, picker, () => models.refresh());
  const mcp = new ServersPage(context.extensionUri, openChats, daemon, servers, setup, pages);
  const shownPlans = new Set<string>();
  const approvals = new Approvals(openChats, daemon, pages, (proposalId) => review.openDiff(proposalId));
  const running = new Running(openChats, sessions, daemon, servers, (sessionId) =>
    chats.showSession(sessionId),
  );
  const doctor = new Doctor(context, openChats, daemon, setup, pages);
  const trust = new Trust(openChats, daemon, pages);

  context.subscriptions.push(
    log,
    setup,
    daemon,
    openChats,
    sessions,
    shown,
    highlighter,
    overview,
    review,
    new ChangesList(sessions, proposals),
    new Gutter(sessions, proposals),
    new Comments(sessions, openChats, context.workspaceState, () => looking.flush()),
    new Actions(
      {
        say: async (text, attachments) => {
          await chats.show();
          looking.flush();
          await openChats.active.prompt(text, attachments, openChats.state.turn === null ? "send" : "steer");
        },
        attach: (attachment) => chats.attachToPrompt(attachment),
      },
      (work) => openChats.attempt(work),
    ),
    new Inline(daemon, sessions, openChats, {
      diff: (proposalId) => review.openDiff(proposalId),
      reject: (proposalId) => review.reject(proposalId),
      chat: (sessionId) => chats.showSession(sessionId),
    }),
    vscode.commands.registerCommand("amanu.commitMessage", (given?: { rootUri?: vscode.Uri }) =>
      openChats.attempt(() => writeCommitMessage(daemon, openChats.state.sessionId, given)),
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
    vscode.commands.registerCommand("amanu.settings", () => openChats.attempt(() => settings.show())),
    running,
    new Ended(overview, {
      shows: (sessionId) => chats.shows(sessionId),
      lastTurn: (sessionId) => sessions.get(sessionId)?.state.lastTurn ?? undefined,
      show: (sessionId) => void openChats.attempt(() => chats.showSession(sessionId)),
    }),
    vscode.commands.registerCommand("amanu.mcp", (name?: unknown) =>
      openChats.attempt(() => mcp.show(typeof name === "string" ? name : undefined)),
    ),
    new Status(openChats, sessions, daemon, overview, (waiting) => chats.badge(waiting)),
    vscode.window.registerWebviewViewProvider("amanu.chat", chats),
    vscode.window.registerWebviewPanelSerializer(TAB, chats),
    vscode.workspace.registerFileSystemProvider(PROPOSED, proposals, { isCaseSensitive: true }),
    vscode.workspace.registerFileSystemProvider(BASE, proposals, { isCaseSensitive: true, isReadonly: true }),
    vscode.workspace.onDidOpenTextDocument((document) => proposals.opened(document)),
    ...messageMenu(openChats, chats, edits),
    ...commands(
      openChats,
      daemon,
      chats,
      models,
      picker,
      overview,
      approvals,
      new Questions(openChats),
      setup,
      doctor,
      trust,
      log,
    ),
    daemon.onConnection(({ status }) => {
      if (status !== "ready") return;
      void Promise.all(openChats.open.map((each) => each.attempt(() => each.connected()))).then(() =>
        overview.soon(),
      );
      void sessions.catchUp();
      servers.soon();
    }),
    sessions.onEvent(({ sessionId, event }) => {
      if (openChats.showing(sessionId) === undefined) return;
      const asked = event.kind === "approvalRequested" ? event.approval : undefined;
      if (asked?.document && !shownPlans.has(asked.toolCallId)) {
        shownPlans.add(asked.toolCallId); // once: what the user closed stays closed
        void openPlan(asked);
      }
      const wanted = vscode.workspace.getConfiguration("amanu").get<boolean>("openDiffs", false);
      if (wanted && event.kind === "approvalRequested" && event.approval.proposalId !== null)
        void review.openDiff(event.approval.proposalId, undefined, true);
    }),
    models.onChanged(() => {
      if (models.usable)
        void offerChatKeys(context.globalState).catch((error: unknown) => log.error(text(error)));
    }),
    // what the daemon hears at the start has changed
    vscode.workspace.onDidGrantWorkspaceTrust(() => daemon.restart()),
    vscode.workspace.onDidChangeConfiguration(() => daemon.reconsider()),
  );
  void setup
    .update(daemon)
    .catch((error: unknown) => log.error(text(error)))
    .then(() => daemon.start());
}
