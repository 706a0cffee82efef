import { SANDBOX } from "../../labels";
import type { Walls } from "../../protocol";
import { visible } from "../../visible";
import { button, h } from "./dom";

/** What holds a command, on a line of its own; that nothing does is a warning. */
export function wallsLine(walls: Walls): HTMLElement {
  return h(
    "div",
    { class: `held ${walls.tier === "none" ? "open" : ""}` },
    h("span", { class: "mark", "aria-hidden": "true" }, mark(walls)),
    h("span", {}, visible(walls.summary)),
  );
}

/** In the header: what holds the commands of the session; pressed, it says more. */
export class WallsSign {
  readonly element = button("", () => this.explain(), { class: "walls", hidden: true });
  private walls: Walls | null = null;

  constructor(private readonly tell: (level: "info" | "warning", text: string) => void) {}

  update(walls: Walls | null): void {
    this.walls = walls;
    this.element.hidden = walls === null;
    if (walls === null) return;
    const word = SANDBOX[walls.tier];
    this.element.replaceChildren(
      h("span", { "aria-hidden": "true" }, mark(walls)),
      h("span", { class: "word" }, ` ${word}`),
    );
    this.element.setAttribute("aria-label", word);
    this.element.title = visible(walls.summary);
    this.element.classList.toggle("open", walls.tier === "none");
  }

  private explain(): void {
    if (this.walls === null) return;
    const { tier, summary } = this.walls;
    this.tell(tier === "none" ? "warning" : "info", summary);
  }
}

function mark({ tier }: Walls): string {
  return tier === "none" ? "⚠" : "▣";
}
