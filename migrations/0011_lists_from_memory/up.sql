-- Lists of nodes are made from memory (src/store/lists.rs), so these only cost time when nodes change.
DROP INDEX nodes_provision_state;
DROP INDEX nodes_parent_node;
DROP INDEX nodes_fault;
DROP INDEX nodes_owner;
DROP INDEX nodes_lessee;
DROP INDEX nodes_resource_class;
DROP INDEX nodes_conductor_group;
DROP INDEX nodes_instance_name;
