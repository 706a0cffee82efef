import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { carriedFor, inWords, NO_PACKAGE } from "./failures";
import { locked } from "./lock";
import { runnable } from "../editor/paths";
import type { Python } from "./python";
import type { Ended, Run, run } from "./run";

/** The daemon that comes with this extension (bundle.py). `id` names version and content. */
export interface Bundle {
  folder: string;
  version: string;
  id: string;
  wheel: string;
  packages: number;
  /** The Python versions whose packages come with it, if any: "3.11", … */
  pythons?: string[];
}

/** What was installed last, in full. */
export interface Installed {
  id: string;
  version: string;
  /** A virtual environment; it stays where it was made, for it cannot be moved. */
  folder: string;
}

/** Why nothing was installed, in a sentence the user can act on. */
export class InstallFailed extends Error {}

/** Milliseconds after which a folder that is no longer named by anything may go. */
const OLD = 7 * 24 * 60 * 60_000;

export function readBundle(extension: string): Bundle | undefined {
  const folder = join(extension, "dist", "daemon");
  const bundle = json<Omit<Bundle, "folder">>(join(folder, "bundle.json"));
  return bundle && { ...bundle, folder };
}

/** The daemon in the extension's storage; a half-made one is none. */
export function installed(storage: string): Installed | undefined {
  const found = json<Installed>(current(storage));
  // the interpreter is a link to a Python that may have been uninstalled since
  return found && runnable(program(found)) && runnable(interpreter(found.folder)) ? found : undefined;
}

export function program({ folder }: Installed): string {
  return join(folder, "bin", "amanu");
}

/** Why this machine cannot have the daemon, if it cannot. */
export function unsupported(platform: NodeJS.Platform): string | undefined {
  if (platform !== "win32") return undefined;
  return "Amanu's daemon does not run on Windows yet. Open the folder in WSL or in a dev container: there it does.";
}

export interface Installation {
  bundle: Bundle;
  storage: string;
  python: Python;
  /** For pip: proxies and mirrors are the user's own. */
  env: Record<string, string>;
  signal: AbortSignal;
  /** What happens now, and which share of all (0…1) is done. */
  step: (what: string, done: number) => void;
  log: (line: string) => void;
  run: typeof run;
  /** Also when the same is there already. */
  again?: boolean;
}

/**
 * Make a virtual environment with the daemon in it. Each attempt has a folder of its own, and only a finished one is
 * named by `current.json`: what is cut short is never used, two windows cannot spoil each other's, and a daemon that
 * runs keeps its files. Undefined when it was cancelled. Throws `InstallFailed`.
 */
export async function install(wanted: Installation): Promise<Installed | undefined> {
  const { bundle, storage, signal, step } = wanted;
  const home = join(storage, "daemon");
  try {
    mkdirSync(home, { recursive: true });
    const busy = () => step("Another window is installing it: waiting", 0);
    return await locked(join(home, "lock"), signal, busy, async () => {
      const there = installed(storage);
      if (there?.id === bundle.id && !wanted.again) return there;
      const folder = join(home, `${bundle.id}-${Date.now().toString(36)}`);
      const made = { id: bundle.id, version: bundle.version, folder };
      if (!(await fill(wanted, made))) {
        rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
        return undefined;
      }
      const next = join(home, `current-${process.pid}.json`);
      writeFileSync(next, JSON.stringify(made));
      renameSync(next, current(storage));
      tidy(home, [folder, there?.folder]);
      return made;
    });
  } catch (error) {
    throw error instanceof InstallFailed ? error : new InstallFailed(inWords(String(error), wanted.python));
  }
}

interface Step {
  what: string;
  /** The share of the whole (0…1) that is done before it. */
  share: number;
  command: string;
  args: string[];
  env?: Record<string, string>;
  hear?: (line: string) => void;
  /** Done in its place if there is no package for this Python or system. */
  otherwise?: Step;
}

/** False when it was cancelled. */
async function fill(given: Installation, made: Installed): Promise<boolean> {
  // pip asks `rustc` for its version, to tell the index, and rustup's would leave settings in the home folder.
  const env = { ...given.env, RUSTUP_HOME: join(made.folder, "rustup"), RUSTUP_AUTO_INSTALL: "0" };
  const wanted = { ...given, env };
  const { bundle, python } = wanted;
  const own = interpreter(made.folder);
  const pip = [
    "-I",
    "-m",
    "pip",
    "install",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar=off",
  ];
  // The list is complete. Left to resolve, pip refuses it by its hashes as soon as an index has a newer version of what
  // one of them wants with an extra (google-auth[requests]).
  const packages = [
    "--require-hashes",
    "--no-deps",
    "--only-binary=:all:",
    "-r",
    join(bundle.folder, "requirements.txt"),
  ];
  const common = { share: 0.12, command: own, hear: progress(bundle.packages, wanted.step) };
  const fetched: Step = { ...common, what: "Downloading packages", args: [...pip, ...packages] };
  const carried: Step = {
    ...common,
    what: "Installing packages",
    args: [...pip, "--no-index", "--find-links", join(bundle.folder, "wheels"), ...packages],
    env: unconfigured(wanted.env),
    otherwise: fetched,
  };
  const venv = ["-I", "-m", "venv", made.folder];
  const wheel = ["--no-deps", "--no-index", join(bundle.folder, bundle.wheel)];
  const steps: Step[] = [
    { what: `Preparing Python ${python.version}`, share: 0.02, command: python.command, args: venv },
    bundle.pythons ? carried : fetched,
    { what: "Installing Amanu", share: 0.92, command: own, args: [...pip, ...wheel] },
    { what: "Checking", share: 0.97, command: program(made), args: ["--version"] },
  ];
  for (const step of steps) {
    let { code, output } = await perform(wanted, step);
    let hint = "";
    if (step.otherwise && code !== 0 && NO_PACKAGE.test(output)) {
      hint = ` ${carriedFor(bundle.pythons ?? [], python)}`;
      wanted.log(hint.trim());
      ({ code, output } = await perform(wanted, step.otherwise));
    }
    if (wanted.signal.aborted || code !== 0)
      rmSync(made.folder, { recursive: true, force: true, maxRetries: 3 });
    if (wanted.signal.aborted) return false;
    if (code !== 0) throw new InstallFailed(inWords(output, python) + hint);
  }
  return true;
}

function perform(wanted: Installation, { what, share, command, args, env, hear }: Step): Promise<Ended> {
  wanted.step(what, share);
  wanted.log(`${command} ${args.join(" ")}`);
  const line: Run["line"] = (said) => {
    wanted.log(said);
    hear?.(said);
  };
  return wanted.run(command, args, { env: env ?? wanted.env, signal: wanted.signal, line });
}

/** From pip's lines to steps: it names each package when it begins to fetch it, and once more when all are there. */
export function progress(packages: number, step: Installation["step"]): (line: string) => void {
  let fetched = 0;
  return (line) => {
    const name = /^Collecting ([\w.-]+)/.exec(line)?.[1];
    if (name !== undefined) {
      fetched = Math.min(fetched + 1, packages);
      step(`Downloading ${name} (${fetched} of ${packages})`, 0.12 + (0.58 * fetched) / packages);
    } else if (line.startsWith("Installing collected packages")) step("Installing packages", 0.72);
  };
}

/** The environment for pip: the daemon's, without what would make it install elsewhere or ask. */
export function forPip(environment: Record<string, string>, proxy: string): Record<string, string> {
  const {
    PIP_TARGET: _target,
    PIP_PREFIX: _prefix,
    PIP_ROOT: _root,
    VIRTUAL_ENV: _venv,
    ...rest
  } = environment;
  const proxied = Object.keys(rest).some((name) => name.toUpperCase() === "HTTPS_PROXY");
  return { ...rest, PIP_USER: "0", PIP_NO_INPUT: "1", ...(proxy && !proxied ? { HTTPS_PROXY: proxy } : {}) };
}

/** The environment for pip where all is there: no index, mirror or other setting of the user's matters. */
function unconfigured(env: Record<string, string>): Record<string, string> {
  const rest = Object.entries(env).filter(([name]) => !name.startsWith("PIP_"));
  return { ...Object.fromEntries(rest), PIP_CONFIG_FILE: devNull, PIP_NO_INPUT: "1" };
}

/** Forget what neither is used nor was used last, nor is being made. */
function tidy(home: string, kept: (string | undefined)[]): void {
  for (const entry of readdirSync(home, { withFileTypes: true })) {
    const folder = join(home, entry.name);
    if (!entry.isDirectory() || kept.includes(folder)) continue;
    if (Date.now() - statSync(folder).mtimeMs > OLD)
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

function current(storage: string): string {
  return join(storage, "daemon", "current.json");
}

function interpreter(folder: string): string {
  return join(folder, "bin", "python");
}

function json<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}
