import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { environment, findDaemon, withheld } from "../src/daemon/daemon";

const home = mkdtempSync(join(tmpdir(), "amanu-"));
const workspace = join(home, "work");

function program(path: string, mode = 0o755): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "#!/bin/sh\n");
  chmodSync(path, mode);
  return path;
}

const installed = program(join(home, "bin", "amanu"));
const evil = program(join(workspace, "bin", "amanu"));
const plain = program(join(home, "plain", "amanu"), 0o644);
const linked = join(home, "linked", "amanu");
mkdirSync(dirname(linked));
symlinkSync(evil, linked);

function check(
  given: { setting?: string; installed?: string; path?: string[] },
  expected: string | RegExp,
): void {
  const found = findDaemon({
    setting: given.setting ?? "",
    installed: given.installed,
    path: (given.path ?? []).join(delimiter),
    folders: [workspace],
  });
  if (typeof expected === "string") expect(found).toMatchObject({ command: expected });
  else expect("missing" in found ? found.missing : found.command).toMatch(expected);
}

test("the setting comes first, and is not replaced by something else when it is wrong", () => {
  check({ setting: installed, path: [dirname(plain)] }, installed);
  check({ setting: "amanu", path: [dirname(installed)] }, /must be an absolute path/);
  check({ setting: join(home, "gone"), path: [dirname(installed)] }, /no program that can be run/);
  check({ setting: plain }, /no program that can be run/);
});

test("then the extension's own storage, then PATH", () => {
  const own = program(join(home, "storage", "bin", "amanu"));
  check({ installed: own, path: [dirname(installed)] }, own);
  check({ installed: join(home, "gone"), path: [dirname(installed)] }, installed);
  check({ path: [join(home, "empty"), dirname(plain), dirname(installed)] }, installed);
  check({ path: [] }, /not installed yet.*Python 3\.11/);
});

test("never from the workspace, however it is reached", () => {
  check({ setting: evil }, /inside the workspace/);
  check({ setting: linked }, /inside the workspace/);
  check({ path: [dirname(evil)] }, /inside the workspace/);
  check({ path: [dirname(linked), "", ".", "bin"] }, /inside the workspace/);
  check({ path: [dirname(evil), dirname(installed)] }, installed);
});

test("Python's module path is kept clean", () => {
  process.env.PYTHONPATH = workspace;
  const made = environment({ ONE: "1" });
  const commands = withheld(made);
  delete process.env.PYTHONPATH;
  expect(made).toMatchObject({ ONE: "1", PYTHONSAFEPATH: "1" });
  expect(made.PYTHONPATH).toBeUndefined();
  expect(commands).toEqual({ PYTHONPATH: workspace, PYTHONSAFEPATH: "" }); // theirs is the user's own
  expect(withheld(made)).toEqual({ PYTHONSAFEPATH: "" });
});
