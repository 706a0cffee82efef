import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  ErrorCodes,
  type Executable,
  LanguageClient,
  ResponseError,
  type StaticFeature,
} from "vscode-languageclient/node";
import { advice } from "./advice";
import { ripgrep, withheld } from "./daemon";
import {
  type ClientCapabilities,
  type ErrorData,
  type NotificationsToClient,
  type NotificationsToDaemon,
  PROTOCOL_VERSION,
  type RequestsToClient,
  type RequestsToDaemon,
  type ServerCapabilities,
} from "../protocol";

/** Milliseconds between two attempts to reach the daemon again, and how many before the user is asked. */
const AGAIN_AFTER = [200, 1000, 3000, 8000];
/** Milliseconds between two looks whether a program that was missing has come: installed, or set, meanwhile. */
const LOOK_AFTER = 3000;
/** Milliseconds in which a daemon that was started must answer. */
const ANSWERS = 30_000;
/** A line that held that long, in milliseconds, is worth as many attempts as the first. */
const STEADY = 30_000;

export type Connection =
  | { status: "starting" }
  | { status: "ready" }
  | { status: "lost"; message: string }
  | { status: "installing"; message: string }
  /** `install`: whether installing the daemon would help. */
  | { status: "missing"; message: string; install: boolean };

/** Why nothing can be started; `busy`: it is being installed. */
export interface NotYet {
  missing: string;
  install: boolean;
  busy?: boolean;
}

/** The part of the daemon's answer to `initialize` that says which version of the protocol is in force. */
type Answered = { experimental?: { amanu?: Partial<ServerCapabilities> } } | undefined;

/** A request the daemon refused, in words for the user. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly data: ErrorData | undefined,
  ) {
    super(message);
  }
}

type Handlers = {
  [M in keyof NotificationsToClient]?: (params: NotificationsToClient[M]) => void;
};

/** What the daemon may ask of this editor, all of it. It need not ask for texts: VS Code sends its documents. */
export type Answers = {
  [M in Exclude<keyof RequestsToClient, "amanu/editor/read">]: (
    params: RequestsToClient[M]["params"],
    token: vscode.CancellationToken,
  ) => Promise<RequestsToClient[M]["result"]>;
};

/** The line to the daemon: typed requests and notifications, started again when it breaks. */
export class Daemon implements vscode.Disposable {
  private client: LanguageClient | undefined;
  /** That client was given up: one that is too slow to stop leaves what it was asked without any answer. */
  private readonly dropped = new vscode.EventEmitter<LanguageClient>();
  private readonly changed = new vscode.EventEmitter<Connection>();
  readonly onConnection = this.changed.event;
  connection: Connection = { status: "starting" };
  private attempts = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private starting: Promise<void> | undefined;
  private restarting: Promise<void> | undefined;
  /** What was started, to tell whether the settings mean something else now. */
  private started = "";
  private stopped = false;

  /** `resolve` says what to start (setup.ts), or why nothing can be. */
  constructor(
    private readonly resolve: () => Executable | NotYet,
    private readonly log: vscode.LogOutputChannel,
    private readonly handlers: Handlers,
    private readonly answers: Answers,
  ) {}

  /** Connect. Resolves when the line stands or cannot; `connection` says which. */
  start(): Promise<void> {
    this.starting ??= this.begin().finally(() => {
      this.starting = undefined;
    });
    return this.starting;
  }

  /** Connect anew, at the user's wish or because what the daemon must know at the start has changed. */
  restart(): Promise<void> {
    this.restarting ??= this.anew().finally(() => {
      this.restarting = undefined;
    });
    return this.restarting;
  }

  private async anew(): Promise<void> {
    await this.starting;
    clearTimeout(this.timer);
    this.attempts = 0;
    const old = this.client;
    this.client = undefined;
    if (old !== undefined) {
      this.set({ status: "starting" });
      await old.stop(2000).catch(() => undefined);
      this.dropped.fire(old);
    }
    await this.start();
  }

  /** The settings may have changed: connect anew if they mean another program or environment. */
  async reconsider(): Promise<void> {
    await this.restarting;
    await this.starting;
    if (identity(this.executable()) !== this.started) await this.restart();
  }

  /** Waits while the line is being made. Throws `Refused`, in words for the user. */
  async request<M extends keyof RequestsToDaemon>(
    method: M,
    params: RequestsToDaemon[M]["params"],
    token?: vscode.CancellationToken,
  ): Promise<RequestsToDaemon[M]["result"]> {
    await this.settled();
    const { client } = this;
    if (client === undefined || this.connection.status !== "ready")
      throw new Refused(
        "message" in this.connection ? this.connection.message : "Amanu's daemon is not connected.",
        undefined,
      );
    let unanswered: vscode.Disposable | undefined;
    try {
      const given = token === undefined ? [] : [token]; // an absent one would count as a parameter
      return await Promise.race([
        client.sendRequest<RequestsToDaemon[M]["result"]>(method, params, ...given),
        new Promise<never>((_, reject) => {
          unanswered = this.dropped.event((each) => each === client && reject(new Dropped()));
        }),
      ]);
    } catch (error) {
      // Settings that arrive late connect anew. What the daemon may have had already does nothing the second time.
      if (this.client !== client && cutOff(error) && method !== "amanu/job/input")
        return this.request(method, params, token);
      throw inWords(error);
    } finally {
      unanswered?.dispose();
    }
  }

  /** Resolves when it was written. */
  async notify<M extends keyof NotificationsToDaemon>(
    method: M,
    params: NotificationsToDaemon[M],
  ): Promise<void> {
    if (this.connection.status !== "ready") return;
    await this.client?.sendNotification(method, params).catch(() => undefined); // a broken line is noticed elsewhere
  }

  dispose(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.changed.dispose();
    this.dropped.dispose();
    void this.client?.stop(2000).catch(() => undefined);
  }

  /** The line stands, or it is known that it does not. */
  settled(): Promise<void> {
    if (this.connection.status !== "starting") return Promise.resolve();
    return new Promise((resolve) => {
      const heard = this.onConnection(({ status }) => {
        if (status === "starting") return;
        heard.dispose();
        resolve();
      });
    });
  }

  private async begin(): Promise<void> {
    clearTimeout(this.timer); // one attempt at a time, whoever asked for it
    const executable = this.executable();
    this.started = identity(executable);
    if ("missing" in executable) {
      const { missing: message, install, busy } = executable;
      this.set(busy ? { status: "installing", message } : { status: "missing", message, install });
      this.timer = setTimeout(() => void this.start(), LOOK_AFTER);
      return;
    }
    this.set({ status: "starting" });
    this.log.info(`starting ${executable.command} ${executable.args?.join(" ")}`);
    const client = this.make(executable);
    this.client = client;
    const began = Date.now();
    try {
      await within(ANSWERS, client.start());
    } catch (error) {
      if (this.client !== client) return;
      this.client = undefined;
      void client.stop(2000).catch(() => undefined);
      this.again(`Amanu's daemon could not be started: ${text(error)}`);
      return;
    }
    const answered: Answered = client.initializeResult?.capabilities;
    if (answered?.experimental?.amanu?.protocol !== PROTOCOL_VERSION) {
      this.client = undefined;
      void client.stop(2000).catch(() => undefined);
      const found = `${executable.command} does not speak version ${PROTOCOL_VERSION} of Amanu's protocol`;
      this.set({ status: "lost", message: `${found}. Update Amanu and this extension, then reconnect.` });
      return;
    }
    client.onDidChangeState(({ newState }) => {
      if (newState === 1 && this.client === client && !this.stopped) {
        this.client = undefined;
        if (Date.now() - began > STEADY) this.attempts = 0;
        this.again("The connection to Amanu's daemon was lost.");
      }
    });
    this.set({ status: "ready" });
  }

  /** What to start. A setting that makes no sense is a sentence too. */
  private executable(): Executable | NotYet {
    try {
      return this.resolve();
    } catch (error) {
      return { missing: `Amanu's settings cannot be used: ${text(error)}`, install: false };
    }
  }

  private again(message: string): void {
    const wait = AGAIN_AFTER[this.attempts++];
    this.log.warn(message);
    if (wait === undefined) {
      this.set({ status: "lost", message: `${message} Look at the logs, then reconnect.` });
      return;
    }
    this.set({ status: "starting" });
    this.timer = setTimeout(() => void this.start(), wait);
  }

  private make(executable: Executable): LanguageClient {
    const client = new LanguageClient("amanu", "Amanu", executable, {
      documentSelector: [{ scheme: "file" }],
      outputChannel: this.log,
      initializationOptions: {
        environment: withheld((executable.options?.env ?? {}) as Record<string, string>),
      },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }), // `again` does, and says so
      },
    });
    client.registerFeature(capabilities(Object.keys(this.answers)));
    for (const [method, handler] of Object.entries(this.handlers))
      client.onNotification(method, handler as (params: unknown) => void);
    for (const [method, answer] of Object.entries(this.answers))
      client.onRequest(
        method,
        answer as (params: unknown, token: vscode.CancellationToken) => Promise<unknown>,
      );
    return client;
  }

  private set(connection: Connection): void {
    if (JSON.stringify(connection) === JSON.stringify(this.connection)) return;
    this.connection = connection;
    if (!this.stopped) this.changed.fire(connection);
  }
}

function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`nothing was answered in ${milliseconds / 1000} seconds`)),
      milliseconds,
    );
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** What is to be started, in words that are the same for the same thing: the order of variables means nothing. */
function identity(executable: Executable | NotYet): string {
  if ("missing" in executable) return JSON.stringify(executable);
  const variables = Object.entries((executable.options?.env ?? {}) as Record<string, string>);
  return JSON.stringify([executable.command, executable.args, variables.sort()]);
}

/** What this client says of itself in `initialize`. */
function capabilities(answered: string[]): StaticFeature {
  return {
    getState: () => ({ kind: "static" }),
    fillClientCapabilities: (known) => {
      const amanu: ClientCapabilities = {
        protocol: [PROTOCOL_VERSION],
        editor: answered
          .filter((method) => method.startsWith("amanu/editor/"))
          .map((method) => method.split("/").pop()) as NonNullable<ClientCapabilities["editor"]>,
        trustedRoots: vscode.workspace.isTrusted ? roots() : [],
        ripgrep: ripgrep(vscode.env.appRoot) ?? null,
      };
      known.experimental = { ...(known.experimental as object | undefined), amanu };
    },
    initialize: () => undefined,
    clear: () => undefined,
  };
}

/** The workspace folders on the disk. */
export function roots(): string[] {
  return (vscode.workspace.workspaceFolders ?? [])
    .filter((folder) => folder.uri.scheme === "file")
    .map((folder) => folder.uri.fsPath);
}

/** No answer comes any more. */
class Dropped extends Error {
  constructor() {
    super("The line to Amanu's daemon broke.");
  }
}

/** Whether the line was closed before the answer came. */
function cutOff(error: unknown): boolean {
  if (error instanceof Dropped) return true;
  const codes: number[] = [ErrorCodes.PendingResponseRejected, ErrorCodes.ConnectionInactive];
  return error instanceof ResponseError && codes.includes(error.code);
}

function inWords(error: unknown): Refused {
  if (!(error instanceof ResponseError)) return new Refused(text(error), undefined);
  const data = error.data as ErrorData | undefined;
  return new Refused(advice(data?.hint ? `${error.message} ${data.hint}` : error.message), data);
}

export function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
