import { beforeEach, expect, test, vi } from "vitest";
import { activeTheme } from "../src/highlight/active";
import type { Kind } from "../src/highlight/themes";
import { ColorThemeKind, extensions, settings, window } from "./vscode";

vi.mock("vscode", () => import("./vscode"));

const COLOR = "workbench.colorTheme";
const DARK = "workbench.preferredDarkColorTheme";
const LIGHT = "workbench.preferredLightColorTheme";
const SYSTEM = "window.autoDetectColorScheme";

/** The machine has these themes, by kind. */
function bring(themes: Record<string, Kind>): void {
  const list = Object.entries(themes).map(([id, uiTheme]) => ({ id, uiTheme, path: id }));
  extensions.all = [{ packageJSON: { contributes: { themes: list } }, extensionUri: { fsPath: "" } }];
}

beforeEach(() => {
  for (const name of Object.keys(settings)) delete settings[name];
  window.activeColorTheme = { kind: ColorThemeKind.Dark };
  bring({
    ...{ "Dark 2026": "vs-dark", "Dark Modern": "vs-dark", "Dark+": "vs-dark", Monokai: "vs-dark" },
    ...{ "Light 2026": "vs", "Light Modern": "vs", "Default High Contrast": "hc-black" },
  });
});

const { Light, Dark, HighContrast } = ColorThemeKind;
const PREFERRED = { [DARK]: "Dark 2026", [LIGHT]: "Light 2026" };
test.each<[number, Record<string, unknown>, string | undefined]>([
  [Dark, { [COLOR]: "Monokai" }, "Monokai"],
  // names that VS Code has given up
  [Dark, { [COLOR]: "Default Dark Modern" }, "Dark Modern"],
  [Dark, { [COLOR]: "Default Dark+" }, "Dark+"],
  [Light, { [COLOR]: "Default Light Modern" }, "Light Modern"],
  [Light, { [COLOR]: "Monokai", [LIGHT]: "VS Code Light" }, "Light 2026"],
  // the system's, where VS Code goes with it
  [Dark, { [COLOR]: "Monokai", [SYSTEM]: true }, "Dark 2026"],
  [Dark, { [COLOR]: "Monokai", [SYSTEM]: true, [DARK]: "gone" }, "Monokai"],
  [Light, { [COLOR]: "Monokai" }, "Light 2026"],
  [HighContrast, { [COLOR]: "Default High Contrast" }, "Default High Contrast"],
  [HighContrast, { [COLOR]: "Monokai" }, undefined],
  [Dark, { [COLOR]: "constructor", [DARK]: "__proto__" }, undefined],
])("the theme of kind %i that %j name", (kind, given, expected) => {
  window.activeColorTheme = { kind };
  Object.assign(settings, PREFERRED, given);
  expect(activeTheme().path).toBe(expected && `/${expected}`);
});

test("an old name that this VS Code still has is that theme", () => {
  bring({ "Default Dark Modern": "vs-dark", "Dark Modern": "vs-dark" });
  settings[COLOR] = "Default Dark Modern";
  expect(activeTheme().path).toBe("/Default Dark Modern");
});
