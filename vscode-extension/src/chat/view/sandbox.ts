import { SANDBOX } from "../../labels";
import type { CommandSandbox } from "../../protocol";
import { visible } from "../../editor/visible";
import { button, h } from "./dom";
import { icon } from "./icon";

/** What holds a command, on a line of its own; that nothing does is a warning. */
export function sandboxLine(sandbox: CommandSandbox): HTMLElement {
  return h(
    "div",
    { class: `held ${sandbox.tier === "none" ? "open" : ""}` },
    h("span", { class: "mark" }, icon(mark(sandbox))),
    h("span", {}, visible(sandbox.summary)),
  );
}

/** In the header: what holds the commands of the session; pressed, it says more. */
export class SandboxBadge {
  readonly element = button("", () => this.explain(), { class: "sandbox", hidden: true });
  private sandbox: CommandSandbox | null = null;

  constructor(private readonly tell: (level: "info" | "warning", text: string) => void) {}

  update(sandbox: CommandSandbox | null): void {
    this.sandbox = sandbox;
    this.element.hidden = sandbox === null;
    if (sandbox === null) return;
    const word = SANDBOX[sandbox.tier];
    this.element.replaceChildren(icon(mark(sandbox)), h("span", { class: "word" }, ` ${word}`));
    this.element.setAttribute("aria-label", word);
    this.element.title = visible(sandbox.summary);
    this.element.classList.toggle("open", sandbox.tier === "none");
  }

  private explain(): void {
    if (this.sandbox === null) return;
    const { tier, summary } = this.sandbox;
    this.tell(tier === "none" ? "warning" : "info", summary);
  }
}

function mark({ tier }: CommandSandbox): string {
  return tier === "none" ? "warning" : "shield";
}
