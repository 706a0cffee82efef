// Bundles: the extension and the thread that colours code, for Node; the chat view and the pages of MCP servers and of
// settings, for the webviews' browser. Beside them the grammars, one file each, which are read when there is code in their
// language, and the licences of all that is not ours.
import { writeFile } from "node:fs/promises";
import { build } from "esbuild";
import { codeGrammars } from "./codeGrammars.mjs";
import { proposedGrammars } from "./grammars.mjs";
import { notices } from "./notices.mjs";

const shared = {
  bundle: true,
  minify: true,
  sourcemap: false,
  target: "es2022",
  logLevel: "warning",
  legalComments: "none", // ThirdPartyNotices.txt has them
  metafile: true,
};
const node = { ...shared, platform: "node", mainFields: ["module", "main"], format: "cjs", target: "node20" };
const browser = { ...shared, platform: "browser", format: "iife" };

const [grammars, ...bundles] = await Promise.all([
  codeGrammars("dist/highlight/grammars"),
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
    entryPoints: ["src/chat/view/katex.ts", "src/chat/view/katex.css"],
    outdir: "dist/chat",
    loader: { ".woff2": "file", ".woff": "empty", ".ttf": "empty" }, // VS Code reads the first of the three
    assetNames: "[name]",
  }),
  build({
    ...browser,
    entryPoints: ["src/mcp/view/main.ts", "src/mcp/view/mcp.css"],
    outdir: "dist/mcp",
  }),
  build({
    ...browser,
    entryPoints: ["src/settings/view/main.ts", "src/settings/view/settings.css"],
    outdir: "dist/settings",
  }),
  proposedGrammars("dist/grammars"),
]);
const metafiles = bundles.flatMap((each) => each?.metafile ?? []);
const themes = metafiles.flatMap(({ inputs }) =>
  Object.keys(inputs).flatMap((path) => /@shikijs\/themes\/dist\/(.*)\.mjs$/.exec(path)?.[1] ?? []),
);
await writeFile("ThirdPartyNotices.txt", await notices(metafiles, grammars, themes));
