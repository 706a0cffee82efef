import * as vscode from "vscode";
import type { ActiveTheme, Kind } from "./themes";

const KINDS: Record<vscode.ColorThemeKind, Kind> = {
  [vscode.ColorThemeKind.Light]: "vs",
  [vscode.ColorThemeKind.Dark]: "vs-dark",
  [vscode.ColorThemeKind.HighContrast]: "hc-black",
  [vscode.ColorThemeKind.HighContrastLight]: "hc-light",
};
/** What VS Code takes instead of the theme that was chosen, when it goes with the system. */
const PREFERRED: Record<Kind, string> = {
  vs: "preferredLightColorTheme",
  "vs-dark": "preferredDarkColorTheme",
  "hc-black": "preferredHighContrastColorTheme",
  "hc-light": "preferredHighContrastLightColorTheme",
};

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
  const settings = vscode.workspace.getConfiguration("workbench");
  const names = [settings.get<string>("colorTheme"), settings.get<string>(PREFERRED[kind])];
  for (const name of names) {
    const path = name === undefined ? undefined : find(name, kind);
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
