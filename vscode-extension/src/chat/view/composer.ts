import type { AttachmentInput } from "../../protocol";
import type { How } from "../messages";
import { label } from "./cards";
import { Completion } from "./completion";
import type { Desk } from "./desk";
import { button, h, setText } from "./dom";

/** What is kept while the view is away. */
export interface Kept {
  text: string;
  attachments: AttachmentInput[];
}

/** The prompt box: text, what goes with it, and how it is meant while a turn runs. */
export class Composer {
  private readonly input = h("textarea", { rows: "2", "aria-label": "Prompt for Amanu", spellcheck: "true" });
  private readonly chips = h("div", { class: "chips" });
  private readonly send = button("Send", () => this.submit(this.busy ? "steer" : "send"), {
    class: "primary send",
  });
  private readonly queue = button("Queue", () => this.submit("queue"), {
    class: "queue-it",
    title: "Send it when the running turn has ended (Alt+Enter)",
  });
  private readonly stop = button("Stop", () => this.desk.post({ type: "stop" }), {
    class: "stop",
    title: "Stop (Escape)",
  });
  private readonly completion: Completion;
  readonly element: HTMLElement;
  private attachments: AttachmentInput[] = [];
  private busy = false;
  /** Which earlier prompt is shown: 0 is the present text. */
  private back = 0;
  private present = "";

  constructor(
    private readonly desk: Desk,
    private readonly keep: (kept: Kept) => void,
    extra: HTMLElement[],
  ) {
    this.completion = new Completion(this.input, (query) => desk.post({ type: "files", query }));
    this.element = h(
      "form",
      { class: "composer", onsubmit: (event: Event) => event.preventDefault() },
      this.completion.element,
      this.chips,
      this.input,
      h(
        "div",
        { class: "row" },
        ...extra,
        h("span", { class: "row buttons" }, this.stop, this.queue, this.send),
      ),
    );
    this.input.addEventListener("input", () => {
      this.back = 0;
      this.changed();
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.update();
  }

  get text(): string {
    return this.input.value;
  }

  /** What the session's state means for the box. */
  update(): void {
    const state = this.desk.session.state;
    this.busy = state.turn !== null;
    this.stop.hidden = !this.busy;
    this.queue.hidden = !this.busy;
    setText(this.send, this.busy ? "Steer" : "Send");
    this.send.title = this.busy ? "Say it into the running turn (Enter)" : "Send (Enter)";
    this.input.placeholder = state.readOnly
      ? "Another daemon holds this session: it can be looked at only"
      : this.busy
        ? "Enter speaks into the running turn, Alt+Enter queues"
        : "What shall be done? @ names a file";
    this.input.disabled = state.readOnly;
    this.enable();
  }

  files(query: string, paths: string[]): void {
    this.completion.offer(query, paths);
  }

  attach(attachment: AttachmentInput): void {
    this.attachments.push(attachment);
    this.changed();
  }

  restore(kept: Kept): void {
    this.input.value = kept.text;
    this.attachments = kept.attachments;
    this.changed();
  }

  focus(): void {
    this.input.focus();
  }

  private submit(how: How): void {
    const text = this.input.value.trim();
    if (text === "" || this.desk.session.state.readOnly) return;
    this.desk.post({ type: "prompt", text, attachments: this.attachments, how });
    this.input.value = "";
    this.attachments = [];
    this.back = 0;
    this.changed();
  }

  private changed(): void {
    this.chips.replaceChildren(
      ...this.attachments.map((each, at) =>
        h(
          "span",
          { class: "chip" },
          label(each),
          button(
            "×",
            () => {
              this.attachments.splice(at, 1);
              this.changed();
              this.focus();
            },
            { "aria-label": `Leave out ${label(each)}` },
          ),
        ),
      ),
    );
    this.chips.hidden = this.attachments.length === 0;
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight + 2, 240)}px`;
    this.keep({ text: this.input.value, attachments: this.attachments });
    this.enable();
  }

  private enable(): void {
    const empty = this.input.value.trim() === "";
    this.send.disabled = empty;
    this.queue.disabled = empty;
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing || this.completion.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(this.busy ? (event.altKey ? "queue" : "steer") : "send");
    } else if (event.key === "Escape" && this.busy) {
      this.desk.post({ type: "stop" });
    } else if (event.key === "ArrowUp" && this.atStart()) {
      if (this.recall(this.back + 1)) event.preventDefault();
    } else if (event.key === "ArrowDown" && this.back > 0 && this.atFinish()) {
      if (this.recall(this.back - 1)) event.preventDefault();
    }
  }

  private atStart(): boolean {
    return this.input.selectionStart === 0 && this.input.selectionEnd === 0;
  }

  private atFinish(): boolean {
    return this.input.selectionStart === this.input.value.length || this.atStart();
  }

  /** Show the prompt that many back. False when there is none. */
  private recall(back: number): boolean {
    const said = this.desk.session.state.items.flatMap((item) =>
      item.kind === "userMessage" ? [item.text] : [],
    );
    const text = back === 0 ? this.present : said[said.length - back];
    if (text === undefined) return false;
    if (this.back === 0) this.present = this.input.value;
    this.back = back;
    this.input.value = text;
    this.changed();
    this.input.setSelectionRange(0, 0);
    return true;
  }
}
