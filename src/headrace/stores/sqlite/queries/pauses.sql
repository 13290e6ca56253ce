-- All pauses. Every claim asks, so the caller sorts if it needs to.
SELECT queue, tenant, since FROM pauses;
