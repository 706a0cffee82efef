import * as vscode from "vscode";
import type { ActiveTheme, Kind } from "./themes";

const KINDS: Record<vscode.ColorThemeKind, Kind> = {
  [vscode.ColorThemeKind.Light]: "vs",
  [vscode.ColorThemeKind.Dark]: "vs-dark",
  [vscode.ColorThemeKind.HighContrast]: "hc-black",
  [vscode.ColorThemeKind.HighContrastLight]: "hc-light",
};
/** The setting for the theme of each kind, which VS Code uses when it follows the system. */
const PREFERRED: Record<Kind, string> = {
  vs: "workbench.preferredLightColorTheme",
  "vs-dark": "workbench.preferredDarkColorTheme",
  "hc-black": "workbench.preferredHighContrastColorTheme",
  "hc-light": "workbench.preferredHighContrastLightColorTheme",
};
/** Old names of themes, which VS Code still accepts in settings, and their present ones: its `migrateThemeSettingsId`. */
const RENAMED = new Map([
  ["Default Dark Modern", "Dark Modern"],
  ["Default Light Modern", "Light Modern"],
  ["Default Dark+", "Dark+"],
  ["Default Light+", "Light+"],
  ["Experimental Dark", "Dark 2026"],
  ["VS Code Dark", "Dark 2026"],
  ["Experimental Light", "Light 2026"],
  ["VS Code Light", "Light 2026"],
]);

interface Contribution {
  id?: string;
  label?: string;
  uiTheme?: Kind;
  path?: string;
}

/** The theme the user sees. VS Code tells extensions its kind alone; its file is found by its name among those that
 * extensions of this machine bring. */
export function activeTheme(): ActiveTheme {
  const kind = KINDS[vscode.window.activeColorTheme.kind];
  const settings = vscode.workspace.getConfiguration();
  const names = ["workbench.colorTheme", PREFERRED[kind]];
  if (settings.get<boolean>("window.autoDetectColorScheme")) names.reverse();
  for (const each of names) {
    const name = settings.get<string>(each) ?? "";
    const path = find(name, kind) ?? find(RENAMED.get(name) ?? "", kind);
    if (path !== undefined) return { kind, path };
  }
  return { kind, path: undefined };
}

function find(name: string, kind: Kind): string | undefined {
  for (const { packageJSON, extensionUri } of vscode.extensions.all) {
    const { contributes } = packageJSON as { contributes?: { themes?: Contribution[] } };
    for (const theme of contributes?.themes ?? [])
      if ((theme.id ?? theme.label) === name && theme.uiTheme === kind && theme.path !== undefined)
        return vscode.Uri.joinPath(extensionUri, theme.path).fsPath;
  }
  return undefined;
}
