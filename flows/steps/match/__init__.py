"""One matching engine for reconciliations and for tables with any columns.

keys        which row of one side matches which row of the other, in bounded memory
pairing     the same for records with a business key (near_keys, packing)
cells       where two columns differ, exactly, with both values and the difference between them
comparison  the fields in which paired records differ, and which differences the rules tolerate
statuses    the outcome of a comparison of tables
"""
