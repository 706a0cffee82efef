import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import dark from "@shikijs/themes/dark-plus";
import darkContrast from "@shikijs/themes/github-dark-high-contrast";
import lightContrast from "@shikijs/themes/github-light-high-contrast";
import light from "@shikijs/themes/light-plus";
import type { ThemeRegistrationAny, ThemeRegistrationRaw } from "@shikijs/primitive";
import { parse } from "jsonc-parser";

export type Kind = "vs" | "vs-dark" | "hc-black" | "hc-light";

/** Where the file of the user's theme is, if it can be found, and what kind of theme it is. */
export interface ActiveTheme {
  kind: Kind;
  path: string | undefined;
}

type Rules = NonNullable<ThemeRegistrationRaw["tokenColors"]>;
interface ThemeFile {
  include?: string;
  colors?: Record<string, string>;
  tokenColors?: Rules | string;
}

/** Instead of a theme that is not on this machine, or in a format that is no longer made (`.tmTheme`). */
const OTHERWISE: Record<Kind, ThemeRegistrationAny> = {
  vs: light,
  "vs-dark": dark,
  "hc-black": darkContrast,
  "hc-light": lightContrast,
};
/** Files that include each other. */
const DEEPEST = 10;

export function loadTheme({ kind, path }: ActiveTheme): ThemeRegistrationAny {
  const file = path === undefined ? undefined : read(path, DEEPEST);
  if (file === undefined || file.rules.length === 0) return OTHERWISE[kind];
  const type = kind === "vs" || kind === "hc-light" ? "light" : "dark";
  return { name: "user", type, colors: file.colors, settings: file.rules.filter(hasColor) };
}

/** VS Code takes colours as numbers alone. */
function hasColor({ settings }: Rules[number]): boolean {
  return settings.foreground === undefined || /^#[\da-f]{3,8}$/i.test(settings.foreground);
}

/** A theme's file over those it includes. */
function read(path: string, depth: number): { colors: Record<string, string>; rules: Rules } | undefined {
  try {
    const file = parse(readFileSync(path, "utf8")) as ThemeFile;
    const base = file.include && depth > 0 ? read(join(dirname(path), file.include), depth - 1) : undefined;
    if (typeof file.tokenColors === "string") return undefined;
    return {
      colors: { ...base?.colors, ...file.colors },
      rules: [...(base?.rules ?? []), ...(file.tokenColors ?? [])],
    };
  } catch {
    return undefined; // it is gone, or no JSON
  }
}
