-- Nodes with a fault are few, and are counted at every start.
CREATE INDEX nodes_fault ON nodes (fault) WHERE fault IS NOT NULL;
