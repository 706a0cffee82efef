import { linkedPlace, type Place, spannedPlace } from "./places";

/** A code block at the top that is not closed yet, at the end of a text that grows. */
export class OpenFence {
  private constructor(
    /** The code so far. */
    public text: string,
    /** Its last line. */
    private line: string,
    private readonly closing: RegExp,
  ) {}

  /** That which begins in this line of the text; undefined for one whose lines are not taken as they are. */
  static at(text: string, line: number): OpenFence | undefined {
    let at = 0;
    for (let passed = 0; passed < line; passed++) at = text.indexOf("\n", at) + 1;
    const end = text.indexOf("\n", at);
    const marker = /^(?:`{3,}|~{3,})/.exec(text.slice(at, end))?.[0];
    if (end < 0 || marker === undefined) return undefined;
    const code = text.slice(end + 1);
    return new OpenFence(
      code,
      code.slice(code.lastIndexOf("\n") + 1),
      new RegExp(`^ {0,3}${marker}+[ \\t]*$`),
    );
  }

  /** Take more of it; false when that closes it. */
  grow(added: string): boolean {
    const lines = (this.line + added).split("\n");
    if (lines.some((line) => this.closing.test(line))) return false;
    this.text += added;
    this.line = lines.at(-1) ?? "";
    return true;
  }
}

/** What the info string of a fence, and a comment in the first line of its code, say of the code. */
export interface Label {
  language: string;
  place: Place | undefined;
}

/** A comment that is nothing but the name of a file. */
const COMMENT = /^\s*(?:\/\/|#|--|;|%|\/\*|<!--)\s*(?:file(?:name)?:\s*)?([\w@+./-]+)\s*(?:\*\/|-->)?\s*$/i;
const NAMED = /^[\w@+.-]+(?:\/[\w@+.-]+)*\.[A-Za-z]\w*$/;

/** A line that is nothing but the name of a file, in backticks or with its folder: "**`src/a.py`**:". */
const ABOVE =
  /^(?:file(?:name)?:\s*)?[*_]{0,3}(?:`([\w@+./-]+)`|([\w@+.-]*\/[\w@+./-]+))[*_]{0,3}:?[*_]{0,3}$/i;

/** ```` ```ts src/a.ts ````, `title="src/a.ts"`, `ts:src/a.ts`, `12:15:src/a.ts`; else a comment, or the line above. */
export function labelOf(info: string, firstLine: string, lineAbove: string): Label {
  const [first = "", ...words] = info.trim().split(/\s+/);
  const [, before = "", after = ""] = /^([^:]*):(.*)$/.exec(first) ?? [];
  const named = words.map((word) => /^(?:title|file|filename|path)=(.+)$/.exec(word)?.[1] ?? word);
  const above = ABOVE.exec(lineAbove.trim());
  const range = /^(\d{1,7}):\d{1,7}:(.+)$/.exec(first);
  const places = [
    range ? `${range[2]}:${range[1]}` : after,
    ...named.map((word) => word.replaceAll(/^["']|["']$/g, "")),
    COMMENT.exec(firstLine)?.[1] ?? "",
    above?.[1] ?? above?.[2] ?? "",
  ];
  const place = places.map(namedPlace).find((each) => each !== undefined);
  const language = range ? "" : after !== "" ? before : first.replaceAll(/^\{?\.?|\}$/g, "");
  return { language: language.toLowerCase(), place };
}

function namedPlace(text: string): Place | undefined {
  return spannedPlace(text) ?? (NAMED.test(text) ? linkedPlace(text) : undefined);
}
