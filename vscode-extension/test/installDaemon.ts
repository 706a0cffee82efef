// node installDaemon.js EXTENSION STORAGE [PYTHON]: the extension's own code installs the daemon of an unpacked .vsix, and
// prints where it is. Run by .ci/release/vsix-check.
import { environment } from "../src/daemon/daemon";
import { forPip, install, program, readBundle } from "../src/daemon/install";
import { findPython, PROBE, type Probe, read } from "../src/daemon/python";
import { run } from "../src/daemon/run";

async function main([extension = "", storage = "", setting = ""]: string[]): Promise<string> {
  const env = environment({});
  const probe: Probe = async (command) => read((await run(command, PROBE, { env })).output);
  const places = { setting, path: env.PATH ?? "", folders: [], platform: process.platform };
  const python = await findPython(places, probe);
  if ("missing" in python) throw new Error(python.missing);
  const bundle = readBundle(extension);
  if (bundle === undefined) throw new Error(`${extension} carries no daemon`);
  const made = await install({
    bundle,
    storage,
    python,
    env: forPip(env, ""),
    signal: new AbortController().signal,
    step: (what) => console.error(what),
    log: () => undefined,
    run,
  });
  if (made === undefined) throw new Error("cancelled");
  return program(made);
}

main(process.argv.slice(2)).then(
  (program) => console.log(program),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  },
);
