import { straight } from "../../editor/visible";
import { type Block, blocksOf, type DrawnBlock, DrawnBlocks } from "./blocks";
import { growText, h } from "./dom";
import { OpenFence } from "./fence";
import type { Inline, References } from "./inline";
import { parser } from "./parser";

/** Characters that are parsed at once: what is long arrives as if it were written in front of the user. */
const AT_ONCE = 50_000;
/** Characters of one block that are drawn as they are beyond that: a table of a megabyte must not stop the view. */
const HUGE = 200_000;

/**
 * Markdown that grows, drawn as it would be at once. Blocks that can no longer change are left alone; of the last two
 * (the last may yet join the one before it, as "2" becomes the item "2." of a list) only what differs is drawn. What is
 * long in them is not parsed again: to a code block that is open lines are added, to a table rows.
 */
export class Markdown {
  readonly element = h("div", { class: "markdown" });
  private shown = "";
  /** The text that may still change. */
  private tail = "";
  private readonly live = new DrawnBlocks(this.element);
  private fence: OpenFence | undefined;
  /** The tail as it is, when it is too big. */
  private plain: HTMLElement | undefined;
  /** Definitions in text that can no longer change, and in all. */
  private settled: References = {};
  private references: References = {};
  /** What can no longer change but by a definition. */
  private referring: Inline[] = [];

  update(text: string): void {
    if (text === this.shown) return;
    if (!text.startsWith(this.shown)) this.reset(); // a retried attempt
    const added = normal(text.slice(this.shown.length), this.shown.endsWith("\r"));
    this.shown = text;
    for (let at = 0; at < added.length; at += AT_ONCE) this.grow(added.slice(at, at + AT_ONCE));
  }

  private grow(added: string): void {
    this.tail += added;
    if (this.fence?.grow(added)) {
      this.live.last?.code?.update(this.fence.text, true);
      return;
    }
    this.fence = undefined;
    if (this.plain !== undefined || this.tail.length > HUGE) this.drawPlain();
    else this.draw();
  }

  private draw(): void {
    const references = { ...this.settled };
    const blocks = blocksOf(parse(this.tail, references), this.tail.split("\n"));
    const changed = differing(this.references, references);
    this.references = references;
    if (changed.length > 0) for (const inline of this.referring) inline.redraw(references, changed);
    this.live.update(blocks, references, changed);
    this.fence = blocks.at(-1)?.code?.open ? OpenFence.at(this.tail, blocks.at(-1)?.line ?? 0) : undefined;
    const line = blocks.at(-2)?.line;
    if (blocks.length > 2 && line !== undefined) this.settle(line, blocks.length - 2);
    this.settleRows(blocks.at(-1), blocks.length > 2 ? (line ?? 0) : 0);
  }

  /** The lines before that one, and the blocks that stand in them, can no longer change. */
  private settle(line: number, count: number): void {
    const text = this.tail.slice(0, lineStart(this.tail, line));
    if (text.includes("]:")) parse(text, this.settled);
    this.tail = this.tail.slice(text.length);
    this.leave(this.live.release(count));
  }

  /** The rows of a table at the end can no longer change, but for the last: "2" may become an item. The one before it
   * stays, too: a table without a row has no body. `gone`: lines that are not in the tail any more. */
  private settleRows(table: Block | undefined, gone: number): void {
    const [, body] = table?.tag === "table" ? table.children : [];
    const rows = (body?.children.length ?? 0) - 2;
    if (table === undefined || rows < 1) return;
    const first = lineStart(this.tail, table.line - gone + 2); // below the header and the line that makes it one
    this.tail = this.tail.slice(0, first) + this.tail.slice(lineStart(this.tail.slice(first), rows) + first);
    this.leave(this.live.last?.releaseRows(rows) ?? []);
  }

  private leave(blocks: DrawnBlock[]): void {
    this.referring.push(...blocks.flatMap((block) => block.inlines()));
  }

  private drawPlain(): void {
    if (this.plain === undefined) {
      this.live.clear();
      this.plain = h("pre", {});
      this.element.append(this.plain);
    }
    growText(this.plain, this.tail);
  }

  private reset(): void {
    this.element.replaceChildren();
    this.live.clear();
    this.shown = this.tail = "";
    this.fence = this.plain = undefined;
    this.settled = {};
    this.references = {};
    this.referring = [];
  }
}

/** Where that line begins, from 0. */
function lineStart(text: string, line: number): number {
  let at = 0;
  for (let passed = 0; passed < line; passed++) at = text.indexOf("\n", at) + 1;
  return at;
}

/** Block tokens; what is defined is added to the references. */
function parse(text: string, references: References): ReturnType<typeof parser.parse> {
  const tokens: ReturnType<typeof parser.parse> = [];
  parser.block.parse(text, parser, { references }, tokens);
  return tokens;
}

/** Labels that one of them defines otherwise than the other. */
function differing(before: References, after: References): string[] {
  const labels = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...labels].filter((label) => {
    const [old, now] = [before[label], after[label]];
    return old?.href !== now?.href || old?.title !== now?.title;
  });
}

/** Text in the order it has, its lines ended by line feeds. */
function normal(added: string, afterReturn: boolean): string {
  const whole = afterReturn && added.startsWith("\n") ? added.slice(1) : added;
  return straight(whole).replaceAll(/\r\n?/g, "\n").replaceAll("\0", "\ufffd");
}
