import MarkdownIt from "markdown-it";
import { button, h } from "./dom";

/** No HTML, no images (nothing is loaded), links only to the web: what a model writes is not to be trusted. */
const markdown = new MarkdownIt({ html: false, linkify: false, breaks: false });
markdown.disable("image");
markdown.validateLink = (url) => /^(https?|mailto):/i.test(url.trim());
markdown.renderer.rules.link_open = (tokens, at, options, _env, self) => {
  const token = tokens[at];
  const href = token?.attrGet("href");
  if (href) token?.attrSet("title", href); // where it leads, before it is pressed
  return self.renderToken(tokens, at, options);
};

/** Characters of one block that are drawn as they are beyond that: a table of a megabyte must not stop the view. */
const HUGE = 200_000;

/**
 * Markdown that grows. Blocks that can no longer change are drawn once and left alone; only the last two are drawn again
 * (the last may yet join the one before it, as "2" becomes the item "2." of a list).
 */
export class Markdown {
  readonly element = h("div", { class: "markdown" });
  private shown = "";
  /** Where the text that may still change begins. */
  private settled = 0;
  private live: Node[] = [];

  update(text: string, complete: boolean): void {
    if (text === this.shown && !complete) return;
    if (!text.startsWith(this.shown.slice(0, this.settled))) this.reset();
    this.shown = text;
    for (const node of this.live) node.parentNode?.removeChild(node);
    this.live = [];
    const tail = text.slice(this.settled);
    if (tail.length > HUGE) {
      this.live = [h("pre", {}, tail)];
      this.element.append(...this.live);
      return;
    }
    for (const [at, block] of blocks(tail).entries()) {
      const nodes = draw(block.text);
      this.element.append(...nodes);
      if (block.settled) this.settled += block.text.length;
      else this.live.push(...nodes);
      if (at > 0 && block.settled && this.live.length > 0)
        throw new Error("a settled block follows a live one");
    }
  }

  private reset(): void {
    this.element.replaceChildren();
    this.settled = 0;
    this.live = [];
  }
}

/** The text cut into its top-level blocks; all but the last two are settled. */
function blocks(text: string): { text: string; settled: boolean }[] {
  const starts = markdown
    .parse(text, {})
    .filter((token) => token.level === 0 && token.nesting >= 0 && token.map !== null)
    .map((token) => token.map?.[0] ?? 0);
  if (starts.length < 3) return [{ text, settled: false }];
  const lines = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines.push(at + 1);
  const live = lines[starts[starts.length - 2] as number] as number;
  return [
    { text: text.slice(0, live), settled: true },
    { text: text.slice(live), settled: false },
  ];
}

function draw(text: string): Node[] {
  const holder = document.createElement("template");
  holder.innerHTML = markdown.render(text); // escaped by the renderer: html is off
  for (const code of holder.content.querySelectorAll("pre")) {
    const copy = button("Copy", () => void navigator.clipboard.writeText(code.textContent ?? ""), {
      class: "copy",
      "aria-label": "Copy the code",
    });
    const box = h("div", { class: "code" });
    code.replaceWith(box);
    code.tabIndex = 0; // it scrolls, so the keyboard must reach it
    box.append(code, copy);
  }
  return [...holder.content.childNodes];
}
