import type { MentionCompleteResult, MentionItem, MentionKind } from "../../protocol";
import { h } from "./dom";
import { ICONS } from "./mentioned";

/** Whether something may be mentioned, with `@` or `#`: the daemon knows what. */
const MENTION = /[@#]\S*$|[@#]"[^"\n]*$/;
/** A `/` at the very start, and what is typed of the command. */
const COMMAND = /^\/([\w:-]*)$/;

/** Milliseconds until the daemon is asked again while it reads the files. */
const ASK_AGAIN = 300;

/** A command that may stand at the start of a prompt. `run` does it at once; without it the name is put in. */
export interface Option {
  name: string;
  detail: string;
  run?: () => void;
}

interface Row {
  label: string;
  detail: string;
  kind?: MentionKind;
  take: () => void;
}

/** Completion of a text box, `@…` anywhere and `/command` at the start: an ARIA listbox beside it. */
export class Completion {
  readonly element = h("ul", {
    class: "completion",
    role: "listbox",
    id: "completion",
    "aria-label": "Suggestions",
    hidden: true,
  });
  private rows: Row[] = [];
  private at = 0;
  private asked: string | undefined;
  private reading = false;
  private options: Option[] = [];

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly askMentions: (text: string) => void,
    private readonly askCommands: () => void,
    private readonly mentioned: (item: MentionItem) => void = () => undefined,
  ) {
    input.setAttribute("aria-controls", "completion");
    input.setAttribute("aria-autocomplete", "list");
    input.addEventListener("input", () => this.look());
    input.addEventListener("blur", () => setTimeout(() => this.close(), 100));
  }

  /** What may take the place of `typed` at the end of `text`, if that is still the question. While the daemon reads
   * the folder, the question is asked again, and the row that was chosen stays so. */
  mentions(text: string, { typed, items, incomplete }: MentionCompleteResult): void {
    if (text !== this.asked) return;
    const chosen = this.reading && this.at > 0 ? this.rows[this.at]?.label : undefined;
    this.reading = incomplete;
    this.offer(
      items.map((item) => ({
        label: item.text,
        detail: item.detail,
        kind: item.kind,
        take: () => this.mention(typed, item),
      })),
      chosen,
    );
    if (incomplete) setTimeout(() => text === this.asked && this.askMentions(text), ASK_AGAIN);
  }

  /** The commands there are now. */
  commands(options: Option[]): void {
    this.options = options;
    if (COMMAND.test(this.input.value)) this.look();
  }

  /** True when the key was for the list. */
  key(event: KeyboardEvent): boolean {
    if (this.element.hidden || this.rows.length === 0) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + this.rows.length) % this.rows.length;
      this.draw();
    } else if ((event.key === "Enter" && !event.shiftKey) || event.key === "Tab") this.take(this.at);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  private look(): void {
    const before = this.input.value.slice(0, this.input.selectionStart);
    const command = COMMAND.exec(before);
    if (command !== null && this.input.value === before) {
      if (before === "/") this.askCommands();
      const typed = command[1] ?? "";
      this.asked = undefined;
      this.reading = false;
      const fitting = this.options.filter((each) => each.name.startsWith(typed));
      this.offer(
        fitting.map((option) => ({
          label: `/${option.name}`,
          detail: option.detail,
          take: () => this.command(option),
        })),
      );
      return;
    }
    if (!MENTION.test(before)) {
      this.close();
      return;
    }
    this.asked = before;
    this.askMentions(before);
  }

  private offer(rows: Row[], chosen?: string): void {
    this.rows = rows;
    this.at = Math.max(
      rows.findIndex((row) => row.label === chosen),
      0,
    );
    this.draw();
  }

  private take(at: number): void {
    const row = this.rows[at];
    this.close();
    row?.take();
  }

  private command(option: Option): void {
    this.replace(0, this.input.value.length, option.run ? "" : `/${option.name} `);
    option.run?.();
  }

  /** What begins something longer, such as a folder, is not followed by a space. */
  private mention(typed: string, item: MentionItem): void {
    const { text } = item;
    const caret = this.input.selectionStart;
    if (!this.input.value.slice(0, caret).endsWith(typed)) return;
    this.mentioned(item);
    this.replace(caret - typed.length, caret, /[/:]$/.test(text) ? text : `${text} `);
  }

  private replace(start: number, end: number, text: string): void {
    this.input.setRangeText(text, start, end, "end");
    this.input.dispatchEvent(new Event("input"));
    this.input.focus();
  }

  private close(): void {
    this.asked = undefined;
    this.element.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
  }

  private draw(): void {
    this.element.hidden = this.rows.length === 0 && !this.reading;
    this.element.replaceChildren(
      ...this.rows.map((row, at) =>
        h(
          "li",
          {
            role: "option",
            id: `option-${at}`,
            "aria-selected": String(at === this.at),
            onmousedown: (event: Event) => {
              event.preventDefault();
              this.take(at);
            },
          },
          row.kind && h("span", { class: `codicon codicon-${ICONS[row.kind]}`, "aria-hidden": "true" }),
          h("span", {}, row.label),
          row.detail !== "" && h("span", { class: "aside" }, row.detail),
        ),
      ),
      ...(this.reading ? [h("li", { role: "presentation", class: "aside" }, "Reading the files…")] : []),
    );
    if (this.rows.length > 0) this.input.setAttribute("aria-activedescendant", `option-${this.at}`);
    (this.element.children[this.at] as HTMLElement | undefined)?.scrollIntoView?.({ block: "nearest" });
  }
}
