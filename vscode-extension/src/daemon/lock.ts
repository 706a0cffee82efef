import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";

/** Milliseconds between two looks whether the lock has become free. */
const LOOK = 300;
/** No installation takes that long, in milliseconds: whoever left the lock is gone, though its number lives on. */
const STALE = 20 * 60_000;

/**
 * Do the work while no other window does. `waiting` is told when one does. A lock left by a crash is taken over; two
 * windows that do so at the same moment may both work, which wastes time and harms nothing (install.ts).
 */
export async function locked<T>(
  file: string,
  signal: AbortSignal,
  waiting: () => void,
  work: () => Promise<T>,
): Promise<T | undefined> {
  for (let told = false; !take(file);) {
    if (signal.aborted) return undefined;
    if (!told) waiting();
    told = true;
    await new Promise((resolve) => setTimeout(resolve, LOOK));
  }
  try {
    return await work();
  } finally {
    if (owner(file) === process.pid) rmSync(file, { force: true });
  }
}

function take(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  if (stale(file)) rmSync(file, { force: true });
  return false;
}

function stale(file: string): boolean {
  try {
    if (Date.now() - statSync(file).mtimeMs > STALE) return true;
    const pid = owner(file);
    if (pid === undefined) return false; // just being written
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

function owner(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8")) || undefined;
  } catch {
    return undefined;
  }
}
