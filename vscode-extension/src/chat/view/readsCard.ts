import type { Item, ToolCall } from "../../protocol";
import { oneLine } from "../../editor/visible";
import type { ToView } from "../messages";
import type { Card, ChatView } from "./chatView";
import { h, setText } from "./dom";
import { icon, setIcon } from "./icon";
import { isLook, isRunning, Tally } from "./reads";
import type { Row } from "./rows";

/** Characters of a title: the daemon cuts it, too. */
const TITLE = 200;

/** Reads and searches in a row, on one line: what is done counted, what runs by name. Each has a row of its own behind
 * it; one that asks the user, or is alone, stands in the open. */
export class ReadsCard implements Card {
  private readonly mark = icon("check");
  private readonly title = h("span", { class: "title" });
  private readonly failed = h("span", { class: "state" });
  private readonly items = h("div", { class: "items" });
  private readonly details = h(
    "details",
    { ontoggle: () => this.fill() },
    h("summary", {}, this.mark, this.title, this.failed),
    this.items,
  );
  private readonly open = h("div", { class: "open" });
  readonly element = h("article", { class: "card looked" }, this.details, this.open);
  private readonly cards = new Map<string, Card>();
  private readonly tally = new Tally();
  private readonly running = new Map<string, ToolCall>();
  /** How many of the members were seen. */
  private seen = 0;

  constructor(
    private readonly view: ChatView,
    readonly row: Row,
    private readonly makeCard: (item: Item, view: ChatView) => Card,
  ) {}

  /** One of the items is another; others may have come. */
  update(item: Item): void {
    const from = this.seen;
    const folded = from > 1;
    for (; this.seen < this.row.members.length; this.seen++) this.take(this.row.members[this.seen] as string);
    if (from > 0) this.take(item.itemId);
    if (!folded && this.seen > 1 && from > 0) this.put(this.row.members[0] as string);
    this.details.hidden = this.seen === 1;
    const current = [...this.running.values()].at(-1);
    setIcon(this.mark, current === undefined ? "check" : "loading");
    setText(this.title, current === undefined ? this.tally.line : oneLine(current.title, TITLE));
    this.title.title = this.title.textContent;
    setText(this.failed, this.tally.failures);
    this.element.setAttribute(
      "aria-label",
      [this.title.textContent, this.tally.failures].filter(Boolean).join(", "),
    );
  }

  card(itemId: string): Card | undefined {
    return this.cards.get(itemId);
  }

  /** Unfold. */
  reveal(): void {
    this.details.open = true;
    this.fill();
  }

  checked(message: Extract<ToView, { type: "rule" }>): void {
    this.cards.get(message.toolCallId)?.checked?.(message);
  }

  private take(itemId: string): void {
    const item = this.view.session.item(itemId);
    if (item === undefined) return;
    if (isLook(item)) {
      this.tally.count(item);
      if (isRunning(item)) this.running.set(itemId, item);
      else this.running.delete(itemId);
    }
    this.put(itemId);
  }

  /** Where its card belongs: in the open, behind the line, or nowhere. */
  private put(itemId: string): void {
    const item = this.view.session.item(itemId);
    if (item === undefined) return;
    const asks = item.kind === "toolCall" && item.state === "awaitingApproval";
    const place =
      asks || this.row.members.length === 1 ? this.open : this.details.open ? this.items : undefined;
    const known = this.cards.get(itemId);
    if (place === undefined) {
      known?.element.remove();
      this.cards.delete(itemId);
      return;
    }
    const card = known ?? this.makeCard(item, this.view);
    this.cards.set(itemId, card);
    card.update(item);
    const before = card.element.parentElement;
    if (before !== place) place.append(card.element);
    if (before === this.open && place === this.items) this.sort();
  }

  /** It was in the open, and others have come behind the line since. */
  private sort(): void {
    this.items.replaceChildren(
      ...this.row.members
        .flatMap((id) => this.cards.get(id)?.element ?? [])
        .filter(({ parentElement }) => parentElement === this.items),
    );
  }

  /** What is folded away costs nothing. */
  private fill(): void {
    if (this.details.hidden) return;
    for (const itemId of this.row.members) this.put(itemId);
  }
}
