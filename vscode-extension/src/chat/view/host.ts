import type { ToHost } from "../messages";

/** The extension, for what is drawn from text and knows no session. The view says how it is told. */
export const host = {
  post: (_message: ToHost): void => undefined,
};

/** What the user's editor shows. */
export const editor: { path: string | null } = { path: null };
