import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { createInterface } from "node:readline";

/** Milliseconds between asking a cancelled program to end and ending it. */
const GRACE = 3000;
/** Lines kept of what a program says. */
const KEPT = 400;

export interface Run {
  env: Record<string, string>;
  /** Ends the program and all it started. */
  signal?: AbortSignal;
  /** Hears each line as it comes. */
  line?: (line: string) => void;
}

/** How a program ended: `code` is null when it was cancelled or could not be started. `output` holds its last lines. */
export interface Ended {
  code: number | null;
  output: string;
}

/** Run a program in the home folder, with nothing to read. */
export function run(command: string, args: string[], { env, signal, line }: Run): Promise<Ended> {
  return new Promise((done) => {
    const lines: string[] = [];
    const hear = (said: string) => {
      lines.push(said);
      if (lines.length > KEPT) lines.shift();
      line?.(said);
    };
    if (signal?.aborted) return done({ code: null, output: "" });
    // a group of its own, so that what it starts ends with it
    const child = spawn(command, args, {
      cwd: homedir(),
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr]) createInterface(stream).on("line", hear);
    let killer: ReturnType<typeof setTimeout> | undefined;
    const end = () => {
      kill(child.pid, "SIGTERM");
      killer = setTimeout(() => kill(child.pid, "SIGKILL"), GRACE);
    };
    signal?.addEventListener("abort", end, { once: true });
    const ended = (code: number | null) => {
      clearTimeout(killer);
      signal?.removeEventListener("abort", end);
      done({ code: signal?.aborted ? null : code, output: lines.join("\n") });
    };
    child.on("error", (error) => {
      hear(error.message);
      ended(null);
    });
    child.on("close", ended);
  });
}

function kill(pid: number | undefined, how: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, how);
  } catch {
    // gone already
  }
}
