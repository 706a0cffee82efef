import { Folded } from "./fold";
import type { Event, EventMessage, SessionAttachResult, SessionResult, SessionState } from "../protocol";

/** Milliseconds in which acknowledgements are gathered; the daemon holds back only above ≈ 2 MB unacknowledged. */
const ACK_AFTER = 100;

/** What a session needs of the line to the daemon. */
export interface Line {
  attach(sessionId: string, epoch: number, sinceSeq: number): Promise<SessionAttachResult>;
  ack(sessionId: string, seq: number): void;
}

export interface Listener {
  /** Folded already. */
  event(event: Event, seq: number): void;
  /** The whole state came anew, because events were missed. */
  replaced(): void;
  /** What was missed could not be fetched. */
  failed(error: unknown): void;
}

/** Follows one session: folds what comes, in order, each once; what a gap or a lost line hid is fetched. */
export class Session {
  private folded: Folded;
  private epoch: number;
  private seq: number;
  private acked: number;
  private acking: ReturnType<typeof setTimeout> | undefined;
  private catching: Promise<void> | undefined;
  private again = false;
  private closed = false;

  constructor(
    private readonly line: Line,
    result: SessionResult,
    private readonly listener: Listener,
  ) {
    this.folded = new Folded(result.state);
    this.epoch = result.epoch;
    this.seq = result.fromSeq - 1;
    this.acked = this.seq;
  }

  get state(): SessionState {
    return this.folded.state;
  }

  get items(): Folded {
    return this.folded;
  }

  get lastSeq(): number {
    return this.seq;
  }

  /** Fold one event. Another session's and repeated ones are dropped. */
  receive(message: EventMessage): void {
    if (message.sessionId !== this.state.sessionId || this.closed) return;
    if (message.epoch === this.epoch && message.seq <= this.seq) return;
    const first = message.event.kind === "itemsReplaced" ? message.event.replacesFrom : message.seq;
    if (message.epoch !== this.epoch || first > this.seq + 1) void this.catchUp();
    else this.take(message);
  }

  /** The view has drawn everything up to `seq`. Gathered, then told to the daemon. */
  drawn(seq: number): void {
    if (seq <= this.acked || this.closed) return;
    this.acked = Math.min(seq, this.seq);
    this.acking ??= setTimeout(() => {
      this.acking = undefined;
      this.line.ack(this.state.sessionId, this.acked);
    }, ACK_AFTER);
  }

  /** Fetch what was missed: after a gap, another epoch, or a new line to the daemon. One at a time. */
  catchUp(): Promise<void> {
    if (this.catching !== undefined) {
      this.again = true;
      return this.catching;
    }
    this.catching = this.fetch().finally(() => {
      this.catching = undefined;
    });
    return this.catching;
  }

  /** Nothing of it is heard any more. */
  close(): void {
    this.closed = true;
    clearTimeout(this.acking);
  }

  private async fetch(): Promise<void> {
    do {
      this.again = false;
      try {
        const result = await this.line.attach(this.state.sessionId, this.epoch, this.seq);
        if (!this.closed) this.adopt(result);
      } catch (error) {
        if (!this.closed) this.listener.failed(error);
        return;
      }
    } while (this.again && !this.closed);
  }

  private adopt(result: SessionAttachResult): void {
    if (result.state !== null) {
      this.folded = new Folded(result.state);
      this.epoch = result.epoch;
      this.seq = result.fromSeq - 1;
      this.acked = this.seq;
      this.listener.replaced();
      return;
    }
    this.epoch = result.epoch;
    for (const message of result.events ?? []) if (message.seq > this.seq) this.take(message);
    this.seq = Math.max(this.seq, result.fromSeq - 1);
  }

  private take(message: EventMessage): void {
    this.seq = message.seq;
    this.folded.fold(message.event);
    this.listener.event(message.event, message.seq);
  }
}
