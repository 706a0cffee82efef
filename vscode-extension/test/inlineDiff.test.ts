import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Contributed {
  configurationDefaults: Record<string, unknown>;
  languages: { id: string; aliases: string[] }[];
  grammars: { language: string; scopeName: string; path: string }[];
}

test("every language of proposed text has inline diffs, and the colours that are built for it", async () => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8")) as { contributes: Contributed };
  const { configurationDefaults, languages, grammars } = manifest.contributes;
  const { SCOPES } = (await import("../grammars.mjs" as string)) as { SCOPES: Record<string, string> };
  const ids = languages.map(({ id }) => id);
  const key = ids.map((id) => `[${id}]`).join("");
  expect(configurationDefaults[key]).toEqual({ "diffEditor.renderSideBySide": false });
  expect(grammars).toEqual(
    Object.keys(SCOPES).map((language) => ({
      language: `amanu-${language}`,
      scopeName: `amanu.${language}`,
      path: `./dist/grammars/${language}.json`,
    })),
  );
  expect(languages.filter(({ aliases }) => aliases.length > 0)).toEqual([]); // without a name none is offered for files
  expect(ids.filter((id) => !grammars.some(({ language }) => language === id))).toEqual(["amanu-plaintext"]);
});
