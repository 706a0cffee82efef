// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Setting, StoredRule } from "../src/protocol";
import type { ToSettingsHost } from "../src/settings/messages";
import { SettingsView } from "../src/settings/view/settings";

function setting(key: string, given: Partial<Setting> = {}): Setting {
  return {
    key,
    section: key.includes(".") ? key.slice(0, key.lastIndexOf(".")) : "",
    kind: "text",
    choices: [],
    values: "text",
    about: `About ${key}.`,
    value: null,
    default: null,
    origin: "default",
    variable: null,
    line: null,
    restart: false,
    ...given,
  };
}

const SETTINGS = [
  setting("model"),
  setting("mode", {
    kind: "choice",
    choices: ["plan", "ask"],
    value: "plan",
    default: "ask",
    origin: "file",
    line: 2,
  }),
  setting("limits.steps", { kind: "number", value: 100, default: 100 }),
  setting("agents.enabled", { kind: "switch", value: true, default: true }),
  setting("sandbox.write", { kind: "list", value: ["~/a"], origin: "file", restart: true }),
  setting("endpoints", { kind: "other", line: 7 }),
  setting("log_level", {
    value: "debug",
    default: "info",
    origin: "environment",
    variable: "AMANU_LOG_LEVEL",
  }),
];
const RULE: StoredRule = {
  decision: "deny",
  rule: "@write(docs/**)",
  origin: "config",
  root: null,
  where: "config.toml",
  explanation: "Never allows every tool that changes files, for these paths: docs/**",
  removable: true,
};

function shown() {
  const posted: ToSettingsHost[] = [];
  const view = new SettingsView((message) => posted.push(message));
  document.body.replaceChildren(view.element);
  view.receive({ type: "settings", path: "/home/me/config.toml", settings: SETTINGS, rules: [RULE] });
  const row = (key: string) => document.querySelector<HTMLElement>(`[data-key="${key}"]`);
  const control = <T extends HTMLElement = HTMLInputElement>(key: string) =>
    row(key)?.querySelector<T>("input, select, textarea") as T;
  const enter = (key: string, value: string) => {
    const each = control(key);
    each.value = value;
    each.dispatchEvent(new Event("change"));
  };
  const press = (label: string, within: ParentNode = document) =>
    [...within.querySelectorAll("button")].find((each) => each.textContent === label)?.click();
  return { view, posted, row, control, enter, press };
}

test.each<[string, string, unknown]>([
  ["limits.steps", "30", 30],
  ["limits.steps", "", null],
  ["mode", "", null],
  ["mode", "ask", "ask"],
  ["sandbox.write", " ~/a \n\n~/b", ["~/a", "~/b"]],
  ["model", " gemini:flash ", "gemini:flash"],
])("what is entered for %s as %j is set", (key, text, value) => {
  const { posted, enter } = shown();
  enter(key, text);
  expect(posted).toEqual([{ type: "set", key, value }]);
});

test("a row shows its value, where that is from, and the way back", () => {
  const { row, control, press, posted } = shown();
  expect(control<HTMLSelectElement>("mode").value).toBe("plan");
  expect(row("mode")?.textContent).toContain("set in config.toml");
  expect(control("limits.steps").placeholder).toBe("100");
  expect(control("agents.enabled").checked).toBe(true);
  expect(row("sandbox.write")?.textContent).toContain("changes need a restart");
  expect(control("log_level").disabled).toBe(true);
  expect(row("log_level")?.textContent).toContain("set by AMANU_LOG_LEVEL in the environment");
  press("Reset", row("mode") ?? undefined);
  press("Edit in config.toml", row("endpoints") ?? undefined);
  press("Choose…", row("model") ?? undefined);
  expect(posted).toEqual([
    { type: "set", key: "mode", value: null },
    { type: "open", line: 7 },
    { type: "choose", key: "model" },
  ]);
});

test("a refusal stands beside its setting, which has its old value again", () => {
  const { view, row, control, enter } = shown();
  enter("limits.steps", "0");
  view.receive({ type: "told", about: "limits.steps", level: "error", text: "limits.steps: too small." });
  expect(row("limits.steps")?.querySelector(".note.error")?.textContent).toBe("limits.steps: too small.");
  expect(control("limits.steps").value).toBe("");
});

test("the search leaves what it names", () => {
  const { row } = shown();
  const search = document.querySelector<HTMLInputElement>("[type=search]");
  if (search) search.value = "about STEPS".replace("about ", "");
  search?.dispatchEvent(new Event("input"));
  expect([row("limits.steps")?.hidden, row("model")?.hidden]).toEqual([false, true]);
});

test("rules are shown with their origin, previewed, added and removed", () => {
  const { view, posted, press } = shown();
  expect(document.querySelector(".rules tr")?.textContent).toContain("config.toml");
  press("Remove");
  const input = document.querySelector<HTMLInputElement>(".rules input");
  const add = [...document.querySelectorAll("button")].find((each) => each.textContent === "Add rule");
  if (input) input.value = "@read";
  expect(add?.disabled).toBe(true);
  view.receive({ type: "preview", rule: "@write", valid: true, text: "An earlier text." });
  expect(add?.disabled).toBe(true);
  view.receive({ type: "preview", rule: "@read", valid: true, text: "Allows every tool that reads." });
  add?.click();
  expect(posted).toEqual([
    { type: "removeRule", decision: "deny", rule: "@write(docs/**)", origin: "config", root: null },
    { type: "addRule", decision: "allow", rule: "@read" },
  ]);
});

test("a file that cannot be read is said", () => {
  const { view } = shown();
  view.receive({ type: "unreadable", text: "config.toml is not valid TOML." });
  expect(document.querySelector("[role=alert]")?.textContent).toBe("config.toml is not valid TOML.");
});
