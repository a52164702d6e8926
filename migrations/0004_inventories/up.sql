-- What the last inspection of each node found; a node that was never inspected has no row.
CREATE TABLE inventories (
    node_id TEXT NOT NULL PRIMARY KEY REFERENCES nodes (id) ON DELETE CASCADE,
    -- JSON as the API serves it: inventory and plugin_data
    body TEXT NOT NULL
);
