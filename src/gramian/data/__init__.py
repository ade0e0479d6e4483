"""From what people have to tables of numbers.

inputs          arrays, lists and DataFrames
labels          classes
sources         files, memory maps and functions that give blocks
filecolumns     the columns of a file
spool           rows on their way to a temporary file
tables          CSV and Parquet, in and out
atomic          a file that appears whole or not at all
"""
