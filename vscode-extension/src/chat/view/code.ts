import { oneLine } from "../../visible";
import { button, h, setText } from "./dom";
import { labelOf } from "./fence";
import { host } from "./host";
import { placeLink } from "./links";
import { painter, type Paintable, type Tokens } from "./painter";

/** Lines of a block that is whole which are shown without asking. */
const FOLD = 40;
/** Lines that are sent to be coloured at once. */
const PAINTED_AT_ONCE = 200;
/** Pixels from the end that count as being there. */
const NEAR = 8;
const SHELLS: ReadonlySet<string> = new Set(["bash", "sh", "shell", "zsh", "fish", "console", "shellscript"]);

/** A code block: its language and file, what can be done with it, and its lines, which are added to. They are coloured
 * when the extension has said how; each is an element, so that one more costs one. */
export class CodeBlock implements Paintable {
  private readonly language = h("span", { class: "language" });
  private readonly place = h("span", { class: "place" });
  private readonly copy = button("Copy", () => void this.copied(), {
    class: "link",
    "aria-label": "Copy the code",
  });
  private readonly insert = button("Insert", () => host.post({ type: "insertCode", text: this.text }), {
    class: "link",
    title: "Insert at the cursor of the editor",
  });
  private readonly run = button("Terminal", () => host.post({ type: "terminal", text: this.text }), {
    class: "link",
    title: "Type it into the terminal; Enter runs it",
  });
  private readonly code = h("code", {});
  private readonly pre = h("pre", { tabindex: "0", onscroll: () => this.scrolled() }, this.code);
  private readonly all = button("", () => this.unfold(), { class: "all link", hidden: true });
  readonly element = h(
    "div",
    { class: "code", role: "group" },
    h("div", { class: "head" }, this.language, this.place, this.copy, this.insert, this.run),
    this.pre,
    this.all,
  );
  private text = "";
  private lines: HTMLElement[] = [];
  private following = true;
  private unfolded = false;
  private kind = "";
  /** Lines that have their colours, and the last one as it was when it got them. */
  private painted = 0;
  private paintedLast: string | undefined;
  /** The lines that were sent to be coloured. */
  private sent: string[] = [];

  constructor(private readonly info: string) {
    this.label("");
    painter.add(this);
  }

  /** Show that code; `open` while it may grow. */
  update(whole: string, open: boolean): void {
    const text = whole.endsWith("\n") ? whole.slice(0, -1) : whole;
    if (text !== this.text || this.lines.length === 0) {
      if (!text.startsWith(this.text)) this.clear();
      this.append(text.slice(this.text.length));
      this.text = text;
      painter.touch(this);
    }
    this.element.classList.toggle("open", open);
    this.fold(!open && !this.unfolded && this.lines.length > FOLD);
    if (open && this.following)
      // in the next frame, when it is laid out anyway
      requestAnimationFrame(() => (this.pre.scrollTop = this.pre.scrollHeight));
  }

  /** The lines to be coloured next. */
  next(): { start: number; lines: string[] } | undefined {
    const shown = this.element.classList.contains("folded") ? FOLD : this.lines.length;
    if (this.painted >= shown) return undefined;
    const lines = this.lines.slice(this.painted, Math.min(shown, this.painted + PAINTED_AT_ONCE));
    const texts = lines.map(textOf);
    const last = this.painted === this.lines.length - 1;
    if (last && texts[0] === this.paintedLast) return undefined;
    this.sent = texts;
    return { start: this.painted, lines: texts };
  }

  /** Colour lines; the last one of all may grow yet, and is coloured again then. */
  paint(start: number, tokens: readonly Tokens[]): void {
    const { sent } = this;
    const lines = this.lines.slice(start, start + tokens.length);
    if (start !== this.painted || lines.some((line, at) => !textOf(line).startsWith(sent[at] ?? "\n")))
      return this.unpaint(); // another text by now
    for (const [at, line] of lines.entries())
      line.replaceChildren(...coloured(textOf(line), tokens[at] ?? []), "\n");
    const last = start + lines.length - 1;
    const whole = textOf(lines.at(-1)) === sent.at(-1);
    this.painted = whole && last < this.lines.length - 1 ? last + 1 : last;
    this.paintedLast = whole ? sent.at(-1) : undefined;
  }

  unpaint(): void {
    this.painted = 0;
    this.paintedLast = undefined;
  }

  get languageName(): string {
    return this.kind;
  }

  private append(added: string): void {
    const [rest = "", ...lines] = added.split("\n");
    const last = this.lines.at(-1);
    const first = this.lines.length < 2; // what the first line says may be news
    if (last === undefined) lines.unshift(rest);
    else if (rest !== "") growLine(last, rest);
    const elements = lines.map((line) => h("span", { class: "line" }, line, "\n"));
    this.lines.push(...elements);
    this.code.append(...elements);
    if (first) this.label(textOf(this.lines[0]));
  }

  private clear(): void {
    this.code.replaceChildren();
    this.lines = [];
    this.text = "";
    this.unpaint();
  }

  private label(firstLine: string): void {
    const { language, place } = labelOf(this.info, firstLine);
    this.kind = language;
    const name = oneLine(language, 24) || "text";
    setText(this.language, name);
    const path = place && (place.line === null ? place.path : `${place.path}:${place.line}`);
    if (this.place.textContent !== (path ?? ""))
      this.place.replaceChildren(...(place && path ? [placeLink(place, path)] : []));
    this.run.hidden = !SHELLS.has(language);
    this.element.setAttribute("aria-label", `Code: ${name}${path ? `, ${path}` : ""}`);
  }

  private fold(folded: boolean): void {
    this.element.classList.toggle("folded", folded);
    this.all.hidden = !folded;
    if (folded) setText(this.all, `Show all ${this.lines.length} lines`);
  }

  private unfold(): void {
    this.unfolded = true;
    this.fold(false);
    painter.touch(this);
    this.pre.focus();
  }

  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.pre;
    this.following = scrollHeight - scrollTop - clientHeight < NEAR;
  }

  private async copied(): Promise<void> {
    await navigator.clipboard.writeText(this.text);
    setText(this.copy, "Copied");
    setTimeout(() => setText(this.copy, "Copy"), 1_500);
  }
}

/** Before its line feed. */
function growLine(line: HTMLElement, added: string): void {
  const end = line.lastChild;
  if (end?.previousSibling instanceof Text) end.previousSibling.appendData(added);
  else line.insertBefore(new Text(added), end);
}

function textOf(line: HTMLElement | undefined): string {
  return line?.textContent?.slice(0, -1) ?? "";
}

/** The text in spans of so many characters each, and what is beyond them as it is. */
function coloured(text: string, spans: Tokens): Node[] {
  const nodes: Node[] = [];
  let at = 0;
  for (let index = 0; index < spans.length; index += 2) {
    const [length = 0, style = 0] = spans.slice(index, index + 2);
    const part = text.slice(at, at + length);
    nodes.push(style === 0 ? new Text(part) : h("span", { class: `s${style}` }, part));
    at += length;
  }
  return [...nodes, ...(at < text.length ? [new Text(text.slice(at))] : [])];
}
