"""
Regions of three classes
========================

The most probable class at each place, faint where its probability is low: near boundaries, and far from all
data.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
centres = {"ash": (0, 0), "birch": (2.4, 0.5), "cedar": (1.0, 2.2)}
X = np.vstack([rng.normal(at, 0.65, (30, 2)) for at in centres.values()])
labels = np.repeat(list(centres), 30)

gp = gm.GPClassifier("rbf", inference="laplace", random_state=0).fit(X, labels)

side = np.linspace(-2.5, 5, 90)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
P = gp.predict_proba(grid)
colours = np.array([[0, 0.45, 0.70], [0.84, 0.37, 0], [0, 0.62, 0.45]])
sure = ((P.max(axis=1) - 1 / 3) * 1.5)[:, None]
shade = 1 - sure * (1 - colours[P.argmax(axis=1)])

fig, ax = plt.subplots(figsize=(5.4, 4.6))
ax.imshow(shade.reshape(90, 90, 3), extent=(-2.5, 5, -2.5, 5), origin="lower")
for k, (name, marker) in enumerate(zip(gp.classes_, "os^", strict=True)):
    ax.plot(*X[labels == name].T, marker, color=colours[k], mec="white", ms=6, label=name)
ax.contour(side, side, P.max(axis=1).reshape(90, 90), levels=[0.9], colors="k", linewidths=1)
ax.set(xlabel="first column", ylabel="second column", title="line: where one class has 90 %")
ax.legend(loc="upper left")
plt.show()
