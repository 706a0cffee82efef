// VS Code's own share of a review: texts as `bench/reviews.py` makes them, in memory, compared in the editor of several
// files, with one lens. Nothing else is done.
const vscode = require("vscode");

const HUNKS = 10;
const LINES = 300;

function text({ scheme, path }) {
  const number = Number(path.match(/\d+/)[0]);
  const isChanged = (line) => scheme === "bare-after" && line % (LINES / HUNKS) === 5;
  const lines = Array.from(
    { length: LINES },
    (_, line) => `def part_${number}_${line}(): return ${line}${isChanged(line) ? "  # changed" : ""}\n`,
  );
  return Buffer.from(lines.join(""));
}

function open(files) {
  const resources = Array.from({ length: files }, (_, number) => {
    const path = `/part_${String(number).padStart(2, "0")}.py`;
    const [before, after] = ["bare-before", "bare-after"].map((scheme) => vscode.Uri.from({ scheme, path }));
    return [after, before, after];
  });
  return vscode.commands.executeCommand("vscode.changes", "Bare", resources);
}

exports.activate = ({ subscriptions }) => {
  const nothing = () => undefined;
  const files = {
    onDidChangeFile: new vscode.EventEmitter().event,
    watch: () => ({ dispose: nothing }),
    stat: (uri) => ({ type: vscode.FileType.File, ctime: 0, mtime: 1, size: text(uri).length }),
    readFile: text,
    readDirectory: () => [],
    createDirectory: nothing,
    writeFile: nothing,
    delete: nothing,
    rename: nothing,
  };
  const first = new vscode.Range(5, 0, 5, 0);
  const lenses = { provideCodeLenses: () => [new vscode.CodeLens(first, { title: "bare", command: "" })] };
  subscriptions.push(
    ...["bare-before", "bare-after"].map((scheme) =>
      vscode.workspace.registerFileSystemProvider(scheme, files),
    ),
    vscode.languages.registerCodeLensProvider({ scheme: "bare-after" }, lenses),
    vscode.commands.registerCommand("bareReview.open", open),
  );
};
