import type { Daemon } from "../daemon/client";
import type { ProposedFile } from "../protocol";

/** How many texts are kept: enough for a few open diffs. */
const KEPT = 8;
/** Bytes asked for at once: the most the daemon gives. */
const PAGE = 4_194_304;

type Base = Pick<ProposedFile, "baseText" | "baseBlob">;

/** The base texts of proposed files; a big file's is fetched when a diff shows it. */
export class BaseTexts {
  /** By blob, the last used last. */
  private readonly texts = new Map<string, string>();

  constructor(private readonly daemon: Pick<Daemon, "request">) {}

  /** Undefined while it has not been loaded. */
  get(file: Base): string | undefined {
    return file.baseBlob === null ? (file.baseText ?? "") : this.texts.get(file.baseBlob);
  }

  /** Rejects when the daemon does not give it. */
  async load(sessionId: string, file: Base): Promise<void> {
    if (file.baseBlob === null) return;
    const text = this.texts.get(file.baseBlob) ?? (await this.fetch(sessionId, file.baseBlob));
    this.texts.delete(file.baseBlob);
    this.texts.set(file.baseBlob, text);
    const [oldest] = this.texts.keys();
    if (this.texts.size > KEPT && oldest !== undefined) this.texts.delete(oldest);
  }

  private async fetch(sessionId: string, blobId: string): Promise<string> {
    const pages: string[] = [];
    for (let offset: number | null = 0; offset !== null;) {
      const params = { sessionId, blobId, offset, limit: PAGE };
      const page: { text: string; nextOffset: number | null } = await this.daemon.request(
        "amanu/blob/get",
        params,
      );
      pages.push(page.text);
      offset = page.nextOffset;
    }
    return pages.join("");
  }
}
