import { agentOf } from "../../sessions/fold";
import type { ToView } from "../messages";
import { AgentCard } from "./agent";
import { makeRow } from "./cards";
import type { Card, ChatView } from "./chatView";
import { h } from "./dom";
import { iconButton } from "./icon";
import { placeAt } from "./links";
import { ReadsCard } from "./readsCard";
import { type Row, Rows } from "./rows";
import { TurnRow } from "./turn";
import { walk } from "./walk";

/** Rows of the session's own items in the document at most, and by how many the window moves. A session may have thousands of items. */
export const SHOWN = 120;
const STEP = 40;
/** Items of the session's own that do not fill a list. */
const FEW = 10;
/** Pixels from an end that count as being there. */
const NEAR = 48;

/** The conversation: a window of cards over the items, following the end until the user scrolls away. */
export class List {
  readonly element = h("div", { class: "list", role: "feed", "aria-label": "Conversation", tabindex: "0" });
  private readonly lines: Rows;
  /** By row. */
  private cards = new Map<string, Card>();
  /** What stands below the last card of a turn, by turn. */
  private rows = new Map<string, TurnRow>();
  /** The first row shown, while the user looks elsewhere than the end. */
  private firstId: string | undefined;
  private following = true;
  private asked = false;
  /** Where the list was scrolled to when we last looked, in pixels. */
  private top = 0;
  /** The rows as they were drawn. */
  private drawn = -1;
  /** The call whose question was shown from its beginning. */
  private begun: string | undefined;
  /** The way back to the end. */
  readonly newest = iconButton("arrow-down", "Scroll to bottom", () => this.follow(), {
    class: "newest",
  });
  /** A card grows at the user's hand, too: what it shows then must not be below the end. */
  private readonly sizes = new ResizeObserver(() => this.following && this.toEnd());

  constructor(private readonly view: ChatView) {
    this.lines = new Rows((itemId) => this.view.session.item(itemId));
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.element.addEventListener("click", (event) => this.opens(event));
    this.element.addEventListener("keydown", (event) => event.key === "Enter" && this.opens(event));
    this.element.addEventListener("keydown", (event) => walk(this.element, event));
    this.newest.hidden = true;
    this.sizes.observe(this.element); // what stands below may grow and take room
  }

  /** Another session, or the same anew. */
  reset(): void {
    for (const card of this.cards.values()) this.sizes.unobserve(card.element);
    this.cards.clear();
    this.rows.clear();
    this.element.replaceChildren();
    this.following = true;
    this.firstId = undefined;
    this.asked = false;
    this.update(new Set());
  }

  /** Draw what changed: `touched` are the items whose card may look different now. */
  update(touched: Set<string>): void {
    const { items, turn } = this.view.session.state;
    this.element.hidden = items.length === 0;
    this.element.classList.toggle("running", turn !== null);
    this.lines.follow(this.view.session.ids(null));
    const draw = () => {
      const own = this.nested(touched);
      if (own.size > 0 || touched.size === 0 || this.lines.version !== this.drawn) this.place(own);
    };
    if (this.following) {
      draw();
      this.toEnd();
    } else this.keeping(draw);
    if (this.lines.length < FEW) this.askEarlier(); // the page was all sub-agents', or is a few lines
  }

  /** Earlier items arrived, before the first one. */
  earlier(): void {
    this.asked = false;
    this.lines.follow(this.view.session.ids(null));
    this.keeping(() => this.place(new Set()));
    this.scrolled();
  }

  /** The user said something: show the end. */
  follow(): void {
    this.following = true;
    this.begun = undefined;
    this.newest.hidden = true;
    this.update(new Set());
  }

  /** Bring an item into sight, out of what is folded. False when there is no card for it. */
  show(itemId: string): boolean {
    const own = this.ownOf(itemId);
    const at = own === undefined ? undefined : this.lines.placeOf(own);
    const row = at === undefined ? undefined : this.lines.at(at);
    if (row === undefined || at === undefined) return false;
    if (!this.cards.has(row.id)) {
      this.following = false;
      this.newest.hidden = false;
      this.firstId = this.lines.at(Math.max(0, at - STEP))?.id;
      this.place(new Set());
    }
    const card = this.cards.get(row.id);
    if (card instanceof AgentCard && own !== itemId) card.reveal(itemId);
    if (card instanceof ReadsCard) card.reveal();
    this.cardOf(itemId)?.element.scrollIntoView({ block: "nearest" });
    return true;
  }

  /** Bring the sub-agent into sight whose session that is: the user comes back from there. */
  showAgent(sessionId: string): void {
    const agent = this.view.session.state.agents.find((each) => each.sessionId === sessionId);
    if (agent === undefined || !this.show(agent.toolCallId)) return;
    const card = this.cards.get(agent.toolCallId);
    if (card instanceof AgentCard) card.focus();
  }

  /** What the daemon says of a rule that is edited on the card of a call. */
  checked(message: Extract<ToView, { type: "rule" }>): void {
    this.cardOf(message.toolCallId)?.checked?.(message);
  }

  /** The item at the top level where that one stands: itself, or the call whose sub-agent it shows. */
  private ownOf(itemId: string): string | undefined {
    const item = this.view.session.item(itemId);
    const agentId = item && agentOf(item);
    if (agentId === null) return itemId;
    return this.view.session.state.agents.find((agent) => agent.agentId === agentId)?.toolCallId;
  }

  private cardOf(itemId: string): Card | undefined {
    const card = this.rowCard(this.ownOf(itemId));
    return card instanceof ReadsCard || (card instanceof AgentCard && this.ownOf(itemId) !== itemId)
      ? card.card(itemId)
      : card;
  }

  private rowCard(itemId: string | undefined): Card | undefined {
    return itemId === undefined ? undefined : this.cards.get(this.lines.rowOf(itemId)?.id ?? "");
  }

  /** Draw those of the items that sub-agents did, each on its own; what is left are the session's own. */
  private nested(touched: Set<string>): Set<string> {
    const own = new Set<string>();
    for (const id of touched) {
      const top = this.ownOf(id);
      if (top === undefined) continue;
      const card = this.rowCard(top);
      if (top === id) own.add(id);
      else if (card instanceof AgentCard) card.touch(id);
    }
    return own;
  }

  get count(): number {
    return this.cards.size;
  }

  /** A file that an answer names. */
  private opens(event: Event): void {
    const place = placeAt(event.target);
    if (place === undefined) return;
    event.preventDefault();
    this.view.post({ type: "openFile", ...place });
  }

  /** Draw the rows that are to be there; `touched` are the items whose row may look different now. */
  private place(touched: Set<string>): void {
    this.drawn = this.lines.version;
    const first = this.first();
    const wanted = this.lines.slice(first, first + SHOWN);
    this.firstId = wanted[0]?.id;
    const rows = new Map(wanted.map((row) => [row.id, row]));
    for (const [id, card] of this.cards) {
      const row = rows.get(id);
      if (row !== undefined && (card.row ?? row) === row) continue;
      this.sizes.unobserve(card.element);
      card.element.remove();
      this.cards.delete(id);
    }
    for (const id of touched) {
      const item = this.view.session.item(id);
      if (item !== undefined) this.rowCard(id)?.update(item);
    }
    const ends = this.rowsAfter(wanted, this.lines.at(first + SHOWN), touched);
    let place = this.element.firstElementChild;
    const put = (element: HTMLElement) => {
      if (element === place) place = place.nextElementSibling;
      else this.element.insertBefore(element, place);
    };
    for (const [at, row] of wanted.entries()) {
      const card = this.cards.get(row.id) ?? this.make(row);
      if (card === undefined) continue;
      card.element.setAttribute("aria-posinset", String(first + at + 1));
      put(card.element);
      const end = ends.get(row.id);
      if (end !== undefined) put(end.element);
    }
  }

  private make(row: Row): Card | undefined {
    const item = this.view.session.item(row.id);
    if (item === undefined) return undefined;
    const card = makeRow(row, item, this.view);
    this.cards.set(row.id, card);
    this.sizes.observe(card.element);
    card.update(item);
    return card;
  }

  /** The rows of turns to be shown, up to date, each by the row it stands below: the last of its turn. Others leave. */
  private rowsAfter(wanted: Row[], next: Row | undefined, touched: Set<string>): Map<string, TurnRow> {
    const last = new Map<string, string>();
    for (const { id } of wanted) last.set(this.turnOf(id), id);
    last.delete(next === undefined ? "" : this.turnOf(next.id)); // it ends below what is shown
    last.delete("");
    const { session } = this.view;
    const turns = new Set([...touched].map((id) => session.item(id)?.turnId));
    const ends = new Map<string, TurnRow>();
    for (const [turnId, itemId] of last) {
      const known = this.rows.get(turnId);
      const row = known ?? new TurnRow(this.view, turnId);
      this.rows.set(turnId, row);
      if (known === undefined || turns.has(turnId)) row.update();
      if (row.shown) ends.set(itemId, row);
      else row.element.remove();
    }
    for (const [turnId, row] of this.rows) {
      if (last.has(turnId)) continue;
      row.element.remove();
      this.rows.delete(turnId);
    }
    return ends;
  }

  /** "" for an item of no turn. */
  private turnOf(itemId: string): string {
    return this.view.session.item(itemId)?.turnId ?? "";
  }

  private first(): number {
    const last = Math.max(0, this.lines.length - SHOWN);
    if (this.following || this.firstId === undefined) return last;
    return Math.min(this.lines.placeOf(this.firstId) ?? last, last);
  }

  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    const { length } = this.lines;
    const first = this.lines.placeOf(this.firstId ?? "") ?? 0;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    // only upwards is the user's doing: what grows or takes room between two frames is not
    if (atEnd && first + SHOWN >= length) this.following = true;
    else if (scrollTop < this.top) this.following = false;
    this.top = scrollTop;
    this.newest.hidden = this.following;
    if (scrollTop < NEAR && first > 0) this.move(Math.max(0, first - STEP));
    else if (scrollTop < NEAR && first === 0 && this.askEarlier()) return;
    else if (atEnd && first + SHOWN < length) this.move(first + STEP);
  }

  private askEarlier(): boolean {
    const { items, hasEarlier } = this.view.session.state;
    if (!hasEarlier || this.asked || items.length === 0) return false;
    this.asked = true;
    this.view.post({ type: "earlier" });
    return true;
  }

  private move(first: number): void {
    this.keeping(() => {
      this.firstId = this.lines.at(first)?.id;
      this.place(new Set());
    });
  }

  /** Do it without moving what the user looks at. */
  private keeping(work: () => void): void {
    const top = this.element.scrollTop;
    const anchor = [...this.element.children].find(
      (each) => (each as HTMLElement).offsetTop + (each as HTMLElement).offsetHeight > top,
    ) as HTMLElement | undefined;
    const before = anchor?.offsetTop ?? 0;
    work();
    if (anchor?.isConnected) {
      const moved = anchor.offsetTop - before;
      if (moved !== 0) this.element.scrollTop = top + moved;
    }
  }

  /** The end; but a question, or one about a command or of a sub-agent, that is taller than the list or above others begins at the top, once: nobody shall say
   * yes to what is out of sight. */
  private toEnd(): void {
    const { scrollHeight, clientHeight } = this.element;
    const { approvals, questions } = this.view.session.state;
    const asked =
      approvals.find(({ proposalId, agentId }) => proposalId === null || agentId)?.toolCallId ??
      questions[0]?.itemId;
    const card = asked === undefined ? undefined : this.cardOf(asked)?.element;
    const below = card?.isConnected && card.offsetTop < scrollHeight - clientHeight;
    if (!below || card.contains(document.activeElement)) this.element.scrollTop = scrollHeight;
    else if (this.begun !== asked) {
      this.element.scrollTop = card.offsetTop;
      this.begun = asked;
    }
    this.top = this.element.scrollTop;
  }
}
