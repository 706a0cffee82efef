import { button, h, setText } from "../../chat/view/dom";
import type { Setting } from "../../protocol";
import type { ToSettingsHost, ToSettingsPage } from "../messages";
import { Rules } from "./rules";
import { SettingRow } from "./row";
import { ADVANCED, SECTIONS, sectionOf, words } from "./words";

const RULES = "rules";

/** The page of settings: sections with a row for each key, a search, and the rules. A row stays the same element, so that
 * the focus stays where it is. */
export class SettingsView {
  private readonly rows = new Map<string, SettingRow>();
  private readonly search = h("input", {
    type: "search",
    placeholder: "Search settings",
    "aria-label": "Search settings",
    oninput: () => this.filter(),
  });
  private readonly path = h("p", { class: "aside path" });
  private readonly failure = h("p", { class: "note error", role: "alert", hidden: true });
  private readonly nothing = h("p", { class: "aside", hidden: true }, "No setting matches.");
  private readonly sections = new Map<string, HTMLElement>();
  private readonly rules: Rules;
  private readonly list = h("div");
  readonly element: HTMLElement;

  constructor(private readonly post: (message: ToSettingsHost) => void) {
    this.rules = new Rules(post);
    this.element = h(
      "main",
      {},
      h("h1", {}, "Amanu Settings"),
      h(
        "div",
        { class: "row head" },
        this.search,
        button("Open config.toml", () => post({ type: "open", line: null })),
        button("API keys…", () => post({ type: "go", to: "keys" })),
        button("MCP servers…", () => post({ type: "go", to: "mcp" })),
      ),
      this.path,
      this.failure,
      this.nothing,
      this.list,
    );
  }

  receive(message: ToSettingsPage): void {
    switch (message.type) {
      case "settings":
        this.failure.hidden = true;
        setText(this.path, `User settings, for all workspaces: ${message.path}`);
        this.draw(message.settings);
        this.rules.draw(message.rules);
        return this.filter();
      case "unreadable":
        this.failure.hidden = false;
        return setText(this.failure, message.text);
      case "told":
        if (message.about === RULES) return this.rules.tell(message);
        return this.rows.get(message.about)?.tell(message);
      case "preview":
        return this.rules.preview(message);
    }
  }

  private draw(settings: Setting[]): void {
    const last = (setting: Setting) => Number(sectionOf(setting) === ADVANCED);
    for (const setting of settings.toSorted((a, b) => last(a) - last(b))) {
      if (setting.section === RULES || setting.key === "rule") continue; // the rules have a table of their own
      const known = this.rows.get(setting.key);
      if (known !== undefined) known.draw(setting);
      else {
        const row = new SettingRow(setting, this.post);
        this.rows.set(setting.key, row);
        this.section(sectionOf(setting)).append(row.element);
      }
    }
  }

  /** The section of that name, made where there is none; the rules come after the first. */
  private section(name: string): HTMLElement {
    const known = this.sections.get(name);
    if (known !== undefined) return known;
    const section = h("section", { "aria-label": words(name) }, h("h2", {}, SECTIONS[name] ?? words(name)));
    this.sections.set(name, section);
    this.list.append(section);
    if (this.sections.size === 1) this.list.append(this.rules.element);
    return section;
  }

  private filter(): void {
    const query = this.search.value.trim().toLowerCase();
    let any = false;
    for (const section of this.sections.values()) section.hidden = true;
    for (const row of this.rows.values()) {
      row.element.hidden = !row.matches(query);
      if (row.element.hidden) continue;
      any = true;
      this.section(row.section).hidden = false;
    }
    this.rules.element.hidden = !this.rules.matches(query);
    this.nothing.hidden = any || !this.rules.element.hidden || this.rows.size === 0;
  }
}
