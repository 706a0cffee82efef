import { basename, extname } from "node:path";
import * as vscode from "vscode";
import { type Daemon, roots } from "../daemon/client";
import type { Context } from "../editor/context";
import { contains } from "../editor/paths";
import { type Chat, stale } from "./chat";
import type { OpenChats } from "./openChats";
import type { Edits } from "../review/edits";
import type { Highlighter } from "../highlight/highlighter";
import type { Overview } from "../sessions/overview";
import type { ModelList } from "../models/list";
import { openPlan } from "../sessions/plan";
import type { AttachmentInput, Event } from "../protocol";
import { NO_OUTPUT, withTerminal } from "../daemon/terminal";
import { plain } from "../editor/visible";
import { BlockActions } from "./blocks";
import { insertCode, typeInTerminal } from "./code";
import { existing, open, workspacePicture } from "./files";
import { PICTURES, refusal, within } from "./incoming";
import type { Action, Hindrance, ToHost, ToView, TurnWish } from "./messages";
import { page } from "./page";
import { earlier, retry } from "./resend";
import { starters } from "./starters";

/** Milliseconds in which events are gathered for one message to the view. */
const GATHER = 16;

/** Under which name the text in the prompt box is kept. */
const DRAFT = "amanu.draft";
/** Messages that must not be lost on a view that is not there yet. */
const KEPT: ReadonlySet<ToView["type"]> = new Set([
  "attach",
  "attachPicture",
  "showSessions",
  "showContext",
  "draft",
  "focus",
  "giveBack",
  "edit",
]);
/** Bytes of a picture that is read at most: the view makes it smaller. */
const PICTURE_BYTES = 50_000_000;

/** What the view may ask for beside the conversation, and the command that does it. */
const COMMANDS: Record<Exclude<Action, "new">, [command: string, ...rest: unknown[]]> = {
  setKey: ["amanu.setKey"],
  signIn: ["amanu.signInOpenAI"],
  editorModel: ["amanu.useEditorModel"],
  logs: ["amanu.logs"],
  restart: ["amanu.restart"],
  openFolder: ["workbench.action.files.openFolder"],
  serverPath: ["workbench.action.openSettings", "amanu.server.path"],
  settings: ["amanu.settings"],
  selectModel: ["amanu.selectModel"],
  selectEffort: ["amanu.selectEffort"],
  selectMode: ["amanu.selectMode"],
  sessions: ["amanu.sessions"],
  stop: ["amanu.stop"],
  context: ["amanu.context"],
  compact: ["amanu.compact"],
  diff: ["amanu.openDiff"],
  install: ["amanu.install"],
  doctor: ["amanu.doctor"],
  tour: ["amanu.tour"],
  start: ["amanu.start"],
  trust: ["amanu.reviewTrust"],
  mcp: ["amanu.mcp"],
  answer: ["amanu.answer"],
};

/** What the view may want of a turn's edits. */
const TURN: Record<TurnWish, string> = {
  review: "amanu.reviewAll",
  undo: "amanu.undoTurn",
  redo: "amanu.redo",
  restore: "amanu.restore",
};

/** What the view says by itself: all else comes from the user, who works in this chat then. */
const UNASKED: ReadonlySet<ToHost["type"]> = new Set([
  "ready",
  "drawn",
  "draft",
  "picture",
  "workspacePicture",
  "namedFiles",
  "paint",
  "earlier",
  "blurred",
]);

/** What all chats of a window share. */
export interface Shared {
  folder: vscode.Uri;
  daemon: Daemon;
  openChats: OpenChats;
  context: Context;
  edits: Edits;
  overview: Overview;
  models: ModelList;
  highlighter: Highlighter;
  openDiff(proposalId: string, path: string, rowId?: string): Promise<void>;
  audit(call: { toolCallId: string; title: string }): Promise<void>;
  showCommand(sessionId: string, toolCallId: string): void;
  /** Show a session, at the wish of that chat or in an editor tab. */
  open(sessionId: string, from: Panel | "editor"): Promise<void>;
  /** Delete a session for good, if the user means it. */
  delete(sessionId: string, title: string): Promise<void>;
  log: vscode.LogOutputChannel;
}

/** One chat in a webview, the side bar's or an editor tab's: state and events go out, intents come in. */
export class Panel implements vscode.Disposable {
  private webview: vscode.Webview | undefined;
  private ready = false;
  /** The hindrance the view shows. */
  private shown = "";
  private gathered: Event[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private waiting: ToView[] = [];
  /** The text in the prompt box. */
  private unsent = "";
  private readonly blocks: BlockActions;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    readonly chat: Chat,
    private readonly shared: Shared,
    /** Where the text in the prompt box is kept for a window that is loaded anew. */
    private readonly memory?: vscode.Memento,
  ) {
    const { daemon, context, overview, models, highlighter } = shared;
    this.blocks = new BlockActions(chat, (proposalId, path) => shared.openDiff(proposalId, path));
    this.subscriptions = [
      highlighter.onChanged(() => this.post({ type: "repaint" })),
      chat.onReset(() => this.show()),
      chat.onEvent(({ event }) => {
        this.event(event);
        void chat.attempt(() => this.blocks.heard(event));
        if (["turnStarted", "turnEnded", "sessionChanged"].includes(event.kind)) this.hinder();
      }),
      chat.onNotification(({ level, text, toolCallId, actions }) =>
        this.post({
          type: "notification",
          level,
          text,
          toolCallId: toolCallId ?? null,
          actions: actions ?? [],
        }),
      ),
      daemon.onConnection(() => this.hinder()),
      models.onChanged(() => this.offer()),
      context.onChanged(() => this.looking()),
      overview.onChanged(() => this.listed()),
    ];
  }

  /** Draw into that webview from now on. */
  drawIn(webview: vscode.Webview): void {
    this.webview = webview;
    this.ready = false;
    const dist = vscode.Uri.joinPath(this.shared.folder, "dist", "chat");
    webview.options = { enableScripts: true, enableCommandUris: false, localResourceRoots: [dist] };
    webview.onDidReceiveMessage((message: ToHost) => this.chat.attempt(() => this.receive(message)));
    const uri = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    webview.html = page(uri("main.js"), uri("chat.css"), webview.cspSource);
  }

  /** Whether it is on the screen. What is not, VS Code throws away, and makes anew when it is shown again. */
  set visible(visible: boolean) {
    this.chat.visible = visible;
    if (visible) return;
    this.ready = false;
    this.blur(); // a view that is thrown away does not say so
  }

  /** Whether the user has typed something that was not sent. */
  get hasUnsent(): boolean {
    return this.unsent.trim() !== "";
  }

  /** Say it now, or when the view is there. */
  post(message: ToView): void {
    if (this.ready) void this.webview?.postMessage(message);
    else if (KEPT.has(message.type)) this.waiting.push(message); // the rest the view gets anew when it comes
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const each of this.subscriptions) each.dispose();
  }

  private blur(): void {
    const { openChats } = this.shared;
    if (openChats.focused === this.chat) openChats.focused = undefined;
  }

  private async receive(message: ToHost): Promise<unknown> {
    const { chat } = this;
    if (!UNASKED.has(message.type)) this.shared.openChats.activate(chat);
    const { sessionId } = chat.state;
    const no = refusal(message, chat.state, this.folders);
    if (no !== undefined) return this.refuse(message, no);
    switch (message.type) {
      case "ready":
        this.ready = true;
        this.shown = "";
        this.show();
        this.offer();
        if (this.memory?.get(DRAFT)) this.post({ type: "draft", text: this.memory.get(DRAFT, "") });
        for (const each of this.waiting.splice(0)) this.post(each);
        return undefined;
      case "drawn":
        return chat.drawn(message.seq);
      case "prompt":
        try {
          this.shared.context.flush();
          return await this.prompt(message);
        } catch (error) {
          if (message.promptId === undefined) this.post({ ...message, type: "giveBack" });
          throw error;
        }
      case "edit":
        return this.edit(message.itemId);
      case "retry":
        this.shared.context.flush();
        if (message.modelId !== undefined) await chat.setModel(message.modelId);
        return retry(chat, this.shared.edits, message.turnId, (prompt) =>
          this.post({ type: "giveBack", ...prompt }),
        );
      case "unqueue":
        return chat.unqueue(message.promptId);
      case "stop":
        return chat.stop();
      case "stopAgent":
        return chat.stopAgent(message.agentId);
      case "resolve": {
        const { type: _, ...answer } = message;
        return chat.attempt(() => chat.resolve(answer), answer.toolCallId);
      }
      case "openPlan":
        return openPlan(chat.state.approvals.find(({ toolCallId }) => toolCallId === message.toolCallId));
      case "answer": {
        const { questionId, outcome, answers, note } = message;
        return chat.attempt(() => chat.answer(questionId, outcome, answers, note), questionId);
      }
      case "hunks":
        return this.shared.edits.resolve(sessionId, message, message);
      case "decide": {
        const { scope, decision, seen } = message;
        return this.shared.edits.decide(sessionId, scope, decision, seen);
      }
      case "settle": {
        const { files, yes, only } = message;
        return vscode.commands.executeCommand("amanu.settle", files, yes, only);
      }
      case "undo":
        return this.shared.edits.undo(sessionId, message.scope);
      case "retryChange": {
        const { version, scope } = message;
        return this.shared.edits.retry(sessionId, { version, proposalId: scope.proposalId ?? "" }, scope);
      }
      case "setReview":
        return this.shared.edits.setReview(sessionId, message, message.review);
      case "turn":
        return Object.hasOwn(TURN, message.what)
          ? vscode.commands.executeCommand(TURN[message.what], message.turnId, sessionId)
          : undefined;
      case "openDiff":
        return this.shared.openDiff(message.proposalId, message.path, message.rowId);
      case "openFile":
        return this.openFile(message.path, message.line);
      case "setMode":
        return chat.setMode(message.mode);
      case "checkRule": {
        const { rule, toolCallId } = message;
        const asked = { rule, toolCallId, sessionId };
        const answer = await this.shared.daemon.request("amanu/rule/preview", asked);
        return this.post({ type: "rule", rule, toolCallId, ...answer });
      }
      case "showCommand":
        return this.shared.showCommand(chat.state.sessionId, message.toolCallId);
      case "audit":
        return this.shared.audit(message);
      case "sessions":
        return this.shared.overview.refresh();
      case "open":
        return this.shared.open(message.sessionId, this);
      case "openInEditor":
        return this.shared.open(message.sessionId, "editor");
      case "rename":
        await chat.rename(message.sessionId, message.title);
        return this.shared.overview.refresh();
      case "delete":
        return this.shared.delete(message.sessionId, message.title);
      case "new":
        return chat.fresh();
      case "mentions": {
        const { text } = message;
        this.shared.context.flush(); // the files before the user come first
        const asked = { ...this.place, text, terminal: true };
        const found = await this.shared.daemon.request("amanu/mention/complete", asked);
        return this.post({ type: "mentions", text, ...found });
      }
      case "commands": {
        const params = sessionId === "" ? {} : { sessionId };
        const { commands } = await this.shared.daemon.request("amanu/command/list", params);
        return this.post({ type: "commands", commands });
      }
      case "share":
        return this.shared.context.share(message.shared);
      case "picture":
        return this.post({ ...message, source: await chat.picture(message.blobId, message.mediaType) });
      case "workspacePicture": {
        const source = await workspacePicture(message.path, this.folders);
        return this.post({ ...message, source });
      }
      case "namedFiles":
        return this.post({ ...message, found: await existing(message.paths, this.folders) });
      case "dropped":
        return this.attach(message.uris.map((uri) => vscode.Uri.parse(uri)));
      case "pickFiles":
        return this.attach(
          (await vscode.window.showOpenDialog({ canSelectMany: true, openLabel: "Attach" })) ?? [],
        );
      case "paint": {
        const { request } = message;
        return this.post({ type: "painted", request, ...(await this.shared.highlighter.paint(message)) });
      }
      case "insertCode":
        if (await insertCode(message.text)) return undefined;
        return chat.tell({ level: "info", text: "Open the file that this code is for, then try again." });
      case "applyCode":
        return this.blocks.apply(message, message.path, this.folders);
      case "runCode":
        return this.blocks.run(message);
      case "terminal":
        if (typeInTerminal(message.text, message.language)) return undefined;
        return chat.tell({
          level: "info",
          text: "Only a command of one line goes to the terminal. Copy it instead.",
        });
      case "focused":
        this.shared.openChats.focused = chat;
        return undefined;
      case "blurred":
        this.blur();
        return undefined;
      case "draft":
        this.unsent = message.text;
        if (message.text !== "") chat.beginPrompt();
        return this.memory?.update(DRAFT, message.text || undefined);
      case "say":
        return chat.tell({ level: "warning", text: message.text });
      case "earlier": {
        const page = await chat.earlier();
        return page && this.post({ type: "earlier", ...page });
      }
      case "action": {
        if (message.action === "new") return chat.fresh(); // `/new` is about the chat that it is typed in
        return Object.hasOwn(COMMANDS, message.action)
          ? vscode.commands.executeCommand(...COMMANDS[message.action])
          : undefined;
      }
    }
  }

  /** Send it, in the place of an earlier one where it replaces that; it comes back when the user would rather not. */
  private async prompt({
    text,
    attachments,
    how,
    replaces,
    promptId,
  }: Extract<ToHost, { type: "prompt" }>): Promise<void> {
    const { sessionId } = this.chat.state;
    if (replaces !== undefined && !(await this.shared.edits.rewind(sessionId, replaces)))
      return this.post({ type: "giveBack", text, attachments, replaces });
    const along = promptId === undefined ? await this.along(text, attachments) : attachments;
    await this.chat.prompt(text, along, how, promptId);
  }

  private async edit(itemId: string): Promise<void> {
    const found = await earlier(this.chat, itemId);
    if (found !== undefined) this.post(found);
  }

  /** Nothing is done. What was an answer is said beside its question. */
  private refuse(message: ToHost, { why, stale: outdated }: { why: string; stale: boolean }): void {
    this.shared.log.warn(`ignored of the chat view: ${why} (${message.type})`);
    if (message.type === "openFile" || message.type === "applyCode")
      this.chat.tell({ level: "warning", text: "That file is outside the workspace." });
    if (outdated && message.type === "resolve") this.chat.tell(stale(message.toolCallId));
  }

  /** What goes along with a prompt, and the terminal's output if the prompt mentions it. */
  private async along(text: string, attachments: AttachmentInput[]): Promise<AttachmentInput[]> {
    const along = await withTerminal(text, attachments);
    if (along === undefined) this.chat.tell({ level: "warning", text: NO_OUTPUT });
    return along ?? attachments;
  }

  /** The session, or the folders of the one that would be made. */
  private get place(): { sessionId: string } | { roots: string[] } {
    const { sessionId } = this.chat.state;
    return sessionId === "" ? { roots: this.folders } : { sessionId };
  }

  /** Where files of the conversation may lie. */
  private get folders(): string[] {
    const { state } = this.chat;
    return state.roots.length > 0 ? state.roots : roots();
  }

  private listed(): void {
    this.post({
      type: "sessions",
      sessions: this.shared.overview.sessions,
      current: this.chat.state.sessionId,
    });
  }

  private show(): void {
    this.flush();
    const { state, seq, sessionId: remember } = this.chat;
    this.post({ type: "session", state, seq, client: vscode.env.appName, remember });
    this.hinder();
    this.listed();
    this.looking();
  }

  private event(event: Event): void {
    if (!this.ready) {
      this.chat.drawn(this.chat.seq); // nobody draws: the daemon need not wait
      return;
    }
    this.gathered.push(event);
    this.timer ??= setTimeout(() => this.flush(), GATHER);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const events = this.gathered.splice(0);
    if (events.length > 0) this.post({ type: "events", events, seq: this.chat.seq });
  }

  /** The models there are. */
  private offer(): void {
    const { models, defaultModelId, usable } = this.shared.models;
    if (usable !== undefined) this.post({ type: "models", models, defaultModelId });
    this.hinder();
  }

  private looking(): void {
    this.post({ type: "looking", active: this.shared.context.looking, shared: this.shared.context.shared });
    if (this.chat.state.items.length === 0) this.post(starters(this.shared.context.looking.path ?? null));
  }

  /** Pictures go along as they are, wherever they lie; other files by their path, for the daemon reads in the workspace. */
  private async attach(uris: vscode.Uri[]): Promise<void> {
    const refused: string[] = [];
    for (const uri of uris) {
      const path = uri.fsPath;
      const mediaType = PICTURES[extname(path).toLowerCase()];
      const local = uri.scheme === "file" || uri.scheme === "vscode-remote";
      if (local && mediaType !== undefined) {
        const file = vscode.Uri.file(path);
        const { size } = await vscode.workspace.fs.stat(file);
        if (size > PICTURE_BYTES) refused.push(`${basename(path)} is too big.`);
        else {
          const data = Buffer.from(await vscode.workspace.fs.readFile(file)).toString("base64");
          this.post({ type: "attachPicture", name: basename(path), mediaType, data });
        }
      } else if (local && roots().some((folder) => contains(folder, path)))
        this.post({ type: "attach", attachment: { kind: "file", path } });
      else refused.push(`${basename(path)} is outside the workspace, where Amanu does not read.`);
    }
    if (refused.length > 0) this.chat.tell({ level: "warning", text: refused.join(" ") });
  }

  private hinder(): void {
    const { scripted, state } = this.chat;
    const { usable, defaultModelId, editorVendor } = this.shared.models;
    const chosen = state.modelId !== "" && !scripted;
    const offered = editorVendor !== undefined && defaultModelId === null && !chosen;
    const lacks = usable === false || (usable === true && offered);
    const needsModel = lacks && !(scripted && state.lastTurn === null); // the tour is not talked into
    const current = hindrance(this.shared.daemon.connection, needsModel, scripted, editorVendor);
    const shown = JSON.stringify(current);
    if (!this.ready || shown === this.shown) return; // a screen reader would say it again
    this.shown = shown;
    this.post({ type: "hindrance", hindrance: current });
  }

  private async openFile(path: string, line: number | null): Promise<void> {
    const full = within(path, this.folders);
    if (full === undefined) return;
    if (!(await open(full, path, line)))
      this.chat.tell({ level: "info", text: `${plain(path)} does not exist in the workspace.` });
  }
}

function hindrance(
  connection: Daemon["connection"],
  needsModel: boolean,
  toured: boolean,
  editorVendor: string | undefined,
): Hindrance | null {
  if (connection.status === "installing") return { text: connection.message, actions: ["logs"] };
  if (connection.status === "missing")
    return {
      text: connection.message,
      actions: connection.install ? ["install", "start", "serverPath", "doctor"] : ["serverPath", "doctor"],
    };
  if (connection.status === "lost")
    return { text: connection.message, actions: ["restart", "doctor", "logs"] };
  if (vscode.workspace.workspaceFolders === undefined)
    return { text: "Open a folder to start working with Amanu.", actions: ["openFolder"] };
  if (connection.status !== "ready" || !needsModel) return null;
  if (editorVendor !== undefined)
    return {
      text: `Amanu needs a model. ${editorVendor}'s can be used without a key; or set an API key, or sign in to use your ChatGPT plan.`,
      actions: ["editorModel", "setKey", "signIn", toured ? "start" : "tour"],
      labels: { editorModel: `Use ${editorVendor}'s models` },
    };
  if (toured)
    return {
      text: "To continue, set an API key, or sign in to use your ChatGPT plan.",
      actions: ["setKey", "signIn", "start"],
    };
  return {
    text: "Amanu needs a model: set an API key, or sign in to use your ChatGPT plan. You can also try it without a key.",
    actions: ["setKey", "signIn", "tour", "start"],
  };
}
