import { oneLine, visible } from "../../editor/visible";
import { button, h, setText } from "./dom";
import { labelOf } from "./fence";
import { editor, host } from "./host";
import { iconButton, rename, setIcon } from "./icon";
import { placeLink } from "./links";
import { painter, type Paintable, type Tokens } from "./painter";

/** Lines of a block that is whole which are shown without asking. */
const FOLD = 40;
/** Lines that are sent to be coloured at once. */
const PAINTED_AT_ONCE = 200;
/** Pixels from the end that count as being there. */
const NEAR = 8;
const SHELLS: ReadonlySet<string> = new Set([
  ...["bash", "sh", "shell", "zsh", "console", "shellscript", "shellsession", "sh-session"],
  ...["fish", "powershell", "pwsh", "ps1", "bat", "cmd"],
]);
/** Shells whose lines bash does not take, which is what the daemon runs commands with. */
const OTHERS: ReadonlySet<string> = new Set(["fish", "powershell", "pwsh", "ps1", "bat", "cmd"]);

/** A code block: its language and file, what can be done with it, and its lines, which are added to. They are coloured
 * when the extension has said how; each is an element, so that one more costs one. */
export class CodeBlock implements Paintable {
  private readonly language = h("span", { class: "language" });
  private readonly place = h("span", { class: "place" });
  private readonly copy = iconButton("copy", "Copy the code", () => void this.copied());
  private readonly insert = iconButton("insert", "Insert at the cursor of the editor", () =>
    host.post({ type: "insertCode", text: this.text }),
  );
  private readonly apply = iconButton("git-pull-request-go-to-changes", "Apply", () => this.applied(), {
    class: "whole",
    onpointerenter: () => this.aim(),
    onfocus: () => this.aim(),
  });
  private readonly terminal = iconButton(
    "terminal",
    "Type it into the terminal; Enter runs it",
    () => host.post({ type: "terminal", text: this.text, language: this.kind }),
    { class: "whole" },
  );
  private readonly run = iconButton(
    "play",
    "Run it as a command of this session; your rules decide",
    () => this.ran(),
    { class: "whole" },
  );
  private readonly code = h("code", {});
  private readonly pre = h("pre", { tabindex: "0", onscroll: () => this.scrolled() }, this.code);
  private readonly all = button("", () => this.unfold(), { class: "all link", hidden: true });
  /** What is still written is not applied, nor run. */
  private readonly actions = h(
    "span",
    { class: "actions" },
    this.run,
    this.terminal,
    this.apply,
    this.insert,
    this.copy,
  );
  readonly element = h(
    "div",
    { class: "code", role: "group" },
    h("div", { class: "head" }, this.language, this.place, this.actions),
    this.pre,
    this.all,
  );
  private text = "";
  private lines: HTMLElement[] = [];
  private following = true;
  private unfolded = false;
  private kind = "";
  /** The file it names. */
  private file: string | null = null;
  /** Lines that have their colours, and the last one as it was when it got them. */
  private painted = 0;
  private paintedLast: string | undefined;
  /** The lines that were sent to be coloured. */
  private sent: string[] = [];

  /** `before`: the line above it, which may name its file. */
  constructor(
    private readonly info: string,
    private readonly before: string,
  ) {
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
    const { language, place } = labelOf(this.info, firstLine, this.before);
    this.kind = language;
    this.file = place?.path ?? null;
    const name = oneLine(language, 24) || "text";
    setText(this.language, name);
    const path = place && (place.line === null ? place.path : `${place.path}:${place.line}`);
    if (this.place.textContent !== (path ?? ""))
      this.place.replaceChildren(...(place && path ? [placeLink(place, path)] : []));
    const isShell = SHELLS.has(language);
    this.terminal.hidden = !isShell;
    this.run.hidden = !isShell || OTHERS.has(language);
    this.apply.hidden = isShell && this.file === null;
    this.aim();
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

  /** Say which file it would be applied to. */
  private aim(): void {
    const path = this.file ?? editor.path;
    rename(this.apply, `Apply to ${path === null ? "the file in the editor" : visible(path)}`);
  }

  private applied(): void {
    host.post({ type: "applyCode", text: this.text, language: this.kind, path: this.file });
  }

  /** Nothing is run that is folded away. */
  private ran(): void {
    if (this.element.classList.contains("folded")) this.unfold();
    else host.post({ type: "runCode", text: this.text, language: this.kind });
  }

  private async copied(): Promise<void> {
    await navigator.clipboard.writeText(this.text);
    const [mark] = this.copy.children;
    if (mark instanceof HTMLElement) setIcon(mark, "check");
    rename(this.copy, "Copied");
    setTimeout(() => {
      if (mark instanceof HTMLElement) setIcon(mark, "copy");
      rename(this.copy, "Copy the code");
    }, 1_500);
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
