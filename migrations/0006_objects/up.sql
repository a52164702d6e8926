-- Objects that stand for themselves: chassis, deploy templates, runbooks, inspection rules, allocations. A column is what lists filter
-- or sort by; all the rest is in `body`.
CREATE TABLE catalog (
    id TEXT NOT NULL PRIMARY KEY,
    -- order of creation, assigned by the writer
    seq BIGINT NOT NULL,
    -- chassis, deploy_template, runbook, inspection_rule or allocation
    kind TEXT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT,
    owner TEXT,
    state TEXT,
    resource_class TEXT,
    node_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    -- JSON with the number of its form inside
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX catalog_seq ON catalog (seq);
CREATE UNIQUE INDEX catalog_name ON catalog (kind, name);
CREATE INDEX catalog_kind ON catalog (kind, seq);
CREATE INDEX catalog_state ON catalog (kind, state);

-- What belongs to nodes besides ports: port groups, volume connectors and volume targets.
CREATE TABLE parts (
    id TEXT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL,
    -- Portgroup, Volume connector or Volume target
    kind TEXT NOT NULL,
    node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    name TEXT,
    -- what no other part of its kind may have: the address of a port group, kind and name of a connector
    claim TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX parts_seq ON parts (seq);
CREATE UNIQUE INDEX parts_name ON parts (kind, name);
CREATE UNIQUE INDEX parts_claim ON parts (kind, claim);
CREATE INDEX parts_node_id ON parts (node_id, seq);

ALTER TABLE nodes ADD COLUMN chassis_uuid TEXT;
CREATE INDEX nodes_chassis_uuid ON nodes (chassis_uuid);
ALTER TABLE ports ADD COLUMN portgroup_uuid TEXT;
CREATE INDEX ports_portgroup_uuid ON ports (portgroup_uuid);
