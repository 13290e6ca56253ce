SELECT headrace.load_begin()
