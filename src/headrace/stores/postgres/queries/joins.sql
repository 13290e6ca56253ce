SELECT * FROM headrace.joins_into($1::text[])
