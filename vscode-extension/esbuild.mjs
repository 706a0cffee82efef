// Bundles: the extension and the thread that colours code, for Node; the chat view and the page of MCP servers, for the
// webviews' browser. Beside them the grammars, one file each, which are read when there is code in their language.
import { build } from "esbuild";
import { codeGrammars } from "./codeGrammars.mjs";
import { proposedGrammars } from "./grammars.mjs";

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
  proposedGrammars("dist/grammars"),
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
    loader: { ".ttf": "file" },
    assetNames: "[name]",
  }),
  build({
    ...browser,
    entryPoints: ["src/mcp/view/main.ts", "src/mcp/view/mcp.css"],
    outdir: "dist/mcp",
  }),
  codeGrammars("dist/highlight/grammars"),
]);
