-- What few of many nodes have is found without going through all of them, in the order in which lists show them.
CREATE INDEX nodes_owner ON nodes (owner, seq);
CREATE INDEX nodes_lessee ON nodes (lessee, seq);
CREATE INDEX nodes_resource_class ON nodes (resource_class, seq);
CREATE INDEX nodes_conductor_group ON nodes (conductor_group, seq);
CREATE INDEX nodes_instance_name ON nodes (instance_name, seq);
