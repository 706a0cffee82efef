import { advice, advised } from "../../daemon/advice";
import { visible } from "../../editor/visible";
import type { Item, Notice } from "../../protocol";
import { ACTIONS } from "./actions";
import type { Card, ChatView } from "./chatView";
import { button, h, setText } from "./dom";
import { placeLink } from "./links";
import { Markdown } from "./markdown";
import { finding, FINDINGS } from "./places";

/** All that is said about MCP servers. */
const MCP = "mcp";

/** How a refusal ends that names another model (`agent/refusals.py`). */
const RECOMMENDED = /`\/model (\S+)`, then send it again\.$/;

/** Something the daemon says; what there is to read behind it is folded away. */
export class NoticeCard implements Card {
  private readonly text = h("span", { class: "text" });
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

  constructor(private readonly view: ChatView) {}

  update(item: Item): void {
    const { level, code, text, detail, turnId } = item as Notice;
    this.detail = detail;
    this.element.className = `card notice ${level}`;
    this.element.dataset.code = code;
    this.element.setAttribute("aria-label", level === "info" ? "Notice" : level);
    this.say(advice(text), code);
    if (detail === "")
      this.element.replaceChildren(this.spinner(code), this.text, ...this.remedies(code, turnId));
    else {
      this.summary.replaceChildren(this.text);
      this.element.replaceChildren(this.details, ...this.remedies(code, turnId));
      this.draw();
    }
  }

  /** The findings of a review begin with the place they are about. */
  private say(text: string, code: string): void {
    if (code !== FINDINGS) return setText(this.text, text);
    const lines = text.split("\n").flatMap((line, at): (Node | string)[] => {
      const found = finding(line);
      const end = at > 0 ? "\n" : "";
      return found === undefined
        ? [end + visible(line)]
        : [end, placeLink(found.place, found.where), `: ${visible(found.words)}`];
    });
    this.text.replaceChildren(...lines);
  }

  private spinner(code: string): Node {
    return code === "compacting" || code === "hookRunning"
      ? h("span", { class: "spinner", "aria-hidden": "true" })
      : new Text();
  }

  private remedies(code: string, turnId: string | null): Node[] {
    const modelId = RECOMMENDED.exec(this.text.textContent ?? "")?.[1];
    if (code === "refused" && modelId !== undefined && turnId !== null)
      return [
        button(`Try again with ${visible(modelId)}`, () =>
          this.view.post({ type: "retry", turnId, modelId }),
        ),
      ];
    if (code === MCP) return [button(ACTIONS.mcp, () => this.view.post({ type: "action", action: "mcp" }))];
    if (code === "modelNotFound")
      return [button(ACTIONS.selectModel, () => this.view.post({ type: "action", action: "selectModel" }))];
    if (code !== "authRequired" && code !== "authFailed") return [];
    const actions = advised(this.text.textContent ?? "");
    return (actions.length > 0 ? actions : (["setKey"] as const)).map((action) =>
      button(ACTIONS[action], () => this.view.post({ type: "action", action })),
    );
  }

  /** What is folded away costs nothing. */
  private draw(): void {
    if (this.details.open) this.markdown.update(this.detail);
  }
}
