"""Kernels as text: what is printed is what is read, nothing is run, and what is not a kernel is refused at
its place."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gramian.errors import KernelTextError, ParameterError
from gramian.kernels import (
    RBF,
    Categorical,
    Constant,
    Linear,
    Matern52,
    Periodic,
    Polynomial,
    SpectralMixture,
    exp,
    map_inputs,
    poly,
    text,
    warp,
)
from gramian.kernels.text import MAX_DEPTH, MAX_LENGTH, parse_kernel
from gramian.params import LogNormal, Uniform, fixed, param
from tests.kernels.strategies import composed


def refusal(source: str) -> str:
    """The message with which a text is refused: what is wrong, then the text and a caret beneath it."""
    with pytest.raises(KernelTextError) as caught:
        parse_kernel(source)
    return str(caught.value)


def place(message: str) -> str:
    """What stands over the caret, to the end of the text shown."""
    _, shown, caret = message.split("\n")
    assert re.fullmatch(r" *\^", caret)
    return shown[caret.index("^") :]


# What is printed is what is read


@settings(max_examples=150, deadline=None)
@given(composed())
def test_reading_inverts_printing(kernel):
    assert parse_kernel(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        ("1.0 * Matern52(1.0) + Linear()", 1.0 * Matern52(1.0) + Linear()),
        (
            "2 * RBF([0.5, 1.0]).on('temp', 'pressure') * Categorical().on('site')",
            2 * RBF([0.5, 1.0]).on("temp", "pressure") * Categorical().on("site"),
        ),
        ("exp(RBF(fixed(0.5)))", exp(RBF(fixed(0.5)))),
        (
            "RBF(param(0.5, prior=LogNormal(0, 1), bounds=(0.1, 10))) ** 2",
            RBF(param(0.5, prior=LogNormal(0, 1), bounds=(0.1, 10))) ** 2,
        ),
        ("poly(Linear(), [1, 2])", poly(Linear(), [1, 2])),
        ("RBF.from_bandwidth(2.1)", RBF.from_bandwidth(2.1)),
        ("RBF.from_bandwidth(fixed(2.1)).on(0)", RBF.from_bandwidth(fixed(2.1)).on(0)),
        ("Periodic(period=7)", Periodic(period=7)),
        ("Polynomial(3, offset=fixed(0))", Polynomial(3, offset=fixed(0))),
        ("Linear([[2, 1], [1, 2]])", Linear([[2, 1], [1, 2]])),
        ("SpectralMixture([1], [-0.5], scales=[.1])", SpectralMixture([1.0], [-0.5], [0.1])),
        (
            "RBF(param([1, 2], prior=LogNormal(mu=(0, 1), sigma=2)))",
            RBF(param([1, 2], prior=LogNormal((0, 1), 2))),
        ),
        (
            "RBF(param(1, prior=Uniform(-1, 2e0), bounds=(0, inf)))",
            RBF(param(1, prior=Uniform(-1, 2), bounds=(0, np.inf))),
        ),
        ("RBF(param(1, prior=None, trainable=False))", RBF(fixed(1))),
        ("  RBF ( 1 , )\n +\tLinear( )", RBF() + Linear()),
        ("((RBF()))", RBF()),
        ("2 * 3 * RBF()", 6 * RBF()),
        ("1 + 2 + RBF()", Constant(3) + RBF()),
        ("RBF() * fixed(2)", fixed(2) * RBF()),
        ("(RBF() + Linear()).on(-1, 0)", (RBF() + Linear()).on(-1, 0)),
        (r"""RBF().on('it\'s', "a\x41\u00e9\U0001F600\n\\")""", RBF().on("it's", "aAé😀\n\\")),
    ],
)
def test_texts_people_write(source, kernel):
    assert parse_kernel(source) == kernel
    assert parse_kernel(repr(kernel)) == kernel


def test_every_name_can_be_called():
    """Each kernel, prior and function of the table is reached by its name."""
    for name in text._CALLS:
        argument = {
            "exp": "RBF()",
            "poly": "RBF(), [1]",
            "param": "1",
            "fixed": "1",
            "RBF.from_bandwidth": "1",
            "ConvNet": "2, (4, 4)",
            "ResNet": "2, (4, 4)",
            "Convolutional": "RBF()",
        }.get(name, "")
        call = f"{name}({argument})"
        kinds = dict.fromkeys(text._PRIORS.split(), f"RBF(param(0.5, prior={call}))")
        kinds |= {"param": f"RBF({call})", "fixed": f"RBF({call})"}
        assert parse_kernel(kinds.get(name, call)) is not None


# Refusals


@pytest.mark.parametrize(
    ("source", "message", "at"),
    [
        ("", "There is no kernel here.", ""),
        ("   ", "There is no kernel here.", "   "),
        (
            "2 * Matern53(1.0)",
            "There is nothing called 'Matern53'. Did you mean Matern52? There are RBF, Matern12,",
            "Matern53(1.0)",
        ),
        ("rbf(1)", "There is nothing called 'rbf'. Did you mean RBF?", "rbf(1)"),
        ("RBF.from_bandwith(1)", "Did you mean RBF.from_bandwidth?", "RBF.from_bandwith(1)"),
        ("Linear() + RBF", "RBF needs parentheses: RBF().", "RBF"),
        ("RBF.on(0)", "RBF needs parentheses: RBF().", "RBF.on(0)"),
        ("Linear() + RBF(-1)", "RBF: lengthscale must be positive, but is -1.0.", "RBF(-1)"),
        (
            "RBF('wide')",
            "RBF: lengthscale must be a number or an array of numbers, not 'wide'.",
            "RBF('wide')",
        ),
        ("RBF(RBF())", "RBF: lengthscale: A parameter must be a number", "RBF(RBF())"),
        ("RBF(1, 2)", "RBF: too many positional arguments. It takes lengthscale.", "RBF(1, 2)"),
        (
            "RBF(scale=2)",
            "RBF: got an unexpected keyword argument 'scale'. It takes lengthscale.",
            "RBF(scale=2)",
        ),
        ("Brownian(2)", "Brownian: too many positional arguments. It takes no arguments.", "Brownian(2)"),
        ("RBF(lengthscale=1, lengthscale=2)", "lengthscale is given twice.", "lengthscale=2)"),
        ("Periodic(period=1, 2)", "A value without a name cannot follow one with a name.", "2)"),
        ("RBF(1e999)", "A parameter must be finite, but inf is not.", "RBF(1e999)"),
        ("RBF(1) ** 0.5", "The power of a kernel must be a whole number from 1 on, but is 0.5.", "** 0.5"),
        ("RBF() ** RBF()", "The power of a kernel must be a whole number", "** RBF()"),
        ("RBF() ** 2 ** 2", "Two powers in a row need parentheses", "** 2"),
        ("2 ** 3 * RBF()", "Only a kernel can be raised to a power here, not a number.", "** 3 * RBF()"),
        ("RBF() - Linear()", "'-' is not expected here.", "- Linear()"),
        ("-RBF()", "A minus sign belongs to a number. Kernels cannot be subtracted.", "-RBF()"),
        ("-1 * RBF()", "A kernel can be multiplied with a positive number only, not -1.", "* RBF()"),
        ("RBF() / 2", "Division is not part of the kernel language.", "/ 2"),
        ("RBF() RBF()", "'RBF' is not expected here.", "RBF()"),
        ("RBF(1", "A comma or ) is missing here: the text ends.", ""),
        ("RBF([1, 2)", "A comma or ] is missing here: there is ')'.", ")"),
        ("RBF())", "')' is not expected here.", ")"),
        ("RBF() + ", "The text ends too early: a kernel or a number is missing.", ""),
        ("RBF() + * 2", "'*' is not expected here: a kernel or a number is missing.", "* 2"),
        ("RBF().on", "An opening parenthesis is missing before the end.", ""),
        ("RBF().on()", "needs at least one column.", "on()"),
        ("RBF().on(0.5)", "on(0.5): a column is a name or a whole number.", "on(0.5)"),
        ("RBF().on(column=1)", "on() takes column names in quotes, or numbers", "on(column=1)"),
        ("RBF().on(temp)", "There is nothing called 'temp'.", "temp)"),
        (
            "RBF().diag(0)",
            "There is no 'diag' of a kernel. Only .on(columns) and .named(text) may follow a kernel.",
            "diag(0)",
        ),
        ("RBF('a", "The text that begins with ' here does not end.", "'a"),
        (r"RBF().on('\q')", r"The escape '\\q' in this text is not known.", r"'\q')"),
        ("2.0", "This is a number, not a kernel.", "2.0"),
        ("fixed(2)", "This is a parameter, not a kernel.", "fixed(2)"),
        ("LogNormal()", "This is LogNormal, not a kernel.", "LogNormal()"),
        ("(RBF(), RBF())", "This is a tuple, not a kernel.", "(RBF(), RBF())"),
        ("()", "These parentheses are empty.", "()"),
        (
            "fixed(2) * 3 * RBF()",
            "Here stands a parameter * a number, but one side must be a kernel.",
            "* 3 * RBF()",
        ),
        (
            "[1] * 100 * RBF()",
            "Here stands a list * a number, but one side must be a kernel.",
            "* 100 * RBF()",
        ),
        ("RBF() * [1]", "A kernel can be multiplied with a kernel or a positive number, not [1].", "* [1]"),
        ("warp(RBF(), f)", "warp holds a Python function, which text cannot carry.", "warp(RBF(), f)"),
        (
            "1 + map_inputs(RBF(), f)",
            "map_inputs holds a Python function, which text cannot carry.",
            "map_inputs(RBF(), f)",
        ),
        ("RBF(param(1, bounds=3))", "bounds=3 are not a pair of numbers (low, high).", "param(1, bounds=3))"),
        ("RBF(param(1, prior=3))", "prior=3 is not a prior.", "param(1, prior=3))"),
        (
            "RBF(param(1, prior=Gamma('a')))",
            "Gamma: shape is 'a', but must be a finite positive number.",
            "Gamma('a')))",
        ),
        ("RBF(True)", "must be a number or an array of numbers, not True.", "RBF(True)"),
        ("RBF() # comment", "The character '#' is not part of the kernel language.", "# comment"),
    ],
)
def test_what_is_no_kernel_is_refused_at_its_place(source, message, at):
    told = refusal(source)
    assert message in told
    assert place(told) == at


def test_a_long_text_is_shown_around_the_place():
    source = " + ".join(["RBF()"] * 30 + ["Oops()"] + ["RBF()"] * 30)
    told = refusal(source)
    assert place(told).startswith("Oops() + RBF()")
    assert len(told.split("\n")[1]) < 140


def test_kernels_of_python_functions_say_so():
    for kernel in (warp(RBF(), abs), map_inputs(RBF(), np.sin)):
        assert "Python function" in refusal(repr(kernel))


def test_constructors_keep_their_message():
    with pytest.raises(ParameterError) as direct:
        Categorical(2.0)
    assert str(direct.value) in refusal("Categorical(2.0)")


# Hostile texts


@pytest.mark.parametrize(
    "source",
    [
        "__import__('os').system('true')",
        "().__class__.__bases__[0].__subclasses__()",
        "RBF().__init__.__globals__",
        "RBF.__mro__",
        "Kernel()",
        "eval('1')",
        "RBF(lambda: 1)",
        "RBF(**{})",
        "RBF(*[1])",
        "[RBF() for x in (1,)]",
        "f'{1}'",
        "RBF() if 1 else RBF()",
        "RBF();RBF()",
        "RBF(x:=1)",
        "RBF()\0",
        "\ud800RBF()",
        "RBF().on('\ud800",
        "９ * RBF()",
    ],
)
def test_nothing_is_run(source):
    refusal(source).encode("utf-8")  # the message can be shown whatever the text held


@pytest.mark.parametrize(
    "source",
    [
        "(" * 9000,
        "[" * 9000,
        "-" * 9000,
        "exp(" * 2400,
        "RBF(" * 2400,
        "RBF(" + "[" * 4000 + "1" + "]" * 4000 + ")",
        "RBF()" + ".on(0)" * 1600,
        "RBF()" + " * fixed(2)" * 800,
        "RBF()" + " ** 2" * 1900,
        "1" * 9000 + " * RBF()",
        "9" * 290 + " * " + ("9" * 290 + " * ") * 30 + "RBF()",
        "RBF(" + "1," * 4000 + ")",
        "'" * 9999,
        "RBF() " * 1600,
        "." * 9999,
        "+" * 9999,
        "RBF()" * (MAX_LENGTH // 5 + 1),
    ],
    ids=lambda source: source[:12] + "...",
)
def test_huge_texts_are_refused_quickly(source):
    assert len(refusal(source)) < 1500


def test_long_and_deep_within_the_limits():
    many = parse_kernel(" + ".join(["RBF()"] * 1000))
    assert len(many.terms) == 1000
    deep = parse_kernel("exp(" * (MAX_DEPTH - 2) + "RBF()" + ")" * (MAX_DEPTH - 2))
    assert parse_kernel(repr(deep)) == deep


def test_not_even_text():
    with pytest.raises(KernelTextError, match="not from RBF"):
        parse_kernel(RBF())


WORDS = "RBF ( ) [ ] , + * ** . on = 1 2.5 - 'a' fixed param poly exp prior Gamma inf None"
pieces = st.sampled_from([*WORDS.split(), " "])


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(pieces, max_size=14).map("".join)))
@example("RBF(param(1,prior=Gamma()))")
def test_any_text_is_a_kernel_or_a_kernel_text_error(source):
    try:
        kernel = parse_kernel(source)
    except KernelTextError:
        return
    assert parse_kernel(repr(kernel)) == kernel
