-- What happened to each node, in words for operators.
CREATE TABLE history (
    id TEXT NOT NULL PRIMARY KEY,
    node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    -- counted from 1 within the node
    number BIGINT NOT NULL,
    happened_at BIGINT NOT NULL,
    conductor TEXT NOT NULL,
    -- INFO or ERROR
    severity TEXT NOT NULL,
    event_type TEXT NOT NULL,
    event TEXT NOT NULL
);
CREATE UNIQUE INDEX history_node_id ON history (node_id, number);
