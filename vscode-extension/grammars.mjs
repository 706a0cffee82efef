// Proposed texts have languages of their own (src/inlineDiff.ts says why), each with the colours of the one it stands for.
import { mkdir, writeFile } from "node:fs/promises";

export const SCOPES = {
  bat: "source.batchfile",
  c: "source.c",
  clojure: "source.clojure",
  coffeescript: "source.coffee",
  cpp: "source.cpp",
  csharp: "source.cs",
  css: "source.css",
  dart: "source.dart",
  diff: "source.diff",
  dockerfile: "source.dockerfile",
  elixir: "source.elixir",
  fsharp: "source.fsharp",
  go: "source.go",
  groovy: "source.groovy",
  haskell: "source.haskell",
  html: "text.html.derivative",
  ini: "source.ini",
  java: "source.java",
  javascript: "source.js",
  javascriptreact: "source.js.jsx",
  json: "source.json",
  jsonc: "source.json.comments",
  julia: "source.julia",
  kotlin: "source.kotlin",
  less: "source.css.less",
  lua: "source.lua",
  makefile: "source.makefile",
  markdown: "text.html.markdown",
  "objective-c": "source.objc",
  perl: "source.perl",
  php: "text.html.php",
  powershell: "source.powershell",
  properties: "source.ini",
  python: "source.python",
  r: "source.r",
  restructuredtext: "source.rst",
  ruby: "source.ruby",
  rust: "source.rust",
  scala: "source.scala",
  scss: "source.css.scss",
  shellscript: "source.shell",
  sql: "source.sql",
  svelte: "source.svelte",
  swift: "source.swift",
  terraform: "source.hcl.terraform",
  toml: "source.toml",
  typescript: "source.ts",
  typescriptreact: "source.tsx",
  vue: "source.vue",
  xml: "text.xml",
  yaml: "source.yaml",
  zig: "source.zig",
};

export async function proposedGrammars(folder) {
  await mkdir(folder, { recursive: true });
  for (const [language, include] of Object.entries(SCOPES)) {
    const grammar = { scopeName: `amanu.${language}`, patterns: [{ include }] };
    await writeFile(`${folder}/${language}.json`, JSON.stringify(grammar));
  }
}
