"""Conformance suites, a module a contract; `gramian.testing` is where they are found and described."""
