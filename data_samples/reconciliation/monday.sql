-- payment 1021 is a cent higher in the target
UPDATE recon.payment SET "PaidAmount" = "PaidAmount" + 0.01 WHERE "Id" = 1021;

-- payment 1022 names another action
UPDATE recon.payment SET "ActionsId" = 7999 WHERE "Id" = 1022;

-- payment 1023 was moved by an hour
UPDATE recon.payment SET "PaymentDate" = "PaymentDate" + interval '1 hour' WHERE "Id" = 1023;

-- payment 1024 tells the same instant with another offset
UPDATE recon.payment SET "PaymentDate_offset" = 120 WHERE "Id" = 1024;

-- payment 1025 was removed
DELETE FROM recon.payment WHERE "Id" = 1025;

-- payment 1926 was added by hand
INSERT INTO recon.payment SELECT 1926, "TenantsId", "ActionsId", "DebtsId", "PaymentDate", "PaymentDate_offset", "PaidAmount", "DiscountAmount", "CurrenciesId", "CurrencyRatesId", batch_id, extract_id, 0 FROM recon.payment WHERE "Id" = 1026;

-- payment 1027 has more digits than money has
UPDATE recon.payment SET "PaidAmount" = 127.2500000000000000001 WHERE "Id" = 1027;

-- payment 1028: a discount inside the tolerance
UPDATE recon.payment SET "DiscountAmount" = 3.01 WHERE "Id" = 1028;

-- payment 1029 of today is not there yet: inside its window
DELETE FROM recon.payment WHERE "Id" = 1029;

-- payment 1030 stands under another tenant
UPDATE recon.payment SET "TenantsId" = 8 WHERE "Id" = 1030;

-- payment 1071 has not been sent yet
UPDATE recon.send s SET state = 'unsent', status = NULL FROM recon.staged_payment r WHERE r.extract_id = s.extract_id AND r.record_number = s.record_number AND r."Id" = 1071;

-- payment 1072 was refused by the service
UPDATE recon.send s SET state = 'refused', status = 400 FROM recon.staged_payment r WHERE r.extract_id = s.extract_id AND r.record_number = s.record_number AND r."Id" = 1072;

-- the service answered with another amount for payment 1073
UPDATE recon.send s SET state = 'differs', echo = '{"Id":1073,"TenantsId":7,"ActionsId":7073,"DebtsId":5073,"PaymentDate":"2026-03-06T10:00:00+01:00","PaidAmount":173.52,"DiscountAmount":0.0,"CurrenciesId":1,"CurrencyRatesId":70061}' FROM recon.staged_payment r WHERE r.extract_id = s.extract_id AND r.record_number = s.record_number AND r."Id" = 1073;

-- somebody said that payment 1074 arrived; no answer shows it
UPDATE recon.send s SET status = NULL FROM recon.staged_payment r WHERE r.extract_id = s.extract_id AND r.record_number = s.record_number AND r."Id" = 1074;

-- the answer about the tone clear was lost
UPDATE recon.send s SET state = 'in_doubt', status = NULL FROM recon.staged_message_tone r WHERE r.extract_id = s.extract_id AND r.record_number = s.record_number AND r."Name" = 'clear';
