import { Folded } from "../../sessions/fold";
import type { Event, Item, SessionState } from "../../protocol";
import type { Action, Hindrance, ToHost, ToView } from "../messages";
import { visible } from "../../editor/visible";
import { ACTIONS } from "./actions";
import { announcement } from "./announce";
import { ChangesBar } from "./changesBar";
import { Composer, type Kept } from "./composer";
import type { ChatView } from "./chatView";
import { button, h, setText } from "./dom";
import { Gauge } from "./gauge";
import { editor, host } from "./host";
import { icon, iconButton } from "./icon";
import { loadKatexBeside } from "./katexLoader";
import { List } from "./list";
import { namedFiles } from "./namedFiles";
import { painter } from "./painter";
import { Parent } from "./parent";
import { Pickers } from "./pickers";
import { Sessions } from "./sessions";
import { StatusLines } from "./statusLines";
import { SandboxBadge } from "./sandbox";
import { Todos } from "./todos";
import { Welcome } from "./welcome";
import { workspacePictures } from "./workspacePictures";

declare function acquireVsCodeApi(): {
  postMessage(message: ToHost): void;
  getState(): State | undefined;
  setState(state: State): void;
};

/** What VS Code keeps for a view that is shown again; for an editor tab also when the window is loaded anew. */
interface State extends Kept {
  sessionId: string;
}

/** What to do first, where several things could be done. */
const FIRST: Action[] = ["install", "editorModel", "setKey"];

/** The chat view: it folds the events of one session and draws what they changed, at most once a frame. */
class View implements ChatView {
  session = new Folded(nothing());
  client = "";
  private readonly api = acquireVsCodeApi();
  private readonly list = new List(this);
  private readonly pickers = new Pickers(this);
  private readonly standing = new StatusLines(
    this,
    (itemId) => this.list.show(itemId) || this.post({ type: "action", action: "answer" }),
    (prompt) => this.composer.giveBack(prompt),
    (modelId) => this.pickers.name(modelId),
  );
  private readonly composer = new Composer(this, (kept) => this.keep(kept), [
    this.pickers.mode,
    this.pickers.model,
  ]);
  private readonly changes = new ChangesBar(this);
  private readonly todos = new Todos(this);
  private readonly gauge = new Gauge(this);
  private readonly sessions = new Sessions(
    this,
    (modelId) => this.pickers.name(modelId),
    () => this.composer.focus(),
  );
  private readonly title = h("h2", { class: "title" });
  private readonly parent = new Parent(this);
  private readonly sandbox = new SandboxBadge((level, text) =>
    this.tell({ type: "notification", level, text, toolCallId: null, actions: ["doctor"] }),
  );
  private readonly hindrance = h("div", { class: "hindrance", role: "alert", hidden: true });
  private readonly welcome = new Welcome(this);
  private readonly told = h("div", { class: "told", role: "status", hidden: true });
  private readonly live = h("div", { class: "unseen", "aria-live": "polite" });
  private state: State = { sessionId: "", text: "", attachments: [] };
  private events: Event[] = [];
  private seq = 0;
  private frame: number | undefined;

  start(): void {
    host.post = (message) => this.post(message);
    document.body.append(
      this.parent.element,
      h("header", {}, this.title, this.sandbox.element, this.gauge.element),
      this.hindrance,
      this.welcome.element,
      this.list.element,
      h("div", { class: "over" }, this.list.newest),
      this.todos.element,
      this.changes.element,
      this.standing.element,
      this.told,
      this.composer.element,
      this.sessions.element,
      this.live,
    );
    window.addEventListener("message", ({ data, origin }) => {
      if (origin === window.origin) this.receive(data as ToView); // VS Code hands on what the extension says
    });
    window.addEventListener("focus", () => this.post({ type: "focused" }));
    window.addEventListener("blur", () => this.post({ type: "blurred" }));
    const kept = this.api.getState();
    if (kept !== undefined) {
      this.state = kept;
      this.composer.restore(kept);
    }
    this.post({ type: "ready" });
  }

  post(message: ToHost): void {
    this.api.postMessage(message);
    if (message.type === "prompt") {
      this.tell(null);
      this.list.follow();
    }
  }

  private receive(message: ToView): void {
    switch (message.type) {
      case "session": {
        this.events = [];
        const before = this.session.state;
        this.session = new Folded(message.state);
        this.seq = message.seq;
        this.client = message.client;
        this.list.reset();
        this.changes.reset();
        this.around();
        this.remember({ sessionId: message.remember });
        this.goOn(before);
        this.post({ type: "drawn", seq: this.seq });
        break;
      }
      case "events":
        this.events.push(...message.events);
        this.seq = message.seq;
        this.soon();
        break;
      case "earlier":
        this.session.prepend(message.items, message.hasEarlier);
        this.list.earlier();
        break;
      case "models":
        this.pickers.offer(message.models, message.defaultModelId);
        break;
      case "sessions":
        this.sessions.update(message.sessions, message.current);
        this.welcome.recent(message.sessions, message.current);
        break;
      case "showSessions":
        this.sessions.show();
        break;
      case "showContext":
        this.gauge.show();
        break;
      case "mentions":
        this.composer.mentions(message.text, message);
        break;
      case "attach":
        this.composer.attach(message.attachment);
        break;
      case "attachPicture": {
        const bytes = Uint8Array.from(atob(message.data), (each) => each.charCodeAt(0));
        this.composer.attachPicture(new File([bytes], message.name, { type: message.mediaType }));
        break;
      }
      case "hindrance":
        this.hinder(message.hindrance);
        break;
      case "notification":
        this.tell(message);
        break;
      case "commands":
        this.composer.commands(message.commands);
        break;
      case "looking":
        editor.path = message.active.path ?? null;
        this.composer.look(message.active, message.shared);
        break;
      case "picture":
        for (const image of document.querySelectorAll<HTMLImageElement>(
          `img[data-blob="${CSS.escape(message.blobId)}"]`,
        ))
          if (message.source !== "") image.src = message.source;
        break;
      case "workspacePicture":
        workspacePictures.found(message.path, message.source);
        break;
      case "namedFiles":
        namedFiles.found(message.paths, message.found);
        break;
      case "starters":
        this.welcome.offer(message);
        break;
      case "edit":
        this.composer.edit(message);
        break;
      case "giveBack":
        this.composer.giveBack(message);
        break;
      case "rule":
        this.list.checked(message);
        break;
      case "draft":
        if (this.composer.text === "") this.composer.restore({ text: message.text, attachments: [] });
        break;
      case "announce":
        setText(this.live, message.text);
        break;
      case "focus":
        this.sessions.leave();
        break;
      case "painted":
        painter.painted(message);
        break;
      case "repaint":
        painter.repaint();
        break;
    }
  }

  /** After another session: who went to that of a sub-agent, or comes from there, goes on beside it. */
  private goOn({ sessionId, parentSessionId }: SessionState): void {
    const now = this.session.state;
    if (sessionId === "" || sessionId === now.sessionId) return;
    if (now.parentSessionId === sessionId) this.parent.focus();
    else if (now.sessionId === parentSessionId) this.list.showAgent(sessionId);
  }

  /** For a view that is shown again, pictures too; the text for a window that is loaded anew. */
  private keep(kept: Kept): void {
    this.remember(kept);
    this.post({ type: "draft", text: kept.text });
  }

  private remember(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    this.api.setState(this.state);
  }

  private soon(): void {
    // a hidden view gets no frames, and must not hold the daemon's stream back
    if (document.hidden) this.draw();
    else this.frame ??= requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
    this.frame = undefined;
    const touched = new Set<string>();
    const said: string[] = [];
    let more = false;
    let ended = false;
    for (const event of this.events) {
      this.session.fold(event);
      if (event.kind === "proposalChanged") this.changes.note(event.proposal);
      ended ||= event.kind === "turnEnded";
      for (const id of this.about(event)) touched.add(id);
      more ||= event.kind !== "itemDelta";
      said.push(announcement(event));
    }
    this.events = [];
    this.keepingFocus(() => {
      this.list.update(touched);
      if (more) this.around();
    });
    if (ended) namedFiles.lookAgain();
    const words = said.filter(Boolean).join("\n");
    if (words !== "") this.live.replaceChildren(h("p", {}, words)); // the same words again are heard again
    this.post({ type: "drawn", seq: this.seq });
  }

  /** What had the focus may be answered, and gone: the user goes on at its card, or at the prompt box. */
  private keepingFocus(work: () => void): void {
    const focused = document.activeElement;
    const card = focused?.closest<HTMLElement>("article.card");
    work();
    const gone = focused !== null && (!focused.isConnected || focused.closest("[hidden]") !== null);
    if (!gone || !document.hasFocus() || document.activeElement?.closest("article.card")) return;
    if (!card?.isConnected) return this.composer.focus();
    card.tabIndex = -1;
    card.focus({ preventScroll: true });
  }

  /** The items whose card may look different after the event. */
  private about(event: Event): string[] {
    switch (event.kind) {
      case "itemDelta":
        return [event.itemId];
      case "itemStarted":
      case "itemChanged":
      case "itemCompleted":
        return [event.item.itemId];
      case "itemsReplaced":
        return [...event.items.map((item) => item.itemId), ...this.agentCalls()];
      case "itemsWithdrawn":
      case "sessionRewound":
        return this.agentCalls(); // what they show may be gone
      case "agentChanged":
        return [event.agent.toolCallId];
      case "jobChanged":
        return [event.job.toolCallId];
      case "approvalRequested":
        return [event.approval.toolCallId];
      case "approvalResolved":
        return [event.toolCallId];
      case "proposalChanged":
        return [...event.proposal.toolCallIds, ...this.ofTurn(event.proposal.turnId, "userMessage")];
      case "turnEnded":
        return [...this.ofTurn(event.turnId, "toolCall"), ...this.ofTurn(event.turnId, "userMessage")];
      default:
        return [];
    }
  }

  private agentCalls(): string[] {
    return this.session.state.agents.map(({ toolCallId }) => toolCallId);
  }

  private ofTurn(turnId: string, kind: Item["kind"]): string[] {
    return this.session.state.items.flatMap((item) =>
      item.kind === kind && item.turnId === turnId ? [item.itemId] : [],
    );
  }

  private around(): void {
    const { title, sessionId, sandbox } = this.session.state;
    this.parent.update();
    this.sandbox.update(sandbox);
    setText(this.title, title || (sessionId === "" ? "New session" : "Untitled"));
    this.welcome.update(!this.hindrance.hidden);
    this.pickers.update();
    this.gauge.update();
    this.composer.update();
    this.standing.update();
    this.changes.update();
    this.todos.update();
  }

  private hinder(hindrance: Hindrance | null): void {
    if (this.told.classList.contains("error")) this.tell(null); // it was about what stood in the way before
    this.hindrance.hidden = hindrance === null;
    this.welcome.update(hindrance !== null);
    this.hindrance.replaceChildren(
      ...(hindrance === null
        ? []
        : [h("p", {}, visible(hindrance.text)), this.actions(hindrance.actions, hindrance.labels)]),
    );
  }

  private tell(message: Extract<ToView, { type: "notification" }> | null): void {
    const note =
      message?.toolCallId &&
      document.querySelector(`.approval[data-call="${CSS.escape(message.toolCallId)}"] .note`);
    if (note && message) {
      setText(note, visible(message.text));
      return;
    }
    this.told.hidden = message === null;
    this.told.className = `told ${message?.level ?? ""}`;
    this.told.replaceChildren(
      ...(message === null
        ? []
        : [
            message.level !== "info" && icon(message.level),
            h("span", { class: "text" }, visible(message.text)),
            this.actions(message.actions),
            iconButton("close", "Dismiss", () => this.tell(null)),
          ].filter((each) => each !== false)),
    );
  }

  private actions(actions: Action[], labels: Hindrance["labels"] = {}): HTMLElement {
    const first = actions.find((action) => FIRST.includes(action));
    return h(
      "span",
      { class: "row" },
      ...actions.map((action) =>
        button(visible(labels[action] ?? ACTIONS[action]), () => this.post({ type: "action", action }), {
          class: action === first ? "primary" : "",
        }),
      ),
    );
  }
}

function nothing(): SessionState {
  return {
    sessionId: "",
    title: "",
    roots: [],
    mode: "ask",
    modelId: "",
    effort: null,
    serviceTier: null,
    trusted: true,
    trustChanged: false,
    sandbox: null,
    plan: null,
    readOnly: false,
    closed: false,
    turn: null,
    lastTurn: null,
    items: [],
    hasEarlier: false,
    approvals: [],
    questions: [],
    proposals: [],
    queue: [],
    retry: null,
    usage: null,
    todos: [],
    todosSummary: "",
    jobs: [],
    agents: [],
    parentSessionId: null,
    agent: null,
    atWork: false,
    purpose: "chat",
  };
}

if (document.currentScript instanceof HTMLScriptElement) loadKatexBeside(document.currentScript);
new View().start();
