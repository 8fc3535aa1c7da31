-- Lines of refused strangers have a part of the audit of their own: each part is counted along its index.
CREATE INDEX audit_strangers ON audit (id) WHERE via = '' AND status >= 400;

CREATE INDEX audit_others ON audit (id) WHERE NOT (via = '' AND status >= 400);
