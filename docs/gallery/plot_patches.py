"""
What patches of an image say
============================

A convolutional kernel on noisy pictures of standing and lying bars: a function of patches of 3 x 3 pixels is
averaged over all of them. To the left the patches at which it was learned, from those that speak for a lying
bar most to those that speak for a standing one; below each picture, where it says what.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm
from gramian.plots import plot_patches

rng = np.random.default_rng(0)


def pictures(n):
    images, standing = rng.normal(0, 0.25, (n, 8, 8)), np.arange(n) % 2
    for image, up in zip(images, standing, strict=True):
        a, b = rng.integers(1, 7), rng.integers(0, 4)
        if up:
            image[b : b + 5, a] += 1.0
        else:
            image[a, b : b + 5] += 1.0
    return images.reshape(n, -1), 2.0 * standing - 1.0


images, standing = pictures(60)
kernel = 4.0 * gm.Convolutional(gm.RBF(1.5), patch=3, image=8)
gp = gm.GPRegressor(kernel, method=gm.Sparse(16), random_state=0).fit(images, standing)

fig, axes = plt.subplot_mosaic("zabc;zABC", figsize=(10, 4.6))
plot_patches(gp, ax=[axes[name] for name in "zabcABC"])
plt.show()
