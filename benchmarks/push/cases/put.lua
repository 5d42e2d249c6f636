-- wrk: the same PUTs, whose answers are only counted.
local number = 0
wrk.method = "PUT"
wrk.headers["Accept"] = "application/json"
wrk.headers["Content-Type"] = "application/json"
request = function()
  number = (number + 1) % 5000
  wrk.headers["Idempotency-Key"] = string.format("2c5ea4c0-4067-51e9-8bad-%012x", number)
  local body = string.format(
    '{"Id":%d,"TenantsId":1,"ActionsId":%d,"DebtsId":%d,"PaymentDate":"2026-01-02T03:04:05+02:00",'
    .. '"PaidAmount":%d.5,"DiscountAmount":0,"CurrenciesId":1,"CurrencyRatesId":%d}',
    number, number % 97, number % 991, number % 1000, number % 6300)
  return wrk.format(nil, "/payments/" .. number, nil, body)
end
