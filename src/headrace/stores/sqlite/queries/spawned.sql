-- The jobs that one job has spawned, as a JSON list of their seqs.
SELECT json_group_array(seq) FROM jobs WHERE parent_id = :parent_id
