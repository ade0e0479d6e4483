"""From what people have to tables of numbers.

inputs          arrays, lists and DataFrames
frames          tables of other libraries as named columns
cells           one column as an array of one kind
readings        how the cells of a column become numbers
deciding        which reading a column has
numerals        how numbers are written
dates           dates and spans of time in text
columns         the columns of a model, with their readings
gaps            missing cells
targets         what is to be predicted, where it comes with the table
labels          classes
sources         files, memory maps and functions that give blocks
filecolumns     the columns of a file
spool           rows on their way to a temporary file, within limits of memory and disk
streams         pipes and standard input as files
tables          text, Parquet and workbooks, in and out
atomic          a file that appears whole or not at all
"""
