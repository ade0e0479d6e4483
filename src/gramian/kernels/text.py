r"""Kernels as text: what `repr(kernel)` prints, read back without running any of it.

    sum      = product { "+" product }
    product  = power { "*" power }
    power    = postfix [ "**" whole number ]
    postfix  = atom { ".on(" columns ")" | ".named(" text ")" }
    atom     = number | "-" number | text in quotes | constant | call | "[" values "]" | "(" values ")"
    call     = name "(" [ values ] [ name "=" sum ... ] ")"

A call is one of this library's own kernels, priors, `exp`, `poly`, `param` or `fixed`, looked up in one
table; no name reaches anything else. The parser is written out (rather than built on `ast`) because Python's
own may end the process on hostile nesting, and counts columns in bytes. `warp` and `map_inputs` hold Python
functions, which are code, and are therefore refused.
"""

from __future__ import annotations

import difflib
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from gramian import kernels, params
from gramian.errors import KernelTextError
from gramian.kernels import RBF, Kernel
from gramian.params import Parameter

MAX_LENGTH = 10_000  # characters; a kernel of a hundred terms has about 3,000
MAX_DEPTH = 40  # of parentheses, and of kernels within kernels: both far below what recursion bears

_KERNELS = (
    "RBF Matern12 Matern32 Matern52 RationalQuadratic Periodic Cosine SpectralMixture Linear Polynomial"
    " ArcCosine NeuralNetwork DenseNet ConvNet ResNet Convolutional Constant Brownian IntegratedBrownian"
    " Categorical Coregion exp poly"
)
_PRIORS = "LogNormal Normal HalfNormal Gamma InverseGamma Uniform"
_CALLS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(kernels, name) for name in _KERNELS.split()},
    **{name: getattr(params, name) for name in ("param", "fixed", *_PRIORS.split())},
    "RBF.from_bandwidth": RBF.from_bandwidth,
}
_CONSTANTS: Mapping[str, Any] = {"True": True, "False": False, "None": None, "inf": math.inf}
_FUNCTIONS = ("warp", "map_inputs")  # known, and not readable

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[^\W\d]\w*)
    |(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<sign>\*\*|[-+*.,=()\[\]])
    |(?P<unknown>.)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class _Token(NamedTuple):
    kind: str  # number, name, text, sign, end
    text: str
    at: int


def parse_kernel(text: str) -> Kernel:
    """The kernel that `text` writes: `parse_kernel("1.0 * Matern52(1.0) + Linear()")`. The inverse of
    `repr(kernel)`.

    Raises KernelTextError, with a caret under the place, for whatever is not a kernel of this library without
    Python functions.
    """
    if not isinstance(text, str):
        raise KernelTextError(
            f'A kernel is read from text such as "1.0 * RBF(0.5)", not from {type(text).__name__}.'
        )
    if len(text) > MAX_LENGTH:
        raise KernelTextError(
            f"The text of this kernel has {len(text)} characters; at most {MAX_LENGTH} are read. Build it in"
            " Python instead."
        )
    return _Reader(text).kernel()


class _Reader:
    """One pass over one text. Each method reads one rule of the grammar and leaves the position behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.position = 0
        self.depth = 0

    def kernel(self) -> Kernel:
        if self.token.kind == "end":
            self._fail("There is no kernel here. Write one, such as 1.0 * RBF(0.5).", 0)
        value = self._sum()
        if self.token.kind != "end":
            self._fail(
                f"{self._seen()} is not expected here. Kernels are joined by +, * and **, and arguments by"
                " commas within parentheses."
            )
        if not isinstance(value, Kernel):
            self._fail(
                f"This is {_kind(value)}, not a kernel. Write one, such as RBF(0.5), or 2.0 * RBF(0.5).", 0
            )
        level: list[Any] = [value]
        for _ in range(MAX_DEPTH):
            level = [child for tree in level for _, child in tree.branches()]
        if level:
            self._fail(f"Kernels lie more than {MAX_DEPTH} deep within each other here.", 0)
        return value

    # The rules. ---------------------------------------------------------------------------------------------

    def _sum(self) -> Any:
        return self._joined("+", operator.add, self._product)

    def _product(self) -> Any:
        return self._joined("*", operator.mul, self._power)

    def _joined(self, sign: str, operation: Callable[[Any, Any], Any], part: Callable[[], Any]) -> Any:
        total = part()
        while taken := self._take(sign):
            at, right = taken.at, part()
            kinds = _kind(total), _kind(right)
            if "a kernel" not in kinds and kinds != ("a number", "a number"):
                cure = "With several factors, use parentheses: fixed(2.0) * (3.0 * RBF())."
                self._fail(
                    f"Here stands {kinds[0]} {sign} {kinds[1]}, but one side must be a kernel. {cure}", at
                )
            total = self._made(at, operation, total, right)
        return total

    def _power(self) -> Any:
        base = self._postfix()
        taken = self._take("**")
        if not taken:
            return base
        at, exponent = taken.at, self._postfix()
        if not isinstance(base, Kernel):
            what = f"Only a kernel can be raised to a power here, not {_kind(base)}."
            self._fail(f"{what} Write the number itself.", at)
        if self.token.text == "**":
            self._fail("Two powers in a row need parentheses: (RBF() ** 2) ** 3.")
        return self._made(at, operator.pow, base, exponent)

    def _postfix(self) -> Any:
        value = self._atom()
        while self._take("."):
            name = self.token
            if name.text not in ("on", "named") or not isinstance(value, Kernel):
                self._fail(
                    f"There is no {self._seen()} of {_kind(value)}. Only .on(columns) and .named(text) may"
                    " follow a kernel."
                )
            self.position += 1
            given, by_name = self._arguments()
            if by_name or (name.text == "named" and len(given) != 1):
                takes = "column names in quotes, or numbers: .on('age', 2)"
                takes = takes if name.text == "on" else "one name in quotes: .named('trend')"
                self._fail(f"{name.text}() takes {takes}.", name.at)
            value = self._made(name.at, value.on if name.text == "on" else value.named, *given)
        return value

    def _atom(self) -> Any:
        token = self.token
        sign = -1 if self._take("-") else 1
        if sign < 0 and self.token.kind != "number" and self.token.text != "inf":
            self._fail("A minus sign belongs to a number. Kernels cannot be subtracted.", token.at)
        token = self.token
        if token.kind == "number":
            self.position += 1
            whole = token.text.isdecimal() and len(token.text) < 300
            return sign * (int(token.text) if whole else float(token.text))
        if token.kind == "text":
            self.position += 1
            return _ESCAPE.sub(lambda match: self._unescaped(match, token.at), token.text[1:-1])
        if token.kind == "name":
            value = self._name()
            return -value if sign < 0 else value
        if token.text == "[":
            return self._values("]")[0]
        if token.text == "(":
            values, comma = self._values(")")
            if not values and not comma:
                self._fail("These parentheses are empty.", token.at)
            return tuple(values) if comma else values[0]
        what = "The text ends too early" if token.kind == "end" else f"{self._seen()} is not expected here"
        return self._fail(f"{what}: a kernel or a number is missing.")

    def _name(self) -> Any:
        token = self.token
        self.position += 1
        name = token.text
        if name in _CONSTANTS and self.token.text != "(":
            return _CONSTANTS[name]
        if name in _FUNCTIONS:
            cure = f"Build this kernel in Python: {name}(kernel, function)."
            self._fail(f"{name} holds a Python function, which text cannot carry. {cure}", token.at)
        has_methods = any(known.startswith(f"{name}.") for known in _CALLS)
        if (
            has_methods
            and self.token.text == "."
            and self.tokens[self.position + 1].text not in ("on", "named")
        ):
            name = f"{name}.{self.tokens[self.position + 1].text}"
            self.position += 2
        if name not in _CALLS:
            alike = [known for known in _CALLS if known.lower() == name.lower()]
            near = difflib.get_close_matches(name, _CALLS, 1, 0.5) or alike
            hint = f"Did you mean {near[0]}? " if near else ""
            self._fail(f"There is nothing called {name!r}. {hint}There are {', '.join(_CALLS)}.", token.at)
        if self.token.text != "(":
            self._fail(f"{name} needs parentheses: {name}().", token.at)
        positional, named = self._arguments()
        signature = inspect.signature(_CALLS[name])
        try:
            signature.bind(*positional, **named)
        except TypeError as error:
            takes = ", ".join(signature.parameters) or "no arguments"
            self._fail(f"{name}: {error}. It takes {takes}.", token.at)
        return self._made(token.at, _CALLS[name], *positional, **named)

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """What stands in the parentheses of a call."""
        if self.token.text != "(":
            self._fail(f"An opening parenthesis is missing before {self._seen()}.")
        positional: list[Any] = []
        named: dict[str, Any] = {}
        self._enter()
        while not self._take(")"):
            token, after = self.token, self.tokens[min(self.position + 1, len(self.tokens) - 1)]
            if token.kind == "name" and after.text == "=":
                if token.text in named:
                    self._fail(f"{token.text} is given twice.", token.at)
                self.position += 2
                named[token.text] = self._sum()
            elif named:
                self._fail("A value without a name cannot follow one with a name.", token.at)
            else:
                positional.append(self._sum())
            self._next_or(")")
        self.depth -= 1
        return positional, named

    def _values(self, closing: str) -> tuple[list[Any], bool]:
        """What stands in brackets, and whether there was a comma."""
        values: list[Any] = []
        comma = False
        self._enter()
        while not self._take(closing):
            values.append(self._sum())
            comma |= self._next_or(closing)
        self.depth -= 1
        return values, comma

    # Tokens. ------------------------------------------------------------------------------------------------

    def _split(self) -> Iterator[_Token]:
        for match in _TOKEN.finditer(self.text):
            if match.lastgroup == "unknown":
                self._fail(_unreadable(match.group()), match.start())
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match.group(), match.start())
        yield _Token("end", "", len(self.text))

    @property
    def token(self) -> _Token:
        return self.tokens[min(self.position, len(self.tokens) - 1)]

    def _take(self, sign: str) -> _Token | None:
        """The next token where it is this sign, and the position behind it."""
        token = self.token
        if token.kind != "sign" or token.text != sign:
            return None
        self.position += 1
        return token

    def _enter(self) -> None:
        """Over an opening bracket, unless brackets lie too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._fail(f"Brackets lie more than {MAX_DEPTH} deep within each other here.")
        self.position += 1

    def _next_or(self, closing: str) -> bool:
        """Whether a comma follows; else the closing bracket must."""
        comma = self._take(",") is not None
        if not comma and self.token.text != closing:
            where = "the text ends" if self.token.kind == "end" else f"there is {self._seen()}"
            self._fail(f"A comma or {closing} is missing here: {where}.")
        return comma

    def _unescaped(self, match: re.Match[str], at: int) -> str:
        code = match[1] or match[2] or match[3]
        if code and int(code, 16) < 0x110000:
            return chr(int(code, 16))
        return _ESCAPED.get(match[4]) or self._fail(f"The escape {match[0]!r} in this text is not known.", at)

    def _seen(self) -> str:
        return "the end" if self.token.kind == "end" else repr(self.token.text)

    # Errors. ------------------------------------------------------------------------------------------------

    def _made(self, at: int, make: Callable[..., Any], *positional: Any, **named: Any) -> Any:
        """make(...), with what it refuses told at its place in the text."""
        try:
            return make(*positional, **named)
        except (TypeError, ValueError, ArithmeticError) as error:
            self._fail(str(error), at)

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.token.at if at is None else at
        start, end = max(0, at - 60), at + 60
        # one line, so that the caret stands under its place
        shown = "".join(c if c.isprintable() else " " for c in self.text[start:end])
        before, after = "..." if start else "", "..." if end < len(self.text) else ""
        raise KernelTextError(
            f"{message}\n    {before}{shown}{after}\n    {' ' * (len(before) + at - start)}^"
        ) from None


def _unreadable(sign: str) -> str:
    if sign in "'\"":
        return f"The text that begins with {sign} here does not end."
    if sign == "/":
        return "Division is not part of the kernel language. Multiply by the number instead: 0.5 * RBF()."
    return f"The character {sign!r} is not part of the kernel language."


def _kind(value: Any) -> str:
    """What a value is, for people."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "a number"
    kinds = {Kernel: "a kernel", Parameter: "a parameter", str: "text", list: "a list", tuple: "a tuple"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), type(value).__name__)
