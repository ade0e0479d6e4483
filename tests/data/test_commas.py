"""What a comma means in a text whose cells stand between semicolons."""

import pytest

import gramian as gm
from gramian.data.tables.header import leaves_commas

AREAS = [f"{40 + 1.7 * k:.1f}" for k in range(30)]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("a;b\n1,5;2\n", True),
        ("a;b\n1,234;2\n", True),
        ("a;b\n1,234;175.1\n", False),
        ("a;b\n0.125;1,234\r\n", False),
        ("a;b\n13.05.2023;1,5\n", True),
        ("a;b\n1.234;1,5\n", True),  # a thousand with a point
    ],
)
def test_decimal_points_leave_commas_to_thousands(head, expected):
    assert leaves_commas(head, ";") is expected
    assert not leaves_commas(head.replace(";", "|"), "|")


@pytest.mark.parametrize(("points", "unit"), [(True, 1000.0), (False, 1.0)])
def test_prices_are_read_with_the_other_columns(points, unit, tmp_path):
    """312,041 is three hundred thousand beside 175.1, and three hundred beside 175,1."""
    lines = [
        f"{area if points else area.replace('.', ',')};{300 + k},{100 + k:03d}"
        for k, area in enumerate(AREAS)
    ]
    path = tmp_path / "houses.csv"
    path.write_text("\n".join(["area;price", *lines]) + "\n")
    gp = gm.GPRegressor(gm.RBF(1.0), optimize=False).fit(path, "price")
    assert gp.y_train_[0] == pytest.approx(300.1 * unit)
