import type { Approval, ApprovalAnswer, RulePreviewResult } from "../../protocol";
import { visible } from "../../editor/visible";
import type { ChatView } from "./chatView";
import { h, setText } from "./dom";

/** Milliseconds after the last key before a rule is checked. */
const CHECK_AFTER = 300;

/** The rule an answer would save: its text, to be edited in place, what it allows, and what it would have answered. */
export class RuleField {
  private readonly text = h("textarea", {
    class: "rule",
    rows: "1",
    "aria-label": "Rule to remember",
    spellcheck: "false",
    oninput: () => this.typed(),
  });
  private readonly meaning = h("div", { class: "meaning", role: "status" });
  readonly element = h(
    "div",
    { class: "remember", hidden: true },
    h("label", {}, h("span", { class: "aside" }, "Saved rules, one per line:"), this.text),
    this.meaning,
  );
  /** The text as it would be saved, were it not edited. */
  private unedited = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** What is known of the text as it stands: `open` while it is edited and not checked yet. */
  private standing: "fits" | "open" | "wrong" = "fits";

  constructor(
    private readonly view: ChatView,
    private readonly approval: Approval,
    private readonly changed: () => void,
  ) {}

  /** Show what that answer would save; nothing for once. */
  offer(answer: ApprovalAnswer | undefined): void {
    clearTimeout(this.timer);
    this.unedited = visible(answer?.rule ?? "");
    this.text.value = this.unedited;
    this.element.hidden = this.text.value === "";
    this.stand("fits", answer?.explanation ?? "");
    if (!this.element.hidden) this.check();
  }

  /** The user's own text; null when it is the one offered, or none. */
  get edited(): string | null {
    if (this.element.hidden || this.text.value === this.unedited) return null;
    return this.text.value;
  }

  /** The rule cannot be saved as it stands. */
  get blocked(): boolean {
    return !this.element.hidden && this.standing !== "fits";
  }

  /** What the daemon says of a text; of another than stands here now it says nothing. */
  checked(rule: string, { fits, lines }: RulePreviewResult): void {
    if (this.element.hidden || rule !== this.text.value) return;
    this.stand(fits ? "fits" : "wrong", lines.map(({ text }) => text).join("\n"));
  }

  private typed(): void {
    this.stand("open", "…");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), CHECK_AFTER);
  }

  private check(): void {
    const { toolCallId } = this.approval;
    this.view.post({ type: "checkRule", toolCallId, rule: this.text.value });
  }

  private stand(standing: "fits" | "open" | "wrong", meaning: string): void {
    this.standing = standing;
    setText(this.meaning, visible(meaning));
    this.element.classList.toggle("wrong", standing === "wrong");
    this.text.setAttribute("aria-invalid", String(standing === "wrong"));
    this.changed();
  }
}
