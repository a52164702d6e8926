CREATE INDEX nodes_provision_state ON nodes (provision_state);
CREATE INDEX nodes_parent_node ON nodes (parent_node, seq);
CREATE INDEX nodes_fault ON nodes (fault) WHERE fault IS NOT NULL;
CREATE INDEX nodes_owner ON nodes (owner, seq);
CREATE INDEX nodes_lessee ON nodes (lessee, seq);
CREATE INDEX nodes_resource_class ON nodes (resource_class, seq);
CREATE INDEX nodes_conductor_group ON nodes (conductor_group, seq);
CREATE INDEX nodes_instance_name ON nodes (instance_name, seq);
