import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import type { Event, Job, JobOutputParams, JobOutputResult } from "../protocol";
import type { Sessions } from "./sessions";
import { oneLine } from "../editor/visible";

/** What the terminal of a job asks of the daemon. */
export interface JobLine {
  output(params: Omit<JobOutputParams, "sessionId">): Promise<JobOutputResult>;
  input(jobId: string, text: string): Promise<unknown>;
  stop(jobId: string): Promise<unknown>;
}

/** Milliseconds in which keys that are typed are gathered into one request. */
const TYPED_AFTER = 20;

const CTRL_C = "\x03";

/** A terminal tab that shows what a background command prints, as it comes; it takes keys if the command has a
 * terminal of its own, else only Ctrl+C, which stops the command. Closing the tab ends nothing. */
export class JobTerminal implements vscode.Pseudoterminal {
  private readonly write = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.write.event;
  private offset = 0;
  private reading: Promise<void> | undefined;
  private again = false;
  private opened = false;
  private said = false;
  private typed = "";
  private typing: Promise<unknown> = Promise.resolve();

  constructor(
    private job: Job,
    private readonly line: JobLine,
  ) {}

  open(): void {
    this.opened = true;
    void this.read();
  }

  close(): void {
    this.opened = false;
  }

  handleInput(data: string): void {
    if (this.job.state !== "running") return;
    if (!this.job.tty) return void (data === CTRL_C && this.line.stop(this.job.jobId).catch(() => undefined));
    if (this.typed === "") setTimeout(() => this.send(), TYPED_AFTER);
    this.typed += data;
  }

  /** The job has printed something, or has changed. */
  update(job: Job): Promise<void> {
    this.job = job;
    return this.read();
  }

  /** Fetch and show what is new. One at a time; what comes meanwhile is fetched afterwards. */
  private read(): Promise<void> {
    if (!this.opened) return Promise.resolve();
    this.again = true;
    this.reading ??= this.fetch().finally(() => {
      this.reading = undefined;
    });
    return this.reading;
  }

  private async fetch(): Promise<void> {
    while (this.again && this.opened) {
      this.again = false;
      try {
        for (;;) {
          const { jobId } = this.job;
          const piece = await this.line.output({ jobId, offset: this.offset, raw: true });
          if (piece.missing > 0) this.show(`\n[… ${piece.missing} bytes left out …]\n`);
          if (piece.nextOffset === this.offset) break;
          this.offset = piece.nextOffset;
          this.show(piece.text);
        }
      } catch (error) {
        this.show(`\n[${oneLine(String(error))}]\n`);
        return;
      }
    }
    if (this.job.state !== "running" && !this.said) {
      this.said = true;
      this.show(`\n[${oneLine(this.job.summary)}]\n`);
    }
  }

  private send(): void {
    const text = this.typed;
    this.typed = "";
    this.typing = this.typing.then(() => this.line.input(this.job.jobId, text)).catch(() => undefined);
  }

  /** A pipe's line feeds are only that; a terminal's have their carriage return. */
  private show(text: string): void {
    this.write.fire(text.replace(/\r?\n/g, "\r\n"));
  }
}

/** The terminal tabs of background commands. */
export class JobTerminals implements vscode.Disposable {
  private readonly open = new Map<string, { pty: JobTerminal; terminal: vscode.Terminal }>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly daemon: Daemon,
  ) {
    this.subscriptions = [
      sessions.onReset((sessionId) => this.changed(sessionId)),
      sessions.onEvent(({ sessionId, event }) => {
        const jobId = about(event);
        if (jobId !== undefined) this.changed(sessionId, jobId);
      }),
      vscode.window.onDidCloseTerminal((closed) => {
        for (const [id, { terminal }] of this.open) if (terminal === closed) this.open.delete(id);
      }),
    ];
  }

  show(sessionId: string, job: Job): void {
    const known = this.open.get(key(sessionId, job));
    if (known !== undefined) return known.terminal.show();
    const pty = new JobTerminal(job, {
      output: (params) => this.daemon.request("amanu/job/output", { sessionId, ...params }),
      input: (jobId, text) => this.daemon.request("amanu/job/input", { sessionId, jobId, text }),
      stop: (jobId) => this.daemon.request("amanu/job/stop", { sessionId, jobId }),
    });
    const name = `Amanu ${job.jobId}: ${oneLine(job.title, 40)}`;
    const terminal = vscode.window.createTerminal({
      name,
      pty,
      iconPath: new vscode.ThemeIcon("server-process"),
    });
    this.open.set(key(sessionId, job), { pty, terminal });
    terminal.show();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  private changed(sessionId: string, jobId?: string): void {
    for (const job of this.sessions.get(sessionId)?.state.jobs ?? [])
      if (jobId === undefined || job.jobId === jobId)
        void this.open.get(key(sessionId, job))?.pty.update(job);
  }
}

function key(sessionId: string, { jobId }: Job): string {
  return `${sessionId} ${jobId}`;
}

/** The job an event is about, if it is about one. */
function about(event: Event): string | undefined {
  if (event.kind === "jobChanged") return event.job.jobId;
  return event.kind === "jobProgress" ? event.jobId : undefined;
}
