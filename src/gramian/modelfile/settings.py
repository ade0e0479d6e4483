"""The settings of an estimator in a file: as a person gave them, and checked again as if a person had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gramian.choose.words import as_method
from gramian.deep.layers import Layer
from gramian.engines.base import Engine
from gramian.errors import ModelFileError
from gramian.estimators import DeepGPClassifier, DeepGPRegressor, GPClassifier, GPRegressor
from gramian.estimators.forecaster import GPForecaster
from gramian.estimators.gplatent import GPLatent
from gramian.fitting.stages import Hold
from gramian.inference import Inference, Scheme
from gramian.inference.mcmc.method import MCMC
from gramian.kernels import Coregion, Kernel
from gramian.kernels.convert import Converted
from gramian.likelihoods import Likelihood, RobustMax
from gramian.linalg.state import entries, typed, typed_list
from gramian.means import Mean
from gramian.modelfile.document import Reader, encode
from gramian.params import Parameter
from gramian.solvers import Solver
from gramian.warps import Warp

Saved = GPRegressor | GPClassifier | GPLatent | GPForecaster
_ALL = GPRegressor, GPClassifier, DeepGPRegressor, DeepGPClassifier, GPLatent, GPForecaster
ESTIMATORS: Mapping[str, type[Saved]] = {cls.__name__: cls for cls in _ALL}
_ELSEWHERE = ("checkpoint", "client")  # of the machine and the process that it was fitted in
_OBJECTS: Mapping[str, Any] = {
    "mean": Mean,
    "noise": (Parameter, tuple),  # one an output
    "likelihood": Likelihood,
    "warp": Warp,
    "multiclass": RobustMax,
    "inference": (Inference, MCMC),
    "method": (Engine, Scheme, Solver),
}


def describe(gp: Saved) -> dict[str, Any]:
    """The settings as JSON, but for those of the machine that it was fitted on."""
    given = gp.get_params(deep=False).items()
    return {name: described(name, value) for name, value in given if name not in _ELSEWHERE}


def described(name: str, value: Any) -> Any:
    """A setting as JSON."""
    own = {
        "kernel": _describe_kernel,
        "stages": _describe_stages,
        "random_state": _describe_random_state,
        "noise": _describe_noise,
        "outputs": _describe_outputs,
        "layers": _describe_layers,
        "seasons": _describe_list,
        "regressors": _describe_list,
    }
    return own[name](value) if name in own else encode(value, name)


def restore(cls: type[Saved], given: Any, reader: Reader) -> Saved:
    """An estimator with the settings of a document, not fitted yet."""
    names = [name for name in cls().get_params(deep=False) if name not in _ELSEWHERE]
    values = dict(zip(names, entries(given, "settings", *names), strict=True))
    special = {
        **({"kernel": _kernel(values.pop("kernel"), reader)} if "kernel" in values else {}),
        **({"stages": _stages(values.pop("stages"))} if "stages" in values else {}),
        "random_state": _random_state(values.pop("random_state")),
    }
    if "outputs" in values:
        special["outputs"] = _outputs(values.pop("outputs"), reader)
    if "layers" in values:
        special["layers"] = _layers(values.pop("layers"), reader)
    for name in ("seasons", "regressors"):
        if name in values:
            special[name] = _list(values.pop(name), name)
    plain = {name: reader.decode(value, name) for name, value in values.items()}
    for name, value in plain.items():
        if not (value is None or isinstance(value, (bool, int, float, str, _OBJECTS.get(name, ())))):
            raise ModelFileError(f"{name} is a {type(value).__name__}, which is no such setting.")
    for name in ("optimize", "normalize_y", "verbose", "shared"):
        unset = name not in plain or (name == "verbose" and plain[name] is None)
        if not unset and not isinstance(plain[name], int):
            raise ModelFileError(f"{name} is {plain[name]!r}, but must be True or False.")
    gp = cls(**special, **plain)
    gp.check_settings()
    method = plain.get("method", "auto")
    if method != "auto":
        as_method(method, gp.memory_limit)
    return gp


def _describe_noise(noise: Any) -> Any:
    several = isinstance(noise, (list, tuple, np.ndarray))  # one an output
    return encode(tuple(noise) if several else noise, "noise")


def _describe_outputs(given: Any) -> Any:
    """A word, what is between outputs, or a list of that."""
    if isinstance(given, list):
        return {"list": [encode(one, f"outputs[{k}]") for k, one in enumerate(given)]}
    return encode(given, "outputs")


def _outputs(value: Any, reader: Reader) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and "list" in value:
        parts = typed(entries(value, "outputs", "list")[0], list, "outputs")
        return [reader.one(part, Coregion, f"outputs[{k}]") for k, part in enumerate(parts)]
    if isinstance(value, list):
        return tuple(reader.one(part, Coregion, f"outputs[{k}]") for k, part in enumerate(value))
    return reader.one(value, Coregion, "outputs")


def _describe_list(given: Any) -> Any:
    """Text and numbers one after the other; text alone, or none."""
    if given is None or isinstance(given, str):
        return given
    return {"list": [encode(one, f"[{k}]") for k, one in enumerate(given)]}


def _list(value: Any, name: str) -> Any:
    if value is None or isinstance(value, str):
        return value
    found = typed(entries(value, name, "list")[0], list, name)
    if not all(type(one) in (str, int, float) for one in found):
        raise ModelFileError(f"{name} must be a list of text and numbers.")
    return found


# The kernel. ------------------------------------------------------------------------------------------------


def _describe_kernel(kernel: Any) -> Any:
    if isinstance(kernel, list):
        return {"list": [encode(one, f"kernel[{k}]") for k, one in enumerate(kernel)]}
    if not isinstance(kernel, Converted):
        return encode(kernel, "kernel")
    return {"converted": [encode(kernel.kernel, "kernel"), encode(kernel.noise, "kernel.noise")]}


def _kernel(value: Any, reader: Reader) -> Any:
    if value is None or isinstance(value, str):  # a word, or text that `check_settings` reads again
        return value
    if isinstance(value, list):
        return tuple(reader.one(part, Kernel, f"kernel[{k}]") for k, part in enumerate(value))
    if isinstance(value, dict) and "list" in value:
        return list(_kernel(typed(entries(value, "kernel", "list")[0], list, "kernel"), reader))
    if not (isinstance(value, dict) and "converted" in value):
        return reader.one(value, Kernel, "kernel")
    pair = typed(entries(value, "kernel", "converted")[0], list, "kernel.converted")
    if len(pair) != 2:
        raise ModelFileError("kernel.converted must have a kernel and a noise.")
    kernel = reader.one(pair[0], Kernel, "kernel")
    return Converted(kernel, None if pair[1] is None else reader.one(pair[1], Parameter, "kernel.noise"))


# The layers of a deep model. --------------------------------------------------------------------------------


def _describe_layers(layers: Any) -> Any:
    if not isinstance(layers, (list, tuple)):
        return encode(layers, "layers")
    found = [
        {"kernel": _describe_kernel(layer.kernel), "width": layer.width, "n_inducing": layer.n_inducing}
        for layer in layers
    ]
    return {"list": found} if isinstance(layers, list) else found


def _layers(value: Any, reader: Reader) -> Any:
    if isinstance(value, dict):
        return list(_layers(typed(entries(value, "layers", "list")[0], list, "layers"), reader))
    if not isinstance(value, list):
        return value  # a number or a word, which `check_settings` reads again
    parts = (entries(part, "layers", "kernel", "width", "n_inducing") for part in value)
    return tuple(Layer(_kernel(kernel, reader), width, points) for kernel, width, points in parts)


# The stages of a search. ------------------------------------------------------------------------------------


def _describe_stages(stages: Any) -> Any:
    if stages is None:
        return None
    if isinstance(stages, Hold):
        return {"names": list(stages.names), "steps": stages.steps}
    if not isinstance(stages, (list, tuple)) or not all(isinstance(stage, Hold) for stage in stages):
        raise ModelFileError(f"stages is {stages!r}, but a model file holds a list of Hold(...).")
    found = [_describe_stages(stage) for stage in stages]
    return {"list": found} if isinstance(stages, list) else found


def _stages(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_hold(stage) for stage in value)
    if isinstance(value, dict) and "list" in value:
        return [_hold(stage) for stage in typed(entries(value, "stages", "list")[0], list, "stages")]
    return _hold(value)


def _hold(value: Any) -> Hold:
    names, steps = entries(value, "stages", "names", "steps")
    return Hold(*typed_list(names, str, "stages.names"), steps=typed(steps, int, "stages.steps"))


# The seed. --------------------------------------------------------------------------------------------------


def _describe_random_state(given: Any) -> Any:
    """A seed as it is; a RandomState with its state, so that it goes on where it was."""
    # NumPy's shared one, which scikit-learn takes for None too
    if given is np.random or given is np.random.mtrand._rand:
        return None
    if not isinstance(given, np.random.RandomState):
        return encode(given, "random_state")
    state = given.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        other = f"a RandomState on {state['bit_generator']}, which is not stored"
        raise ModelFileError(f"random_state is {other}. Use a whole number as seed.")
    own = state["state"]
    parts = own["key"].tolist(), int(own["pos"]), int(state["has_gauss"]), float(state["gauss"])
    return {"mt19937": list(parts)}


def _random_state(value: Any) -> Any:
    if not isinstance(value, dict):
        check_random_state(value)  # refuses what is no seed
        return value
    parts = typed(entries(value, "random_state", "mt19937")[0], list, "random_state")
    if len(parts) != 4:
        raise ModelFileError(f"random_state has {len(parts)} parts, but must have four.")
    key, gauss = typed_list(parts[0], int, "random_state.key"), typed(parts[3], float, "random_state.gauss")
    position, has_gauss = (typed(part, int, "random_state") for part in parts[1:3])
    # NumPy trusts these: a position beyond the key would read past its end.
    words = len(key) == 624 and all(0 <= word < 2**32 for word in key)
    if not words or not 0 <= position <= 624 or has_gauss not in (0, 1):
        raise ModelFileError("random_state is no state of the Mersenne twister.")
    state = np.random.RandomState()
    state.set_state(("MT19937", np.array(key, dtype=np.uint32), position, has_gauss, gauss))
    return state
