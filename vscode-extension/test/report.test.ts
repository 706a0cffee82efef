import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Known, problemReport, report } from "../src/daemon/report";
import { sandbox } from "./states";

const KNOWN: Known = {
  extension: "0.1.0",
  bundled: "0.1.0",
  editor: "Visual Studio Code 1.100.0",
  remote: "wsl",
  trusted: true,
  folders: ["/work"],
  found: { command: "/s/bin/amanu", from: "storage" },
  connection: { status: "ready" },
  sandbox: null,
  settings: { ANTHROPIC_API_KEY: "sk-ant-secret", HTTPS_PROXY: "http://p.test" },
  daemon: { output: "✓ amanu 0.1.0\n! odd sk-ant-secret here", code: 0 },
};

test("what the extension knows, then what the daemon says, and never a key", () => {
  const text = report(KNOWN);
  expect(text).toMatch(/extension +0\.1\.0, brings daemon 0\.1\.0/);
  expect(text).toMatch(/1\.100\.0, remote: wsl/);
  expect(text).toMatch(/installed by this extension: \/s\/bin\/amanu/);
  expect(text).toMatch(/ANTHROPIC_API_KEY, HTTPS_PROXY \(values are not shown\)/);
  expect(text).toMatch(/✓ amanu 0\.1\.0/);
  expect(text).not.toMatch(/secret|p\.test/);
});

test.each<[Partial<Known>, RegExp]>([
  [
    { found: { missing: "Not there.", install: true }, daemon: undefined },
    /✗ daemon +Not there\.\n +→ .*Install/,
  ],
  [
    { found: { missing: "Wrong path.", install: false }, daemon: undefined },
    /Wrong path\.\n +→ Check the settings/,
  ],
  [{ trusted: false }, /! trust +the workspace is not trusted/],
  [{ folders: [] }, /no folder is open/],
  [{ sandbox: sandbox("none", "no\u001b[31m kernel wall") }, /! sandbox +none: no<U\+001B>\[31m kernel wall/],
  [{ sandbox: sandbox("bubblewrap", "The network is off.") }, /✓ sandbox +bubblewrap: The network is off\./],
  [{ connection: { status: "lost", message: "The line broke." } }, /✗ connection +The line broke\./],
  [{ daemon: { output: "", code: null } }, /did not finish/],
  [{ daemon: { output: "✗ settings broken", code: 1 } }, /✗ settings broken/],
])("%o", (change, expected) => {
  expect(report({ ...KNOWN, ...change })).toMatch(expected);
});

interface Manifest {
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
  contributes: {
    configuration: { properties: Record<string, { scope?: string }> };
    commands: { command: string }[];
    walkthroughs: { steps: { description: string; media: { markdown: string } }[] }[];
  };
}
const MANIFEST = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;

test("every setting that names a program or an environment is the machine's, and kept from untrusted folders", () => {
  const { properties } = MANIFEST.contributes.configuration;
  const machine = Object.keys(properties).filter((name) => properties[name]?.scope === "machine");
  expect(machine).toEqual(
    expect.arrayContaining(["amanu.server.path", "amanu.server.environment", "amanu.python"]),
  );
  expect(MANIFEST.capabilities.untrustedWorkspaces.restrictedConfigurations.toSorted()).toEqual(
    machine.toSorted(),
  );
});

test("the walkthrough leads to commands and pages that exist", () => {
  const known = MANIFEST.contributes.commands.map(({ command }) => command);
  for (const { description, media } of MANIFEST.contributes.walkthroughs.flatMap(({ steps }) => steps)) {
    for (const [, command] of description.matchAll(/command:(amanu\.\w+)/g)) expect(known).toContain(command);
    expect(readFileSync(media.markdown, "utf8")).toMatch(/^### /);
  }
});

test("a problem report is the daemon's, then the extension's, without keys and home folder", () => {
  const output = "# Amanu: problem report\n\nodd sk-ant-secret here\n";
  const connection = { status: "lost", message: "cannot start /home/ada/bin/amanu: sk-ant-secret" };
  expect(problemReport({ ...KNOWN, connection, daemon: { output, code: 0 } }, "/home/ada")).toBe(
    "# Amanu: problem report\n\nodd *** here\n\n## VS Code\n\n" +
      "- extension 0.1.0, brings daemon 0.1.0\n- Visual Studio Code 1.100.0, remote: wsl\n- folders: 1, trusted\n" +
      "- daemon: installed by this extension\n- connection: lost: cannot start ~/bin/amanu: ***\n" +
      "- environment: ANTHROPIC_API_KEY, HTTPS_PROXY\n",
  );
});

test("without a daemon there is a report all the same", () => {
  const missing = { ...KNOWN, found: { missing: "Not there.", install: true }, daemon: undefined };
  const text = problemReport(missing, "/home/ada");
  expect(text).toMatch(/^# Amanu: problem report\n\nThere is no daemon to ask\./);
  expect(text).toMatch(/- daemon: Not there\./);
});
