"""Tables that say to have more cells than there is memory for are refused before a cell is copied."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.data.labels import Labels
from gramian.errors import InputError, MemoryLimitError

FAR = np.broadcast_to(0.0, (10**12, 2))
SMALL = "500MB"


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(20, 2))
    return X, np.sin(X[:, 0])


@pytest.fixture(scope="module")
def fitted(data):
    return gm.GPRegressor("rbf", optimize=False, noise=0.1, memory_limit=SMALL).fit(*data)


@pytest.mark.parametrize(
    "X",
    [FAR, np.broadcast_to(np.float32(0), (10**9, 2)), np.broadcast_to(np.array(1, object), (10**9, 2))],
    ids=["float64", "float32", "object"],
)
def test_views_that_repeat_a_cell(data, fitted, X):
    told = r"X as [\d,]+ numbers needs .*memory_limit='500MB'.*or a memory map"
    for ask in (fitted.predict, fitted.predict_gradient, fitted.predict_quantiles, fitted.components):
        with pytest.raises(MemoryLimitError, match=told):
            ask(X)
    for estimator in (gm.GPRegressor(), gm.GPClassifier(), gm.DeepGPRegressor(), gm.GPLatent(1)):
        with pytest.raises(MemoryLimitError, match=told):
            estimator.set_params(memory_limit=SMALL).fit(X, data[1])
    with pytest.raises(MemoryLimitError, match=told):
        gm.compare(X, data[1], memory_limit=SMALL)


def test_frames_that_repeat_a_cell(data, fitted):
    class Frame:
        columns, dtypes, shape = ["a", "b"], [float, float], (10**12, 2)

        def __len__(self):
            return 10**12

        def __getitem__(self, name):
            return FAR[:, 0]

    named = gm.GPRegressor(memory_limit=SMALL)
    for ask in (fitted.predict, lambda X: named.fit(X, data[1])):
        with pytest.raises(MemoryLimitError, match=r"X as 2,000,.* numbers"):
            ask(Frame())


def test_what_stands_beside_the_rows(data, fitted):
    X, y = data
    gp = gm.GPRegressor("rbf", memory_limit=SMALL)
    with pytest.raises(InputError, match=r"inconsistent numbers of samples: \[20, 1000000000000\]"):
        gp.fit(X, FAR[:, 0])
    with pytest.raises(MemoryLimitError, match=r"y as 200,000,000,000 numbers"):
        gp.fit(X, np.broadcast_to(0.0, (20, 10**10)))
    with pytest.raises(InputError, match=r"noise_var has shape \(1000000000000,\)"):
        gp.fit(X, y, noise_var=FAR[:, 0])
    with pytest.raises(MemoryLimitError, match="rows as"):
        fitted.forget(range(10**12))
    with pytest.raises(MemoryLimitError, match="The relevance of 2 columns"):
        fitted.relevance(10**10)


@pytest.mark.parametrize("count", [10**12, 10**30])
def test_ranges(data, fitted, count):
    X, _ = data
    for ask in (gm.GPRegressor().fit, gm.GPClassifier().fit, fitted.log_density, fitted.score):
        with pytest.raises(MemoryLimitError, match=r"y as [\d,]+ numbers"):
            ask(X, range(count))
    with pytest.raises(MemoryLimitError, match=r"y as"):
        gm.GPForecaster().fit(np.arange(20), range(count))


def test_a_long_text_does_not_make_all_texts_long():
    """NumPy gives each text of an array the room of the longest: 20 GB of these."""
    labels = ["x" * 10**6] + ["a", "b"] * 2500
    read = Labels.read(labels, len(labels))
    assert [len(label) for label in read.classes] == [1, 1, 10**6]
    with pytest.raises(InputError, match=r"Column 'x0' has the text 'xx.*in row 0, where a number belongs"):
        gm.GPRegressor().fit([[label] for label in labels], np.zeros(len(labels)))


def test_rows_that_are_there_are_predicted_under_any_limit(fitted):
    """Nothing is copied of them."""
    gp = gm.GPRegressor("rbf", optimize=False, memory_limit=1000).set_params(memory_limit=10**6)
    gp.fit([[0.0], [1.0]], [0.0, 1.0])
    assert len(gp.set_params(memory_limit=1000).predict(np.zeros((1000, 1)))) == 1000
