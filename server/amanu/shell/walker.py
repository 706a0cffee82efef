"""Walk the syntax tree of a line in the order bash runs it, and judge each command with the state at that point.

Every kind of node is handled by one method; a node of another kind raises `Unclear`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from amanu.core.command import Command
from amanu.shell.conditions import flattened, runs_nothing
from amanu.shell.effects import Assignment, CommandCall, LineAnalysis, judge
from amanu.shell.here_documents import here_document, lost_dash
from amanu.shell.redirections import redirection
from amanu.shell.shell_builtins import BUILTINS, assignment, check_subscripts
from amanu.shell.state import State
from amanu.shell.syntax import Unclear, blank, no_gap, parse, refused, text, unclear
from amanu.shell.variables import harmless
from amanu.shell.words import NAME, WORDS, Field, WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

_RESERVED_TEXT = "if then else elif fi for while until do done case esac in function select time coproc { } ! [[ ]]"
_RESERVED = frozenset(_RESERVED_TEXT.split())
_ASSIGNMENT = re.compile(rf"{NAME}(\[.*\])?\+?=")
_PATTERN = re.compile(r"[\w*?./:@%+=,-]*")  # of a `case`
_SEPARATORS = (";", "\n", ";;")
_MOST_LOOPS = 4  # nested
_MOST_VALUES = 10  # words of a `for` that are looked at one by one


class Walk:
    """The walk over one line, or over one script inside it."""

    def __init__(self, source: bytes, analysis: LineAnalysis, depth: int = 0) -> None:
        self._source = source
        self._analysis = analysis
        self._depth = depth
        self._loops = 0
        self._lost_dashes: set[int] = set()
        """Ids of commands whose last word is a `-` that is missing from the tree."""
        self.argv: tuple[str, ...] | None = None
        """Program and arguments of the last command, when it consists of plain words only."""

    def program(self, root: "Node", state: State) -> None:
        blank(self._source, 0, root.start_byte, lines=True)
        blank(self._source, root.end_byte, len(self._source), lines=True)
        if root.has_error:
            self._analysis.unclear("It could not be parsed as a shell command.")
            self._salvage(root, state)
            return
        self._sequence(root, root.children, state)

    def _statement(self, node: "Node", state: State) -> State:
        """Walk a statement. Updates `state` to what holds after it in any case; returns what holds if it succeeds."""
        self._analysis.budget.check()
        method = self._METHODS.get(node.type)
        if method is None:
            raise unclear(node)
        return method(self, node, state) or state

    def _sequence(self, node: "Node", children: "Sequence[Node]", state: State) -> State:
        """Walk statements one after the other. One that raises `Unclear` does not hide the others."""
        ok = state
        position = children[0].start_byte if children else 0
        for index, child in enumerate(children):
            blank(self._source, position, child.start_byte, lines=True)
            position = child.end_byte
            following = children[index + 1].type if index + 1 < len(children) else None
            if child.type in _SEPARATORS:
                continue
            if child.type == "&":
                continue
            if child.type == "comment":
                self._comment(child)
                continue
            try:
                if following == "&":
                    self._statement(child, state.copy())
                    ok = state
                else:
                    ok = self._statement(child, state)
            except Unclear as error:
                self._analysis.unclear(str(error))
                self._salvage(child, state)
                state.forget()
                ok = state
        return ok

    def _salvage(self, node: "Node", state: State) -> None:
        """Judge the commands inside a statement that raised `Unclear`, so that deny rules still apply to them."""
        todo = [node]
        while todo:
            descendant = todo.pop()
            self._analysis.budget.check()
            todo += reversed(descendant.children)
            if descendant.type == "command" and not descendant.has_error:
                try:
                    self._command(descendant, state.copy())
                except Unclear:
                    continue

    def _list(self, node: "Node", state: State) -> State:
        first, operator, right = self._parts(node, 3)
        ok = self._statement(first, state)
        right_state = (ok if text(operator) == "&&" else state).copy()
        right_ok = self._statement(right, right_state).copy()
        if text(operator) == "||":
            right_ok.merge(ok)
        elif text(operator) != "&&":
            raise unclear(node)
        state.merge(right_state)
        return right_ok

    def _pipeline(self, node: "Node", state: State) -> None:
        self._check_gaps(node, lines=True)
        for child in node.children:
            if child.type not in ("|", "|&"):
                self._statement(child, state.copy())

    def _negated(self, node: "Node", state: State) -> None:
        bang, inner = self._parts(node, 2)
        blank(self._source, bang.end_byte, inner.start_byte, lines=False, needed=True)
        self._statement(inner, state)

    def _redirected(self, node: "Node", state: State) -> State | None:
        body = [child for child in node.children if not child.type.endswith("_redirect")]
        if len(body) > 1 or (body and node.children[0].id != body[0].id):
            raise unclear(node)
        dashed, document = lost_dash(node, self._source)
        if dashed is not None:
            self._lost_dashes.add(dashed.id)
        self._check_gaps(node, lines=False, skipped=document)
        for redirect in node.children[len(body) :]:
            self._redirect(redirect, state)
        return self._statement(body[0], state) if body else None

    def _redirect(self, node: "Node", state: State) -> None:
        reader = self._reader(state)
        match node.type:
            case "file_redirect":
                command = redirection(node, self._source, reader, state)
                if command is not None:
                    self._analysis.commands.append(command)
            case "herestring_redirect":
                operator, word = self._parts(node, 2)
                blank(self._source, operator.end_byte, word.start_byte, lines=False)
                reader.value(word)
            case "heredoc_redirect":
                for trailing in here_document(node, self._source, reader):
                    if trailing.type == "file_redirect":
                        self._redirect(trailing, state)
                    else:
                        self._statement(trailing, state.copy())
                        if trailing.type != "pipeline":
                            state.forget()
            case _:
                raise unclear(node)

    def _group(self, node: "Node", state: State) -> State | None:
        first, *inner, last = node.children
        if (text(first), text(last)) not in (("{", "}"), ("do", "done")):
            raise unclear(node)
        self._check_gaps(node, lines=True)
        return self._sequence(node, inner, state)

    def _subshell(self, node: "Node", state: State) -> None:
        first, *inner, last = node.children
        if (text(first), text(last)) != ("(", ")"):
            raise unclear(node)
        self._check_gaps(node, lines=True)
        self._sequence(node, inner, state.copy())

    def _if(self, node: "Node", state: State) -> None:
        self._check_gaps(node, lines=True)
        children = node.children[1:]
        then = next((index for index, child in enumerate(children) if child.type == "then"), None)
        if then is None:
            raise unclear(node)
        branches = [self._sequence(node, children[:then], state).copy()]
        body = [child for child in children[then + 1 :] if child.type not in ("elif_clause", "else_clause", "fi")]
        self._sequence(node, body, branches[0])
        for child in children:
            if child.type == "elif_clause":
                branches.append(state.copy())
                self._if(child, branches[-1])
            elif child.type == "else_clause":
                branches.append(state.copy())
                self._check_gaps(child, lines=True)
                self._sequence(child, child.children[1:], branches[-1])
        for branch in branches:
            state.merge(branch)

    def _while(self, node: "Node", state: State) -> None:
        self._check_gaps(node, lines=True)
        *condition, body = node.children[1:]

        def once(loop_state: State) -> None:
            ok = self._sequence(node, condition, loop_state)
            body_state = ok.copy()
            self._group(body, body_state)
            loop_state.merge(body_state)

        self._loop(once, state)

    def _for(self, node: "Node", state: State) -> None:
        self._check_gaps(node, lines=True)
        keyword, variable, *parts = node.children
        body = parts.pop()
        if text(keyword) != "for" or variable.type != "variable_name":
            raise unclear(node)
        word_nodes = [part for part in parts if part.type in WORDS]
        if any(part.type not in ("in", *_SEPARATORS) for part in parts if part not in word_nodes):
            raise unclear(node)
        values: list[str | None] = [field.value for word in word_nodes for field in self._reader(state).fields(word)]
        if not word_nodes or len(values) > _MOST_VALUES or None in values or self._loops > 1:
            values = [None]
        name = text(variable)

        def once(loop_state: State) -> None:
            for value in values:
                self._set(name, value, text(variable), loop_state)
                self._group(body, loop_state)

        self._loop(once, state)

    def _loop(self, once: Callable[[State], None], state: State) -> None:
        """Walk a loop's body, with the state each run leaves for the next, until the state no longer changes."""
        if self._loops >= _MOST_LOOPS:
            raise Unclear("Loops are nested too deeply.")
        self._loops += 1
        try:
            for _ in range(3):
                mark = len(self._analysis.commands)
                body_state = state.copy()
                once(body_state)
                previous = state.copy()
                state.merge(body_state)
                if state == previous:
                    return
                del self._analysis.commands[mark:]
            raise Unclear("What the loop changes could not be determined.")
        finally:
            self._loops -= 1

    def _case(self, node: "Node", state: State) -> None:
        self._check_gaps(node, lines=True)
        _, word, *items = node.children
        self._reader(state).value(word)
        branches: list[State] = []
        for item in items:
            if item.type != "case_item":
                if text(item) not in ("in", "esac", "\n", ";"):
                    raise unclear(item)
                continue
            self._check_gaps(item, lines=True)
            closing = next((index for index, child in enumerate(item.children) if child.type == ")"), None)
            if closing is None:
                raise unclear(item)
            for pattern in item.children[:closing]:
                if pattern.type in WORDS and not re.search(r"[*?\[]", text(pattern)):
                    self._reader(state).value(pattern)
                elif pattern.type not in ("|", "(") and not _PATTERN.fullmatch(text(pattern)):
                    raise unclear(pattern)
            branches.append(state.copy())
            self._sequence(item, item.children[closing + 1 :], branches[-1])
        for branch in branches:
            state.merge(branch)

    def _test(self, node: "Node", state: State) -> None:
        argv = flattened(node, self._source, self._reader(state))
        if argv[0].raw == "[":
            self._judge(CommandCall(argv, text(node), depth=self._depth), state)
            return
        values = tuple(word.value for word in argv)
        if runs_nothing(argv):
            command = Command(text(node), values, "none", "Only compares values or checks whether a file exists.")
        else:
            command = Command(text(node), values, "some", "This comparison can run a command held in a variable.")
        self._analysis.commands.append(command)

    def _assignments(self, node: "Node", state: State) -> None:
        self._check_gaps(node, lines=False)
        for child in node.children:
            self._assignment(child, state)

    def _assignment(self, node: "Node", state: State) -> None:
        name, value = self._split_assignment(node, state)
        self._set(name, value, text(node), state)

    def _set(self, name: str, value: str | None, written: str, state: State) -> None:
        effect = assignment(name, value, state)
        if effect is not None:
            word = f"{name}={value}" if value is not None else None
            self._analysis.commands.append(Command(written, (word,), effect.effect, effect.why))

    def _split_assignment(self, node: "Node", state: State) -> tuple[str, str | None]:
        """The variable and value of an assignment; None when the value is not known."""
        if node.type != "variable_assignment":
            raise unclear(node)
        no_gap(node)
        target, operator, *value = node.children
        name = re.fullmatch(rf"({NAME})(?:\[[0-9]+\])?", text(target))
        if not name or len(value) > 1 or text(operator) not in ("=", "+="):
            raise unclear(node)
        if not value:
            return name[1], "" if text(operator) == "=" and text(target) == name[1] else None
        reader = self._reader(state)
        if value[0].type == "array":
            self._check_gaps(value[0], lines=True)
            for element in value[0].children[1:-1]:
                if element.type == "variable_assignment" or element.type not in (*WORDS, "\n", "comment"):
                    raise unclear(node)
                if element.type in WORDS:
                    reader.fields(element)
            return name[1], None
        value_text = reader.value(value[0])
        return name[1], value_text if text(operator) == "=" and text(target) == name[1] else None

    def _declaration(self, node: "Node", state: State) -> None:
        self._check_gaps(node, lines=False)
        first, *operands = node.children
        argv: list[str | None] = [text(first)]
        fine = text(first) == "export" and bool(operands)
        for operand in operands:
            if operand.type == "variable_assignment":
                name, value = self._split_assignment(operand, state)
                argv.append(None if value is None else f"{name}={value}")
                fine = fine and harmless(name, value)
                state.variables[name] = value
            else:
                argv += [field.value for field in self._reader(state).fields(operand)]
                fine = False
        if fine:
            why = "Sets variables that only change how output looks."
            self._analysis.commands.append(Command(text(node), tuple(argv), "none", why))
            return
        check_subscripts(text(first), argv[1:])
        state.forget()
        why = f"{text(first)} changes what later commands do."
        self._analysis.commands.append(Command(text(node), tuple(argv), "some", why))

    def _command(self, node: "Node", state: State) -> None:
        assignments: list[Assignment] = []
        argv: list[Field] = []
        reader = self._reader(state)
        plain = True
        last: Node | None = None
        for child in node.children:
            if last is not None:
                blank(
                    self._source,
                    last.end_byte,
                    child.start_byte,
                    lines=False,
                    needed=not last.type.endswith("_redirect") and not child.type.endswith("_redirect"),
                )
            last = child
            if child.type == "variable_assignment" and not argv:
                plain = False
                name, value = self._split_assignment(child, state)
                if not harmless(name, value):
                    assignments.append((name, value))
            elif child.type == "command_name" and len(child.children) == 1:
                argv += reader.fields(child.children[0])
                if _ASSIGNMENT.match(text(child)):
                    raise unclear(node)
            elif child.type in WORDS:
                argv += reader.fields(child)
            elif child.type in ("file_redirect", "herestring_redirect"):
                plain = False
                self._redirect(child, state)
            else:
                raise unclear(node)
        whole = text(node)
        if node.id in self._lost_dashes:
            argv.append(Field("-", raw="-"))
            whole += " -"
        call = CommandCall(tuple(argv), whole, assignments=tuple(assignments), depth=self._depth)
        self._judge_command(call, node, state, plain)

    def _judge_command(self, call: CommandCall, node: "Node", state: State, plain: bool) -> None:
        argv = call.argv
        if not argv:
            raise unclear(node)
        if argv[0].raw == "time" and not call.assignments and not _after_a_pipe(node):
            argv = argv[1:]
            while argv and argv[0].raw in ("-p", "--"):
                argv = argv[1:]
            if not argv:
                return
            if _ASSIGNMENT.match(argv[0].raw):
                raise unclear(node)
            plain = False
        if argv[0].raw in _RESERVED:
            raise unclear(node)
        name = argv[0].value
        self.argv = None
        if plain and name and name not in BUILTINS and all(word.plain for word in argv):
            identity = self._analysis.identify(name, state)
            values = tuple(word.value or "" for word in argv[1:])
            self.argv = (identity.program, *values) if identity.trusted and identity.program else None
        self._judge(replace(call, argv=argv), state)

    def _judge(self, call: CommandCall, state: State) -> None:
        judge(call, state, self._analysis, self._script)

    def _script(self, line: str, state: State, depth: int) -> None:
        """Walk a text as a line of its own (`bash -c`, `eval`), and judge its commands too."""
        why = refused(line)
        if why is not None:
            self._analysis.unclear(why)
            return
        source = line.encode()
        Walk(source, self._analysis, depth).program(parse(source, self._analysis.budget), state)

    def _substitution(self, node: "Node", state: State) -> None:
        """Walk `$(…)`, backquotes, `<(…)` or `>(…)`, whose commands run in a subshell."""
        first, *inner, last = node.children
        raw = text(node).lstrip(" \t\n")
        if first.type == "`" and (last.type != "`" or "`" in raw[1:-1] or "\\" in raw):
            raise unclear(node)
        if text(first).lstrip(" \t\n") not in ("$(", "`", "<(", ">("):
            raise unclear(node)
        self._check_gaps(node, lines=True)
        within = state.copy()
        if len(inner) == 1 and inner[0].type == "file_redirect":
            self._redirect(inner[0], within)
            return
        if first.type == "`" and any(child.type == "comment" for child in inner):
            raise unclear(node)
        self._sequence(node, inner, within)

    def _comment(self, node: "Node") -> None:
        preceding = self._source[: node.start_byte][-1:]
        if preceding.strip(b" \t\n;&|()") or not text(node).startswith("#") or "\n" in text(node):
            raise unclear(node)

    def _reader(self, state: State) -> WordReader:
        return WordReader(self._source, state, lambda node: self._substitution(node, state), self._analysis.budget)

    def _parts(self, node: "Node", count: int) -> "list[Node]":
        children = [child for child in node.children if child.type not in ("comment", "\n")]
        if len(children) != count:
            raise unclear(node)
        position = children[0].end_byte
        for child in node.children[1:]:
            blank(self._source, position, child.start_byte, lines=True)
            position = child.end_byte
        return children

    def _check_gaps(self, node: "Node", *, lines: bool, skipped: "Node | None" = None) -> None:
        """Check the text between a node's children. The gap before `skipped` has been checked already."""
        position = node.start_byte
        for child in node.children:
            if skipped is None or child.id != skipped.id:
                blank(self._source, position, child.start_byte, lines=lines)
            position = child.end_byte
        blank(self._source, position, node.end_byte, lines=lines)

    _METHODS: "dict[str, Callable[[Walk, Node, State], State | None]]" = {
        "list": _list,
        "pipeline": _pipeline,
        "negated_command": _negated,
        "redirected_statement": _redirected,
        "compound_statement": _group,
        "subshell": _subshell,
        "if_statement": _if,
        "while_statement": _while,
        "for_statement": _for,
        "case_statement": _case,
        "test_command": _test,
        "variable_assignment": _assignment,
        "variable_assignments": _assignments,
        "declaration_command": _declaration,
        "command": _command,
    }


def _after_a_pipe(node: "Node") -> bool:
    """Whether a node follows a pipe, where `time` is not a shell keyword but a program."""
    parent = node.parent
    while parent is not None and parent.type == "redirected_statement":
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "pipeline" and parent.children[0].id != node.id
