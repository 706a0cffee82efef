import { BUTTONS } from "../../labels";
import { button, h, setText } from "./dom";

/** The command line that is asked about, as the user wants it: Enter runs it, Shift+Enter is a new line, Esc leaves. */
export class CommandField {
  private readonly text = h("textarea", {
    class: "command",
    rows: "1",
    "aria-label": BUTTONS.editCommand,
    spellcheck: "false",
    oninput: () => (this.run.disabled = this.text.value.trim() === ""),
    onkeydown: (event: KeyboardEvent) => this.key(event),
  });
  private readonly run = button("Run", () => this.answer(), { class: "primary run" });
  readonly element = h(
    "div",
    { class: "editing", hidden: true },
    this.text,
    h(
      "div",
      { class: "row" },
      this.run,
      button("Cancel", () => this.close(), { class: "cancel" }),
    ),
  );

  constructor(
    private readonly command: string,
    private readonly answered: (command: string) => void,
    /** It was opened, or left. */
    private readonly changed: (open: boolean) => void,
  ) {}

  open(): void {
    this.text.value = this.command;
    this.element.hidden = false;
    this.run.disabled = false;
    this.changed(true);
    this.text.focus();
    this.text.setSelectionRange(this.command.length, this.command.length);
  }

  label(text: string): void {
    setText(this.run, text);
  }

  private close(): void {
    this.element.hidden = true;
    this.changed(false);
  }

  private answer(): void {
    if (!this.run.disabled) this.answered(this.text.value);
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && !event.shiftKey) this.answer();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
