-- Lists show what is no part of another node, in the order of creation: with both in one index a page is read without sorting all.
DROP INDEX nodes_parent_node;
CREATE INDEX nodes_parent_node ON nodes (parent_node, seq);
