import { h } from "./dom";

/** Pixels from the end that count as being there. */
const NEAR = 8;
/** Lines of it in the document; what is written is at the end. */
export const LIVE_LINES = 400;
const KINDS: Record<string, string> = { "+": "added", "-": "removed" };

/** An edit while the model writes it: lines that begin with what happens to them. Follows its end, unless the user
 * scrolled away from it. */
export class LiveEditBox {
  readonly element = h("pre", { class: "live-edit", "aria-label": "Live edit", tabindex: "0", hidden: true });
  /** What is drawn. */
  private text = "";

  /** Show this much of it; "" when there is none any more. What only grew is appended. */
  update(text: string): void {
    if (text === this.text) return;
    if (!text.startsWith(this.text)) {
      this.text = "";
      this.element.replaceChildren();
    }
    const box = this.element;
    const following = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    const lines = text.slice(this.text.length).split("\n").slice(0, -1);
    box.append(...lines.slice(-LIVE_LINES).map(line));
    while (box.childElementCount > LIVE_LINES) box.firstElementChild?.remove();
    this.text = text;
    box.hidden = text === "";
    if (following) requestAnimationFrame(() => (box.scrollTop = box.scrollHeight));
  }
}

function line(text: string): HTMLElement {
  const kind = KINDS[text.charAt(0)];
  return h("span", { class: kind ?? "more" }, `${kind ? `${text.charAt(0)} ${text.slice(1)}` : text}\n`);
}
