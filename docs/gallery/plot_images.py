"""
Images without a trained network
================================

Noisy pictures of bars, standing or lying, by the kernel of an infinitely wide convolutional network. Nothing
is trained: 60 labelled pictures and one kernel matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)


def pictures(n):
    images, standing = rng.normal(0, 0.25, (n, 8, 8)), np.arange(n) % 2
    for image, up in zip(images, standing, strict=True):
        a, b = rng.integers(3, 5), rng.integers(1, 3)
        if up:
            image[b : b + 5, a] += 1.0
        else:
            image[a, b : b + 5] += 1.0
    return images, np.where(standing, "standing", "lying")


images, labels = pictures(60)
new, true = pictures(12)
kernel = 300.0 * gm.ConvNet(2, image=(8, 8))
gp = gm.GPClassifier(kernel, optimize=False).fit(images.reshape(60, -1), labels)
P = gp.predict_proba(new.reshape(12, -1))

fig, axes = plt.subplots(2, 6, figsize=(8.6, 3.5))
for ax, image, name, p in zip(axes.flat, new, true, P, strict=True):
    ax.imshow(image, cmap="gray_r", vmin=-1, vmax=1.6)
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"{gp.classes_[p.argmax()]}, {p.max():.0%}", fontsize=9)
    ax.set_xlabel("right" if gp.classes_[p.argmax()] == name else "wrong", fontsize=9)
plt.show()
