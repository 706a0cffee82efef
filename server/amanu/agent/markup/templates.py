"""The table of templates in which models write calls and thoughts: a row for each that is in use.

A new template is a row with an example. The tests read the example as a call, and see that it is not run when a file, a
page, the user or a picture may have put it into the model's mouth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amanu.agent.markup.shapes import (
    Reader,
    by_name,
    in_json,
    in_python,
    named,
    whole_object,
)
from amanu.agent.markup.tag_shapes import in_braces, in_keys, in_xtml, tagged


@dataclass(frozen=True)
class Template:
    """The way a family of models writes a call. `opens`: the marks that begin one, behind which `read` reads."""

    family: str
    source: str
    """The place where the family, or a server that reads its replies, defines it."""
    opens: Sequence[str]
    read: Reader
    example: str
    """A reply that calls `read_file` for `a.txt`."""
    at_line_start: bool = False
    """The mark is no token or tag, and counts only where it begins a line."""
    alone: bool = False
    """There is no mark: the calls are the whole answer."""


_JSON = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
_VLLM = "vllm/tool_parsers/"
_SGLANG = "sglang/srt/function_call/"

WRAPPERS = (
    *("<function_calls>", "<tool_calls>", "<minimax:tool_call>", "<seed:tool_call>"),
    *("<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<|tool_calls_section_begin|>", "<|open|>tools<|sep|>"),
    *("<｜tool▁calls▁begin｜>", "<|tool▁calls▁begin|>", "<｜tool_calls_begin｜>", "<|python_start|>"),
    *("<｜tool_call_begin｜>function<｜tool_sep｜>", "<|start|>assistant"),
)
"""Marks around calls that have marks of their own."""

TEMPLATES = (
    Template("Hermes, Qwen 2.5 and 3, Granite 4, ERNIE 4.5, xLAM", _VLLM + "hermes_tool_parser.py",
        ("<tool_call>",), in_json, f"<tool_call>\n{_JSON}\n</tool_call>"),
    Template("Qwen3-Coder, Qwen 3.5, Nemotron 3, MiMo, Step 3.5", _VLLM + "qwen3coder_tool_parser.py",
        ("<tool_call>",), tagged,
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>"),
    Template("GLM 4.5 and later, Hunyuan 3, Ling 3", _VLLM + "glm4_moe_tool_parser.py",
        ("<tool_call>",), in_keys,
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</tool_call>"),
    Template("LongCat", _VLLM + "longcat_tool_parser.py",
        ("<longcat_tool_call>",), in_json, f"<longcat_tool_call>\n{_JSON}\n</longcat_tool_call>"),
    Template("LongCat 2", _SGLANG + "longcat_detector.py", ("<longcat_tool_call>",), in_keys,
        "<longcat_tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</longcat_tool_call>"),
    Template("MiniMax M1, Hunyuan A13B, Jamba", _VLLM + "minimax_tool_parser.py, hunyuan_a13b_tool_parser.py",
        ("<tool_calls>",), in_json, f"<tool_calls>\n{_JSON}\n</tool_calls>"),
    Template("MiniMax M2 and M3", _VLLM + "minimax_m2_tool_parser.py; MiniMax-AI/MiniMax-M3#31",
        ("<minimax:tool_call>",), tagged,
        '<minimax:tool_call>\n<invoke name="read_file">\n<parameter name="path">a.txt</parameter>\n</invoke>\n'
        "</minimax:tool_call>"),
    Template("Claude", "platform.claude.com, the form its models are trained on; anthropics/claude-code#64922",
        ("<invoke name=",), tagged,
        '<invoke name="read_file">\n<parameter name="path">a.txt</parameter>\n</invoke>'),
    Template("DeepSeek V3 and R1", "huggingface.co/deepseek-ai/DeepSeek-V3-0324, chat_template",
        ("<｜tool▁call▁begin｜>", "<|tool▁call▁begin|>"),
        named(r"function<[｜|]tool▁sep[｜|]>", r"\s*(?:```(?:json)?\s*)?"),
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n"
        '```json\n{"path": "a.txt"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'),
    Template("DeepSeek V3.1", "huggingface.co/deepseek-ai/DeepSeek-V3.1, chat_template",
        ("<｜tool▁call▁begin｜>", "<|tool▁call▁begin|>"), named("", r"<[｜|]tool▁sep[｜|]>\s*"),
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a.txt"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>"),
    Template("DeepSeek V3.2 and V4", _SGLANG + "deepseekv32_detector.py, deepseekv4_format.py",
        ("<｜DSML｜invoke name=",), tagged,
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n<｜DSML｜parameter name="path" string="true">'
        "a.txt</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"),
    Template("Step 3", _VLLM + "step3_tool_parser.py", ("<steptml:invoke name=",), tagged,
        '<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="read_file">'
        '<steptml:parameter name="path">a.txt</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
        "<｜tool_calls_end｜>"),
    Template("Kimi K2", "huggingface.co/moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md",
        ("<|tool_call_begin|>",),
        named("", r"(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*"),
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
        '{"path": "a.txt"}<|tool_call_end|><|tool_calls_section_end|>'),
    Template("Kimi K3", _SGLANG + "kimik3_format.py", ("<|open|>call tool=",), in_xtml,
        '<|open|>tools<|sep|><|open|>call tool="read_file" index="0"<|sep|><|open|>argument key="path" type="string"'
        "<|sep|>a.txt<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"),
    Template("gpt-oss, GPT", "developers.openai.com/cookbook/articles/openai-harmony",
        ("<|channel|>commentary to=functions.", "<|channel|>analysis to=functions."),
        named("", r"[^{\n]{0,80}\s*"),
        '<|start|>assistant<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a.txt"}'
        "<|call|>"),
    Template("gpt-oss, GPT, tokens left out", "raullenchai/Rapid-MLX#480; NousResearch/hermes-agent#84231",
        ("commentary to=functions.", "to=functions."), named("", r"[^{\n]{0,80}\s*"),
        'commentary to=functions.read_file json{"path": "a.txt"}', at_line_start=True),
    Template("Llama 3.1 and later", "llama.com/docs/model-cards-and-prompt-formats/llama3_1",
        ("<|python_tag|>",), in_json, '<|python_tag|>{"name": "read_file", "parameters": {"path": "a.txt"}}'),
    Template("Llama 3.1, tools of the user", "llama.com/docs/model-cards-and-prompt-formats/llama3_1",
        ("<function=",), tagged, '<function=read_file>{"path": "a.txt"}</function>'),
    Template("Llama 3, Qwen2.5-Coder, xLAM", _VLLM + "llama_tool_parser.py, xlam_tool_parser.py; jundot/omlx#2565",
        ("{", "["), whole_object, '{"name": "read_file", "parameters": {"path": "a.txt"}}', alone=True),
    Template("Llama 3.2 and 4, ToolACE", _VLLM + "pythonic_tool_parser.py", ("[",), in_python,
        '[read_file(path="a.txt")]', alone=True),
    Template("Llama 4", _VLLM + "llama4_pythonic_tool_parser.py", ("<|python_start|>", "<|python_tag|>"), in_python,
        '<|python_start|>[read_file(path="a.txt")]<|python_end|>'),
    Template("Mistral to v7", "docs.mistral.ai/guides/tokenization", ("[TOOL_CALLS]",), in_json,
        f"[TOOL_CALLS][{_JSON}]"),
    Template("Mistral from v11", _VLLM + "mistral_tool_parser.py", ("[TOOL_CALLS]",),
        named("", r"(?:\[CALL_ID\]\w*)?\s*(?:\[ARGS\])?\s*"), '[TOOL_CALLS]read_file[ARGS]{"path": "a.txt"}'),
    Template("Gemma 2 and 3, Gemini", "ai.google.dev/gemma/docs/capabilities/function-calling",
        ("```tool_code", "```tool_call"), in_python,
        '```tool_code\nprint(default_api.read_file(path="a.txt"))\n```', at_line_start=True),
    Template("Gemma 2 and 3, in JSON", "ai.google.dev/gemma/docs/capabilities/function-calling",
        ("```tool_code", "```tool_calls", "```tool_call"), in_json, f"```tool_call\n{_JSON}\n```", at_line_start=True),
    Template("FunctionGemma", "ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices",
        ("<start_function_call>",), in_braces,
        "<start_function_call>call:read_file{path:<escape>a.txt<escape>}<end_function_call>"),
    Template("Gemma 4", _SGLANG + "gemma4_detector.py", ("<|tool_call>",), in_braces,
        '<|tool_call>call:read_file{path:<|"|>a.txt<|"|>}<tool_call|>'),
    Template("Granite 3, Phi-4-mini", _VLLM + "granite_tool_parser.py; huggingface.co/microsoft/Phi-4-mini-instruct",
        ("<|tool_call|>",), in_json, f"<|tool_call|>[{_JSON}]<|/tool_call|>"),
    Template("Granite 20B", _VLLM + "granite_20b_fc_tool_parser.py", ("<function_call>",), in_json,
        f"<function_call> {_JSON}"),
    Template("Phi-4-mini", _VLLM + "phi4mini_tool_parser.py", ("functools",), in_json, f"functools[{_JSON}]",
        at_line_start=True),
    Template("Command A and R7B", _VLLM + "cohere_command_tool_parser.py", ("<|START_ACTION|>",), in_json,
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "read_file", "parameters": {"path": "a.txt"}}\n]'
        "<|END_ACTION|>"),
    Template("Command R", "huggingface.co/CohereLabs/c4ai-command-r-v01, chat_template",
        ("Action: ```json", "Action:```json"), in_json,
        'Action: ```json\n[\n    {"tool_name": "read_file", "parameters": {"path": "a.txt"}}\n]\n```',
        at_line_start=True),
    Template("InternLM 2 and 3", _VLLM + "internlm2_tool_parser.py", ("<|action_start|><|plugin|>",), in_json,
        '<|action_start|><|plugin|>\n{"name": "read_file", "parameters": {"path": "a.txt"}}<|action_end|>'),
    Template("Seed-OSS", _VLLM + "seed_oss_tool_parser.py", ("<seed:tool_call>",), tagged,
        "<seed:tool_call>\n<function=read_file>\n<parameter=path>a.txt</parameter>\n</function>\n</seed:tool_call>"),
    Template("Nemotron", _VLLM + "nemotron_json_tool_parser.py", ("<TOOLCALL>",), in_json,
        f"<TOOLCALL>[{_JSON}]</TOOLCALL>"),
    Template("OLMo 3", _VLLM + "olmo3_tool_parser.py", ("<function_calls>",), in_python,
        '<function_calls>\nread_file(path="a.txt")\n</function_calls>'),
    Template("LFM 2", _VLLM + "lfm2_tool_parser.py", ("<|tool_call_start|>",), in_python,
        '<|tool_call_start|>[read_file(path="a.txt")]<|tool_call_end|>'),
    Template("Apertus", _VLLM + "apertus_tool_parser.py", ("<|tools_prefix|>",), by_name,
        '<|tools_prefix|>[{"read_file": {"path": "a.txt"}}]<|tools_suffix|>'),
    Template("GigaChat 3", _VLLM + "gigachat3_tool_parser.py", ("function call<|role_sep|>",), in_json,
        f"function call<|role_sep|>\n{_JSON}", at_line_start=True),
)  # fmt: skip

NOISE = "]<]minimax[>["
"""A token that MiniMax M3 writes before each tag."""


@dataclass(frozen=True)
class ThoughtMarks:
    """Marks around the thoughts that begin a reply. Any of `closes` ends them."""

    family: str
    opens: str
    closes: Sequence[str]


THOUGHTS = (
    ThoughtMarks("DeepSeek, Qwen 3, GLM, MiniMax, Nemotron and most others", "<think>", ("</think>",)),
    ThoughtMarks("MiniMax M3, Claude before 3.7", "<thinking>", ("</thinking>",)),
    ThoughtMarks("EXAONE, Gemma", "<thought>", ("</thought>",)),
    ThoughtMarks("Seed-OSS", "<seed:think>", ("</seed:think>",)),
    ThoughtMarks("Magistral", "[THINK]", ("[/THINK]",)),
    ThoughtMarks("Command A", "<|START_THINKING|>", ("<|END_THINKING|>",)),
    ThoughtMarks("gpt-oss", "<|channel|>analysis<|message|>", ("<|end|>", "<|start|>assistant")),
    ThoughtMarks("Gemma 4", "<|channel>thought", ("<channel|>",)),
    ThoughtMarks("Apertus", "<|inner_prefix|>", ("<|inner_suffix|>",)),
    ThoughtMarks("Kimi K3", "<|open|>think<|sep|>", ("<|close|>think<|sep|>",)),
    ThoughtMarks("Kimi k1.5", "◁think▷", ("◁/think▷",)),
)
"""The marks are those of vllm/reasoning/ and of the models' chat templates."""

LONE_CLOSES = ("</think>", "</thinking>", "</seed:think>", "[/THINK]", "<|END_THINKING|>", "<channel|>", "◁/think▷")
"""Marks that end thoughts whose opening mark the template put into the prompt (DeepSeek-R1), or the server took out."""

ANSWER_OPENS = (
    *("<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>", "<|START_RESPONSE|>"),
    *("<|open|>response<|sep|>", "<response>", "<answer>"),
)
"""Marks between thoughts and answer, which nobody needs to see. The last two are of ERNIE and Hunyuan."""
ANSWER_CLOSES = (
    *("<|return|>", "<|end|>", "<|END_RESPONSE|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    *("</response>", "</answer>"),
)
"""The marks that end it, left out where an opening one was."""
