DROP INDEX nodes_parent_node;
CREATE INDEX nodes_parent_node ON nodes (parent_node);
