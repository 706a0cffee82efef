// Bundles: the extension and the thread that colours code, for Node; the chat view and the page of MCP servers, for the
// webviews' browser. Beside them the grammars, one file each, which are read when there is code in their language.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { build } from "esbuild";
import { grammars } from "./grammars.mjs";

/** With what they embed. */
const LANGUAGES =
  "astro bash bat c clojure cmake cpp csharp css csv dart diff docker dotenv elixir elm erlang fish fsharp gherkin git-commit go " +
  "graphql groovy haskell hcl html http ini java javascript jinja json json5 jsonc jsonl jsx julia kotlin latex less log lua " +
  "make markdown matlab mermaid nginx nim nix nushell objective-c ocaml perl php powershell prisma properties proto " +
  "python r rst ruby rust sass scala scheme scss shellsession solidity sql ssh-config svelte swift systemd terraform toml tsx " +
  "typescript vb verilog vim vue wasm wgsl xml yaml zig";

const shared = {
  bundle: true,
  minify: true,
  sourcemap: false,
  target: "es2022",
  logLevel: "warning",
  legalComments: "linked",
};
const node = { ...shared, platform: "node", mainFields: ["module", "main"], format: "cjs", target: "node20" };
const browser = { ...shared, platform: "browser", format: "iife" };

await Promise.all([
  grammars("dist/grammars"),
  build({
    ...node,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    external: ["vscode"],
  }),
  build({ ...node, entryPoints: ["src/highlight/worker.ts"], outfile: "dist/highlight/worker.js" }),
  build({
    ...browser,
    entryPoints: ["src/chat/view/main.ts", "src/chat/view/chat.css"],
    outdir: "dist/chat",
  }),
  build({
    ...browser,
    entryPoints: ["src/mcp/view/main.ts", "src/mcp/view/mcp.css"],
    outdir: "dist/mcp",
  }),
  grammars("dist/highlight/grammars"),
]);

/** A file for each grammar, and `index.json`: which of them a language's name means. */
async function grammars(folder) {
  const modules = await Promise.all(LANGUAGES.split(" ").map((name) => import(`@shikijs/langs/${name}`)));
  const all = new Map(modules.flatMap((module) => module.default).map((grammar) => [grammar.name, grammar]));
  const index = [...all.values()].flatMap(({ name, aliases = [] }) =>
    [name, ...aliases].map((each) => [each, name]),
  );
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}/index.json`, JSON.stringify(Object.fromEntries(index)));
  for (const [name, grammar] of all) await writeFile(`${folder}/${name}.json`, JSON.stringify(grammar));
}
