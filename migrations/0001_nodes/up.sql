-- Nodes and their ports. A column is what lists filter or sort by and what recovery looks for; all the rest is in `body`.
-- Times are milliseconds since 1970.
CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    -- order of creation, assigned by the writer
    seq BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT,
    instance_uuid TEXT,
    instance_name TEXT,
    driver TEXT NOT NULL,
    provision_state TEXT NOT NULL,
    power_state TEXT,
    maintenance BOOLEAN NOT NULL,
    fault TEXT,
    resource_class TEXT,
    conductor_group TEXT NOT NULL,
    owner TEXT,
    lessee TEXT,
    retired BOOLEAN NOT NULL,
    -- lower case, for searching
    description TEXT,
    shard TEXT,
    parent_node TEXT,
    -- the earliest moment at which something must happen although nobody calls
    next_deadline BIGINT,
    -- has a deadline, an open command or a driver call
    waiting BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    -- JSON with the number of its form inside
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX nodes_seq ON nodes (seq);
CREATE UNIQUE INDEX nodes_name ON nodes (name);
CREATE UNIQUE INDEX nodes_instance_uuid ON nodes (instance_uuid);
CREATE INDEX nodes_provision_state ON nodes (provision_state);
CREATE INDEX nodes_waiting ON nodes (waiting, next_deadline);
CREATE INDEX nodes_shard ON nodes (shard);
CREATE INDEX nodes_parent_node ON nodes (parent_node);

CREATE TABLE ports (
    id TEXT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL,
    node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    -- MAC, lower case with colons
    address TEXT NOT NULL,
    name TEXT,
    description TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX ports_seq ON ports (seq);
CREATE UNIQUE INDEX ports_address ON ports (address);
CREATE UNIQUE INDEX ports_name ON ports (name);
CREATE INDEX ports_node_id ON ports (node_id, seq);

-- Facts about the whole database, such as the fingerprint of the token key.
CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
