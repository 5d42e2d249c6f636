-- payment 1021 is put right
UPDATE recon.payment SET "PaidAmount" = 121.25 WHERE "Id" = 1021;

-- payment 1022 is put right
UPDATE recon.payment SET "ActionsId" = 7022 WHERE "Id" = 1022;

-- payments 1025 and 1029 are there again, as they were delivered
INSERT INTO recon.payment SELECT "Id", "TenantsId", "ActionsId", "DebtsId", "PaymentDate", "PaymentDate_offset", "PaidAmount", "DiscountAmount", "CurrenciesId", "CurrencyRatesId", batch_id, extract_id, record_number FROM recon.staged_payment WHERE "Id" IN (1025, 1029) AND error_data IS NULL;

-- payment 1071 has been sent meanwhile
UPDATE recon.send s SET state = 'acknowledged', status = 200 FROM recon.staged_payment r WHERE r.extract_id = s.extract_id AND r.record_number = s.record_number AND r."Id" = 1071;
