import { button, h, setText } from "../../chat/view/dom";
import type { StoredRule } from "../../protocol";
import type { ToSettingsHost } from "../messages";

type Decision = StoredRule["decision"];

const DECISIONS: Record<Decision, string> = { allow: "Allow", deny: "Deny", mustAsk: "Always ask" };
/** Milliseconds after the last key before the daemon is asked what a rule means. */
const ASK_AFTER = 200;

/** The rules that hold beyond a session, and a new one. */
export class Rules {
  private readonly body = h("tbody");
  private readonly none = h("p", { class: "aside", hidden: true }, "You have no rules yet.");
  private readonly note = h("p", { class: "note", role: "status" });
  private readonly meaning = h("p", { class: "note", role: "status" });
  private readonly decision = h(
    "select",
    { "aria-label": "What the rule does", onchange: () => this.ask() },
    ...Object.entries(DECISIONS).map(([value, name]) => h("option", { value }, name)),
  );
  private readonly rule = h("input", {
    type: "text",
    spellcheck: "false",
    "aria-label": "Rule",
    placeholder: "run_shell_command(npm test *), @write(docs/**) …",
    oninput: () => this.ask(),
  });
  private readonly add = button("Add rule", () => this.submit(), { class: "primary", disabled: true });
  private timer: ReturnType<typeof setTimeout> | undefined;
  private text = "";
  readonly element: HTMLElement;

  constructor(private readonly post: (message: ToSettingsHost) => void) {
    this.element = h(
      "section",
      { class: "rules", "aria-label": "Rules" },
      h("h2", {}, "Rules"),
      h(
        "p",
        {},
        "What Amanu may do without asking, never, or only after asking. Deny overrides Always ask, which overrides Allow.",
      ),
      h("table", {}, this.body),
      this.none,
      h(
        "form",
        {
          class: "row",
          onsubmit: (event: Event) => {
            event.preventDefault();
            this.submit();
          },
        },
        this.decision,
        this.rule,
        this.add,
      ),
      this.meaning,
      this.note,
    );
  }

  draw(rules: StoredRule[]): void {
    this.text =
      `rules ${rules.map(({ rule, explanation }) => `${rule} ${explanation}`).join(" ")}`.toLowerCase();
    this.none.hidden = rules.length > 0;
    this.body.replaceChildren(...rules.map((rule) => this.row(rule)));
  }

  matches(query: string): boolean {
    return this.text.includes(query);
  }

  tell({ level, text }: { level: "info" | "error"; text: string }): void {
    this.note.className = `note ${level}`;
    setText(this.note, text);
    if (level === "error") return;
    this.rule.value = "";
    this.add.disabled = true;
    setText(this.meaning, "");
  }

  /** What the daemon makes of the rule, if that is still what stands there. */
  preview({ rule, valid, text }: { rule: string; valid: boolean; text: string }): void {
    if (rule !== this.rule.value.trim()) return;
    this.add.disabled = !valid;
    this.meaning.className = `note ${valid ? "info" : "error"}`;
    setText(this.meaning, text);
  }

  private get chosen(): Decision {
    return this.decision.value as Decision;
  }

  private row(rule: StoredRule): HTMLElement {
    const { decision, where, explanation, removable, origin, root } = rule;
    const remove = () => {
      if (origin !== "folder") this.post({ type: "removeRule", decision, rule: rule.rule, origin, root });
    };
    return h(
      "tr",
      {},
      h("td", { class: `decision ${decision}` }, DECISIONS[decision]),
      h("td", {}, h("code", {}, rule.rule), explanation !== "" && h("p", { class: "aside" }, explanation)),
      h("td", { class: "aside" }, where),
      h(
        "td",
        {},
        removable &&
          button("Remove", remove, { class: "link", "aria-label": `Remove the rule ${rule.rule}` }),
      ),
    );
  }

  private ask(): void {
    const rule = this.rule.value.trim();
    setText(this.note, "");
    this.add.disabled = true;
    clearTimeout(this.timer);
    if (rule === "") return setText(this.meaning, "");
    this.timer = setTimeout(() => this.post({ type: "preview", rule, decision: this.chosen }), ASK_AFTER);
  }

  private submit(): void {
    const rule = this.rule.value.trim();
    if (rule === "" || this.add.disabled) return;
    this.post({ type: "addRule", decision: this.chosen, rule });
  }
}
