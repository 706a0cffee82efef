import { beforeEach, expect, test, vi } from "vitest";
import type { Uri } from "vscode";
import { activeTheme } from "../src/highlight/active";
import { Highlighter } from "../src/highlight/highlighter";
import type { Kind } from "../src/highlight/themes";
import { ColorThemeKind, configured, extensions, settings, themed, window } from "./vscode";

vi.mock("vscode", () => import("./vscode"));
/** The themes that threads were started with; a thread answers at once. */
const started = vi.hoisted((): unknown[] => []);
vi.mock("node:worker_threads", () => ({
  Worker: class {
    private heard: ((reply: object) => void) | undefined;
    constructor(_file: string, { workerData }: { workerData: { theme: { path: string } } }) {
      started.push(workerData.theme.path);
    }
    on(event: string, each: (reply: object) => void): void {
      if (event === "message") this.heard = each;
    }
    postMessage({ id }: { id: number }): void {
      this.heard?.({ id, tokens: [], styles: [] });
    }
    unref(): void {}
    async terminate(): Promise<void> {}
  },
}));

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
  started.length = 0;
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

test("a theme whose name comes to the settings after it is seen has its colours", async () => {
  settings[COLOR] = "Dark+";
  const highlighter = new Highlighter({ fsPath: "" } as Uri);
  let changes = 0;
  highlighter.onChanged(() => (changes += 1));
  const paint = () => highlighter.paint({ block: "a", language: "py", start: 0, lines: [""] });
  configured.fire({}); // nothing has been painted
  await paint();
  themed.fire({});
  await paint(); // the settings are behind
  expect([changes, started]).toEqual([1, ["/Dark+", "/Dark+"]]);
  settings[COLOR] = "Monokai";
  configured.fire({});
  await paint();
  configured.fire({}); // of other settings
  await paint();
  expect([changes, started]).toEqual([2, ["/Dark+", "/Dark+", "/Monokai"]]);
  highlighter.dispose();
});
