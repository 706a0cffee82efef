import { mkdir, rm, writeFile } from "node:fs/promises";

/** The languages that code in answers is coloured in, with what they embed. */
const LANGUAGES =
  "astro bash bat c clojure cmake cpp csharp css csv dart diff docker dotenv elixir elm erlang fish fsharp gherkin git-commit go " +
  "graphql groovy haskell hcl html http ini java javascript jinja json json5 jsonc jsonl jsx julia kotlin latex less log lua " +
  "make markdown matlab mermaid nim nix nushell objective-c ocaml perl php powershell prisma properties proto " +
  "python r rst ruby rust sass scala scheme scss shellsession solidity sql ssh-config svelte swift systemd terraform toml tsx " +
  "typescript vb verilog vim vue wasm wgsl xml yaml zig";

/** Embedded by others, and not passed on: nobody says under which licence. notices.mjs holds us to it. */
const WITHOUT_LICENCE = "glsl";

const licensed = (name) => name !== WITHOUT_LICENCE;

/** The names of the grammars written: a file for each, and `index.json`: which of them a language's name means. */
export async function codeGrammars(folder) {
  const modules = await Promise.all(LANGUAGES.split(" ").map((name) => import(`@shikijs/langs/${name}`)));
  const all = new Map(
    modules
      .flatMap((module) => module.default)
      .filter(({ name }) => licensed(name))
      .map((grammar) => [
        grammar.name,
        { ...grammar, embeddedLangs: grammar.embeddedLangs?.filter(licensed) },
      ]),
  );
  const index = [...all.values()].flatMap(({ name, aliases = [] }) =>
    [name, ...aliases].map((each) => [each, name]),
  );
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}/index.json`, JSON.stringify(Object.fromEntries(index)));
  for (const [name, grammar] of all) await writeFile(`${folder}/${name}.json`, JSON.stringify(grammar));
  return [...all.keys()];
}
