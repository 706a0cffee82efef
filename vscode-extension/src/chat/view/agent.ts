import { waitsForUser, works } from "../../sessions/fold";
import type { Item, SubAgent, ToolCall } from "../../protocol";
import { oneLine, visible } from "../../editor/visible";
import type { ToView } from "../messages";
import type { Card, ChatView } from "./chatView";
import { button, h, setText } from "./dom";
import { icon, setIcon } from "./icon";
import { ReadsCard } from "./readsCard";
import { type Row, Rows } from "./rows";
import { ToolCard } from "./tool";

/** Rows of a sub-agent's items in the document at first, and how many more the user gets at a time. */
export const NESTED = 30;
/** Characters of a line of the header. */
const LINE = 200;

const MARKS: Record<SubAgent["state"], string> = {
  waiting: "circle-outline",
  running: "loading",
  completed: "check",
  failed: "error",
  cancelled: "circle-slash",
  interrupted: "circle-slash",
};

/** A call that handed work to a sub-agent: how far that is, what it does, below it, and the questions it has. */
export class AgentCard implements Card {
  private readonly mark = icon("loading");
  private readonly chevron = icon("chevron-down");
  private readonly title = h("span", { class: "title" });
  private readonly fold = h(
    "button",
    { type: "button", class: "fold", onclick: () => this.toggle() },
    this.chevron,
    h("span", { class: "mark" }, this.mark),
    this.title,
  );
  private readonly summary = h("span", { class: "state" });
  private readonly stop = button("Stop", () => this.end(), { class: "link" });
  private readonly open = button("Open", () => this.show(), { class: "link open" });
  private readonly activity = h("div", { class: "activity aside" });
  private readonly call: ToolCard;
  private readonly earlier = button("", () => this.more(), { class: "link earlier" });
  private readonly items = h("div", { class: "items" });
  private readonly below: HTMLElement;
  readonly element: HTMLElement;
  private readonly lines: Rows;
  /** By row. */
  private readonly cards = new Map<string, Card>();
  /** The rows as they were drawn. */
  private drawn = -1;
  /** Rows the user wants at most. */
  private room = NESTED;
  /** Whether the user opened or closed it. */
  private chosen: boolean | undefined;
  private agent: SubAgent | undefined;
  /** The call itself asks, or says why nothing came of it. */
  private wanted = false;

  constructor(
    private readonly view: ChatView,
    private readonly makeRow: (row: Row, item: Item, view: ChatView) => Card,
  ) {
    this.lines = new Rows((itemId) => view.session.item(itemId));
    this.call = new ToolCard(view);
    this.below = h("div", { class: "below", role: "group" }, this.call.element, this.earlier, this.items);
    this.element = h(
      "article",
      { class: "card agent" },
      h("div", { class: "head" }, this.fold, this.summary, this.stop, this.open),
      this.activity,
      this.below,
    );
  }

  /** The call, or its agent, is another. */
  update(item: Item): void {
    const call = item as ToolCall;
    this.agent = this.view.session.state.agents.find(({ toolCallId }) => toolCallId === call.itemId);
    this.wanted = call.state === "awaitingApproval" || (call.state === "failed" && this.agent === undefined);
    this.call.update({ ...call, title: this.agent === undefined ? call.title : "Task and result" });
    this.below.id = `work-${call.itemId}`;
    this.fold.setAttribute("aria-controls", this.below.id);
    this.head(call.title);
    this.refold();
  }

  /** One of the agent's items is another, or new. */
  touch(itemId: string): void {
    this.attention();
    if (!this.below.hidden) {
      const item = this.view.session.item(itemId);
      this.lines.follow(this.ids);
      if (item !== undefined) this.rowCard(itemId)?.update(item);
    }
    this.refold();
  }

  /** Unfold, at the user's wish, so far that the item is there. */
  reveal(itemId: string): void {
    this.chosen = true;
    this.lines.follow(this.ids);
    const at = this.lines.placeOf(itemId) ?? 0;
    this.room = Math.max(this.room, this.lines.length - at);
    this.drawn = -1;
    this.refold();
    const card = this.rowCard(itemId);
    if (card instanceof ReadsCard) card.reveal();
  }

  card(itemId: string): Card | undefined {
    const card = this.rowCard(itemId);
    return card instanceof ReadsCard ? card.card(itemId) : card;
  }

  private rowCard(itemId: string): Card | undefined {
    return this.cards.get(this.lines.rowOf(itemId)?.id ?? "");
  }

  checked(message: Extract<ToView, { type: "rule" }>): void {
    this.call.checked(message);
  }

  /** The user comes back from the agent's own session. */
  focus(): void {
    this.open.focus();
  }

  private get ids(): readonly string[] {
    return this.agent === undefined ? [] : this.view.session.ids(this.agent.agentId);
  }

  private get asks(): boolean {
    return this.agent !== undefined && waitsForUser(this.view.session.state, this.agent);
  }

  private head(called: string): void {
    const { agent } = this;
    const title = agent === undefined ? called : `${agent.name}: ${agent.description}`;
    const summary = agent === undefined ? "" : visible(agent.summary);
    this.element.dataset.state = agent?.state ?? "waiting";
    this.element.setAttribute("aria-label", [oneLine(title, LINE), summary].filter(Boolean).join(". "));
    this.below.setAttribute("aria-label", `What ${agent?.name ?? "it"} did`);
    setIcon(this.mark, MARKS[agent?.state ?? "waiting"]);
    setText(this.title, oneLine(title, LINE));
    setText(this.summary, summary);
    this.stop.hidden = agent === undefined || !works(agent);
    this.stop.disabled = false;
    this.stop.setAttribute("aria-label", `Stop ${agent?.name}`);
    this.open.hidden = agent === undefined;
    this.open.setAttribute("aria-label", `Open the session of ${agent?.name}`);
    this.attention();
  }

  /** What it is doing, or that it waits for the user. */
  private attention(): void {
    const { agent, asks } = this;
    const doing = agent !== undefined && works(agent) ? visible(agent.activity) : "";
    this.element.classList.toggle("asks", asks);
    setText(this.activity, asks ? "Waiting for your answer" : doing);
    this.activity.hidden = this.activity.textContent === "";
  }

  /** What works is worth seeing; what has ended folds itself away, unless the user opened or closed it. */
  private refold(): void {
    const going = this.agent === undefined || works(this.agent);
    const open = this.chosen ?? (going || this.wanted || this.asks);
    const unfolds = open && this.below.hidden;
    this.below.hidden = !open;
    this.fold.setAttribute("aria-expanded", String(open));
    setIcon(this.chevron, open ? "chevron-down" : "chevron-right");
    if (unfolds) this.refresh();
    if (open) this.place();
  }

  private toggle(): void {
    this.chosen = this.below.hidden === true;
    this.refold();
  }

  /** What was folded away was not kept up to date. */
  private refresh(): void {
    this.lines.follow(this.ids);
    for (const [id, card] of this.cards) {
      if (card.row !== undefined) {
        card.element.remove(); // it counts what it sees: anew is simpler
        this.cards.delete(id);
        this.drawn = -1;
        continue;
      }
      const item = this.view.session.item(id);
      if (item !== undefined) card.update(item);
    }
  }

  private more(): void {
    this.room += NESTED;
    this.drawn = -1;
    this.place();
  }

  /** The rows that are to be there. What is folded away costs nothing. */
  private place(): void {
    this.lines.follow(this.ids);
    if (this.lines.version === this.drawn) return;
    this.drawn = this.lines.version;
    const first = this.first();
    setText(this.earlier, `Show earlier (${first})`);
    this.earlier.hidden = first === 0;
    const wanted = new Map(this.lines.slice(first).map((row) => [row.id, row]));
    for (const [id, card] of this.cards) {
      const row = wanted.get(id);
      if (row !== undefined && (card.row ?? row) === row) continue;
      card.element.remove();
      this.cards.delete(id);
    }
    let place = this.items.firstElementChild;
    for (const row of wanted.values()) {
      const item = this.view.session.item(row.id);
      if (item === undefined) continue;
      let card = this.cards.get(row.id);
      if (card === undefined) {
        card = this.makeRow(row, item, this.view);
        card.update(item);
        this.cards.set(row.id, card);
      }
      if (card.element === place) place = place.nextElementSibling;
      else this.items.insertBefore(card.element, place);
    }
  }

  /** Where the rows begin: with as many as the user wants, and whatever waits for an answer. */
  private first(): number {
    const { session } = this.view;
    const { approvals, questions } = session.state;
    const asked = [...approvals.map(({ toolCallId }) => toolCallId), ...questions.map(({ itemId }) => itemId)]
      .map((id) => this.lines.placeOf(id))
      .filter((at) => at !== undefined);
    return Math.max(0, Math.min(this.lines.length - this.room, ...asked));
  }

  private end(): void {
    if (this.agent === undefined) return;
    this.stop.disabled = true;
    this.view.post({ type: "stopAgent", agentId: this.agent.agentId });
  }

  private show(): void {
    if (this.agent !== undefined) this.view.post({ type: "open", sessionId: this.agent.sessionId });
  }
}
