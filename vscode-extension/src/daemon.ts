import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, relative } from "node:path";

/** Where to look for the `amanu` program. */
export interface Places {
  /** The setting `amanu.server.path`; "" when it is not set. */
  setting: string;
  /** The extension's own storage folder. */
  storage: string;
  /** The variable `PATH`. */
  path: string;
  /** Workspace folders: nothing in them is ever started. */
  folders: string[];
  windows?: boolean;
}

export type Found = { command: string; from: "setting" | "storage" | "path" } | { missing: string };

/**
 * The daemon's program: 1. the setting, 2. the extension's storage, 3. `PATH`; never one inside the workspace, which
 * anybody may have written. `missing` is a sentence the person can act on.
 */
export function findDaemon(places: Places): Found {
  const folders = places.folders.map(real);
  const inside = (path: string) => folders.some((folder) => contains(folder, real(path)));
  const program = places.windows ? "amanu.exe" : "amanu";

  if (places.setting !== "") {
    if (!isAbsolute(places.setting))
      return { missing: "The setting amanu.server.path must be an absolute path." };
    if (!runnable(places.setting))
      return {
        missing: `The setting amanu.server.path names ${places.setting}, which is no program that can be run.`,
      };
    if (inside(places.setting))
      return {
        missing: `The setting amanu.server.path names ${places.setting}, which is inside the workspace. Amanu starts no program from a workspace: install it elsewhere.`,
      };
    return { command: places.setting, from: "setting" };
  }

  const own = join(places.storage, "venv", places.windows ? "Scripts" : "bin", program);
  if (runnable(own)) return { command: own, from: "storage" };

  let passedOver = "";
  for (const folder of places.path.split(delimiter)) {
    const candidate = join(folder, program);
    if (!isAbsolute(folder) || !runnable(candidate)) continue;
    if (!inside(candidate)) return { command: candidate, from: "path" };
    passedOver ||= candidate;
  }
  const why = passedOver
    ? `The only amanu on PATH is ${passedOver}, inside the workspace, and nothing is started from there.`
    : "The program amanu is not on PATH.";
  return {
    missing: `${why} Install it (Python 3.11 or newer is needed), or set amanu.server.path to where it is.`,
  };
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

/** Whether the path is the folder or lies in it, by name. */
export function contains(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function runnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
