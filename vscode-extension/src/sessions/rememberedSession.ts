import { createHash } from "node:crypto";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type * as vscode from "vscode";

/** Under which name VS Code keeps the same, for workspaces that got another folder and so another place here. */
const LAST = "amanu.session";
/** Milliseconds after which a window that is gone is not waited for any more, when another one went later. */
const GONE = 24 * 3_600_000;

/**
 * Which session this window shows, remembered beyond a reload. VS Code writes its `Memento` a moment later, and what a
 * reload or a crash comes before is lost: so it is a file of ours, one per window, named by the process that serves it.
 * A window that comes takes over from the one that went last. Only when none has gone it shows what another window of
 * the same folders shows.
 */
export class RememberedSession implements vscode.Disposable {
  private readonly folder: string;
  private readonly own: string;

  constructor(
    storage: string,
    roots: string[],
    private readonly memento: vscode.Memento,
    process = globalThis.process.pid,
  ) {
    const key = createHash("sha256").update([...roots].sort().join("\0"));
    this.folder = join(storage, "shown", key.digest("hex").slice(0, 16));
    this.own = join(this.folder, String(process));
  }

  /** The session to go on with, if any. */
  get(): string | undefined {
    const last = read(this.own) ?? this.inherited() ?? this.beside() ?? this.memento.get<string>(LAST);
    return last || undefined;
  }

  /** From now on it is that one, or a clean sheet. */
  set(sessionId: string | undefined): void {
    void this.memento.update(LAST, sessionId);
    attempt(() => {
      mkdirSync(this.folder, { recursive: true });
      writeFileSync(`${this.own}.new`, sessionId ?? "");
      renameSync(`${this.own}.new`, this.own); // whole or not at all
    }); // else it is as good as VS Code remembers
  }

  /** The window goes: the file's time tells which one went last. */
  dispose(): void {
    attempt(() => utimesSync(this.own, new Date(), new Date()));
  }

  /** What the window showed that went last. From now on it is ours, and no other window's that comes now, too. */
  private inherited(): string | undefined {
    const gone = this.windows().filter(({ lives }) => !lives);
    const heir = gone.find(({ file }) => attempt(() => renameSync(file, this.own)));
    for (const { file, time } of gone)
      if (heir !== undefined && time < heir.time - GONE) attempt(() => rmSync(file, { force: true }));
    return heir && read(this.own);
  }

  private beside(): string | undefined {
    const lives = this.windows().find((each) => each.lives);
    return lives && read(lives.file);
  }

  /** Windows of these folders, the last one first. */
  private windows(): { file: string; time: number; lives: boolean }[] {
    const found: { file: string; time: number; lives: boolean }[] = [];
    attempt(() => {
      for (const name of readdirSync(this.folder).filter((each) => /^\d+$/.test(each))) {
        const file = join(this.folder, name);
        attempt(() => found.push({ file, time: statSync(file).mtimeMs, lives: lives(Number(name)) }));
      }
    });
    return found.sort((one, other) => other.time - one.time);
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Whether it went well. To remember is a comfort: nothing fails because it cannot be had. */
function attempt(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
