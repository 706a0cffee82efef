import { extname, isAbsolute, join } from "node:path";
import { contains } from "../editor/paths";
import type { SessionState } from "../protocol";
import type { ToHost } from "./messages";

/** What pictures may be, by the end of their name. */
export const PICTURES: Record<string, string> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
};
const MEDIA: ReadonlySet<string> = new Set(Object.values(PICTURES));

/** Why nothing is done at a message of the view, in words for the log; `stale` when it is an answer to what was asked
 * before. The view draws what strangers wrote: that it says so is no proof that the user did. */
export function refusal(
  message: ToHost,
  { approvals }: Pick<SessionState, "approvals">,
  folders: string[],
): { why: string; stale: boolean } | undefined {
  const no = (why: string, stale = false) => ({ why, stale });
  switch (message.type) {
    case "resolve": {
      const asked = approvals.find(({ toolCallId }) => toolCallId === message.toolCallId);
      if (typeof message.digest !== "string") return no("an answer that does not say to what");
      if (asked === undefined) return undefined; // settled elsewhere: the daemon says by whom
      if (message.digest !== asked.digest) return no("an answer to another question than is asked", true);
      if (message.decision !== "allow") return undefined;
      if (!asked.scopes.some(({ scope }) => scope === message.scope))
        return no("a scope that was not offered");
      if (!Array.isArray(message.grants) || message.grants.some((grant) => !asked.grants.includes(grant)))
        return no("a grant that was not offered");
      if (message.command !== undefined && (asked.command === null || typeof message.command !== "string"))
        return no("a command where none can be edited");
      const modes = asked.answers.filter(({ action }) => action === "allow").map(({ mode }) => mode);
      if (asked.document !== null && !modes.includes(message.mode ?? null))
        return no("a mode that was not offered");
      return undefined;
    }
    case "openFile":
      return within(message.path, folders) === undefined ? no("a file outside the workspace") : undefined;
    case "applyCode":
      return message.path !== null && within(message.path, folders) === undefined
        ? no("a file outside the workspace")
        : undefined;
    case "workspacePicture":
      return pictureAt(message.path, folders) === undefined
        ? no("a picture outside the workspace")
        : undefined;
    case "picture":
      return MEDIA.has(message.mediaType) ? undefined : no("a picture that is none");
    default:
      return undefined;
  }
}

/** The whole path and the type of a picture of the workspace; undefined where it is none. */
export function pictureAt(path: string, folders: string[]): { full: string; mediaType: string } | undefined {
  const mediaType = PICTURES[extname(path).toLowerCase()];
  const full = within(path, folders);
  return full === undefined || mediaType === undefined ? undefined : { full, mediaType };
}

/** The whole path of a file that a card names, if it lies in one of the folders: on Windows a mere look at another
 * machine's tells that machine who the user is. */
export function within(path: string, folders: string[]): string | undefined {
  const full = isAbsolute(path) ? path : join(folders[0] ?? "", path);
  return folders.some((folder) => contains(folder, full)) ? full : undefined;
}
