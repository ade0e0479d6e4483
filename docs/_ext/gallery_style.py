"""How the pictures of the gallery look: wide, quiet, in the colours of Okabe and Ito, which all eyes tell
apart."""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def apply(gallery_conf: Any, fname: Any) -> None:
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "axes.prop_cycle": mpl.cycler(color=COLOURS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.figsize": (7.2, 4.0),
            "font.size": 10,
            "legend.frameon": False,
            "savefig.dpi": 110,
        }
    )
