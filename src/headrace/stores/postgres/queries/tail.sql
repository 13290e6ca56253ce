SELECT * FROM headrace.log_tail($1::boolean)
