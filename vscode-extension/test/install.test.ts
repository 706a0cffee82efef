import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { inWords } from "../src/daemon/failures";
import {
  forPip,
  install,
  type Installation,
  installed,
  progress,
  program,
  unsupported,
} from "../src/daemon/install";
import { locked } from "../src/daemon/lock";
import { type Ended, run } from "../src/daemon/run";

const PYTHON = { command: "/usr/bin/python3", version: "3.12.4" };
let storage = "";
let commands: string[] = [];

beforeEach(() => {
  storage = mkdtempSync(join(tmpdir(), "amanu-"));
  commands = [];
});

function file(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "#!/bin/sh\n");
  chmodSync(path, 0o755);
}

/** An installation whose programs only leave the files that they would; `ends` says how the nth ends. */
function wanted(
  id: string,
  ends: (at: number) => Partial<Ended> | undefined = () => undefined,
): Installation {
  return {
    bundle: { folder: "/bundle", version: id.split("-")[0] ?? "", id, wheel: "amanu.whl", packages: 2 },
    storage,
    python: PYTHON,
    env: {},
    signal: new AbortController().signal,
    step: () => undefined,
    log: () => undefined,
    run: async (command, args) => {
      const at = commands.push([command, ...args].join(" "));
      if (args[1] === "-m" && args[2] === "venv") {
        file(join(args[3] ?? "", "bin", "python"));
        file(join(args[3] ?? "", "bin", "amanu"));
      }
      return { code: 0, output: "", ...ends(at) };
    },
  };
}

test("environment, hashed packages, wheel, check; then it is there", async () => {
  const made = await install(wanted("0.1.0-a"));
  expect(commands).toHaveLength(4);
  expect(commands[0]).toMatch(/^\/usr\/bin\/python3 -I -m venv /);
  expect(commands[1]).toMatch(/-I -m pip install .*--require-hashes --no-deps --only-binary=:all: -r/);
  expect(commands[2]).toMatch(/--no-deps --no-index \/bundle\/amanu\.whl$/);
  expect(commands[3]).toMatch(/bin\/amanu --version$/);
  expect(installed(storage)).toEqual(made);
  expect(made).toMatchObject({ id: "0.1.0-a", version: "0.1.0" });
  expect(existsSync(join(storage, "daemon", "lock"))).toBe(false);
});

const NONE = "ERROR: No matching distribution found for orjson==3.13.0";
test.each<[says: string, python: string, ends: Partial<Ended>[], roads: string[], fails?: RegExp]>([
  ["all is there", "3.12.4", [], ["carried"]],
  ["a Python of another version", "3.15.0", [{ code: 1, output: NONE }], ["carried", "fetched"]],
  [
    "likewise, and no network",
    "3.15.0",
    [
      { code: 1, output: NONE },
      { code: 1, output: "NewConnectionError" },
    ],
    ["carried", "fetched"],
    /index cannot be reached.* With Python 3\.11 to 3\.14, .* nothing is downloaded\.$/,
  ],
  [
    "the build for another system",
    "3.12.4",
    [
      { code: 1, output: NONE },
      { code: 1, output: NONE },
    ],
    ["carried", "fetched"],
    /no ready-made package of orjson.* is this the right build\?$/,
  ],
  [
    "another failure",
    "3.12.4",
    [{ code: 1, output: "Errno 28" }],
    ["carried"],
    /^Not enough disk space.*again\.$/,
  ],
])("a bundle with packages: %s", async (_, version, ends, roads, fails) => {
  const installation = wanted("0.1.0-a", (at) => ends[at - 2]);
  const bundle = { ...installation.bundle, pythons: ["3.11", "3.12", "3.13", "3.14"] };
  const envs: object[] = [];
  const made = install({
    ...installation,
    bundle,
    python: { command: "/usr/bin/python3", version },
    env: { HOME: "/home", PIP_INDEX_URL: "https://mirror.test", PIP_CONSTRAINT: "/c" },
    run: async (command, args, options) => {
      if (args.includes("--require-hashes")) envs.push(options.env);
      return await installation.run(command, args, options);
    },
  });
  if (fails) await expect(made).rejects.toThrow(fails);
  else expect(await made).toMatchObject({ id: "0.1.0-a" });
  const pips = commands.filter((each) => each.includes("--require-hashes"));
  const road = (each: string) =>
    each.includes(" --no-index --find-links /bundle/wheels --require-hashes ") ? "carried" : "fetched";
  expect(pips.map(road)).toEqual(roads);
  const ofPip = Object.entries(envs[0] ?? {}).filter(([name]) => name.startsWith("PIP_"));
  expect(Object.fromEntries(ofPip)).toEqual({ PIP_CONFIG_FILE: "/dev/null", PIP_NO_INPUT: "1" });
  if (roads.length > 1) expect(envs[1]).toMatchObject({ PIP_INDEX_URL: "https://mirror.test" });
});

test("rustup, which pip starts, keeps what it writes in the installation", async () => {
  const homes: (string | undefined)[] = [];
  const made = await install({
    ...wanted("0.1.0-a"),
    run: async (_command, _args, { env }) => {
      homes.push(env.RUSTUP_HOME);
      return { code: 0, output: "" };
    },
  });
  expect(new Set(homes)).toEqual(new Set([join(made?.folder ?? "", "rustup")]));
});

test.each([1, 2, 3, 4])("what fails at step %i leaves nothing that could be used", async (step) => {
  const first = await install(wanted("0.1.0-a"));
  commands = [];
  const failing = wanted("0.2.0-b", (at) =>
    at === step ? { code: 1, output: "OSError: [Errno 28]" } : undefined,
  );
  await expect(install(failing)).rejects.toThrow(/Not enough disk space/);
  expect(installed(storage)).toEqual(first);
  commands = [];
  expect(await install(wanted("0.2.0-b"))).toMatchObject({ version: "0.2.0" });
  expect(program(first as NonNullable<typeof first>)).not.toBe(installed(storage)?.folder);
  expect(existsSync(first?.folder ?? "")).toBe(true); // a daemon that runs from there keeps its files
});

test("the same version is not installed twice unless that is wanted; another content is another version", async () => {
  await install(wanted("0.1.0-a"));
  await install(wanted("0.1.0-a"));
  expect(commands).toHaveLength(4);
  await install({ ...wanted("0.1.0-a"), again: true });
  expect(commands).toHaveLength(8);
  await install(wanted("0.1.0-b"));
  expect(commands).toHaveLength(12);
});

test("one whose Python is gone is none", async () => {
  const made = await install(wanted("0.1.0-a"));
  rmSync(join(made?.folder ?? "", "bin", "python"));
  expect(installed(storage)).toBeUndefined();
});

test("cancelled, nothing is left", async () => {
  const cancel = new AbortController();
  const installation = wanted("0.1.0-a", (at) => {
    if (at === 2) cancel.abort();
    return at === 2 ? { code: null } : undefined;
  });
  expect(await install({ ...installation, signal: cancel.signal })).toBeUndefined();
  expect(commands).toHaveLength(2);
  expect(installed(storage)).toBeUndefined();
});

test("two windows: one works, the other waits and takes what is there", async () => {
  const both = await Promise.all([install(wanted("0.1.0-a")), install(wanted("0.1.0-a"))]);
  expect(commands).toHaveLength(4);
  expect(both[0]).toEqual(both[1]);
});

test("old folders go when nothing names them", async () => {
  const old = join(storage, "daemon", "0.0.1-x");
  file(join(old, "bin", "amanu"));
  utimesSync(old, 1, 1);
  await install(wanted("0.1.0-a"));
  expect(existsSync(old)).toBe(false);
});

test("a lock that a crash left is taken over, a living one is waited for", async () => {
  const lock = join(storage, "lock");
  writeFileSync(lock, "99999999");
  let waited = 0;
  const work = async () => readFileSync(lock, "utf8");
  expect(await locked(lock, new AbortController().signal, () => waited++, work)).toBe(String(process.pid));
  expect(waited).toBe(1);
  writeFileSync(lock, String(process.ppid));
  expect(await locked(lock, AbortSignal.timeout(50), () => waited++, work)).toBeUndefined();
  expect(readFileSync(lock, "utf8")).toBe(String(process.ppid));
});

test("cancelling ends the program and what it started", async () => {
  const cancel = new AbortController();
  const mark = join(storage, "mark");
  const ended = run("sh", ["-c", `(sleep 0.5; touch ${mark}) & echo begun; wait`], {
    env: { PATH: process.env.PATH ?? "" },
    signal: cancel.signal,
    line: () => cancel.abort(),
  });
  expect(await ended).toMatchObject({ code: null });
  await new Promise((resolve) => setTimeout(resolve, 800));
  expect(existsSync(mark)).toBe(false);
  expect((await run("/nowhere/at/all", [], { env: {} })).output).toMatch(/ENOENT/);
});

test("pip's lines become steps", () => {
  const steps: [string, number][] = [];
  const hear = progress(2, (what, done) => steps.push([what, Math.round(done * 100)]));
  for (const line of [
    "Collecting anyio==4.16.0 (from -r requirements.txt (line 3))",
    "  Downloading anyio-4.16.0-py3-none-any.whl (100 kB)",
    "Collecting attrs==26.1.0",
    "Installing collected packages: attrs, anyio",
  ])
    hear(line);
  expect(steps).toEqual([
    ["Downloading anyio (1 of 2)", 41],
    ["Downloading attrs (2 of 2)", 70],
    ["Installing packages", 72],
  ]);
});

const RETRY = "WARNING: Retrying (Retry(total=4)) after connection broken by";
test.each([
  ["OSError: [Errno 28] No space left on device", /Not enough disk/],
  ["Error: Command '[...]' returned non-zero: ensurepip is not available.", /apt install python3\.12-venv/],
  ["/usr/bin/python3: No module named venv", /apt install python3\.12-venv/],
  [
    `${RETRY} 'NewConnectionError(...)': /simple/\nERROR: No matching distribution found for anyio==4`,
    /online\?/,
  ],
  [`${RETRY} 'ProxyError(...)'`, /HTTPS_PROXY/],
  [`${RETRY} 'SSLError(SSLCertVerificationError(1, ...))'`, /PIP_CERT/],
  [
    "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
    /not the one Amanu was tested with/,
  ],
  [
    "ERROR: No matching distribution found for orjson==3.13.0",
    /no ready-made package of orjson for Python 3\.12\.4/,
  ],
  ["PermissionError: [Errno 13] Permission denied: '/x'", /not writable/],
  ['Traceback (most recent call last):\n  File "x"\nValueError: strange', /^It failed: ValueError: strange$/],
  ["", /nothing was said/],
])("%s", (output, sentence) => {
  const said = inWords(output, PYTHON);
  expect(said).toMatch(sentence);
  expect(said).not.toMatch(/Traceback|\n/);
});

test("pip gets the user's proxies and mirrors, and installs nowhere else", () => {
  const made = forPip(
    { PIP_TARGET: "/t", PIP_INDEX_URL: "https://mirror.test", VIRTUAL_ENV: "/v" },
    "http://proxy.test",
  );
  expect(made).toEqual({
    PIP_INDEX_URL: "https://mirror.test",
    PIP_USER: "0",
    PIP_NO_INPUT: "1",
    HTTPS_PROXY: "http://proxy.test",
  });
  expect(forPip({ https_proxy: "http://mine.test" }, "http://proxy.test").HTTPS_PROXY).toBeUndefined();
});

test("where the daemon does not run, that is said", () => {
  expect(unsupported("win32")).toMatch(/WSL/);
  expect(unsupported("linux")).toBeUndefined();
});
