"""Reconciliation as pure functions over frames of its sources.

eligibility   whether an extract row is compared at all, by the row alone
records       J1-J3: the status of every record, and where its sides first differ (second_keys)
answers       the service's answers to sent records, and their breaks
rates         J4: the rate each payment used; series: J5, the rates among themselves
plans         J6, J7: plan details against payments, and per plan (links, allotment)
debts         J9: every debt by its payments and its planned amounts
documents     J8: which debts have an invoice file
batches       J10: insert-batch data against what was sent (insert_batch: the record inside a row)
tenants       J11: records of two tenants that meet on a join
joins         all of these over all sources
totals        controls, difference proof and chain, from both sides added up (sums)
roll_forward  from the breaks that were open before to those that are open now
self_test     planted faults that every run has to find
signed        what changed in records since they were signed
changes       what changed in the rules, and the hash that accepts it
conclusion    the value of the report (report) from these results

listed        outside a run: our rows against the service's own list of insert-batch data
"""
