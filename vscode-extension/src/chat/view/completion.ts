import { h } from "./dom";

/** An `@` at the start or after a blank, and what is typed of the name so far. */
const MENTION = /(?:^|\s)@([^\s@"]*)$/;

/** `@file` completion of a text box, as an ARIA listbox beside it. The box keeps the focus. */
export class Completion {
  readonly element = h("ul", {
    class: "completion",
    role: "listbox",
    id: "files",
    "aria-label": "Files",
    hidden: true,
  });
  private paths: string[] = [];
  private at = 0;
  private query: string | undefined;

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly ask: (query: string) => void,
  ) {
    input.setAttribute("aria-controls", "files");
    input.setAttribute("aria-autocomplete", "list");
    input.addEventListener("input", () => this.look());
    input.addEventListener("blur", () => setTimeout(() => this.close(), 100));
  }

  /** Files that fit `query`, if that is still the question. */
  offer(query: string, paths: string[]): void {
    if (query !== this.query) return;
    this.paths = paths;
    this.at = 0;
    this.draw();
  }

  /** True when the key was for the list. */
  key(event: KeyboardEvent): boolean {
    if (this.element.hidden) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + this.paths.length) % this.paths.length;
      this.draw();
    } else if (event.key === "Enter" || event.key === "Tab") this.take(this.at);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  private look(): void {
    const found = MENTION.exec(this.input.value.slice(0, this.input.selectionStart));
    if (found === null) {
      this.close();
      return;
    }
    this.query = found[1] ?? "";
    this.ask(this.query);
  }

  private take(at: number): void {
    const path = this.paths[at];
    const caret = this.input.selectionStart;
    const before = this.input.value.slice(0, caret);
    const found = MENTION.exec(before);
    this.close();
    if (path === undefined || found === null) return;
    const start = caret - (found[1]?.length ?? 0) - 1;
    this.input.setRangeText(`@${/[\s"'`,;:!?()]/.test(path) ? `"${path}"` : path} `, start, caret, "end");
    this.input.dispatchEvent(new Event("input"));
    this.input.focus();
  }

  private close(): void {
    this.query = undefined;
    this.element.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
  }

  private draw(): void {
    this.element.hidden = this.paths.length === 0;
    this.element.replaceChildren(
      ...this.paths.map((path, at) =>
        h(
          "li",
          {
            role: "option",
            id: `file-${at}`,
            "aria-selected": String(at === this.at),
            onmousedown: (event: Event) => {
              event.preventDefault();
              this.take(at);
            },
          },
          path,
        ),
      ),
    );
    if (!this.element.hidden) this.input.setAttribute("aria-activedescendant", `file-${this.at}`);
    (this.element.children[this.at] as HTMLElement | undefined)?.scrollIntoView?.({ block: "nearest" });
  }
}
