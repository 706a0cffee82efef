import { advice } from "../../daemon/advice";
import { button, h, setText } from "../../chat/view/dom";
import type { Setting } from "../../protocol";
import type { ToSettingsHost } from "../messages";
import { label, MODELS, sectionOf } from "./words";

/** Kinds whose control says what may be set. */
const PLAIN: ReadonlySet<Setting["kind"]> = new Set(["text", "choice", "switch"]);

/** One setting: what it is, its value, where that is from, and the way back to the default. */
export class SettingRow {
  private readonly value = h("div", { class: "value row" });
  private readonly origin = h("span", { class: "aside origin" });
  private readonly note = h("p", { class: "note", role: "status" });
  private readonly reset: HTMLButtonElement;
  private control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement | undefined;
  private readonly text: string;
  readonly element: HTMLElement;

  constructor(
    private setting: Setting,
    private readonly post: (message: ToSettingsHost) => void,
  ) {
    const { key, kind, about, values } = setting;
    const name = label(key);
    this.text = `${name} ${key} ${about}`.toLowerCase();
    this.reset = button("Reset", () => post({ type: "set", key, value: null }), {
      class: "link",
      "aria-label": `Reset ${name} to its default`,
    });
    this.element = h(
      "div",
      { class: "setting", "data-key": key },
      h("h3", { id: `label-${key}` }, name, " ", h("code", {}, key)),
      h("p", { id: `about-${key}` }, ...code(advice(about))),
      this.value,
      h("p", { class: "aside" }, ...(PLAIN.has(kind) ? [] : code(`${values} · `)), this.origin, this.reset),
      this.note,
    );
    this.build();
    this.draw(setting);
  }

  get section(): string {
    return sectionOf(this.setting);
  }

  matches(query: string): boolean {
    return query.split(/\s+/).every((word) => this.text.includes(word));
  }

  /** The setting as it is now. What is being typed stays. */
  draw(setting: Setting): void {
    this.setting = setting;
    const { value, origin, variable, restart } = setting;
    const { control } = this;
    if (control !== undefined && document.activeElement !== control) fill(control, setting);
    else if (control instanceof HTMLInputElement && control.type === "checkbox")
      control.checked = value === true;
    const from =
      origin === "environment"
        ? `set by ${variable} in the environment, which goes before the file`
        : origin === "file"
          ? "set in config.toml"
          : "default";
    setText(this.origin, restart ? `${from} · changes need a restart` : from);
    this.reset.hidden = origin !== "file" || setting.kind === "other";
    this.element.classList.toggle("changed", origin === "file");
  }

  tell({ level, text }: { level: "info" | "error"; text: string }): void {
    this.note.className = `note ${level}`;
    const again =
      level === "info" && this.setting.restart
        ? button("Restart now", () => this.post({ type: "go", to: "restart" }), { class: "link" })
        : undefined;
    this.note.replaceChildren(text, ...(again ? [" ", again] : []));
    if (level === "error" && this.control) fill(this.control, this.setting);
  }

  private build(): void {
    const { key, kind } = this.setting;
    const props = { "aria-labelledby": `label-${key}`, "aria-describedby": `about-${key}` };
    const commit = () => this.commit();
    switch (kind) {
      case "switch":
        this.control = h("input", { ...props, type: "checkbox", onchange: commit });
        break;
      case "choice":
        this.control = h("select", { ...props, onchange: commit });
        break;
      case "list":
        this.control = h("textarea", { ...props, rows: "3", placeholder: "one a line", onchange: commit });
        break;
      case "number":
        this.control = h("input", { ...props, type: "number", step: "any", onchange: commit });
        break;
      case "text":
        this.control = h("input", { ...props, type: "text", spellcheck: "false", onchange: commit });
        break;
      case "other":
        this.value.append(
          button("Edit in config.toml", () => this.post({ type: "open", line: this.setting.line })),
        );
        return;
    }
    this.value.append(this.control);
    if (MODELS.has(key)) this.value.append(button("Choose…", () => this.post({ type: "choose", key })));
  }

  private commit(): void {
    const { key, kind } = this.setting;
    const { control } = this;
    if (control === undefined) return;
    setText(this.note, "");
    this.post({ type: "set", key, value: entered(control, kind) });
  }
}

/** What the user entered; null: nothing, so the default holds. */
function entered(
  control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement,
  kind: Setting["kind"],
): unknown {
  const text = control.value.trim();
  if (control instanceof HTMLInputElement && kind === "switch") return control.checked;
  if (text === "") return null;
  if (kind === "number") return Number(text);
  if (kind !== "list") return text;
  return text.split("\n").flatMap((line) => line.trim() || []);
}

function fill(control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement, setting: Setting): void {
  const { value, origin, choices } = setting;
  const preset = setting.default;
  if (control instanceof HTMLSelectElement) {
    const nothing = preset === null ? "not set" : `default (${String(preset)})`;
    control.replaceChildren(
      h("option", { value: "" }, nothing),
      ...choices.map((choice) => h("option", { value: choice }, choice)),
    );
    control.value = origin === "default" ? "" : String(value);
  } else if (control instanceof HTMLTextAreaElement) {
    control.value = Array.isArray(value) ? value.join("\n") : "";
    control.rows = Math.max(2, control.value.split("\n").length);
  } else if (control.type === "checkbox") control.checked = value === true;
  else {
    control.value = origin === "default" || value === null ? "" : String(value);
    control.placeholder = preset === null ? "not set" : String(preset);
  }
  control.disabled = origin === "environment";
}

/** Text whose `code` is drawn as such. */
function code(text: string): (Node | string)[] {
  return text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));
}
