import type { ContextPart, ContextUse, SessionState, Usage } from "../../protocol";
import { CONTEXT_PARTS, CONTEXT_TIERS } from "../../labels";
import { inUse, tokens } from "../../sessions/words";
import { type ChatView, lastNotice, makingRoom } from "./chatView";
import { button, h, setText } from "./dom";

/** In the order they are sent, each with its name. */
const PARTS = Object.entries(CONTEXT_PARTS) as [part: ContextPart, name: string][];

/** After these there is nothing new to summarise. */
const DONE: ReadonlySet<string> = new Set(["compacted", "nothingToCompact"]);

/** How full the model's window is, what fills it, and what the session has cost: a bar, and behind it the numbers. */
export class Gauge {
  private readonly bar = new Bar();
  private readonly share = h("span", { class: "share" });
  private readonly word = h("span", { class: "word" });
  private readonly open = h(
    "button",
    {
      type: "button",
      class: "gauge",
      "aria-expanded": "false",
      "aria-controls": "context",
      onclick: () => (this.card.element.hidden ? this.show() : this.hide()),
    },
    this.bar.element,
    this.share,
    this.word,
  );
  private readonly cost = h("span", { class: "cost" });
  private readonly card: Card;
  readonly element: HTMLElement;

  constructor(private readonly view: ChatView) {
    this.card = new Card(() => {
      this.hide();
      this.view.post({ type: "action", action: "compact" });
    });
    this.element = h("div", { class: "usage" }, this.open, this.cost, this.card.element);
    // on the document: a press beside the card closes it, wherever the focus is
    document.addEventListener("pointerdown", ({ target }) => {
      if (!this.element.contains(target as Node)) this.hide(false);
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.card.element.hidden) return;
      event.stopPropagation();
      this.hide();
    });
    this.element.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget !== null && !this.element.contains(relatedTarget as Node)) this.hide(false);
    });
    this.update();
  }

  /** At the user's wish. */
  show(): void {
    if (this.open.hidden) return;
    this.card.element.hidden = false;
    this.open.setAttribute("aria-expanded", "true");
    this.update();
    this.card.element.focus();
  }

  update(): void {
    const state = this.view.session.state;
    const { usage } = state;
    const context = usage?.context ?? null;
    this.open.hidden = context === null;
    if (context === null) this.hide(false);
    setText(this.cost, usage === null ? "" : context === null ? usageText(usage) : usage.cost);
    this.cost.title = usage === null ? "" : costDetail(state, usage);
    if (usage === null || context === null) return;
    const { name: word } = CONTEXT_TIERS[context.tier] ?? CONTEXT_TIERS.roomy;
    this.open.dataset.tier = context.tier;
    this.bar.update(context);
    setText(this.share, `${usage.percent}%`);
    setText(this.word, word);
    this.open.setAttribute("aria-label", `Context ${usage.percent}% full${word && `, ${word}`}`);
    const parts = PARTS.map(([part, name]) => `${name} ${tokens(context[part])}`);
    this.open.title = [`Context ${word || "has room"}`, ...parts].join("\n");
    if (!this.card.element.hidden) this.card.update(state, usage, context);
  }

  private hide(back = true): void {
    if (this.card.element.hidden) return;
    this.card.element.hidden = true;
    this.open.setAttribute("aria-expanded", "false");
    if (back) this.open.focus();
  }
}

/** What lies behind the bar. */
class Card {
  private readonly full = h("strong", {});
  private readonly room = h("span", { class: "aside" });
  private readonly bar = new Bar();
  private readonly rows: [part: ContextPart, row: HTMLElement, count: HTMLElement][];
  private readonly servers = h("p", { class: "aside" });
  private readonly meaning = h("p", { class: "meaning" });
  private readonly compact: HTMLButtonElement;
  private readonly why = h("span", { class: "aside" });
  private readonly session = h("dd", {});
  private readonly turn = h("dd", {});
  private readonly turnName = h("dt", {}, "Last turn");
  readonly element: HTMLElement;

  constructor(compact: () => void) {
    this.compact = button("Compact", compact, {
      title: "Replace older messages with a summary for the model. You still see all of them.",
    });
    this.rows = PARTS.map(([part, name]) => {
      const count = h("td", {});
      const swatch = h("span", { class: `part ${part}`, "aria-hidden": "true" });
      return [part, h("tr", {}, h("th", { scope: "row" }, swatch, name), count), count];
    });
    this.element = h(
      "section",
      {
        class: "context",
        id: "context",
        role: "dialog",
        "aria-label": "Context",
        tabindex: "-1",
        hidden: true,
      },
      h("p", { class: "row" }, this.full, this.room),
      this.bar.element,
      h("table", {}, h("tbody", {}, ...this.rows.map(([, row]) => row))),
      this.servers,
      this.meaning,
      h("p", { class: "row" }, this.compact, this.why),
      h("dl", {}, h("dt", {}, "Session"), this.session, this.turnName, this.turn),
    );
  }

  update(state: SessionState, usage: Usage, context: ContextUse): void {
    const { meaning } = CONTEXT_TIERS[context.tier] ?? CONTEXT_TIERS.roomy;
    const used = inUse(context);
    this.element.dataset.tier = context.tier;
    setText(this.full, `${usage.percent}% full`);
    setText(this.room, `about ${exactly(used)} of ${exactly(used + context.free)} tokens`);
    this.bar.update(context);
    for (const [part, row, count] of this.rows) {
      row.hidden = context[part] === 0 && part !== "free";
      setText(count, exactly(context[part]));
    }
    setText(
      this.servers,
      `MCP servers' share of the tools: ${context.servers.map((each) => `${each.name} ${exactly(each.tokens)}`).join(" · ")}`,
    );
    this.servers.hidden = context.servers.length === 0;
    setText(this.meaning, meaning);
    this.meaning.hidden = meaning === "";
    const why = uncompactable(state, context);
    this.compact.disabled = why !== "";
    setText(this.why, why);
    setText(this.session, usage.summary);
    const last = state.lastTurn?.usage ?? null;
    this.turn.hidden = this.turnName.hidden = last === null;
    setText(this.turn, last === null ? "" : last.summary);
  }
}

/** The window as a line: each part as wide as it is big. Numbers stand beside it, so a screen reader passes it by. */
class Bar {
  private readonly parts = PARTS.map(([part]) => ({ part, element: h("span", { class: `part ${part}` }) }));
  readonly element = h(
    "span",
    { class: "bar", "aria-hidden": "true" },
    ...this.parts.map(({ element }) => element),
  );

  update(context: ContextUse): void {
    for (const { part, element } of this.parts) {
      element.style.flexGrow = String(context[part]);
      element.hidden = context[part] === 0;
    }
  }
}

/** Why the conversation cannot be compacted now; "" when it can. */
export function uncompactable(state: SessionState, context: ContextUse): string {
  if (state.readOnly) return "This session is read-only.";
  if (makingRoom(state)) return "The conversation is being compacted.";
  if (DONE.has(lastNotice(state)?.code ?? "")) return "There is nothing new to compact.";
  if (context.conversation + context.toolOutput === 0) return "There is nothing to compact yet.";
  return "";
}

/** In short, where the parts are not known: how full the context is, and the cost. */
export function usageText(usage: Usage): string {
  return [usage.fullness, usage.cost].filter((words) => words !== "").join(" · ");
}

function costDetail(state: SessionState, usage: Usage): string {
  const last = state.lastTurn?.usage ?? null;
  const lines = [`Session: ${usage.summary}`];
  if (last !== null) lines.push(`Last turn: ${last.summary}`);
  if (usage.context === null)
    lines.push(`Context: ${tokens(usage.contextTokens)} of ${tokens(usage.contextWindow)}`);
  return lines.join("\n");
}

function exactly(count: number): string {
  return count.toLocaleString("en-US");
}
