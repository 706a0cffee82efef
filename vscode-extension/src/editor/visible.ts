import { HIDDEN } from "../hidden";

/** Characters of a line of a list. */
const LINE = 120;

/** Characters of a title, and of what is asked. */
export const TITLE = 60;

/** What makes text stand in another order than it has. */
const BENDING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text a user decides on, or the name of a file: nothing is hidden in it. Tabs, line feeds and carriage returns before
 * them are what text is made of. */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(HIDDEN, named);
}

/** Text of the conversation: it stands in the order it has. What belongs to emoji and to other scripts stays. */
export function straight(text: string): string {
  return text.replace(BENDING, named);
}

/** Like `visible`, blanks drawn together, and not too long. */
export function oneLine(text: string, most = LINE): string {
  const line = visible(text).replaceAll(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** A session by its title, quoted. */
export function titled({ title }: { title: string }): string {
  return `“${oneLine(title, TITLE) || "Untitled"}”`;
}

/** For the lists and labels of VS Code: like `oneLine`, and no icon where the text only looks like one. */
export function plain(text: string, most = LINE): string {
  return oneLine(text, most).replaceAll("$(", "\\$(");
}

/** For VS Code's notifications, which make links of `[text](command:…)`: like `oneLine`, and no link. */
export function message(text: string, most = 3 * LINE): string {
  return oneLine(text, most).replaceAll("](", "] (");
}

function named(hidden: string): string {
  const point = (hidden.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return `<U+${point.padStart(4, "0")}>`;
}
