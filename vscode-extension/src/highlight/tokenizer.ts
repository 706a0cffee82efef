import { createOnigurumaEngine } from "@shikijs/engine-oniguruma";
import { createShikiPrimitive, type ShikiPrimitive, type ThemeRegistrationAny } from "@shikijs/primitive";
import { EncodedTokenMetadata, type StateStack } from "@shikijs/primitive/textmate";
import type { Painted, PaintRequest } from "../chat/messages";
import type { Grammars } from "./grammars";

/** Characters of a line that is not looked at: it is data, and would take long. */
const LONGEST = 2_000;
/** Milliseconds for one line. The first of a language takes longest: its rules are compiled then. */
const PATIENCE = 4_000;
/** Blocks that may go on where they ended. */
const BLOCKS = 500;
/** The number of the text's own colour. */
const PLAIN = 1;

/** How `vscode-textmate` says it, whose own names are gone when it is built. */
const FONT = { italic: 1, bold: 2, underline: 4, strikethrough: 8 };

/** How each line of some blocks begins: of the line after those that were read, and of the last of them, which may have
 * grown. */
type States = Map<number, StateStack | null>;

/** Reads code line by line, each block from where it ended. */
export class Tokenizer {
  private readonly states = new Map<string, States>();
  private readonly styles = [""];
  private readonly numbers = new Map<number, number>();

  private constructor(
    private readonly shiki: ShikiPrimitive,
    private readonly grammars: Grammars,
    private readonly colors: string[],
  ) {}

  static async make(theme: ThemeRegistrationAny, grammars: Grammars): Promise<Tokenizer> {
    const engine = await createOnigurumaEngine(import("@shikijs/engine-oniguruma/wasm-inlined"));
    const shiki = createShikiPrimitive({ engine, langs: [], themes: [theme] });
    const { colorMap } = shiki.setTheme(shiki.getLoadedThemes()[0] ?? "none");
    return new Tokenizer(shiki, grammars, colorMap);
  }

  paint({ block, language, start, lines }: PaintRequest): Painted {
    const grammar = this.grammar(language);
    if (grammar === undefined) return { tokens: null, styles: this.styles };
    let state = start === 0 ? null : this.states.get(block)?.get(start);
    if (state === undefined) return { tokens: [], styles: this.styles };
    let before = state;
    const tokens = lines.map((line) => {
      before = state ?? null;
      if (line.length > LONGEST) return [];
      const read = grammar.tokenizeLine2(line, before, PATIENCE);
      state = read.ruleStack;
      return this.spans(line, read.tokens);
    });
    this.remember(
      block,
      new Map([
        [start + lines.length - 1, before],
        [start + lines.length, state],
      ]),
    );
    return { tokens, styles: this.styles };
  }

  private grammar(language: string): ReturnType<ShikiPrimitive["getLanguage"]> | undefined {
    const name = this.grammars.name(language);
    if (name === undefined) return undefined;
    if (!this.shiki.getLoadedLanguages().includes(name))
      this.shiki.loadLanguageSync(...this.grammars.load(name));
    return this.shiki.getLanguage(name);
  }

  /** Length and style of each part of a line; neighbours of one style are one. */
  private spans(line: string, tokens: Uint32Array): number[] {
    const spans: number[] = [];
    for (let at = 0; at < tokens.length; at += 2) {
      const length = (tokens[at + 2] ?? line.length) - (tokens[at] ?? 0);
      const style = this.style(tokens[at + 1] ?? 0);
      if (length <= 0) continue;
      if (spans.at(-1) === style) spans[spans.length - 2] = (spans.at(-2) ?? 0) + length;
      else spans.push(length, style);
    }
    return spans;
  }

  private style(metadata: number): number {
    const color = EncodedTokenMetadata.getForeground(metadata);
    const font = EncodedTokenMetadata.getFontStyle(metadata);
    const key = color * 16 + Math.max(0, font);
    let number = this.numbers.get(key);
    if (number === undefined) {
      const css = declarations(color === PLAIN ? "" : (this.colors[color] ?? ""), Math.max(0, font));
      number = css === "" ? 0 : this.styles.push(css) - 1;
      this.numbers.set(key, number);
    }
    return number;
  }

  private remember(block: string, states: States): void {
    this.states.delete(block);
    this.states.set(block, states);
    const [oldest] = this.states.keys();
    if (this.states.size > BLOCKS && oldest !== undefined) this.states.delete(oldest);
  }
}

/** What a theme says goes into a style sheet: nothing but colours does. */
function declarations(color: string, font: number): string {
  return [
    /^#[\da-f]{3,8}$/i.test(color) ? `color:${color}` : "",
    font & FONT.italic ? "font-style:italic" : "",
    font & FONT.bold ? "font-weight:bold" : "",
    font & FONT.underline ? "text-decoration:underline" : "",
    font & FONT.strikethrough ? "text-decoration:line-through" : "",
  ]
    .filter((each) => each !== "")
    .join(";");
}
