"""Parser states: those that nothing leads to, those that never accept, silent rejection."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.types import BOOL, BitsType, strip_new
from weft.compiler.warnings.kinds import Kind
from weft.compiler.warnings.reporter import WarningReporter

_ACCEPT = "accept"


def check_parsers(program: ast.Program, reporter: WarningReporter) -> None:
    """Warn about all parsers' states."""
    for declaration in program.declarations:
        if isinstance(declaration, ast.ParserDeclaration) and declaration.states is not None:
            states = {state.name: state for state in declaration.states}
            if "start" in states:
                _check(declaration, states, reporter)


def targets(state: ast.StateDeclaration) -> list[ast.Name]:
    """The names of the states that a state leads to."""
    if state.transition is None:
        return []
    if isinstance(state.transition, ast.Name):
        return [state.transition]
    return [case.state for case in state.transition.cases]


def _check(
    declaration: ast.ParserDeclaration, states: dict[str, ast.StateDeclaration], reporter: WarningReporter
) -> None:
    next_states = {name: {target.name for target in targets(state)} for name, state in states.items()}
    reached = _closure({"start"}, next_states)
    previous: dict[str, set[str]] = {}
    for name, following in next_states.items():
        for target in following:
            previous.setdefault(target, set()).add(name)
    accepting = _closure({_ACCEPT}, previous)
    if _ACCEPT not in reached:
        reporter.warn(Kind.UNREACHABLE, f"parser '{declaration.name}' never reaches accept", declaration.span)
    for name, state in states.items():
        if name not in reached:
            reporter.warn(Kind.UNREACHABLE, f"no transition leads to state '{name}'", state.span)
        elif state.transition is None:
            reporter.warn(Kind.PARSER_TRANSITION, f"state '{name}' has no transition, so it rejects", state.span)
        elif name not in accepting and _ACCEPT in reached and "reject" not in next_states[name]:
            reporter.warn(Kind.PARSER_TRANSITION, f"no path leads from state '{name}' to accept", state.span)
        if isinstance(state.transition, ast.Select):
            _check_select(state.transition, reporter)


def _closure(start: set[str], edges: dict[str, set[str]]) -> set[str]:
    reached, pending = set(start), list(start)
    while pending:
        for target in edges.get(pending.pop(), ()):
            if target not in reached:
                reached.add(target)
                pending.append(target)
    return reached


def _check_select(select: ast.Select, reporter: WarningReporter) -> None:
    for index, case in enumerate(select.cases):
        if not isinstance(case.keyset, ast.DefaultExpression):
            continue
        if index + 1 < len(select.cases):
            reporter.warn(Kind.UNREACHABLE, "this case is never reached", select.cases[index + 1].span).note(
                "after this one", case.span
            )
        elif index == 0:
            reporter.warn(Kind.PARSER_TRANSITION, "the transition does not depend on what is selected", select.span)
        return
    if select.cases and {case.state.name for case in select.cases} == {"reject"}:
        reporter.warn(Kind.PARSER_TRANSITION, "every case of this select rejects", select.span)
    elif not _is_complete(select):
        reporter.warn(Kind.PARSER_TRANSITION, "there is no default case: what no case matches is rejected", select.span)


def _is_complete(select: ast.Select) -> bool:
    """Whether the cases list every value of a single key."""
    type_ = select.expressions[0].type if len(select.expressions) == 1 else None
    plain = strip_new(type_) if type_ is not None else None
    if plain is BOOL:
        value_count = 2
    elif isinstance(plain, BitsType):
        value_count = 1 << plain.width
    else:
        return False
    values = {case.keyset.value for case in select.cases if isinstance(case.keyset.value, int)}
    return len(values) == value_count
