"""
Is a model any good?
====================

What a report looks at, drawn from rows that the fit has not seen: where y fell in its own predictive
distribution, how many rows intervals hold, what is left over along each column, and which columns matter.
Here all is well: bars are even, the curve follows the diagonal, and no residuals follow a column.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramian as gm

rng = np.random.default_rng(3)
n = 400
plots = pd.DataFrame(
    {"temp": rng.uniform(8, 28, n), "rain": rng.uniform(10, 90, n), "slope": rng.uniform(0, 9, n)}
)
crop = 4 - ((plots["temp"] - 18) / 6) ** 2 + 0.02 * plots["rain"] + 0.3 * rng.standard_normal(n)

gp = gm.GPRegressor("matern52", random_state=0).fit(plots[:150], crop[:150])

fig, axes = plt.subplots(2, 3, figsize=(10, 6.2))
gp.plot_calibration(plots[150:], crop[150:], ax=axes[0, :2])
gp.plot_relevance(ax=axes[0, 2])
gp.plot_residuals(plots[150:], crop[150:], along=["temp", "rain"], ax=axes[1])
plt.show()
