import { delimiter, isAbsolute, join } from "node:path";
import { runnable, within } from "../editor/paths";

/** Where to look for the `amanu` program. */
export interface Places {
  /** The setting `amanu.server.path`; "" when it is not set. */
  setting: string;
  /** The program the extension installed (install.ts), if it did. */
  installed?: string | undefined;
  /** The variable `PATH`. */
  path: string;
  /** Workspace folders: nothing in them is ever started. */
  folders: string[];
  windows?: boolean;
}

/** `install`: whether installing the daemon would help. */
export type Missing = { missing: string; install: boolean };
export type Found = { command: string; from: "setting" | "storage" | "path" } | Missing;

/**
 * The daemon's program: 1. the setting, 2. the extension's storage, 3. `PATH`; never one inside the workspace, which
 * anybody may have written. `missing` is a sentence the user can act on.
 */
export function findDaemon(places: Places): Found {
  const inside = within(places.folders);
  const missing = (sentence: string, install = false): Missing => ({ missing: sentence, install });
  const program = places.windows ? "amanu.exe" : "amanu";

  if (places.setting !== "") {
    if (!isAbsolute(places.setting))
      return missing("The setting amanu.server.path must be an absolute path.");
    const named = `The setting amanu.server.path names ${places.setting}`;
    if (!runnable(places.setting)) return missing(`${named}, which is no program that can be run.`);
    if (inside(places.setting))
      return missing(
        `${named}, which is inside the workspace. Amanu starts no program from a workspace: install it elsewhere.`,
      );
    return { command: places.setting, from: "setting" };
  }

  if (places.installed !== undefined && runnable(places.installed))
    return { command: places.installed, from: "storage" };

  let passedOver = "";
  for (const folder of places.path.split(delimiter)) {
    const candidate = join(folder, program);
    if (!isAbsolute(folder) || !runnable(candidate)) continue;
    if (!inside(candidate)) return { command: candidate, from: "path" };
    passedOver ||= candidate;
  }
  const why = passedOver
    ? `The only amanu on PATH is ${passedOver}, inside the workspace, and nothing is started from there.`
    : "Amanu's daemon is not installed yet.";
  return missing(`${why} The extension can install it (Python 3.11 or newer is needed).`, true);
}

/** The ripgrep that comes with VS Code; its place has moved over the years. */
export function ripgrep(appRoot: string): string | undefined {
  const program = process.platform === "win32" ? "rg.exe" : "rg";
  const built = `${process.platform}-${process.arch}`;
  const modules = ["node_modules", "node_modules.asar.unpacked"].map((name) =>
    join(appRoot, name, "@vscode"),
  );
  return modules
    .flatMap((folder) => [
      join(folder, "ripgrep-universal", "bin", built, program),
      join(folder, "ripgrep", "bin", program),
    ])
    .find(runnable);
}

/** The daemon's environment: ours and the settings', with the workspace kept out of Python's module path. */
export function environment(settings: Record<string, string>): Record<string, string> {
  const ours = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const { PYTHONPATH: _path, PYTHONHOME: _home, PYTHONSTARTUP: _startup, ...rest } = Object.fromEntries(ours);
  return { ...rest, ...settings, PYTHONSAFEPATH: "1" };
}

/** What of the user's own variables `made`, the daemon's environment, lacks or changes: commands get them as they are.
 * With a safe path they would not find the modules of the workspace. */
export function withheld(made: Record<string, string | undefined>): Record<string, string> {
  const given: Record<string, string> = { PYTHONSAFEPATH: process.env.PYTHONSAFEPATH ?? "" }; // "": as if not set
  for (const name of ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"]) {
    const value = process.env[name];
    if (made[name] === undefined && value !== undefined) given[name] = value;
  }
  return given;
}
