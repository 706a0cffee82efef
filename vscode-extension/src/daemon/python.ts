import { delimiter, isAbsolute, join } from "node:path";
import { runnable, within } from "../editor/paths";

/** In the order of preference: the versions Amanu is tried with first, then whatever is there. */
const NAMES = ["python3.13", "python3.12", "python3.11", "python3.14", "python3", "python"];
/** Looked into after `PATH`, which an editor started from a menu may not have in full. */
const USUAL = ["/opt/homebrew/bin", "/usr/local/bin", "/usr/bin"];
const OLDEST: [number, number] = [3, 11];

/** What an interpreter says of itself. */
export interface Probed {
  implementation: string;
  version: [major: number, minor: number, micro: number];
  /** The interpreter itself, if the one asked is that of a virtual environment. */
  base: string;
  /** Whether it can make virtual environments with pip in them. */
  venv: boolean;
}

/** `undefined`: it does not run. */
export type Probe = (command: string) => Promise<Probed | undefined>;

/** Nothing but the standard library is imported: no `site`, no current folder, no variable counts. */
export const PROBE = [
  "-I",
  "-S",
  "-c",
  `import importlib.util as i, json, sys; print(json.dumps({
 "implementation": sys.implementation.name, "version": sys.version_info[:3],
 "base": getattr(sys, "_base_executable", None) or sys.executable,
 "venv": all(i.find_spec(m) is not None for m in ("venv", "ensurepip"))}))`,
];

export interface PythonPlaces {
  /** The setting `amanu.python`; "" when it is not set. */
  setting: string;
  /** The variable `PATH`. */
  path: string;
  /** Workspace folders: nothing in them is ever started. */
  folders: string[];
  platform: NodeJS.Platform;
}

export type Python = { command: string; version: string };

const GET = "Install Python 3.11 or newer";

/** A Python to make the daemon's environment with, or why there is none, in a sentence the user can act on. */
export async function findPython(places: PythonPlaces, probe: Probe): Promise<Python | { missing: string }> {
  const inside = within(places.folders);
  if (places.setting !== "") {
    const named = `The setting amanu.python names ${places.setting}`;
    if (!isAbsolute(places.setting)) return { missing: "The setting amanu.python must be an absolute path." };
    if (inside(places.setting))
      return { missing: `${named}, which is inside the workspace: no program of a workspace is started.` };
    if (!runnable(places.setting)) return { missing: `${named}, which is no program that can be run.` };
    const found = judge(places.setting, await probe(places.setting), inside);
    return "unfit" in found ? { missing: `${named}: ${found.unfit}` } : found;
  }

  const unfit: string[] = [];
  const tried = new Set<string>();
  for (const candidate of candidates(places)) {
    if (inside(candidate)) {
      unfit.push(`${candidate} is inside the workspace, and nothing is started from there.`);
      continue;
    }
    const probed = await probe(candidate);
    if (probed === undefined || tried.has(probed.base)) continue;
    tried.add(probed.base);
    const found = judge(candidate, probed, inside);
    if (!("unfit" in found)) return found;
    unfit.push(found.unfit);
  }
  if (unfit.length === 0)
    return {
      missing: `No Python was found. ${GET} (python.org, or your system's packages), then try again.`,
    };
  return {
    missing: `No Python that Amanu can use was found. ${unfit.slice(0, 3).join(" ")} ${GET}, or name one in the setting amanu.python.`,
  };
}

/** All that might be one, best first. */
export function candidates({ path, platform }: PythonPlaces): string[] {
  const folders = [...new Set([...path.split(delimiter), ...USUAL])].filter(
    // on macOS that one is too old, or a stub which asks for developer tools to be installed
    (folder) => isAbsolute(folder) && !(platform === "darwin" && folder === "/usr/bin"),
  );
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).filter(runnable);
}

function judge(
  command: string,
  probed: Probed | undefined,
  inside: (path: string) => boolean,
): Python | { unfit: string } {
  if (probed === undefined) return { unfit: `${command} does not run.` };
  const version = probed.version.join(".");
  const [major, minor] = probed.version;
  const what = `Python ${version} at ${probed.base}`;
  if (probed.implementation !== "cpython") return { unfit: `${what} is ${probed.implementation}.` };
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    return { unfit: `${what} is too old.` };
  if (inside(probed.base)) return { unfit: `${what} is inside the workspace.` };
  if (!probed.venv)
    return {
      unfit: `${what} has no venv module (on Debian and Ubuntu: sudo apt install python${major}.${minor}-venv).`,
    };
  return { command: probed.base, version };
}

/** From what the probe printed. */
export function read(output: string): Probed | undefined {
  try {
    return JSON.parse(output.trim().split("\n").at(-1) ?? "") as Probed;
  } catch {
    return undefined;
  }
}
