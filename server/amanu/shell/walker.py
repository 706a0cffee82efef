"""Through the syntax tree of a line, in the order bash runs it: each command is judged where it stands.

Every kind of node is understood by a method here, or not at all.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from amanu.core.command import Command
from amanu.shell import pipes
from amanu.shell.conditions import flattened, runs_nothing
from amanu.shell.effects import Assignment, CommandCall, LineAnalysis, judge
from amanu.shell.here_documents import here_document, lost_dash
from amanu.shell.redirections import redirection
from amanu.shell.shell_builtins import BUILTINS, assignment
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
_ENDS = (";", "\n", ";;")
_LOOPS = 4  # in each other
_EACH = 10  # words of a `for` that are looked at one by one


class Walk:
    """One line, or one script in it."""

    def __init__(self, source: bytes, judging: LineAnalysis, depth: int = 0) -> None:
        self._source = source
        self._judging = judging
        self._depth = depth
        self._loops = 0
        self._handed: str | None = None
        """Of the command that comes next: see `CommandCall.handed`."""
        self._dashes: set[int] = set()
        """Commands whose last word is a `-` that is not in the tree."""
        self.argv: tuple[str, ...] | None = None
        """Of the last command: program and words, when there is nothing in it but words."""

    def program(self, root: "Node", state: State, *, piped: bool) -> None:
        blank(self._source, 0, root.start_byte, lines=True)
        blank(self._source, root.end_byte, len(self._source), lines=True)
        if root.has_error:
            self._judging.unclear("It is no shell command that is understood.")
            self._salvage(root, state)
            return
        self._sequence(root, root.children, state, piped)

    def _statement(self, node: "Node", state: State, piped: bool) -> State:
        """Walk a statement. `state` becomes what holds after it in any case; returned is what holds if it succeeds."""
        self._judging.budget.check()
        method = self._METHODS.get(node.type)
        if method is None:
            raise unclear(node)
        return method(self, node, state, piped) or state

    def _sequence(self, node: "Node", children: "Sequence[Node]", state: State, piped: bool) -> State:
        """Statements one after the other. What is not understood does not hide the others."""
        ok = state
        position = children[0].start_byte if children else 0
        for index, child in enumerate(children):
            blank(self._source, position, child.start_byte, lines=True)
            position = child.end_byte
            following = children[index + 1].type if index + 1 < len(children) else None
            if child.type in _ENDS:
                continue
            if child.type == "&":
                continue
            if child.type == "comment":
                self._comment(child)
                continue
            try:
                if following == "&":
                    self._statement(child, state.copy(), piped)
                    ok = state
                else:
                    ok = self._statement(child, state, piped)
            except Unclear as error:
                self._judging.unclear(str(error))
                self._salvage(child, state)
                state.forget()
                ok = state
        return ok

    def _salvage(self, node: "Node", state: State) -> None:
        """Commands in what is not understood: they count for what is denied."""
        todo = [node]
        while todo:
            each = todo.pop()
            self._judging.budget.check()
            todo += reversed(each.children)
            if each.type == "command" and not each.has_error:
                try:
                    self._command(each, state.copy(), False)
                except Unclear:
                    continue

    def _list(self, node: "Node", state: State, piped: bool) -> State:
        left, operator, right = self._parts(node, 3)
        ok = self._statement(left, state, piped)
        after = (ok if text(operator) == "&&" else state).copy()
        right_ok = self._statement(right, after, piped).copy()
        if text(operator) == "||":
            right_ok.merge(ok)
        elif text(operator) != "&&":
            raise unclear(node)
        state.merge(after)
        return right_ok

    def _pipeline(self, node: "Node", state: State, piped: bool) -> None:
        self._gaps(node, lines=True)
        printed = None
        redirected = pipes.redirected_around(node)
        for child in node.children:
            if child.type in ("|", "|&"):
                piped = True
                printed = printed if child.type == "|" else None
                continue
            mark = len(self._judging.commands)
            self._handed = printed if pipes.only_words(child) and not redirected else None
            self._statement(child, state.copy(), piped)
            printed = pipes.printed(child, self._judging.commands[mark:], printed, state, self._judging)

    def _negated(self, node: "Node", state: State, piped: bool) -> None:
        bang, inner = self._parts(node, 2)
        blank(self._source, bang.end_byte, inner.start_byte, lines=False, needed=True)
        self._statement(inner, state, piped)

    def _redirected(self, node: "Node", state: State, piped: bool) -> State | None:
        body = [each for each in node.children if not each.type.endswith("_redirect")]
        if len(body) > 1 or (body and node.children[0].id != body[0].id):
            raise unclear(node)
        dashed, document = lost_dash(node, self._source)
        if dashed is not None:
            self._dashes.add(dashed.id)
        self._gaps(node, lines=False, but=document)
        for each in node.children[len(body) :]:
            piped |= self._redirect(each, state)
        return self._statement(body[0], state, piped) if body else None

    def _redirect(self, node: "Node", state: State) -> bool:
        """Of one redirection, whether it gives input."""
        words = self._reader(state)
        match node.type:
            case "file_redirect":
                command = redirection(node, self._source, words, state)
                if command is not None:
                    self._judging.commands.append(command)
                return "<" in text(node)
            case "herestring_redirect":
                operator, word = self._parts(node, 2)
                blank(self._source, operator.end_byte, word.start_byte, lines=False)
                words.value(word)
                return True
            case "heredoc_redirect":
                for each in here_document(node, self._source, words):
                    if each.type == "file_redirect":
                        self._redirect(each, state)
                    else:
                        self._statement(each, state.copy(), True)
                        if each.type != "pipeline":
                            state.forget()
                return True
            case _:
                raise unclear(node)

    def _group(self, node: "Node", state: State, piped: bool) -> State | None:
        first, *inner, last = node.children
        if (text(first), text(last)) not in (("{", "}"), ("do", "done")):
            raise unclear(node)
        self._gaps(node, lines=True)
        return self._sequence(node, inner, state, piped)

    def _subshell(self, node: "Node", state: State, piped: bool) -> None:
        first, *inner, last = node.children
        if (text(first), text(last)) != ("(", ")"):
            raise unclear(node)
        self._gaps(node, lines=True)
        self._sequence(node, inner, state.copy(), piped)

    def _if(self, node: "Node", state: State, piped: bool) -> None:
        self._gaps(node, lines=True)
        children = node.children[1:]
        then = next((index for index, each in enumerate(children) if each.type == "then"), None)
        if then is None:
            raise unclear(node)
        branches = [self._sequence(node, children[:then], state, piped).copy()]
        rest = [each for each in children[then + 1 :] if each.type not in ("elif_clause", "else_clause", "fi")]
        self._sequence(node, rest, branches[0], piped)
        for each in children:
            if each.type == "elif_clause":
                branches.append(state.copy())
                self._if(each, branches[-1], piped)
            elif each.type == "else_clause":
                branches.append(state.copy())
                self._gaps(each, lines=True)
                self._sequence(each, each.children[1:], branches[-1], piped)
        for each in branches:
            state.merge(each)

    def _while(self, node: "Node", state: State, piped: bool) -> None:
        self._gaps(node, lines=True)
        *condition, body = node.children[1:]

        def once(now: State) -> None:
            ok = self._sequence(node, condition, now, piped)
            after = ok.copy()
            self._group(body, after, piped)
            now.merge(after)

        self._loop(once, state)

    def _for(self, node: "Node", state: State, piped: bool) -> None:
        self._gaps(node, lines=True)
        keyword, variable, *rest = node.children
        body = rest.pop()
        if text(keyword) != "for" or variable.type != "variable_name":
            raise unclear(node)
        words = [each for each in rest if each.type in WORDS]
        if any(each.type not in ("in", *_ENDS) for each in rest if each not in words):
            raise unclear(node)
        values: list[str | None] = [each.value for word in words for each in self._reader(state).fields(word)]
        if not words or len(values) > _EACH or None in values or self._loops > 1:
            values = [None]
        name = text(variable)

        def once(now: State) -> None:
            for value in values:
                self._set(name, value, text(variable), now)
                self._group(body, now, piped)

        self._loop(once, state)

    def _loop(self, once: Callable[[State], None], state: State) -> None:
        """A body that may run again, with what it left behind."""
        if self._loops >= _LOOPS:
            raise Unclear("Too many loops are in each other.")
        self._loops += 1
        try:
            for _ in range(3):
                mark = len(self._judging.commands)
                after = state.copy()
                once(after)
                before = state.copy()
                state.merge(after)
                if state == before:
                    return
                del self._judging.commands[mark:]
            raise Unclear("What changes in the loop is not understood.")
        finally:
            self._loops -= 1

    def _case(self, node: "Node", state: State, piped: bool) -> None:
        self._gaps(node, lines=True)
        _, word, *rest = node.children
        self._reader(state).value(word)
        branches: list[State] = []
        for item in rest:
            if item.type != "case_item":
                if text(item) not in ("in", "esac", "\n", ";"):
                    raise unclear(item)
                continue
            self._gaps(item, lines=True)
            closing = next((index for index, each in enumerate(item.children) if each.type == ")"), None)
            if closing is None:
                raise unclear(item)
            for pattern in item.children[:closing]:
                if pattern.type in WORDS and not re.search(r"[*?\[]", text(pattern)):
                    self._reader(state).value(pattern)
                elif pattern.type not in ("|", "(") and not _PATTERN.fullmatch(text(pattern)):
                    raise unclear(pattern)
            branches.append(state.copy())
            self._sequence(item, item.children[closing + 1 :], branches[-1], piped)
        for each in branches:
            state.merge(each)

    def _test(self, node: "Node", state: State, piped: bool) -> None:
        words = flattened(node, self._source, self._reader(state))
        if words[0].raw == "[":
            self._judge(CommandCall(words, text(node), piped, depth=self._depth), state)
            return
        values = tuple(each.value for each in words)
        if runs_nothing(words):
            command = Command(text(node), values, "none", "Only compares, or looks whether a file is there.")
        else:
            command = Command(text(node), values, "some", "This comparison can run what is in a name.")
        self._judging.commands.append(command)

    def _assignments(self, node: "Node", state: State, piped: bool) -> None:
        self._gaps(node, lines=False)
        for each in node.children:
            self._assignment(each, state, piped)

    def _assignment(self, node: "Node", state: State, piped: bool) -> None:
        name, value = self._named(node, state)
        self._set(name, value, text(node), state)

    def _set(self, name: str, value: str | None, written: str, state: State) -> None:
        done = assignment(name, value, state)
        if done is not None:
            word = f"{name}={value}" if value is not None else None
            self._judging.commands.append(Command(written, (word,), done.effect, done.why))

    def _named(self, node: "Node", state: State) -> tuple[str, str | None]:
        """An assignment → its variable and value; None: not known."""
        if node.type != "variable_assignment":
            raise unclear(node)
        no_gap(node)
        target, operator, *value = node.children
        name = re.fullmatch(rf"({NAME})(?:\[[0-9]+\])?", text(target))
        if not name or len(value) > 1 or text(operator) not in ("=", "+="):
            raise unclear(node)
        if not value:
            return name[1], "" if text(operator) == "=" and text(target) == name[1] else None
        words = self._reader(state)
        if value[0].type == "array":
            self._gaps(value[0], lines=True)
            for each in value[0].children[1:-1]:
                if each.type == "variable_assignment" or each.type not in (*WORDS, "\n", "comment"):
                    raise unclear(node)
                if each.type in WORDS:
                    words.fields(each)
            return name[1], None
        known = words.value(value[0])
        return name[1], known if text(operator) == "=" and text(target) == name[1] else None

    def _declaration(self, node: "Node", state: State, piped: bool) -> None:
        self._gaps(node, lines=False)
        first, *rest = node.children
        words: list[str | None] = [text(first)]
        fine = text(first) == "export" and bool(rest)
        for each in rest:
            if each.type == "variable_assignment":
                name, value = self._named(each, state)
                words.append(None if value is None else f"{name}={value}")
                fine = fine and harmless(name, value)
                state.variables[name] = value
            else:
                words += [field.value for field in self._reader(state).fields(each)]
                fine = False
        if fine:
            why = "Sets variables that only change how output looks."
            self._judging.commands.append(Command(text(node), tuple(words), "none", why))
            return
        state.forget()
        why = f"{text(first)} changes what later commands do."
        self._judging.commands.append(Command(text(node), tuple(words), "some", why))

    def _command(self, node: "Node", state: State, piped: bool) -> None:
        handed, self._handed = self._handed, None  # not for what is in its substitutions
        before: list[Assignment] = []
        words: list[Field] = []
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
            if child.type == "variable_assignment" and not words:
                plain = False
                name, value = self._named(child, state)
                if not harmless(name, value):
                    before.append((name, value))
            elif child.type == "command_name" and len(child.children) == 1:
                words += reader.fields(child.children[0])
                if _ASSIGNMENT.match(text(child)):
                    raise unclear(node)
            elif child.type in WORDS:
                words += reader.fields(child)
            elif child.type in ("file_redirect", "herestring_redirect"):
                plain = False
                piped |= self._redirect(child, state)
            else:
                raise unclear(node)
        whole = text(node)
        if node.id in self._dashes:
            words.append(Field("-", raw="-"))
            whole += " -"
        call = CommandCall(tuple(words), whole, piped, before=tuple(before), depth=self._depth, handed=handed)
        self._called(call, node, state, plain)

    def _called(self, call: CommandCall, node: "Node", state: State, plain: bool) -> None:
        words = call.words
        if not words:
            raise unclear(node)
        if words[0].raw == "time" and not call.before and not pipes.after_a_pipe(node):
            words = words[1:]
            while words and words[0].raw in ("-p", "--"):
                words = words[1:]
            if not words:
                return
            if _ASSIGNMENT.match(words[0].raw):
                raise unclear(node)
            plain = False
        if words[0].raw in _RESERVED:
            raise unclear(node)
        name = words[0].value
        self.argv = None
        if plain and name and name not in BUILTINS and all(each.plain for each in words):
            found = self._judging.identify(name, state)
            values = tuple(each.value or "" for each in words[1:])
            self.argv = (found.program, *values) if found.known and found.program else None
        self._judge(replace(call, words=words), state)

    def _judge(self, call: CommandCall, state: State) -> None:
        judge(call, state, self._judging, self._script)

    def _script(self, line: str, state: State, piped: bool, depth: int) -> None:
        """Read a text as a line of its own, whose commands are found too."""
        why = refused(line)
        if why is not None:
            self._judging.unclear(why)
            return
        source = line.encode()
        Walk(source, self._judging, depth).program(parse(source, self._judging.budget), state, piped=piped)

    def _substitution(self, node: "Node", state: State) -> None:
        """`$(…)`, backquotes, `<(…)`, `>(…)`: its commands run in a shell of their own."""
        first, *inner, last = node.children
        raw = text(node).lstrip(" \t\n")
        if first.type == "`" and (last.type != "`" or "`" in raw[1:-1] or "\\" in raw):
            raise unclear(node)
        if text(first).lstrip(" \t\n") not in ("$(", "`", "<(", ">("):
            raise unclear(node)
        self._gaps(node, lines=True)
        within = state.copy()
        if len(inner) == 1 and inner[0].type == "file_redirect":
            self._redirect(inner[0], within)
            return
        if first.type == "`" and any(each.type == "comment" for each in inner):
            raise unclear(node)
        self._sequence(node, inner, within, text(first) == ">(")

    def _comment(self, node: "Node") -> None:
        before = self._source[: node.start_byte][-1:]
        if before.strip(b" \t\n;&|()") or not text(node).startswith("#") or "\n" in text(node):
            raise unclear(node)

    def _reader(self, state: State) -> WordReader:
        return WordReader(self._source, state, lambda node: self._substitution(node, state), self._judging.budget)

    def _parts(self, node: "Node", count: int) -> "list[Node]":
        children = [each for each in node.children if each.type not in ("comment", "\n")]
        if len(children) != count:
            raise unclear(node)
        position = children[0].end_byte
        for each in node.children[1:]:
            blank(self._source, position, each.start_byte, lines=True)
            position = each.end_byte
        return children

    def _gaps(self, node: "Node", *, lines: bool, but: "Node | None" = None) -> None:
        """`but`: what is before that one is known."""
        position = node.start_byte
        for child in node.children:
            if but is None or child.id != but.id:
                blank(self._source, position, child.start_byte, lines=lines)
            position = child.end_byte
        blank(self._source, position, node.end_byte, lines=lines)

    _METHODS: "dict[str, Callable[[Walk, Node, State, bool], State | None]]" = {
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
