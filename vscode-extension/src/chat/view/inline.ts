import { h } from "./dom";
import { formulaDrawing } from "./formulaDrawing";
import { namedFiles } from "./namedFiles";
import { parser } from "./parser";
import { workspacePictures } from "./workspacePictures";

/** Definitions of links, `[label]: address`, by label. */
export type References = Record<string, { title: string; href: string }>;

/** Characters of a paragraph that are parsed as one; a longer one is drawn in pieces, so that one that grows costs what is
 * new. A piece ends where nothing is open; if there is no such place, it ends anyway. */
const PIECE = 2_000;
const STEP = 500;
const LONGEST = 8_000;
/** Pieces that are laid out together; those after them begin a line. */
const PART = 4;

/** Text with inline markup that grows. */
export class Inline {
  private text = "";
  /** Where the last piece begins, and how much of it was looked through for an end in vain. */
  private begin = 0;
  private searched = 0;
  private last: ChildNode[] = [];
  private pieces = 0;
  /** Where the last piece stands. */
  private part: HTMLElement;

  constructor(private readonly element: HTMLElement) {
    this.part = element;
  }

  /** Draw it. `changed` are labels whose address is another than at the last time. */
  update(text: string, references: References, changed: readonly string[] = []): void {
    const mentioned = changed.length > 0 && mentions(text, changed);
    if (text === this.text && !mentioned) return;
    if (mentioned || !text.startsWith(this.text.slice(0, this.begin))) this.reset();
    this.text = text;
    for (const node of this.last) node.remove();
    for (let end = this.end(references); end !== undefined; end = this.end(references)) {
      this.part.append(...nodes(text.slice(this.begin, end), references));
      this.begin = end;
      this.searched = 0;
      if (++this.pieces % PART === 0) this.element.append((this.part = h("span", { class: "part" })));
    }
    this.last = nodes(text.slice(this.begin), references);
    this.part.append(...this.last);
  }

  /** After other definitions. */
  redraw(references: References, changed: readonly string[]): void {
    this.update(this.text, references, changed);
  }

  get refers(): boolean {
    return this.text.includes("[");
  }

  private reset(): void {
    this.element.replaceChildren();
    this.begin = 0;
    this.searched = 0;
    this.last = [];
    this.pieces = 0;
    this.part = this.element;
  }

  /** Where the piece that begins last ends, if it does. It depends on the text before alone, not on what has arrived. */
  private end(references: References): number | undefined {
    const rest = this.text.slice(this.begin);
    for (let from = Math.max(PIECE, this.searched); from + STEP < rest.length; from += STEP) {
      const blank = from + blankIn(rest.slice(from, from + STEP));
      if (blank >= from && (blank >= LONGEST || closed(rest.slice(0, blank), references)))
        return this.begin + blank + 1;
      this.searched = from + STEP;
    }
    return undefined;
  }
}

/** Where a single blank between two words is, at best between two sentences; -1 without one. */
function blankIn(text: string): number {
  const sentence = text.search(/[.!?] \S/);
  return sentence < 0 ? text.search(/(?<=\S) \S/) : sentence + 1;
}

/** Whether nothing after it can change how the text is drawn: all markup in it is complete. */
function closed(text: string, references: References): boolean {
  const left = parser
    .parseInline(text, { references: { ...references } })
    .flatMap(({ children }) => children ?? [])
    .map(({ type, content }) => (type === "text" ? content : ""))
    .join("")
    .replace(/\[[^[\]]*\]/g, "")
    .replace(/(?<=\w)_+(?=\w)|\s\*+\s/g, " ");
  return !/[`[*_<$]|~~/.test(left);
}

function nodes(text: string, references: References): ChildNode[] {
  const holder = document.createElement("template");
  const [token] = parser.parseInline(text, { references: { ...references } });
  holder.innerHTML = parser.renderer.render(token?.children ?? [], parser.options, {}); // escaped: html is off
  for (const formula of holder.content.querySelectorAll<HTMLElement>("span.formula"))
    formulaDrawing.draw(formula, formula.textContent, formula.dataset["display"] !== undefined);
  for (const image of holder.content.querySelectorAll<HTMLImageElement>("img.workspace"))
    workspacePictures.draw(image);
  namedFiles.mark(holder.content);
  return [...holder.content.childNodes];
}

function mentions(text: string, labels: readonly string[]): boolean {
  return [...text.matchAll(/\[((?:[^[\]\\]|\\.)+)\]/gs)].some(([, label = ""]) =>
    labels.includes(parser.utils.normalizeReference(label)),
  );
}
