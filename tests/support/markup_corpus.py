"""Replies that hold calls as text, and replies that only look like it. `read_file` and `run` are offered."""

# ruff: noqa: E501
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]

A: Calls = [("read_file", {"path": "a.txt"})]
AB: Calls = [*A, ("read_file", {"path": "b.txt"})]
LS: Calls = [("run", {"command": "ls -l | wc"})]
J = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
J2 = '{"name": "read_file", "arguments": {"path": "b.txt"}}'
INVOKE = '<invoke name="read_file">\n<parameter name="path">a.txt</parameter>\n</invoke>'
FUNCTION = "<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>"
GLM = "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</tool_call>"
SCRIPT = 'if [ "$1" = "<x>" ]; then\n\techo "</parameter> & co"\nfi'
IN_JSON = '"if [ \\"$1\\" = \\"<x>\\" ]; then\\n\\techo \\"</parameter> & co\\"\\nfi"'
S: Calls = [("run", {"command": SCRIPT})]

POSITIVE: list[tuple[str, Calls]] = [
    # Hermes, Qwen
    (f"<tool_call>{J}</tool_call>", A),
    (f"Let me look.\n<tool_call>\n{J}\n</tool_call>\n", A),
    (f"Let me look: <tool_call>{J}</tool_call>", A),
    (f"好的，我来看一下。<tool_call>\n{J}\n</tool_call>", A),
    (f"Ich lese die Datei.\n\n<tool_call>\n{J}\n</tool_call>", A),
    (f"<tool_call>\n{J}\n</tool_call>\n<tool_call>\n{J2}\n</tool_call>", AB),
    (f"<tool_call>\n{J}\n{J2}\n</tool_call>", AB),
    (f"<tool_call>\n[{J}, {J2}]\n</tool_call>", AB),
    (f"<tool_call>\n{J}", A),
    (f"<tool_call>\n{J}\n</tool_call><|im_end|>", A),
    ("<tool_call>\n{'name': 'read_file', 'arguments': {'path': 'a.txt'}}\n</tool_call>", A),
    ('<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt",}}\n</tool_call>', A),
    ('<tool_call>\n{"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}\n</tool_call>', A),
    ('<tool_call>\n{"arguments": {"path": "a.txt"}, "name": "read_file"}\n</tool_call>', A),
    ('<tool_call>\n{{"name": "read_file", "parameters": {"path": "a.txt"}}}\n</tool_call>', A),
    (f'<tool_call>\n{{"name": "run", "arguments": {{"command": {IN_JSON}}}}}\n</tool_call>', S),
    ('<tool_call>{"name": "run", "arguments": {"command": "echo \'</tool_call>\'"}}</tool_call>', [("run", {"command": "echo '</tool_call>'"})]),
    ('<tool_call>{"name": "read_file", "arguments": {"file_path": "a.txt"}}</tool_call>', [("read_file", {"file_path": "a.txt"})]),
    ('<tool_call>\n{"arguments": {"command": ' + IN_JSON[:-1] + 'x' * 300 + '"}, "name": "run"}\n</tool_call>', [("run", {"command": SCRIPT + "x" * 300})]),
    ('{"parameters": {"command": "echo ' + "y" * 300 + '"}, "name": "run"}', [("run", {"command": "echo " + "y" * 300})]),
    (f"Let me look at the template.\n<tool_call>{J}</tool_call>", A),
    (f"I'll check the format of the file first.\n\n<tool_call>{J}</tool_call>", A),
    (f"The syntax seems wrong, so I look again.\n{INVOKE}", A),
    (f"Let's look at it:\n{GLM}", A),
    # Qwen3-Coder
    (f"<tool_call>\n{FUNCTION}\n</tool_call>", A),
    (f"I will read it.\n\n<tool_call>\n{FUNCTION}\n</tool_call>", A),
    (f"{FUNCTION}\n</tool_call>", A),
    (FUNCTION, A),
    (f"<tool_call>\n{FUNCTION}\n</tool_call>\n<tool_call>\n{FUNCTION.replace('a.txt', 'b.txt')}\n</tool_call>", AB),
    (f"<tool_call>\n<function=run>\n<parameter=command>\n{SCRIPT}\n</parameter>\n</function>\n</tool_call>", S),
    ("<tool_call>\n<function=run>\n<parameter=command>\nls -l | wc\n</parameter>\n</function>\n</tool_call>", LS),
    # GLM
    (GLM, A),
    ("<tool_call>read_file<arg_key>path</arg_key><arg_value>a.txt</arg_value></tool_call>", A),
    (f"我先看看文件。\n{GLM}", A),
    (f"{GLM}\n{GLM.replace('a.txt', 'b.txt')}", AB),
    (f"<tool_call>run\n<arg_key>command</arg_key>\n<arg_value>{SCRIPT}</arg_value>\n</tool_call>", S),
    ("<tool_calls><tool_call>read_file<tool_sep><arg_key>path</arg_key><arg_value>a.txt</arg_value></tool_call></tool_calls>", A),
    # MiniMax
    (f"<tool_calls>\n{J}\n{J2}\n</tool_calls>", AB),
    (f"<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>", A),
    (f"Read the traits:\n{INVOKE}\n</minimax:tool_call>", A),
    (f"<minimax:tool_call>\n{INVOKE}\n{INVOKE.replace('a.txt', 'b.txt')}\n</minimax:tool_call>", AB),
    (
        "Let me see Tuner.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"read_file\">]<]minimax[>[<path>a.txt"
        "]<]minimax[>[</path>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        A,
    ),
    # Claude
    (f"<function_calls>\n{INVOKE}\n</function_calls>", A),
    (f"さっそく確認します。\n\ncourt\n{INVOKE}", A),
    (f"Normal prose.\n\ncount\n{INVOKE}\n", A),
    (f'<invoke name="run">\n<parameter name="command">{SCRIPT}</parameter>\n</invoke>', S),
    # DeepSeek
    ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>" + '{"path": "a.txt"}', A),
    (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a.txt"}<｜tool▁call▁end｜>'
        '<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "b.txt"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        AB,
    ),
    (
        "I look at it now <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n"
        '```json\n{"path": "a.txt"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n'
        '```json\n{"path": "b.txt"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
        AB,
    ),
    ('<|tool▁calls▁begin|><|tool▁call▁begin|>read_file<|tool▁sep|>{"path": "a.txt"}<|tool▁call▁end|><|tool▁calls▁end|>', A),
    ('<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n{"path": "a.txt"}\n</｜DSML｜invoke>\n</｜DSML｜function_calls>', A),
    (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="read_file">\n<｜DSML｜parameter name="path" string="true">a.txt'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        A,
    ),
    # Kimi
    ('<|tool_call_begin|>functions.read_file:3<|tool_call_argument_begin|>{"path": "a.txt"}<|tool_call_end|>', A),
    (
        'Reading.<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": '
        '"a.txt"}<|tool_call_end|><|tool_call_begin|>functions.read_file:1<|tool_call_argument_begin|>{"path": "b.txt"}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        AB,
    ),
    # gpt-oss
    ('<|channel|>commentary to=functions.read_file<|channel|>commentary <|constrain|>json<|message|>{"path": "a.txt"}', A),
    ('<|start|>assistant<|channel|>commentary to=functions.read_file json<|message|>{"path":"a.txt"}<|call|>', A),
    ('<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{"path":"a.txt"}<|call|>', A),
    ('to=functions.read_file  天天中彩票能json\n{"path": "a.txt"}', A),
    ('I will read it.\ncommentary to=functions.read_file json{"path": "a.txt"}', A),
    # Llama
    ('{"name": "read_file", "parameters": {"path": "a.txt"}}', A),
    ('{"type": "function", "name": "read_file", "parameters": {"path": "a.txt"}}<|eom_id|>', A),
    ('{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a.txt"}}}', A),
    ('{"name": "read_file", "parameters": {"path": "a.txt"}}; {"name": "read_file", "parameters": {"path": "b.txt"}}', AB),
    (f"[{J}, {J2}]", AB),
    ('{"tool": "read_file", "tool_input": {"path": "a.txt"}}', A),
    ('{"functionCall": {"name": "read_file", "args": {"path": "a.txt"}}}', A),
    ('[read_file(path="a.txt"), read_file(path="b.txt")]', AB),
    ('[run(command="ls -l | wc")]<|eot_id|>', LS),
    ('<|python_tag|>read_file(path="a.txt")', A),
    ('<function=read_file>{"path": "a.txt"}</function><|eom_id|>', A),
    # Mistral
    (f"[TOOL_CALLS] [{J}, {J2}]", AB),
    ('[TOOL_CALLS]read_file{"path": "a.txt"}[TOOL_CALLS]read_file{"path": "b.txt"}', AB),
    ('Sure.[TOOL_CALLS]read_file[CALL_ID]abc123[ARGS]{"path": "a.txt"}</s>', A),
    # Gemma
    ('```tool_code\nread_file(path="a.txt")\n```', A),
    ('I will look.\n\n```tool_code\nprint(default_api.read_file(path="a.txt"))\nprint(default_api.read_file(path="b.txt"))\n```\n', AB),
    ("```tool_code\nprint(default_api.read_file(path='a.txt'))", A),
    (f"```tool_call\n{J}\n```", A),
    ("<start_function_call>call:run{command:<escape>ls -l | wc<escape>}<end_function_call>", LS),
    ('<|tool_call>call:read_file{path:<|"|>a.txt<|"|>}<tool_call|><|tool_call>call:read_file{path:<|"|>b.txt<|"|>}<tool_call|>', AB),
    # the others
    (f"<|tool_call|>[{J}, {J2}]", AB),
    (f"<function_call> {J} <function_call> {J2}", AB),
    (f"functools[{J}]", A),
    ('<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "read_file", "parameters": {"path": "a.txt"}}]<|END_ACTION|>', A),
    ("<seed:tool_call>\n<function=run>\n<parameter=command>ls -l | wc</parameter>\n</function>\n</seed:tool_call>", LS),
    (f"<TOOLCALL>[{J}]</TOOLCALL>", A),
    ('<function_calls>\nread_file(path="a.txt")\nread_file(path="b.txt")\n</function_calls>', AB),
    # after thoughts
    (f"<think>\nI need the file.\n</think>\n\n<tool_call>\n{J}\n</tool_call>", A),
    ('The user wants the file.\n</think>\n\n{"name": "read_file", "parameters": {"path": "a.txt"}}', A),
    ("<think>Hm.</think>" + GLM, A),
    ('<|channel|>analysis<|message|>I read it.<|end|><|start|>assistant<|channel|>commentary to=functions.read_file '
     '<|constrain|>json<|message|>{"path":"a.txt"}<|call|>', A),
]  # fmt: skip

NEGATIVE = [
    # no calls at all
    "", "\n", "Done.", "The file says: hello.", "a < b and b > c", "if x < y: return [x]", "List<String> names",
    "[1, 2, 3]", "[x] Done\n[ ] Not done", "[Link](https://example.org/read_file)", "{}", "[]", "{", "[",
    '{"name": "a package", "version": "1.0"}', '{"name": "read_file"}', '{"name": "read_file", "version": 2}',
    '{"path": "a.txt"}', '{"next_speaker": "user"}', "template<typename T> void f();", "std::vector<run> v;",
    "Generic<read_file> is no type.", "a <- read_file(path)", "Use `run` and `read_file`.",
    "[read_file](docs/read_file.md) reads a file.", "[read_file] reads, [run] runs.",
    # other tools, no tools
    '<tool_call>{"name": "other", "arguments": {}}</tool_call>', "[other(path=1)]", "<function=other>{}</function>",
    '```tool_code\nprint(default_api.google_search(q="x"))\n```', '<invoke name="other">\n</invoke>',
    "<tool_call>other\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    '[TOOL_CALLS]other{"path": "a"}', "to=functions.other json{}", '{"name": "other", "arguments": {}}',
    # documentation
    "The tags are `<tool_call>` and `</tool_call>`.",
    "Hermes writes <tool_call> before a call of read_file and </tool_call> after it.",
    "Qwen's template: a call stands between <tool_call> and </tool_call>, as JSON with `name` and `arguments`.",
    "<tool_call> is the tag that begins a call; read_file would be its name.",
    "<tool_call> begins a call of read_file.\n\nThen comes JSON.",
    "<function_calls> holds the calls of Claude, such as <invoke> of read_file.",
    "[TOOL_CALLS] is a token of Mistral; read_file would follow it.",
    "In harmony a call is addressed with to=functions.NAME, as to=functions.read_file.",
    "commentary is a channel; to=functions.read_file names the recipient.",
    f"Mistral writes [TOOL_CALLS] [{J}]; that is all.",
    f"[TOOL_CALLS] [{J}]\nis how Mistral's models write it.",
    f"<tool_call>{J}</tool_call> is what Qwen writes.",
    f"<tool_call>\n{J}\n</tool_call>\n\nThat is how Hermes does it.",
    f"{GLM}\n\nSo schreibt GLM einen Aufruf.", f"{INVOKE}\n\nVoilà la syntaxe de Claude.",
    f"{FUNCTION}\n\nここで関数が呼ばれます。", f"{J}\n\nThis is the JSON of a call.", f"[{J}] is a list of one call.",
    f"For example:\n<tool_call>{J}</tool_call>", f"The syntax is\n<tool_call>{J}</tool_call>",
    f"A call looks like this:\n{INVOKE}", f"Zum Beispiel:\n{INVOKE}", f"Par exemple :\n{GLM}",
    f"Por ejemplo:\n<tool_call>{J}</tool_call>", f"例如：\n<tool_call>{J}</tool_call>", f"例えば:\n{GLM}",
    f"The format of Seed-OSS:\n<seed:tool_call>{FUNCTION}</seed:tool_call>",
    f"As a template it would be\n<TOOLCALL>[{J}]</TOOLCALL>",
    f"Mistral's syntax:\n[TOOL_CALLS][{J}]", 'For instance,\nto=functions.read_file json{"path": "a.txt"}',
    f"| template | call |\n|---|---|\n| Hermes | <tool_call>{J}</tool_call> |",
    f"- Hermes: <tool_call>{J}</tool_call>, then text\n- GLM: {GLM} and so on.",
    f"* <tool_call>{J}</tool_call>", f"1. <tool_call>{J}</tool_call>",
    # code
    f"```xml\n<tool_call>{J}</tool_call>\n```", f"```\n<tool_call>{J}</tool_call>\n```", f"~~~\n{INVOKE}\n~~~",
    f"Here:\n\n```html\n{INVOKE}\n```", f"````md\n```xml\n{INVOKE}\n```\n````", f"```text\n{GLM}\n```\n",
    f"```json\n{J}\n```\nThis is how such a call looks.", f"```ts\n{J}\n```", f"```python\nprint('{J}')\n```",
    "```python\nread_file(path)\n```", '```python\nread_file(path="a.txt")\n```', "```python\nprint(default_api)\n```",
    f"```python\nPATTERN = re.compile('<tool_call>(.*)</tool_call>')\ntest('<tool_call>{J}</tool_call>')\n```",
    f"- item\n\n  ```xml\n  {INVOKE}\n  ```", f"```diff\n+<tool_call>{J}</tool_call>\n```", f"`<tool_call>{J}</tool_call>`",
    f"It is `[TOOL_CALLS][{J}]` there.", "``<function=read_file>{}</function>``", f"    <tool_call>{J}</tool_call>",
    f"\t<tool_call>{J}</tool_call>", f'text = "<tool_call>{J}</tool_call>"', f"<code><tool_call>{J}</tool_call></code>",
    f"<pre>\n{INVOKE}\n</pre>", f'logging.info("%s", \'{INVOKE}\')', f"print('''\n{INVOKE}\n''')",
    f"<!-- <tool_call>{J}</tool_call> -->", f"// <tool_call>{J}</tool_call>", f"# <tool_call>{J}</tool_call>",
    f"/* {INVOKE} */", f'<a title="x"><tool_call>{J}</tool_call></a>',
    # diffs, quotations, logs
    f"@@ -1 +1 @@\n+<tool_call>{J}</tool_call>", f"@@ -1 +1 @@\n-<tool_call>{J}</tool_call>",
    f"+{J}", f"+ {INVOKE}", f"> <tool_call>{J}</tool_call>", f"> {INVOKE}", f">> [TOOL_CALLS][{J}]",
    f"| <tool_call>{J}</tool_call> |", f"2026-11-30 12:00:01 INFO reply: <tool_call>{J}</tool_call>",
    f"12:00 model wrote <|tool_calls_section_begin|>{J}", f"$ echo '<tool_call>{J}</tool_call>'",
    f"% cat reply.txt: <tool_call>{J}</tool_call>", f"[INFO] got <tool_call>{J}</tool_call> from the server",
    f"ERROR parser: unexpected <tool_call>{J}</tool_call>", f"1: <tool_call>{J}</tool_call>",
    f'{{"content": "<tool_call>{J}</tool_call>"}}', f"msg=<tool_call>{J}</tool_call>",
    f"the log says <tool_call>{J}</tool_call>", f"grep found a.md:3:<tool_call>{J}</tool_call>",
    # broken in a way that nobody means
    "<tool_call>", "<tool_call>\n", "</tool_call>", "<tool_call></tool_call>", "<function=", "<invoke name=",
    "[TOOL_CALLS]", "[TOOL_CALLS][]", "<|python_tag|>", "<|python_tag|>import os\nprint(1)", "```tool_code\n```",
    "<tool_call>read_file</tool_calling>", "<function_calls></function_calls>", "<|channel|>", "<｜", "functools",
    "<function=run", "functools.partial(run, 1)", "functools.reduce is not read_file", "Action: ```json\n[]\n```",
    "<tool_call>{}</tool_call>", "<tool_call>[]</tool_call>", '<tool_call>"read_file"</tool_call>',
    "<|tool_call|>", "<tool_calls>[1, 2]</tool_calls>", "Action: read_file\nAction Input: a.txt",
    "[run]", "[run()", "(run)", "[read_file, run]", '["read_file", "run"]', "[[read_file]]",
]  # fmt: skip
"""Replies whose text is the answer, every character of it."""

ASKED: list[tuple[str, str]] = [
    # small local models; the reason has these words
    (f"```json\n{J}\n```", "It was of read_file."),
    (f"Let me read it.\n```\n{J}\n```", "It was of read_file."),
    (f"Let me read it.\n{J}", "It was of read_file."),
    (f"```json\n[{J}, {J2}]\n```", "It was of read_file."),
    (f"I read it <tool_call>{J}</tool_call>", "It was of read_file."),
    (f"I read it {INVOKE}", "It was of read_file."),
    (f"For example:\n<tool_call>{J}</tool_call>\n", "an example"),
    ('<tool_call>{"name": "read_file", "arguments": {}}</tool_call>', "path: Field required"),
    ('<tool_call>{"name": "read_file", "arguments": {"path": "a.txt}}</tool_call>', "expected the closing \""),
    ('<tool_call>{"name": "read_file", "arguments": {"path" "a.txt"}}</tool_call>', "column 55: expected ':'"),
    ('<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"', "the text ends"),
    ('<invoke name="read_file">\n<parameter name="path">a.txt\n</invoke>', "the parameter path"),
    ("<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</tool_call>", "the argument path"),
    ('[read_file("a.txt")]', "expected name=value"),
    ('```tool_code\nread_file(path="a.txt"\n```', "line 1, column 10"),
    ('[TOOL_CALLS]read_file{"path": a.txt}', "column 31: expected a value"),
    ("<|tool_call>call:read_file{path:<|\"|>a.txt}<tool_call|>", "expected its closing mark"),
    ('<|open|>call tool="read_file" index="0"<|sep|><|open|>argument', "expected an argument"),
]  # fmt: skip
"""Replies that the model is asked about, and words of the reason."""
