"""Reconciliation as judgements: pure functions over frames of the truth sources.

matching   J1-J3: every record's own status, and where its sides first differ
rates      J4: the rate each payment used; series: J5, the rates among themselves
plans      J6, J7: plan details against payments, and per plan (links, allotment)
debts      J9: every debt by its payments and what plans ask of it
documents  J8: which debts have an invoice file
batches    J10: insert-batch data against what was sent (inner: the record inside a row)
tenants    J11: records of two tenants that meet on a join
totals     controls, difference proof and chain, from both sides added up (sums)
causes     breaks that read as one cause (conversions: amounts times a rate)
self_test  planted faults that every run has to find
life       what became of the breaks of the run before; roll_forward and ageing tell it in sums
signed     what has changed in the records that were signed
"""
