-- payment 1021 is a cent higher once more
UPDATE recon.payment SET "PaidAmount" = 121.26 WHERE "Id" = 1021;

-- payment 1102: one more discount inside the tolerance, and one too many for the budget
UPDATE recon.payment SET "DiscountAmount" = 0.02 WHERE "Id" = 1102;
