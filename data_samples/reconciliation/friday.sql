-- payment 1003 is changed after the report was signed
UPDATE recon.payment SET "PaidAmount" = "PaidAmount" + 5 WHERE "Id" = 1003;
