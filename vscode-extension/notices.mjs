// ThirdPartyNotices.txt: whose work the extension contains, with the licence of each. It is made from what esbuild really
// bundled; a package or a grammar without the text of its licence fails the build.
import { readdir, readFile } from "node:fs/promises";
import { grammars, injections } from "tm-grammars";

const LICENCE = /^(licen[cs]e|copying|notices?|thirdpartynotices)\b[^/]*$/i;

/** Packages that contain the work of others without naming it: these name it, and are in the notices instead. */
const INSIDE = { "@shikijs/engine-oniguruma": ["vscode-oniguruma"] };

const TEXTMATE = `If not otherwise specified (see below), files in this repository fall under the following license:

	Permission to copy, use, modify, sell and distribute this
	software is granted. This software is provided "as is" without
	express or implied warranty, and with no claim as to its
	suitability for any purpose.`;
const BSD_2 = `Copyright 2018 The MathWorks, Inc.

Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following
conditions are met:

1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following
disclaimer.

2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
disclaimer in the documentation and/or other materials provided with the distribution.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL,
EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF
USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT
LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED
OF THE POSSIBILITY OF SUCH DAMAGE.`;

/** Licences that the grammars' repositories state (README or license.txt) and tm-grammars leaves out. */
const STATED = {
  matlab: { licence: "BSD-2-Clause", text: BSD_2 },
  "ssh-config": { licence: "TextMate bundle licence, permissive", text: TEXTMATE },
  toml: { licence: "TextMate bundle licence, permissive", text: TEXTMATE },
  yaml: { licence: "TextMate bundle licence, permissive", text: TEXTMATE },
};

const PERMISSIVE = /MIT|BSD|ISC|Apache-2\.0|BlueOak-1\.0\.0|permissive|as below/;
const RULE = "=".repeat(100);
const HEAD = `Third-party notices of Amanu for VS Code

Amanu itself is under the Apache License 2.0 (LICENSE.txt). The extension contains the packages, grammars and colour themes
below, each under its own licence. The grammars are in dist/highlight/grammars; where each comes from is given above its
licence. Python packages that come with the extension, as wheels, have their licences inside (*.dist-info/licenses).
`;

/** @typedef {{ title: string, licence: string, text: string }} Notice */

/** The whole text, for what was bundled (esbuild's metafiles), these grammars and these themes. */
export async function notices(metafiles, grammarNames, themeNames) {
  const packages = await Promise.all(bundled(metafiles).map(packageNotice));
  const of = (name) => readFile(`node_modules/${name}/NOTICE`, "utf8");
  const all = [
    ...packages,
    ...grammarNotices(await of("tm-grammars"), grammarNames),
    ...collected(await of("tm-themes"), themeNames).map((each) => ({
      ...each,
      title: `Themes ${each.title}`,
    })),
  ];
  const forbidden = all.find(({ licence }) => /GPL/.test(licence));
  if (forbidden)
    throw new Error(`${forbidden.title}\nis under ${forbidden.licence}, which is not compatible with ours`);
  const strict = all.filter(({ licence }) => !PERMISSIVE.test(licence));
  const named = strict.map(({ title, licence }) => `- ${title.split("\n", 1)[0]}: ${licence}`).join("\n");
  const blocks = all.map(({ title, licence, text }) => `${RULE}\n${title}\n${licence}\n\n${text.trim()}\n`);
  return `${HEAD}\nNot purely permissive:\n\n${named}\n\n${blocks.join("\n")}`;
}

/** The folders of the packages of which something is in an output. */
export function bundled(metafiles) {
  const inputs = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap((each) => Object.keys(each.inputs)),
  );
  const folders = inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []);
  const inside = folders.flatMap((folder) =>
    (INSIDE[folder.replace("node_modules/", "")] ?? []).map((name) => `node_modules/${name}`),
  );
  return [...new Set([...folders, ...inside, "node_modules/@shikijs/langs"])].sort(); // codeGrammars.mjs reads that one
}

/** @returns {Promise<Notice>} */
export async function packageNotice(folder) {
  const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  const files = (await readdir(folder)).filter((file) => LICENCE.test(file)).sort();
  if (files.length === 0)
    throw new Error(`${name} is bundled, and the text of its licence is not in ${folder}`);
  const texts = await Promise.all(files.map((file) => readFile(`${folder}/${file}`, "utf8")));
  const title = `${name} ${version}\nhttps://www.npmjs.com/package/${name}`;
  return { title, licence: license ?? "as below", text: texts.map(plain).join("\n\n") };
}

/** @returns {Notice[]} */
function grammarNotices(notice, names) {
  const sources = new Map([...grammars, ...injections].map(({ name, source }) => [name, source]));
  const title = (those) =>
    `Grammars ${those.join(", ")}\n${those.map((name) => sources.get(name)).join("\n")}`;
  const stated = names.filter((name) => name in STATED);
  return [
    ...collected(
      notice,
      names.filter((name) => !(name in STATED)),
    ).map((each) => ({ ...each, title: title(each.names) })),
    ...stated.map((name) => ({ ...STATED[name], title: title([name]) })),
  ];
}

/**
 * The parts of a collection's NOTICE that are about these files. Throws if one is named nowhere.
 * @returns {(Notice & { names: string[] })[]}
 */
export function collected(notice, names) {
  const missing = new Set(names);
  const found = plain(notice)
    .split(/\n={20,}\n(?=Files: )/)
    .flatMap((part) => {
      const [, files, licence, text] =
        /^Files: +(.*)\nLicense: .*\nSPDX: +(.*)\n-+\n([^]*)$/.exec(part) ?? [];
      const those = (files ?? "").split(/, |\.json/).filter((name) => missing.delete(name));
      const which = licence === "NOASSERTION" ? "as below" : licence;
      return those.length > 0 ? [{ names: those, title: those.join(", "), licence: which, text }] : [];
    });
  if (missing.size > 0) throw new Error(`no licence is known of ${[...missing].join(", ")}`);
  return found;
}

function plain(text) {
  return text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
}
