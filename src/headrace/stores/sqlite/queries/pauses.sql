-- All pauses; that of all tenants first.
SELECT queue, tenant, since FROM pauses ORDER BY queue, coalesce(tenant, '');
