import MarkdownIt, { type RendererRule } from "markdown-it";
import { straight } from "../../visible";
import { button, h } from "./dom";
import { linkedPlace, type Place, spannedPlace } from "./places";

/** No HTML, no images (nothing is loaded), links only to the web, and where they lead to be seen, and to files of the
 * workspace, which the host opens: what a model writes is not to be trusted. */
const markdown = new MarkdownIt({ html: false, linkify: false, breaks: false });
markdown.disable("image");
markdown.validateLink = (url) => leadsToWeb(url) || linkedPlace(url) !== undefined;
markdown.normalizeLink = (url) => {
  if (leadsToWeb(url)) return new URL(url).href; // letters of other scripts as what they are
  return linkedPlace(url) === undefined ? "" : url;
};
markdown.renderer.rules.link_open = (tokens, at, options, _env, self) => {
  const token = tokens[at];
  const href = token?.attrGet("href") ?? "";
  if (token && !leadsToWeb(href)) token.attrs = attributes(linkedPlace(href));
  else token?.attrSet("title", href);
  return self.renderToken(tokens, at, options);
};
/** Where a link leads stands beside it, in full, unless it is what it says or a file. */
markdown.renderer.rules.link_close = (tokens, at) => {
  const open = tokens.slice(0, at).findLastIndex(({ type }) => type === "link_open");
  const href = tokens[open]?.attrGet("href") ?? "";
  const said = tokens
    .slice(open + 1, at)
    .map(({ content }) => content)
    .join("");
  const same = href === "" || said === href || `${said}/` === href;
  return `${same ? "" : ` <span class="where">${markdown.utils.escapeHtml(href)}</span>`}</a>`;
};
/** A code span that names a file leads there, unless it stands in a link. */
markdown.renderer.rules.code_inline = (tokens, at, _options, _env, self) => {
  const token = tokens[at];
  const code = `<code>${markdown.utils.escapeHtml(token?.content ?? "")}</code>`;
  const opened = tokens.slice(0, at).filter(({ type }) => type === "link_open").length;
  const closed = tokens.slice(0, at).filter(({ type }) => type === "link_close").length;
  const place = opened === closed ? spannedPlace(token?.content ?? "") : undefined;
  if (!token || place === undefined) return code;
  token.attrs = attributes(place);
  return `<a${self.renderAttrs(token)}>${code}</a>`;
};
/** No inline style is let in: a cell says by its class where its text stands. */
const cell: RendererRule = (tokens, at, options, _env, self) => {
  const token = tokens[at];
  const side = /^text-align:(left|center|right)$/.exec(String(token?.attrGet("style") ?? ""))?.[1];
  if (token) token.attrs = side === undefined ? null : [["class", side]];
  return self.renderToken(tokens, at, options);
};
markdown.renderer.rules.th_open = cell;
markdown.renderer.rules.td_open = cell;

/** Of a link to a file. It has no address: `openPlace` tells the host. */
function attributes(place: Place | undefined): [string, string][] {
  if (place === undefined) return [];
  const { path, line } = place;
  const title = line === null ? path : `${path}:${line}`;
  return [
    ["class", "file"],
    ["role", "link"],
    ["tabindex", "0"],
    ["title", title],
    ["data-path", path],
    ["data-line", line === null ? "" : String(line)],
  ];
}

/** A link to a file outside of Markdown. */
export function placeLink(place: Place, text: string): HTMLElement {
  return h("a", Object.fromEntries(attributes(place)), text);
}

/** The file a click or a key in drawn Markdown means, if any. */
export function placeAt(target: EventTarget | null): Place | undefined {
  const link = target instanceof Element ? target.closest<HTMLElement>("a.file") : null;
  if (!link) return undefined;
  const { path = "", line = "" } = link.dataset;
  return { path, line: line === "" ? null : Number(line) };
}

/** Characters of one block that are drawn as they are beyond that: a table of a megabyte must not stop the view. */
const HUGE = 200_000;

/** A link VS Code may be asked to open, which it does after a question of its own. None that carries a name and a
 * password: what stands before the @ looks like where it leads. */
export function leadsToWeb(url: string): boolean {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return false;
  const { username, password } = new URL(url);
  return username === "" && password === "";
}

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

  update(text: string): void {
    if (text === this.shown) return;
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
    const [settled, live] = cut(tail);
    if (settled !== "") this.element.append(...draw(settled));
    this.settled += settled.length;
    this.live = draw(live);
    this.element.append(...this.live);
  }

  private reset(): void {
    this.element.replaceChildren();
    this.settled = 0;
    this.live = [];
  }
}

/** The text before its last two top-level blocks, which can no longer change, and the rest. */
function cut(text: string): [settled: string, live: string] {
  const starts = markdown
    .parse(text, {})
    .filter((token) => token.level === 0 && token.nesting >= 0 && token.map !== null)
    .map((token) => token.map?.[0] ?? 0);
  const line = starts.at(-2);
  if (starts.length < 3 || line === undefined) return ["", text];
  let at = 0;
  for (let passed = 0; passed < line; passed++) at = text.indexOf("\n", at) + 1;
  return [text.slice(0, at), text.slice(at)];
}

function draw(text: string): Node[] {
  const holder = document.createElement("template");
  holder.innerHTML = markdown.render(straight(text)); // escaped by the renderer: html is off
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
