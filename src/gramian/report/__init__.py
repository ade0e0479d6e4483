"""What a fitted model tells people.

facts       what is known of the data
notes       contradictions, parameters at their limits, the summary
"""
