import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { LanguageRegistration } from "@shikijs/primitive";

/** Grammars as files beside us, each read when a block is written in its language. */
export class Grammars {
  private readonly names: Record<string, string>;

  constructor(private readonly folder: string) {
    this.names = this.read("index.json");
  }

  /** The name of a language, by any of its names. */
  name(alias: string): string | undefined {
    return Object.hasOwn(this.names, alias) ? this.names[alias] : undefined;
  }

  /** A grammar and those it embeds. */
  load(name: string, known = new Set<string>()): LanguageRegistration[] {
    if (known.has(name)) return [];
    known.add(name);
    const grammar: LanguageRegistration = this.read(`${name}.json`);
    return [...(grammar.embeddedLangs ?? []).flatMap((each) => this.load(each, known)), grammar];
  }

  private read<T>(name: string): T {
    return JSON.parse(readFileSync(join(this.folder, name), "utf8")) as T;
  }
}
