/** Characters of a line of a list. */
const LINE = 120;

/** The same as in the daemon (`server/amanu/tools/visible.py`): control characters, bidirectional marks and what has no
 * width. Tabs, line feeds and carriage returns before them are what text is made of. */
const HIDDEN =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;
/** What makes text stand in another order than it has. */
const BENDING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text a person decides on, or the name of a file: nothing is hidden in it. */
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
