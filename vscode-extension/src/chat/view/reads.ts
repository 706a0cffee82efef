import { name, plural } from "../../review/changes";
import type { Item, ToolCall } from "../../protocol";
import { capital } from "../../sessions/words";

type Kind = "read" | "search" | "list" | "symbol" | "problems" | "page" | "output";

/** The tools that only look, and what a call of them counts as. */
const KINDS = new Map<string, Kind>([
  ["read_file", "read"],
  ["read_many_files", "read"],
  ["read_output", "output"],
  ["read_command", "output"],
  ["grep", "search"],
  ["glob", "search"],
  ["web_search", "search"],
  ["list_directory", "list"],
  ["list_symbols", "symbol"],
  ["find_definition", "symbol"],
  ["find_references", "symbol"],
  ["inspect_symbol", "symbol"],
  ["get_diagnostics", "problems"],
  ["web_fetch", "page"],
]);
const RUNNING: ReadonlySet<ToolCall["state"]> = new Set(["validating", "scheduled", "executing"]);

/** Whether the item is a call that reads or searches, which can stand with others on one line. */
export function isLook(item: Item): item is ToolCall {
  return item.kind === "toolCall" && KINDS.has(item.tool);
}

/** What many reads and searches come to, in one line. Counting one anew costs the same however many there are. */
export class Tally {
  private readonly known = new Map<string, ToolCall>();
  private readonly counts = new Map<Kind, number>();
  /** How many calls read a file. */
  private readonly files = new Map<string, number>();
  private failed = 0;

  /** Count the call as it is now. */
  count(call: ToolCall): void {
    const before = this.known.get(call.itemId);
    if (before !== undefined) this.add(before, -1);
    this.known.set(call.itemId, call);
    this.add(call, 1);
  }

  /** "Read 3 files, searched 2×". */
  get line(): string {
    const number = (kind: Kind) => this.counts.get(kind) ?? 0;
    const times = (kind: Kind, words: string) =>
      number(kind) === 0 ? "" : number(kind) === 1 ? words : `${words} ${number(kind)}×`;
    const of = (kind: Kind, verb: string, noun: string) =>
      number(kind) === 0 ? "" : `${verb} ${plural(number(kind), noun)}`;
    const [only] = this.files.keys();
    const files =
      this.files.size === 1 && only ? `read ${name(only)}` : `read ${plural(this.files.size, "file")}`;
    const said = [
      this.files.size > 0 ? files : "",
      times("search", "searched"),
      of("list", "listed", "folder"),
      times("symbol", "looked up symbols"),
      times("problems", "checked problems"),
      of("page", "read", "web page"),
      times("output", "read output"),
    ];
    return capital(said.filter(Boolean).join(", ")) || "Looked around";
  }

  /** "1 failed"; "" for none. */
  get failures(): string {
    return this.failed === 0 ? "" : `${this.failed} failed`;
  }

  private add(call: ToolCall, sign: 1 | -1): void {
    const kind = KINDS.get(call.tool);
    if (call.state === "failed" || call.state === "rejected") this.failed += sign;
    else if (kind === "read") for (const path of paths(call)) bump(this.files, path, sign);
    else if (kind !== undefined) bump(this.counts, kind, sign);
  }
}

export function isRunning({ state }: ToolCall): boolean {
  return RUNNING.has(state);
}

/** What a call reads, as the model named it. */
function paths({ itemId, arguments: { path, paths } }: ToolCall): string[] {
  const named = Array.isArray(paths) ? paths : [path];
  return named.map((each) => (typeof each === "string" && each !== "" ? each : itemId));
}

function bump<K>(counts: Map<K, number>, key: K, by: number): void {
  const now = (counts.get(key) ?? 0) + by;
  if (now === 0) counts.delete(key);
  else counts.set(key, now);
}
