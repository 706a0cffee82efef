import type { Target } from "./changes";
import type { Daemon } from "../daemon/client";
import type { Hunk, PreviewedFile } from "../protocol";

/** A file's text with all that is proposed, and without any of it: "" where there is no file. */
export interface ProposedTexts {
  version: number;
  proposed: string;
  base: string;
  /** The hunks that wait, at their places in this text. */
  hunks: Hunk[];
}

/** Texts of proposed files, from the daemon: it knows the files as they are now. */
export class Texts {
  constructor(private readonly daemon: Pick<Daemon, "request">) {}

  async of({ sessionId, proposal, file, row }: Target): Promise<ProposedTexts> {
    const { version, proposalId } = proposal;
    const { path } = file;
    if (row !== undefined) {
      const { oldText = "", newText = "" } = file.hunks[0] ?? {};
      const isRefused = row.state === "rejected" || row.state === "reverted";
      return { version, hunks: file.hunks, base: oldText, proposed: isRefused ? oldText : newText };
    }
    const scope = { proposalId, path };
    const preview = await this.daemon.request("amanu/proposal/preview", { sessionId, scope, texts: true });
    const waiting = preview.files.find((each) => each.proposalId === proposalId);
    if (waiting !== undefined) return textsOf(waiting);
    // nothing of it waits any more
    const { files } = await this.daemon.request("amanu/proposal/diff", { sessionId, scope, texts: true });
    const [applied] = files;
    const refused = file.baseText ?? "";
    return {
      version,
      hunks: [],
      base: applied === undefined ? refused : (applied.before ?? ""),
      proposed: applied === undefined ? refused : (applied.after ?? ""),
    };
  }

  /** Those of all files of a session in which something waits, asked for at once. */
  async waiting(sessionId: string): Promise<(target: Target) => ProposedTexts | undefined> {
    const { files } = await this.daemon.request("amanu/proposal/preview", { sessionId, texts: true });
    const found = new Map(files.map((each) => [`${each.proposalId} ${each.path}`, textsOf(each)]));
    return ({ proposal, file, row }) =>
      row === undefined ? found.get(`${proposal.proposalId} ${file.presentPath}`) : undefined;
  }

  /** The file without what that session applied in it (none named: all of them), or without what of that nobody has
   * looked at. */
  async baseline(path: string, sessionId: string | null, unreviewed: boolean): Promise<string> {
    const params = { path, sessionId, unreviewed };
    return (await this.daemon.request("amanu/proposal/baseline", params)).text ?? "";
  }
}

function textsOf({ version, base, text, hunks }: PreviewedFile): ProposedTexts {
  return { version, base: base ?? "", proposed: text ?? "", hunks: hunks.map(({ hunk }) => hunk) };
}
