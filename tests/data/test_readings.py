"""Readings: what cells become, decided from all of them."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.data.cells import Cells, cells_of, text_cells
from gramian.data.dates import read_date, read_span
from gramian.data.deciding import Seen
from gramian.data.readings import PLAIN, Categories, Dates, Durations, MisreadError, Numbers, Ordered, YesNo
from gramian.errors import InputError, InputTypeError


def decided(cells: list[str], comma: bool = False, blocks: int = 1):
    seen = Seen()
    for part in np.array_split(np.array(cells, dtype=object), blocks):
        seen.add(text_cells(part.tolist(), comma))
    return seen.reading()


CASES = [
    (["1", "2.5", "1e3"], None, [1, 2.5, 1000]),
    (["1", "NA", "?"], None, [1, np.nan, np.nan]),
    (["$1,234.50", "$2", "-$3"], Numbers(".", ",", ("$",)), [1234.5, 2, -3]),
    (["12 %", "3.5%", "-"], Numbers(".", "", ("%",)), [12, 3.5, np.nan]),
    (["1,5", "2,25"], Numbers(",", "", ()), [1.5, 2.25]),
    (["1.234,5", "2,0", "1.234"], Numbers(",", ".", ()), [1234.5, 2, 1234]),
    (["1,234", "22,000"], Numbers(".", ",", ()), [1234, 22000]),
    (["12,34,567", "1,000"], Numbers(".", ",", ()), [1234567, 1000]),
    (["1.234.567", "1.000"], Numbers(",", ".", ()), [1234567, 1000]),
    (["1 234", "5 678,5"], Numbers(",", " ", ()), [1234, 5678.5]),
    (["1'234.5", "12'000"], Numbers(".", "'", ()), [1234.5, 12000]),
    (["0,123", "1,456"], Numbers(",", "", ()), [0.123, 1.456]),
    (["12 kg", "3 kg", "5"], Numbers(".", "", ("kg",)), [12, 3, 5]),
    (["(1,200)", "300"], Numbers(".", ",", ("()",)), [-1200, 300]),
    (["12 m2", "3.5 m2"], Numbers(".", "", ("m2",)), [12, 3.5]),
    (["7 kg/m3", "1e2"], Numbers(".", "", ("kg/m3",)), [7, 100]),
    (["CHF 5", "CHF 6.5"], Numbers(".", "", ("CHF",)), [5, 6.5]),
    (["true", "False"], YesNo(), [1, 0]),
    (["yes", "NO"], YesNo("no", "yes"), [1, 0]),
    (["02:30", "03:00"], Durations("hours"), [2.5, 3]),
    (["1 days 00:00:00", "9 days 12:00:00"], Durations("days"), [1, 9.5]),
    (["a", "b", "a"], Categories(("a", "b")), [0, 1, 0]),
    (["10-20", "20-30"], Categories(("10-20", "20-30")), [0, 1]),
    (["A1", "A2"], Categories(("A1", "A2")), [0, 1]),
    (["2024-Q1", "2024-Q2"], Dates("2024-01-01T00:00:00", "days"), [0, 91]),
    (["1958-03-29", "2001-12-29"], Dates("1958-03-29T00:00:00", "years"), [0, 15981 / 365.2425]),
    (["3/4/2024", "3/14/2024"], Dates("2024-03-04T00:00:00", "days", "mdy"), [0, 10]),
    (["2024-W01", "2024W03", "2024-W03-2"], Dates("2024-01-01T00:00:00", "days"), [0, 14, 15]),
    (["2024 W01", "2024 W03"], Dates("2024-01-01T00:00:00", "days"), [0, 14]),
    (["2024 Jan", "2024 Feb", "2025 Jan"], Dates("2024-01-01T00:00:00", "days"), [0, 31, 366]),
    (["Q1 2024", "q2/2024", "2024 Q3"], Dates("2024-01-01T00:00:00", "days"), [0, 91, 182]),
    (["01/2024", "03-2024"], Dates("2024-01-01T00:00:00", "days"), [0, 60]),
    (["Jan-24", "Mar '24", "Mar-2024"], Dates("2024-01-01T00:00:00", "days"), [0, 60, 60]),
    (["1. März 2024", "3 mars 2024", "5 de marzo de 2024"], Dates("2024-03-01T00:00:00", "days"), [0, 2, 4]),
    (["2024-01-01", "unknown", "2024-01-09"], Dates("2024-01-01T00:00:00", "days"), [0, np.nan, 8]),
    (["12-3456", "11-2222"], Categories(("11-2222", "12-3456")), [1, 0]),
    (["10:30 PM", "12:15 a.m."], Durations("hours"), [22.5, 0.25]),
    (["1h 30m", "45 min", "2h"], Durations("hours"), [1.5, 0.75, 2]),
    (["PT1H30M", "P1DT2H", "-PT30M"], Durations("hours"), [1.5, 26, -0.5]),
    (["5 m", "7 m"], Numbers(".", "", ("m",)), [5, 7]),
    (["P3M", "P4M"], Categories(("P3M", "P4M")), [0, 1]),
    (["Y", "n", "y"], YesNo("n", "y"), [1, 0, 1]),
    (["on", "OFF"], YesNo("off", "on"), [1, 0]),
    (["F", "F"], Categories(("F",)), [0, 0]),
    (["yes", "no", "unknown"], Categories(("no", "unknown", "yes")), [2, 0, 1]),
    (["1.5", "unknown", "None"], Numbers(), [1.5, np.nan, np.nan]),
    (["none", "brick", "none"], Categories(("brick", "none")), [1, 0, 1]),
    (["none", "none"], Categories(("none",)), [0, 0]),
    (["1.5", "#DIV/0!", "n.a.", "\\N"], None, [1.5, np.nan, np.nan, np.nan]),
    (["1.234,56-", "7,5"], Numbers(",", ".", ()), [-1234.56, 7.5]),
    (["PAT-0001", "PAT-0002"], Categories(("PAT-0001", "PAT-0002")), [0, 1]),
    (["3/4/2024", "14/3/2024"], Dates("2024-03-14T00:00:00", "days", "dmy"), [20, 0]),
    (["Rs. 12,34,567", "Rs.1,000/-"], Numbers(".", ",", ("Rs.",)), [1234567, 1000]),
    (["Fr. 1'250.–", "Fr. 80.-", "Fr. 3.50"], Numbers(".", "'", ("Fr.",)), [1250, 80, 3.5]),
    (["250:-", "80:-"], Numbers(), [250, 80]),
    (["20.5 ° C", "-3 ° C"], Numbers(".", "", ("° C",)), [20.5, -3]),
    (["1,200 sq. ft.", "950 sq. ft."], Numbers(".", ",", ("sq. ft.",)), [1200, 950]),
    (["%12.5", "%3"], Numbers(".", "", ("%",)), [12.5, 3]),
    (["~12.5", "3", "4"], Numbers(".", "", ("~",)), [12.5, 3, 4]),
    (["$1.5M", "$0.25M"], Numbers(".", "", ("$", "M")), [1.5, 0.25]),
    ([" $ -   ", " $ (5.50)", " $ 1,200.00 "], Numbers(".", ",", ("$", "()")), [0, -5.5, 1200]),
    (["- €", "1.200,50 €"], Numbers(",", ".", ("€",)), [0, 1200.5]),
    (['="1.5"', '="2"'], None, [1.5, 2]),
    (["1.5", "#WERT!", "#NV", "#¡VALOR!", "1.#IND"], None, [1.5] + 4 * [np.nan]),
    (["1.5", "k.A.", "*", ".B", "(D)", "n/d"], Numbers(), [1.5] + 5 * [np.nan]),
    (["1.5", "..", "…", "–", ":"], None, [1.5] + 4 * [np.nan]),
    (["2024-01-01", "0000-00-00", "2024-01-09"], Dates("2024-01-01T00:00:00", "days"), [0, np.nan, 8]),
    (["2008/09", "2009/10", "2011/12"], Dates("2008-01-01T00:00:00", "days", "fy"), [0, 366, 1096]),
    (["FY2008-09", "2009-2010", "FY12"], Dates("2008-01-01T00:00:00", "days", "fy"), [0, 366, 1461]),
    (["1:03.9", "0:59.5"], Durations("hours"), [63.9 / 3600, 59.5 / 3600]),
    (["5:07 min", "12:30min"], Durations("hours"), [307 / 3600, 750 / 3600]),
    (["5:30 h", "12:15h"], Durations("hours"), [5.5, 12.25]),
    (["1h05", "2 h 30"], Durations("hours"), [1 + 5 / 60, 2.5]),
    (["Q1-1", "Q2-7"], Categories(("Q1-1", "Q2-7")), [0, 1]),
    (["2024-001", "2024-117"], Categories(("2024-001", "2024-117")), [0, 1]),
    (["3 bed flat", "2 bed house"], Categories(("2 bed house", "3 bed flat")), [1, 0]),
]


@pytest.mark.parametrize(("cells", "reading", "numbers"), CASES, ids=[", ".join(c[0]) for c in CASES])
def test_what_cells_become(cells, reading, numbers):
    assert decided(cells) == reading
    np.testing.assert_allclose((reading or PLAIN).numbers(text_cells(cells)), numbers, rtol=1e-12)
    assert decided(cells, blocks=2) == reading  # block by block as all at once


# of one day each in all these forms, the last ones of a time as well
DAYS = """
4 maj 2022|4 maja 2022|4 мая 2022|04MAY2022|4-May-22|04/May/2022|04/mai/2022|2022-May-04
2022年5月4日|2022. 5. 4.|04. 05. 2022|4er mai 2022
"""
TIMES = """
20220504T133000|04MAY2022:13:30:00|04/May/2022:13:30:00 +0000|Wed May  4 13:30:00 2022|04.05.2022 13.30 Uhr
4/05/2022 13h30|04.05.2022 - 13:30|4 mai 2022 à 13:30|2022-05-04 14:30 BST|2022-05-04 15:30 MESZ
2022-05-04 09:30 EDT|2022-05-04T15:30:00+02:00[Europe/Paris]|2022-05-04 15:30:00+02
"""
MONTHS = "Mai-22|mai/22|May/2022|May, 2022|2022 May|2022-May|2022M05|2022-M05"
QUARTERS = "2022:Q2|2Q2022|2Q22|Q2-22|Q2 '22|Q2.2022|2. Quartal 2022|T2 2022|FY22 Q2|FY2022-Q2|2º trim. 2022"


def test_a_date_in_many_forms():
    for forms, hours in ((DAYS, 0), (TIMES, 13.5)):
        for form in forms.strip().replace("\n", "|").split("|"):
            assert read_date(form) == datetime.datetime(2022, 5, 4) + datetime.timedelta(hours=hours), form
    assert {read_date(form) for form in MONTHS.split("|")} == {datetime.datetime(2022, 5, 1)}
    assert {read_date(form) for form in QUARTERS.split("|")} == {datetime.datetime(2022, 4, 1)}
    halves = ("2022H2", "H2 2022", "2H22", "2022-S2")
    assert {read_date(form) for form in halves} == {datetime.datetime(2022, 7, 1)}
    weeks = ("KW 18/2022", "2022 week 18", "W18 2022", "2022-W18")
    assert {read_date(form) for form in weeks} == {datetime.datetime(2022, 5, 2)}
    assert read_date("2022-05-03 24:00") == datetime.datetime(2022, 5, 4)
    assert read_date("2022-05-03 24:01") is None


@pytest.mark.parametrize("wrong", ["31.02.2024", "soon", "2024-05"])
def test_what_is_no_date_among_dates_is_a_mistake(wrong):
    cells = [f"{day:02d}.01.2024" for day in range(1, 20)] + [wrong]
    if wrong == "2024-05":  # a month is its first day
        assert decided(cells) == Dates("2024-01-01T00:00:00", "days")
        return
    with pytest.raises(MisreadError, match=f"'{wrong}' is not a date"):
        decided(cells).numbers(text_cells(cells))
    # words among which a few are dates are words
    assert isinstance(decided([*cells[:2], "soon", "late", wrong]), Categories)


def test_points_between_thousands_are_no_decimals():
    """By the numbers below a thousand, which have none, or by the commas of other columns."""
    assert decided(["59.779", "760", "1.205"], comma=True) == Numbers(",", ".", ())
    assert decided(["59,779", "760", "1,205"], comma=True) == Numbers(".", ",", ())
    for cells in (["59.779", "760.5"], ["59.779", "1760"], ["59.779", "0.5"], ["59.779", "1.205"]):
        assert decided(cells, comma=True) is None, cells
    assert decided(["59.779", "760"]) is None  # in a file whose commas separate cells
    seen = Seen(commas=True)
    seen.add(text_cells(["59.779", "1.205"], True))
    assert seen.reading() == Numbers(",", ".", ())


def test_a_number_without_the_letter_of_thousands_is_not_guessed():
    assert decided(["1.2K", "3K"]) == Numbers(".", "", ("K",))
    assert decided(["1.2K", "3K", "950"]) is None


def test_the_cell_that_is_unlike_the_others_is_named():
    cells = ["$5.00", "$7.50", "five", "$9.00"]
    with pytest.raises(MisreadError, match=r"'five' is not a number in \$, as the others are"):
        decided(cells).numbers(text_cells(cells))


def test_a_comma_before_three_digits_is_a_decimal_where_the_file_says_so():
    assert decided(["1,234", "22,000"], comma=True) == Numbers(",", "", ())
    # and a point before three digits is none, unless another cell shows that it is
    assert decided(["119.428 €", "87.595 €"], comma=True) == Numbers(",", ".", ("€",))
    assert decided(["119.428 €", "87.5 €"], comma=True) == Numbers(".", "", ("€",))
    assert decided(["119.428 €", "87.595 €"]) == Numbers(".", "", ("€",))


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["1", "2o", "3"], "'2o' is not a number"),
        (["1.5", "2_000"], "because of its underscore"),
        (["1,5", "2.5"], "because of its comma"),
        (["$5-", "$7"], r"'\$5-' is not a number"),
        (["1.5", "<0.5", "2"], "'<0.5' is a limit, not a number; write the limit itself"),
    ],
)
def test_mistakes_are_no_categories(cells, why):
    assert decided(cells) is None
    with pytest.raises(MisreadError, match=why):
        PLAIN.numbers(text_cells(cells))


@pytest.mark.parametrize("cells", [["$5", "€6"], ["5 kg", "600 g", "7"]])
def test_two_units_are_told(cells):
    with pytest.raises(InputError, match="which are not the same"):
        decided(cells)


def test_days_and_months_that_cannot_be_told_apart():
    with pytest.raises(InputError, match="'3/4/2024' may be a day and a month"):
        decided(["3/4/2024", "5/6/2024"])
    assert decided(["3.4.2024", "5.6.2024"]).order == "dmy"


@given(
    st.lists(st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)), min_size=1),
    st.sampled_from(["%Y-%m-%d", "%d %B %Y", "%d.%m.%Y", "%Y/%m/%d", "%b %d, %Y"]),
)
def test_dates_are_the_days_between_them_in_every_form(dates, form):
    reading = decided([date.strftime(form) for date in dates])
    numbers = reading.numbers(text_cells([date.isoformat() for date in dates]))
    days = {"days": 1.0, "hours": 1 / 24, "years": 365.2425}[reading.unit]
    expected = [(date - min(dates)).days / days for date in dates]
    np.testing.assert_allclose(numbers, expected, rtol=1e-12, atol=1e-12)


def test_text_that_is_no_date_and_no_span():
    for text in ("2024-13-01", "31.02.2024", "May", "Junk 3, 2024", "13:00 PM", "1.2.3.4", "2024"):
        assert read_date(text) is None
    assert read_date("1/2/2024 12:30 am") == datetime.datetime(2024, 2, 1, 0, 30)
    assert read_date("2024-01-01T01:00:00.5+01:00") == datetime.datetime(2024, 1, 1, 0, 0, 0, 500_000)
    for text in ("", "12", "days", "1:2", "1:99"):
        assert read_span(text) is None


def test_another_currency_in_new_rows_is_told_from_that_of_the_fit():
    with pytest.raises(MisreadError, match="'12 USD' is not a number in EUR, as the others are"):
        Numbers(".", "", ("EUR",)).numbers(text_cells(["3 EUR", "12 USD"]))


def test_new_words():
    words = Categories(("a", "b"))
    assert words.numbers(text_cells(["b", "z", "y", "z", ""]))[:4].tolist() == [1.0, 3.0, 2.0, 3.0]
    order = Ordered(("low", "high"))
    np.testing.assert_array_equal(order.numbers(text_cells(["high", "huge"])), [1.0, np.nan])
    with pytest.raises(InputError, match="each once"):
        Ordered(("a", "a"))


def test_readings_take_what_came_as_numbers():
    """A table of another kind may have numbers where the fit had text."""
    cells = Cells(np.array([0.0, 1.0]))
    for reading in (Dates("2024-01-01T00:00:00"), Durations(), YesNo(), Numbers(",", ".", ("$",))):
        assert reading.numbers(cells).tolist() == [0.0, 1.0]
    with pytest.raises(MisreadError, match="is a date or a time, where a number belongs"):
        PLAIN.numbers(Cells(np.array(["2024-01-01"], dtype="M8[us]")))


def test_cells_of_objects():
    assert cells_of([True, False], "x").kind == "b"
    assert cells_of(np.array([True, None], dtype=object), "x").values.tolist()[0] == 1.0
    assert cells_of(np.array([datetime.time(1, 30)], dtype=object), "x").kind == "m"
    assert cells_of(np.array([1.0, 2.0, None], dtype=object), "x").text() == ["1", "2", None]
    with pytest.raises(InputTypeError, match=r"Column 'x', row 1: .*'dict'"):
        cells_of(np.array([1, {}], dtype=object), "x")
