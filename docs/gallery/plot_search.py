"""
How a search went
=================

Each evaluation of the search for the parameters: the height that it raises, and the parameters on their way.
A fit with inducing points begins with exact inference, of all rows or a part of them, and goes on from there.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramian as gm

rng = np.random.default_rng(0)
rows = pd.DataFrame({"temperature": rng.uniform(5, 30, 120), "rain": rng.uniform(0, 100, 120)})
growth = np.sin(rows["temperature"] / 4) + rows["rain"] / 100 + 0.1 * rng.normal(size=120)

gp = gm.GPRegressor("matern52", method=gm.Sparse(15), random_state=0).fit(rows, growth)

fig, axes = plt.subplots(2, 3, figsize=(11, 5.6))
gp.plot_search(ax=axes)
plt.show()
