import type { MentionItem, MentionKind } from "../../protocol";
import { button, h } from "./dom";

/** The codicon of each kind. */
export const ICONS: Record<MentionKind, string> = {
  file: "file",
  folder: "folder",
  symbol: "symbol-class",
  problems: "warning",
  diff: "git-compare",
  terminal: "terminal",
  resource: "plug",
};

const NAMES: Partial<Record<MentionKind, string>> = {
  problems: "Problems",
  diff: "Uncommitted changes",
  terminal: "Terminal output",
};

/** What was chosen from the list and still stands in the prompt: a chip for each, of its kind. */
export class Mentioned {
  readonly element = h("span", { class: "mentioned" });
  private readonly chosen = new Map<string, MentionKind>();
  private drawn = "";

  constructor(private readonly input: HTMLTextAreaElement) {
    input.addEventListener("input", () => this.draw());
  }

  /** The user took it into the prompt. What begins something longer is not yet anything. */
  add({ text, kind }: MentionItem): void {
    if (!text.endsWith(":")) this.chosen.set(text, kind);
  }

  get empty(): boolean {
    return this.element.childElementCount === 0;
  }

  /** The prompt is another one. */
  draw(): void {
    const text = this.input.value;
    if (text === "") this.chosen.clear();
    const present = [...this.chosen].filter(([mention]) => place(text, mention) !== undefined);
    const drawn = present.map(([mention]) => mention).join("\n");
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.element.replaceChildren(...present.map(([mention, kind]) => this.chip(mention, kind)));
  }

  private chip(mention: string, kind: MentionKind): HTMLElement {
    const name = NAMES[kind] ?? short(mention);
    return h(
      "span",
      { class: "chip", "data-kind": kind, title: mention },
      h("span", { class: `codicon codicon-${ICONS[kind]}`, "aria-hidden": "true" }),
      name,
      button("×", () => this.remove(mention), { "aria-label": `Remove ${name}` }),
    );
  }

  private remove(mention: string): void {
    const at = place(this.input.value, mention);
    if (at === undefined) return;
    const end = at + mention.length;
    this.input.setRangeText("", at, this.input.value[end] === " " ? end + 1 : end, "end");
    this.input.dispatchEvent(new Event("input"));
    this.input.focus();
  }
}

/** Where the prompt mentions it: as a whole, not as the beginning of something longer. */
function place(text: string, mention: string): number | undefined {
  for (let at = text.indexOf(mention); at !== -1; at = text.indexOf(mention, at + 1))
    if (/^(?:$|[\s.,;:!?)\]])/.test(text.slice(at + mention.length)) || mention.endsWith('"')) return at;
  return undefined;
}

/** A path by its last part; a symbol by its name. */
function short(mention: string): string {
  const text = mention.slice(1).replace(/^symbol:|^"|"$/g, "");
  return /[^/]+\/?$/.exec(text)?.[0] ?? text;
}
