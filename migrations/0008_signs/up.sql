-- Signs of life are stored for themselves: they come often and change little, and the rest of a node is a hundred times as large.
-- They count where their version is newer than the node's.
CREATE TABLE signs (
    node_id TEXT NOT NULL PRIMARY KEY REFERENCES nodes (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    body TEXT NOT NULL
);

-- All that wait are read at once, so there is nothing to find by their deadlines.
DROP INDEX nodes_waiting;
CREATE INDEX nodes_waiting ON nodes (waiting);
