"""The explorer: a page on this machine on which a Gaussian process can be built, moved and asked.

    wire       what the page may say: a JSON tree of known names and numbers, and nothing else
    compute    the library's answers to it
    opening    a table or a model file as what the page begins with
    server     the page itself, on loopback, with its checks
    static/    the page: hand-written modules, which solve small problems by the library's formulas, and need
               no server for that

`gramian explore` starts it. Starlette and uvicorn are an extra, `pip install "gramian[explore]"`.
"""
