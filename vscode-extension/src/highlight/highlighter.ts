import { Worker } from "node:worker_threads";
import * as vscode from "vscode";
import type { Painted, PaintRequest } from "../chat/messages";
import { activeTheme } from "./active";
import type { Reply, Request, Start } from "./worker";

/** Milliseconds after which an answer is no longer waited for: there is code that a grammar takes for ever to read. */
const PATIENCE = 10_000;
/** Milliseconds without a request after which the thread is ended. */
const IDLE = 300_000;
const NOTHING: Painted = { tokens: null, styles: [] };

/** Colours code in the user's theme, in a thread that is started by the first request and knows what it has read. */
export class Highlighter implements vscode.Disposable {
  private worker: Worker | undefined;
  private readonly waiting = new Map<number, (painted: Painted) => void>();
  private requests = 0;
  private idle: ReturnType<typeof setTimeout> | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  /** Colours that were asked for are no longer those of the theme. */
  readonly onChanged = this.changed.event;
  private readonly subscription = vscode.window.onDidChangeActiveColorTheme(() => {
    this.end();
    this.changed.fire();
  });

  constructor(private readonly folder: vscode.Uri) {}

  async paint(request: PaintRequest): Promise<Painted> {
    clearTimeout(this.idle);
    const id = ++this.requests;
    const worker = (this.worker ??= this.start());
    const late = setTimeout(() => this.end(), PATIENCE);
    const painted = await new Promise<Painted>((resolve) => {
      this.waiting.set(id, resolve);
      worker.postMessage({ id, ...request } satisfies Request);
    });
    clearTimeout(late);
    if (this.waiting.size === 0) this.idle = setTimeout(() => this.end(), IDLE);
    return painted;
  }

  dispose(): void {
    clearTimeout(this.idle);
    this.subscription.dispose();
    this.changed.dispose();
    this.end();
  }

  private start(): Worker {
    const dist = vscode.Uri.joinPath(this.folder, "dist", "highlight");
    const file = (name: string) => vscode.Uri.joinPath(dist, name).fsPath;
    const workerData: Start = { folder: file("grammars"), theme: activeTheme() };
    const worker = new Worker(file("worker.js"), { workerData });
    worker.on("message", ({ id, ...painted }: Reply) => {
      this.waiting.get(id)?.(painted);
      this.waiting.delete(id);
    });
    worker.on("error", () => this.worker === worker && this.end());
    worker.unref();
    return worker;
  }

  /** Whoever waits gets nothing. */
  private end(): void {
    void this.worker?.terminate();
    this.worker = undefined;
    for (const resolve of this.waiting.values()) resolve(NOTHING);
    this.waiting.clear();
  }
}
