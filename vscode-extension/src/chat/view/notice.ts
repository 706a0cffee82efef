import { advice } from "../../advice";
import type { Item, Notice } from "../../protocol";
import type { Card } from "./cards";
import type { Desk } from "./desk";
import { button, h, setText } from "./dom";
import { Markdown } from "./markdown";

/** Something the daemon says; what there is to read behind it is folded away. */
export class NoticeCard implements Card {
  private readonly text = h("span", {});
  private readonly summary = h("summary", {});
  private readonly markdown = new Markdown();
  private readonly details = h(
    "details",
    { ontoggle: () => this.draw() },
    this.summary,
    this.markdown.element,
  );
  readonly element = h("article", { class: "card notice" });
  private detail = "";

  constructor(private readonly desk: Desk) {}

  update(item: Item): void {
    const { level, code, text, detail } = item as Notice;
    this.detail = detail;
    this.element.className = `card notice ${level}`;
    this.element.dataset.code = code;
    this.element.setAttribute("aria-label", level === "info" ? "Notice" : level);
    setText(this.text, advice(text));
    if (detail === "") this.element.replaceChildren(this.spinner(code), this.text, this.remedy(code));
    else {
      this.summary.replaceChildren(this.text);
      this.element.replaceChildren(this.details, this.remedy(code));
      this.draw();
    }
  }

  private spinner(code: string): Node {
    return code === "compacting" ? h("span", { class: "spinner", "aria-hidden": "true" }) : new Text();
  }

  private remedy(code: string): Node {
    const needsKey = code === "authRequired" || code === "authFailed";
    if (!needsKey) return new Text();
    return button("Set API key…", () => this.desk.post({ type: "action", action: "setKey" }));
  }

  /** What is folded away costs nothing. */
  private draw(): void {
    if (this.details.open) this.markdown.update(this.detail);
  }
}
