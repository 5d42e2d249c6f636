"""One engine of matching, for a reconciliation and for tables of any columns.

keys        which row of one side is which row of the other, in bounded memory
pairing     the same for records with a business key (near_keys, packing)
cells       where two columns differ, exactly, with both values and the difference between them
comparison  the fields in which paired records differ, and which of that the rules allow
statuses    what a comparison of tables comes to
"""
