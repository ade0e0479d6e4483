"""Which engine: by name, by plan, or automatically.

words       names and objects that people give, and back
plan        memory and time of each engine before a fit, and the choice
"""
