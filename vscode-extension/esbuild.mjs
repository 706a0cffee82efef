// Three bundles: the extension, for Node, and the chat view and the page of MCP servers, for the webviews' browser.
import { build } from "esbuild";
import { grammars } from "./grammars.mjs";

const shared = {
  bundle: true,
  minify: true,
  sourcemap: false,
  target: "es2022",
  logLevel: "warning",
  legalComments: "linked",
};

await Promise.all([
  grammars("dist/grammars"),
  build({
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  }),
  build({
    ...shared,
    entryPoints: ["src/chat/view/main.ts", "src/chat/view/chat.css"],
    outdir: "dist/chat",
    loader: { ".ttf": "file" },
    assetNames: "[name]",
    platform: "browser",
    format: "iife",
  }),
  build({
    ...shared,
    entryPoints: ["src/mcp/view/main.ts", "src/mcp/view/mcp.css"],
    outdir: "dist/mcp",
    platform: "browser",
    format: "iife",
  }),
]);
