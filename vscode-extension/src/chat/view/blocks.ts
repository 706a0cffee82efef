import type { Token } from "markdown-it";
import { CodeBlock } from "./code";
import { h } from "./dom";
import { formulaDrawing } from "./formulaDrawing";
import { Inline, type References } from "./inline";

/** A block as it is to be drawn: others, text, or code. */
export interface Block {
  tag: string;
  /** The line it begins in, of a block at the top. */
  line: number;
  attributes: Record<string, string>;
  children: Block[];
  text?: string;
  /** `before`: the line above. */
  code?: { info: string; text: string; open: boolean; before: string };
  /** TeX; `open`: nothing closes it yet. */
  formula?: { tex: string; open: boolean };
  /** Of an item of a task list. */
  checked?: boolean;
}

/** The blocks that the tokens of `parser.block` stand for; `lines` are those of the text. */
export function blocksOf(tokens: Token[], lines: readonly string[]): Block[] {
  const top: Block = { tag: "", line: 0, attributes: {}, children: [] };
  const open = [top];
  for (const token of tokens) {
    const parent = open.at(-1) ?? top;
    if (token.type === "inline") parent.text = token.content;
    else if (token.nesting < 0) {
      open.pop();
      if (token.type === "list_item_close") markTask(parent);
    } else {
      const block = blockOf(token, lines, parent.children.at(-1)?.text ?? "");
      parent.children.push(block);
      if (token.nesting > 0) open.push(block);
    }
  }
  return top.children;
}

function blockOf(token: Token, lines: readonly string[], textBefore: string): Block {
  const [line = 0] = token.map ?? [];
  const block: Block = { tag: token.tag, line, attributes: attributes(token), children: [] };
  if (token.type === "fence" || token.type === "code_block") {
    block.tag = "pre";
    const before = textBefore.slice(textBefore.lastIndexOf("\n") + 1);
    block.code = { info: token.info, text: token.content, open: isOpen(token, lines), before };
  }
  if (token.type === "formula_block") {
    block.formula = { tex: token.content, open: token.info === "open" };
    block.attributes = { class: "formula" };
  }
  return block;
}

/** No inline style is let in: a cell says by its class where its text stands, a paragraph that it is an item's only one. */
function attributes(token: Token): Record<string, string> {
  const side = /^text-align:(left|center|right)$/.exec(String(token.attrGet("style") ?? ""))?.[1];
  if (side !== undefined) return { class: side };
  if (token.hidden) return { class: "tight" };
  if (token.attrGet("class") === "footnote") return { class: "footnote" };
  const start = token.attrGet("start");
  return start === null ? {} : { start: String(start) };
}

/** A fence at the end of the text that nothing closes. */
function isOpen({ type, map, markup }: Token, lines: readonly string[]): boolean {
  const [first = 0, end = 0] = map ?? [];
  if (type !== "fence" || lines.slice(end).some((line) => line.trim() !== "")) return false;
  return end - first < 2 || !new RegExp(`^[\\s>]*${markup}+\\s*$`).test(lines[end - 1] ?? "");
}

/** `[ ]` and `[x]` at the beginning of an item. */
function markTask(item: Block): void {
  const [first] = item.children;
  const [mark, sign] = /^\[([ xX])\]\s+/.exec(first?.text ?? "") ?? [];
  if (first === undefined || mark === undefined) return;
  first.text = first.text?.slice(mark.length) ?? "";
  item.checked = sign !== " ";
  item.attributes = { ...item.attributes, class: "task" };
}

/** A block that is drawn, and can be drawn anew as what it has grown to. */
export class DrawnBlock {
  readonly element: HTMLElement;
  private readonly inline: Inline | undefined;
  readonly code: CodeBlock | undefined;
  private readonly children: DrawnBlocks;
  private readonly box: HTMLInputElement | undefined;
  /** The formula that is drawn. */
  private formula = "";

  constructor(private readonly block: Block) {
    this.code = block.code && new CodeBlock(block.code.info, block.code.before);
    this.element = this.code?.element ?? document.createElement(block.tag);
    this.children = new DrawnBlocks(this.element);
    this.inline = block.text === undefined ? undefined : new Inline(this.element);
    if (block.checked === undefined) return;
    this.box = h("input", { type: "checkbox", disabled: true, "aria-label": "Task" });
    this.element.append(this.box);
  }

  /** Draw it as that block, if it can become one. */
  update(block: Block, references: References, changed: readonly string[]): boolean {
    const { tag, text, code, checked } = this.block;
    const same =
      block.tag === tag && block.code?.info === code?.info && !block.formula === !this.block.formula;
    const alike = (block.text === undefined) === (text === undefined);
    if (!same || !alike || (block.checked === undefined) !== (checked === undefined)) return false;
    for (const name of ["class", "start"])
      set(this.element, name, block.attributes[name], code !== undefined);
    if (this.box !== undefined) this.box.toggleAttribute("checked", block.checked === true);
    if (block.code !== undefined) this.code?.update(block.code.text, block.code.open);
    if (block.formula !== undefined) this.drawFormula(block.formula);
    if (block.text !== undefined) this.inline?.update(block.text, references, changed);
    this.children.update(block.children, references, changed);
    return true;
  }

  private drawFormula({ tex, open }: NonNullable<Block["formula"]>): void {
    const source = open ? tex : `$${tex}`;
    if (source === this.formula) return;
    this.formula = source;
    if (open) this.element.textContent = tex;
    else formulaDrawing.draw(this.element, tex, true);
  }

  /** Of a table: leave its first rows as they are from now on. */
  releaseRows(count: number): DrawnBlock[] {
    return this.children.last?.children.release(count) ?? [];
  }

  /** Texts in it that may refer to a definition. */
  inlines(): Inline[] {
    return [...(this.inline?.refers ? [this.inline] : []), ...this.children.inlines()];
  }
}

/** Blocks one after another in an element, whatever else stands before them. */
export class DrawnBlocks {
  private drawn: DrawnBlock[] = [];

  constructor(private readonly parent: HTMLElement) {}

  update(blocks: readonly Block[], references: References, changed: readonly string[]): void {
    for (const [at, block] of blocks.entries()) {
      const known = this.drawn[at];
      if (known?.update(block, references, changed)) continue;
      const made = new DrawnBlock(block);
      made.update(block, references, []);
      if (known === undefined) this.parent.append(made.element);
      else known.element.replaceWith(made.element);
      this.drawn[at] = made;
    }
    for (const { element } of this.drawn.splice(blocks.length)) element.remove();
  }

  /** Leave the first ones as they are from now on. */
  release(count: number): DrawnBlock[] {
    return this.drawn.splice(0, count);
  }

  clear(): void {
    for (const { element } of this.drawn.splice(0)) element.remove();
  }

  get last(): DrawnBlock | undefined {
    return this.drawn.at(-1);
  }

  inlines(): Inline[] {
    return this.drawn.flatMap((each) => each.inlines());
  }
}

function set(element: HTMLElement, name: string, value: string | undefined, keep: boolean): void {
  if (keep || (element.getAttribute(name) ?? undefined) === value) return;
  if (value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value);
}
