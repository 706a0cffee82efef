import { h } from "./dom";

/** An `@` at the start or after a blank, and what is typed of the name so far. */
const MENTION = /(?:^|\s)@([^\s@"]*)$/;
/** A `/` at the very start, and what is typed of the command. */
const COMMAND = /^\/([\w-]*)$/;

/** A command that may stand at the start of a prompt. `run` does it at once; without it the name is put in. */
export interface Option {
  name: string;
  detail: string;
  run?: () => void;
}

interface Row {
  label: string;
  detail: string;
  take: () => void;
}

/** Completion of a text box, `@file` anywhere and `/command` at the start: an ARIA listbox beside it. */
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
  private query: string | undefined;
  private options: Option[] = [];

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly askFiles: (query: string) => void,
    private readonly askCommands: () => void,
  ) {
    input.setAttribute("aria-controls", "completion");
    input.setAttribute("aria-autocomplete", "list");
    input.addEventListener("input", () => this.look());
    input.addEventListener("blur", () => setTimeout(() => this.close(), 100));
  }

  /** Files that fit `query`, if that is still the question. */
  files(query: string, paths: string[]): void {
    if (query !== this.query) return;
    this.offer(paths.map((path) => ({ label: path, detail: "", take: () => this.mention(path) })));
  }

  /** The commands there are now. */
  commands(options: Option[]): void {
    this.options = options;
    if (COMMAND.test(this.input.value)) this.look();
  }

  /** True when the key was for the list. */
  key(event: KeyboardEvent): boolean {
    if (this.element.hidden) return false;
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
      this.query = undefined;
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
    const found = MENTION.exec(before);
    if (found === null) {
      this.close();
      return;
    }
    this.query = found[1] ?? "";
    this.askFiles(this.query);
  }

  private offer(rows: Row[]): void {
    this.rows = rows;
    this.at = 0;
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

  private mention(path: string): void {
    const caret = this.input.selectionStart;
    const found = MENTION.exec(this.input.value.slice(0, caret));
    if (found === null) return;
    const quoted = /[\s"'`,;:!?()]/.test(path) ? `"${path}"` : path;
    this.replace(caret - (found[1]?.length ?? 0) - 1, caret, `@${quoted} `);
  }

  private replace(start: number, end: number, text: string): void {
    this.input.setRangeText(text, start, end, "end");
    this.input.dispatchEvent(new Event("input"));
    this.input.focus();
  }

  private close(): void {
    this.query = undefined;
    this.element.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
  }

  private draw(): void {
    this.element.hidden = this.rows.length === 0;
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
          h("span", {}, row.label),
          row.detail !== "" && h("span", { class: "aside" }, row.detail),
        ),
      ),
    );
    if (!this.element.hidden) this.input.setAttribute("aria-activedescendant", `option-${this.at}`);
    (this.element.children[this.at] as HTMLElement | undefined)?.scrollIntoView?.({ block: "nearest" });
  }
}
