import type { ActiveEditor, AttachmentInput, Command, MentionCompleteResult } from "../../protocol";
import type { Action, How } from "../messages";
import { label } from "./cards";
import { Completion } from "./completion";
import type { ChatView } from "./chatView";
import { h } from "./dom";
import { iconButton } from "./icon";
import { Mentioned } from "./mentioned";
import { attachment, pictures } from "./picture";

/** What the view itself does at a word; the daemon's slash commands come beside them. */
const SLASH_COMMANDS: [name: string, detail: string, action: Action][] = [
  ["new", "a new session", "new"],
  ["sessions", "search, open, rename, delete", "sessions"],
  ["stop", "stop the turn", "stop"],
  ["context", "show context usage", "context"],
  ["diff", "show proposed changes", "diff"],
  ["model", "choose a model", "selectModel"],
  ["effort", "how much the model thinks", "selectEffort"],
  ["mode", "plan, ask, accept edits, draft, auto", "selectMode"],
  ["settings", "models, rules, limits and more", "settings"],
  ["key", "set an API key", "setKey"],
  ["login", "sign in with ChatGPT", "signIn"],
  ["doctor", "check the setup", "doctor"],
  ["logs", "show the logs", "logs"],
];
/** Milliseconds after the last key before what is in the box is kept for a view that goes away; pictures are heavy. */
const KEEP_AFTER = 300;
const KEEP_PICTURES_AFTER = 3000;

/** What is kept while the view is away. */
export interface Kept {
  text: string;
  attachments: AttachmentInput[];
  /** The turn that goes when it is sent. */
  replaces?: string;
}

const EMPTY: Kept = { text: "", attachments: [] };

/** The prompt box: text, what goes with it, and how it is meant while a turn runs. */
export class Composer {
  private readonly input = h("textarea", { rows: "2", "aria-label": "Prompt for Amanu", spellcheck: "true" });
  private readonly chips = h("div", { class: "chips" });
  private readonly looking = h("button", {
    type: "button",
    class: "chip looking",
    role: "switch",
    hidden: true,
    onclick: () => this.view.post({ type: "share", shared: !this.shared }),
  });
  /** Stops while a turn runs; with a text, it stands beside the one that sends. */
  private readonly stop = iconButton("stop-circle", "Stop", () => this.view.post({ type: "stop" }), {
    class: "stop",
    title: "Stop (Escape)",
  });
  private readonly send = iconButton("send", "", (event) => this.submit(this.how(event as MouseEvent)), {
    class: "primary send",
  });
  private readonly completion: Completion;
  private readonly mentioned = new Mentioned(this.input);
  readonly element: HTMLElement;
  private attachments: AttachmentInput[] = [];
  /** Pictures that were pasted and are still being read. */
  private readonly reading = new Set<Promise<void>>();
  /** What came back from before the view was away, while the user has not touched it. */
  private restored: Kept | undefined;
  /** The turn that goes when this is sent, and what stood in the box before that was edited. */
  private replaces: string | undefined;
  private aside: Kept = EMPTY;
  private shared = true;
  private keeping: ReturnType<typeof setTimeout> | undefined;
  private busy = false;
  /** Which earlier prompt is shown: 0 is the present text. */
  private back = 0;
  private present = "";

  constructor(
    private readonly view: ChatView,
    private readonly keep: (kept: Kept) => void,
    extra: HTMLElement[],
  ) {
    this.completion = new Completion(
      this.input,
      (text) => view.post({ type: "mentions", text }),
      () => view.post({ type: "commands" }),
      (item) => this.mentioned.add(item),
    );
    this.commands([]);
    this.element = h(
      "form",
      { class: "composer", onsubmit: (event: Event) => event.preventDefault() },
      this.completion.element,
      this.chips,
      this.input,
      h(
        "div",
        { class: "row" },
        iconButton("add", "Attach files or images", () => view.post({ type: "pickFiles" }), {
          class: "add",
          title: "Attach files or images (or paste, or drop them here)",
        }),
        ...extra,
        h("span", { class: "buttons" }, this.stop, this.send),
      ),
    );
    this.input.addEventListener("input", () => {
      this.back = 0;
      this.changed();
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.drawChips();
    this.input.addEventListener("paste", (event) => this.bring(event, event.clipboardData));
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => this.bring(event, event.dataTransfer));
    this.update();
  }

  get text(): string {
    return this.input.value;
  }

  /** What the session's state means for the box. */
  update(): void {
    const state = this.view.session.state;
    this.busy = state.turn !== null;
    this.stop.hidden = !this.busy;
    this.send.title = this.busy ? "Add to the current turn (Enter), or queue (Alt+Enter)" : "Send (Enter)";
    this.send.setAttribute("aria-label", this.busy ? "Steer" : "Send");
    this.input.placeholder = state.readOnly
      ? "Read-only: another Amanu process has this session open"
      : this.busy
        ? "Steer, or queue with Alt+Enter"
        : "Ask Amanu, @ for context, / for commands";
    this.input.disabled = state.readOnly;
    if (this.restored && this.wasSent(this.restored)) this.put({ text: "", attachments: [] });
    this.enable();
  }

  mentions(text: string, found: MentionCompleteResult): void {
    this.completion.mentions(text, found);
  }

  /** The daemon's slash commands as they are now. */
  commands(commands: Command[]): void {
    this.completion.commands([
      ...SLASH_COMMANDS.map(([name, detail, action]) => ({
        name,
        detail,
        run: () => this.view.post({ type: "action", action }),
      })),
      ...commands.map(({ name, description, argumentHint }) => ({
        name,
        detail: [argumentHint, description].filter(Boolean).join(" · "),
      })),
    ]);
  }

  /** The file before the user, which goes along unless they switched that off. */
  look(active: ActiveEditor, shared: boolean): void {
    this.shared = shared;
    this.looking.hidden = !active.path;
    const lines = (active.selectedText && active.lines) || null;
    const name = label({ kind: "file", path: active.path ?? "", lines });
    this.looking.textContent = name;
    this.looking.setAttribute("aria-checked", String(shared));
    this.looking.setAttribute("aria-label", `${name} goes along`);
    this.looking.title = shared
      ? "Sent with your prompt: current file, selection, open files and problems. Click to leave out the file and selection."
      : "The current file is not sent with your prompt. Click to include it.";
    this.drawChips();
  }

  attach(attachment: AttachmentInput): void {
    this.attachments = [...this.attachments, attachment];
    this.changed();
  }

  /** A prompt that was not taken comes back, before what has been typed since. */
  giveBack(refused: Kept): void {
    const text = [refused.text, this.input.value].filter((each) => each.trim() !== "").join("\n\n");
    this.put({ ...refused, text, attachments: [...refused.attachments, ...this.attachments] });
  }

  /** An earlier prompt to be edited; what stood in the box comes back when it is sent or let go. */
  edit(earlier: Kept): void {
    if (this.replaces === undefined) this.aside = { text: this.input.value, attachments: this.attachments };
    this.put(earlier);
    this.input.setSelectionRange(earlier.text.length, earlier.text.length);
    this.focus();
  }

  /** What was in the box when the view went away. */
  restore(kept: Kept): void {
    this.put(kept);
    this.restored = kept;
  }

  private put(kept: Kept): void {
    this.input.value = kept.text;
    this.attachments = kept.attachments;
    this.replaces = kept.replaces;
    this.changed();
  }

  /** What stood in the box before an earlier prompt was edited. */
  private putBack(): void {
    const { aside } = this;
    this.aside = EMPTY;
    this.put(aside);
  }

  /** VS Code keeps a view's state late: what was sent just before a reload comes back with it. */
  private wasSent({ text, attachments }: Kept): boolean {
    if (text.trim() === "" && attachments.length === 0) return false;
    const said = this.view.session.state.items.findLast((item) => item.kind === "userMessage");
    if (said?.kind !== "userMessage" || (text.trim() !== "" && said.text !== text.trim())) return false;
    return attachments.every((each) => said.attachments.some((sent) => label(sent) === label(each)));
  }

  focus(): void {
    this.input.focus();
  }

  private submit(how: How): void {
    if (this.reading.size > 0) {
      void Promise.all(this.reading).then(() => this.submit(how)); // the picture goes along, however fast one types
      return;
    }
    const text = this.input.value.trim();
    if (text === "" || this.view.session.state.readOnly) return;
    const command = SLASH_COMMANDS.find(([name]) => text === `/${name}`);
    if (command) this.view.post({ type: "action", action: command[2] });
    else {
      const { attachments, replaces } = this;
      this.view.post({ type: "prompt", text, attachments, how, ...(replaces && { replaces }) });
    }
    this.back = 0;
    this.putBack();
  }

  private changed(): void {
    this.restored = undefined;
    this.drawChips();
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight + 2, 240)}px`;
    clearTimeout(this.keeping);
    const { attachments, replaces } = this;
    const kept = { text: this.input.value, attachments, ...(replaces && { replaces }) };
    // what is sent is gone at once: a view that goes away now must not bring it back
    if (kept.text === "") this.keep(kept);
    else {
      const heavy = this.attachments.some((each) => each.kind === "image");
      this.keeping = setTimeout(() => this.keep(kept), heavy ? KEEP_PICTURES_AFTER : KEEP_AFTER);
    }
    this.enable();
  }

  private drawChips(): void {
    this.chips.replaceChildren(
      ...(this.replaces === undefined ? [] : [this.editing()]),
      this.looking,
      this.mentioned.element,
      ...this.attachments.map((each) => this.chip(each)),
      ...(this.reading.size > 0 ? [h("span", { class: "chip", role: "status" }, "Reading the image…")] : []),
    );
    this.mentioned.draw();
    this.chips.hidden =
      this.mentioned.empty &&
      this.replaces === undefined &&
      this.attachments.length === 0 &&
      this.looking.hidden &&
      this.reading.size === 0;
  }

  /** Says that what is sent goes in an earlier prompt's place, and lets that go. */
  private editing(): HTMLElement {
    const cancel = () => {
      this.putBack();
      this.focus();
    };
    return h(
      "span",
      { class: "chip editing" },
      "Editing an earlier message",
      iconButton("close", "Cancel editing", cancel),
    );
  }

  private chip(attached: AttachmentInput): HTMLElement {
    const name = label(attached);
    const remove = () => {
      this.attachments = this.attachments.filter((each) => each !== attached);
      this.changed();
      this.focus();
    };
    return h(
      "span",
      { class: "chip" },
      attached.kind === "image" &&
        h("img", { src: `data:${attached.mediaType};base64,${attached.data ?? ""}`, alt: "" }),
      name,
      iconButton("close", `Remove ${name}`, remove),
    );
  }

  attachPicture(file: File): void {
    const reading = attachment(file)
      .then(
        (each) => this.attach(each),
        () => this.view.post({ type: "say", text: `${file.name} is no picture that can be read.` }),
      )
      .finally(() => {
        this.reading.delete(reading);
        this.drawChips();
      });
    this.reading.add(reading);
    this.drawChips();
  }

  /** Pictures and files that were pasted or dropped; text stays the box's own business. */
  private bring(event: Event, data: DataTransfer | null): void {
    const found = pictures(data?.files ?? []);
    const uris = (data?.getData("text/uri-list") ?? "")
      .split(/\r?\n/)
      .filter((uri) => /^[a-z-]+:\/\//i.test(uri));
    const dropped = event.type === "drop" && uris.length > 0;
    if (found.length === 0 && !dropped) return;
    event.preventDefault();
    if (dropped) this.view.post({ type: "dropped", uris });
    else for (const file of found) this.attachPicture(file);
  }

  private enable(): void {
    const empty = this.input.value.trim() === "";
    this.send.disabled = empty;
    this.send.hidden = this.busy && empty;
  }

  private how({ altKey }: { altKey: boolean }): How {
    return this.busy ? (altKey ? "queue" : "steer") : "send";
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing || this.completion.key(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(this.how(event));
    } else if (event.key === "Escape" && this.replaces !== undefined) {
      this.putBack();
    } else if (event.key === "Escape" && this.busy) {
      this.view.post({ type: "stop" });
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
    const said = this.view.session.state.items.flatMap((item) =>
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
