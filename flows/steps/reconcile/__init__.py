"""Reconciliation as pure functions over frames of its sources.

eligibility   what an extract row is by itself, before anything is compared with it
records       J1-J3: every record's own status, and where its sides first differ (second_keys)
answers       what the service answered to what was sent, and its breaks
rates         J4: the rate each payment used; series: J5, the rates among themselves
plans         J6, J7: plan details against payments, and per plan (links, allotment)
debts         J9: every debt by its payments and what plans ask of it
documents     J8: which debts have an invoice file
batches       J10: insert-batch data against what was sent (insert_batch: the record inside a row)
tenants       J11: records of two tenants that meet on a join
joins         all of these over all sources
totals        controls, difference proof and chain, from both sides added up (sums)
roll_forward  from the breaks that were open before to those that are open now
self_test     planted faults that every run has to find
signed        what has changed in the records that were signed
changes       what has changed of the rules, and the hash that accepts it
conclusion    the value of the report (report) from what was found

listed        outside of a run: our rows against the service's own list of insert-batch data
"""
