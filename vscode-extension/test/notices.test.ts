import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

interface Notice {
  title: string;
  licence: string;
  text: string;
}
interface Notices {
  notices: (metafiles: object[], grammars: string[], themes: string[]) => Promise<string>;
  packageNotice: (folder: string) => Promise<Notice>;
  collected: (notice: string, names: string[]) => Notice[];
}
const { notices, packageNotice, collected } = (await import("../notices.mjs" as string)) as Notices;

function folder(files: Record<string, string>): string {
  const path = mkdtempSync(join(tmpdir(), "amanu-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

test("the notices name what is bundled, what it contains in turn, and what is not permissive", async () => {
  const from = "node_modules/@shikijs/engine-oniguruma/dist/index.mjs";
  const metafile = { outputs: { "dist/worker.js": { inputs: { [from]: {}, "src/extension.ts": {} } } } };
  const text = await notices([metafile], ["python", "yaml", "terraform", "hcl"], ["dark-plus"]);
  for (const said of [
    /^@shikijs\/engine-oniguruma \d/m,
    /^vscode-oniguruma \d/m,
    /Copyright \(c\) 2002-2020 {2}K\.Kosako/,
    /^Grammars yaml\nhttps:\/\/github\.com\/textmate\/yaml\.tmbundle/m,
    /^Themes dark-plus\nMIT/m,
    /^Not purely permissive:\n\n- Grammars hcl, terraform: MPL-2\.0\n\n/m,
  ])
    expect(text).toMatch(said);
});

test.each([
  ["nginx", /GPL/],
  ["glsl", /no licence is known/],
])("the grammar %s is not passed on", async (name, refused) => {
  await expect(notices([], ["yaml", name], [])).rejects.toThrow(refused);
});

test("a package or a grammar without the text of its licence fails", async () => {
  const manifest = { "package.json": '{"name": "left-pad", "version": "1.3.0"}' };
  await expect(packageNotice(folder(manifest))).rejects.toThrow(/left-pad is bundled/);
  expect(await packageNotice(folder({ ...manifest, "License.txt": "Do as you like.\r\n" }))).toEqual({
    title: "left-pad 1.3.0\nhttps://www.npmjs.com/package/left-pad",
    licence: "as below",
    text: "Do as you like.\n",
  });

  const rule = `\n${"=".repeat(30)}\n`;
  const part = (files: string, licence: string) =>
    `Files:   ${files}\nLicense: https://x.test\nSPDX:    ${licence}\n${"-".repeat(30)}\nText of ${files}\n`;
  const notice = ["Head", part("a.json, b.json", "MIT"), part("c.json", "NOASSERTION")].join(rule);
  expect(collected(notice, ["b", "c"])).toEqual([
    { names: ["b"], title: "b", licence: "MIT", text: "Text of a.json, b.json\n" },
    { names: ["c"], title: "c", licence: "as below", text: "Text of c.json\n" },
  ]);
  expect(() => collected(notice, ["a", "klingon"])).toThrow(/no licence is known of klingon/);
});
