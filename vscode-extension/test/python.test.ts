import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { candidates, findPython, PROBE, type Probed, read } from "../src/daemon/python";
import { run } from "../src/daemon/run";

const home = mkdtempSync(join(tmpdir(), "amanu-"));
const workspace = join(home, "work");

function program(...path: string[]): string {
  const file = join(home, ...path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "#!/bin/sh\n");
  chmodSync(file, 0o755);
  return file;
}

function linked(to: string, ...path: string[]): string {
  const file = join(home, ...path);
  mkdirSync(dirname(file), { recursive: true });
  symlinkSync(to, file);
  return file;
}

const real = program("usr", "python3");
const other = program("opt", "python3.12");
// as python -m venv makes it: a link out of the workspace, which runs what is in it all the same
const trap = linked(real, "work", ".venv", "bin", "python3");
const roundabout = linked(trap, "about", "python3");

const GOOD: Probed = { implementation: "cpython", version: [3, 12, 4], base: "", venv: true };

/** Which programs were started. */
let started: string[] = [];

async function find(
  given: { setting?: string; path?: string[]; folders?: string[] },
  answers: Record<string, Partial<Probed> | undefined>,
): Promise<string> {
  started = [];
  const places = {
    setting: given.setting ?? "",
    path: (given.path ?? [dirname(real)]).join(delimiter),
    folders: given.folders ?? [workspace],
    platform: "linux" as const,
  };
  const found = await findPython(places, async (command) => {
    started.push(command);
    return command in answers ? { ...GOOD, base: command, ...answers[command] } : undefined;
  });
  return "missing" in found ? found.missing : `${found.command} ${found.version}`;
}

test.each<[what: string, found: Partial<Probed>, expected: string | RegExp]>([
  ["one that fits", {}, `${real} 3.12.4`],
  ["one of a virtual environment", { base: other }, `${other} 3.12.4`],
  ["one that is too old", { version: [3, 10, 9] }, /Python 3\.10\.9 at .* is too old.*Install Python 3\.11/],
  ["Python 2", { version: [2, 7, 18] }, /too old/],
  ["PyPy", { implementation: "pypy" }, /is pypy/],
  ["one without venv", { version: [3, 11, 2], venv: false }, /sudo apt install python3\.11-venv/],
  ["one that leads into the workspace", { base: trap }, /inside the workspace/],
])("%s", async (_, found, expected) => {
  const said = await find({}, { [real]: found });
  if (typeof expected === "string") expect(said).toBe(expected);
  else expect(said).toMatch(expected);
});

test("nothing of the workspace is started, whatever links lead there", async () => {
  for (const folder of [dirname(trap), dirname(roundabout), "relative", "", "."]) {
    expect(await find({ path: [folder] }, {})).not.toMatch(/^\//);
    expect(started.filter((each) => each.startsWith(home))).toEqual([]);
  }
  expect(await find({ path: [dirname(trap), dirname(real)] }, { [real]: {} })).toBe(`${real} 3.12.4`);
});

test("the setting is not replaced by something else when it is wrong", async () => {
  expect(await find({ setting: other }, { [other]: {} })).toBe(`${other} 3.12.4`);
  expect(await find({ setting: "python3" }, { [real]: {} })).toMatch(/absolute path/);
  expect(await find({ setting: join(home, "gone") }, { [real]: {} })).toMatch(/no program that can be run/);
  expect(await find({ setting: trap }, { [real]: {} })).toMatch(/inside the workspace/);
  expect(await find({ setting: other }, { [other]: { version: [3, 9, 1] } })).toMatch(/too old/);
  expect(await find({ setting: other }, {})).toMatch(/does not run/);
});

test("a tried version comes before an untried one, and a broken one is passed over", async () => {
  const both = { path: [dirname(real), dirname(other)] };
  expect(await find(both, { [real]: { version: [3, 15, 0] }, [other]: {} })).toBe(`${other} 3.12.4`);
  expect(await find(both, { [real]: {} })).toBe(`${real} 3.12.4`);
});

test("macOS's own is left alone: it may ask for developer tools to be installed", () => {
  const places = { setting: "", path: "/usr/bin", folders: [] };
  expect(
    candidates({ ...places, platform: "darwin" }).filter((each) => each.startsWith("/usr/bin/")),
  ).toEqual([]);
});

test("a real Python says what it is", async () => {
  const { output } = await run("python3", PROBE, { env: { PATH: process.env.PATH ?? "" } });
  expect(read(output)).toMatchObject({
    implementation: "cpython",
    version: [3, expect.any(Number), expect.any(Number)],
  });
  expect(read("Segmentation fault")).toBeUndefined();
});
