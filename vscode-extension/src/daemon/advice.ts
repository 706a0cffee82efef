import type { Action } from "../chat/messages";

const KEY = "Amanu: Set API Key…";
const SIGN_IN = "Amanu: Sign In with ChatGPT";

/** Terminal commands in the daemon's advice, and the VS Code commands that do the same. */
const HERE: [advised: RegExp, here: string][] = [
  [/Set [A-Z_]+(?:, [A-Z_]+)*(?: or [A-Z_]+)?, or run:? `?amanu auth set [\w-]+`?/g, `Use ${KEY}`],
  [/[Rr]un:? `?amanu auth set [\w-]+`?/g, `Use ${KEY}`],
  [/, or run:? `?amanu auth login [\w-]+`?/g, `, or ${SIGN_IN}`],
  [/[Rr]un:? `?amanu auth login [\w-]+`?/g, `Use ${SIGN_IN}`],
  [/`?amanu auth login [\w-]+`?/g, SIGN_IN],
  [/`?amanu auth logout openai`?/g, "Amanu: Sign Out of ChatGPT"],
  [/[Rr]un:? `?amanu auth local [\w-]+`?/g, "Use Amanu: Allow a Local Model Server…"],
  [/`?amanu auth local [\w-]+`?/g, "Amanu: Allow a Local Model Server…"],
  [/amanu auth set VENDOR, or try amanu demo, which needs none/g, `${KEY}, or Amanu: Try It Without a Key`],
  [/`?amanu auth status`?/g, KEY],
  [/`?amanu auth set [\w-]+`?/g, KEY],
  [/ `amanu models --refresh` does so at any time\./g, ""],
  [
    /To (?:ask for it|see all of them), run: amanu models(?: --refresh)?/g,
    "Amanu: Select Model… shows its models.",
  ],
  [
    /`amanu mcp add` or `amanu mcp import` adds one\./g,
    "Add one to .mcp.json in this folder, or to your mcp.toml.",
  ],
  [/`?amanu logs`?/g, "Amanu: Show Logs"],
  [/raise max_sessions in config\.toml/g, "raise Maximum open sessions in Amanu: Settings"],
  [/`?amanu trust show`?/g, "Amanu: Review What This Folder Enables"],
];

/** The daemon's message with VS Code's commands in it: most users here have no `amanu` in their terminal. */
export function advice(text: string): string {
  return HERE.reduce((said, [advised, here]) => said.replace(advised, here), text);
}

/** The actions in the text for which there is a button. */
export function advised(text: string): Action[] {
  const known: [words: string, action: Action][] = [
    [KEY, "setKey"],
    [SIGN_IN, "signIn"],
  ];
  return known.flatMap(([words, action]) => (text.includes(words) ? [action] : []));
}
