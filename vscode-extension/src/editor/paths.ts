import { accessSync, constants, readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** Links followed at most: a chain of them may be a circle. */
const LINKS = 40;

/**
 * Whether a program lies in one of the folders, by its own name or by any link on the way to it. Every link counts, for
 * Python takes the packages beside the name it was started by: a workspace's `.venv/bin/python` leads to the system's
 * Python, and yet runs what the workspace put there.
 */
export function within(folders: string[]): (path: string) => boolean {
  const reals = folders.map(real);
  return (path) => way(path).some((each) => reals.some((folder) => contains(folder, each)));
}

export function runnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function way(path: string): string[] {
  const passed = [];
  let at = path;
  for (let links = 0; links < LINKS; links++) {
    at = join(real(dirname(at)), basename(at));
    passed.push(at);
    try {
      at = resolve(dirname(at), readlinkSync(at));
    } catch {
      break; // no link: the file itself, or nothing
    }
  }
  return passed;
}

export function contains(folder: string, path: string): boolean {
  const rest = relative(folder, path);
  return rest === "" || (rest !== ".." && !rest.startsWith(`..${sep}`) && !isAbsolute(rest));
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
