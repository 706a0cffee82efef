// Stands in for GitHub Copilot: an extension that provides a model to VS Code. It reads a file with the first tool call
// and then says what the file holds.
const vscode = require("vscode");

const MODEL = {
  id: "reader-1",
  name: "Reader 1",
  family: "reader",
  version: "1",
  maxInputTokens: 64000,
  maxOutputTokens: 4000,
  capabilities: { toolCalling: true },
};

exports.activate = (context) => {
  const provider = {
    provideLanguageModelChatInformation: () => [MODEL],
    provideTokenCount: async () => 1,
    provideLanguageModelChatResponse: async (model, messages, options, progress) => {
      const say = (text) => progress.report(new vscode.LanguageModelTextPart(text));
      if (!options.tools?.length) return say("A title");
      const last = messages.at(-1).content;
      const result = last.find((part) => part instanceof vscode.LanguageModelToolResultPart);
      const prompt = last.map((part) => part.value ?? "").join("");
      if (result !== undefined) {
        for (const word of ["It ", "says: ", result.content.map((part) => part.value).join("")]) say(word);
      } else if (prompt.includes("quota")) {
        throw vscode.LanguageModelError.Blocked("You have used your premium requests of this month.");
      } else {
        say("I look.");
        progress.report(new vscode.LanguageModelToolCallPart("c1", "read_file", { path: "a.txt" }));
      }
    },
  };
  context.subscriptions.push(vscode.lm.registerLanguageModelChatProvider("acme", provider));
};
