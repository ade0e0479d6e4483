"""Deep Gaussian processes: layers of functions, each of what the layer below gives.

    bound       the bound on some rows and its gradients, in JAX
    layers      what a person writes as a layer, the means of inner ones, where a deep model begins
    process     f as a mixture over draws of the inner layers
    scheme      both as a method: Deep, and DeepVariational after a search (fitting/layers.py)

Source: Damianou and Lawrence 2013 (the model); Salimbeni and Deisenroth 2017 (the inference).
"""
