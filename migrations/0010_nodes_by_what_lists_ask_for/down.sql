DROP INDEX nodes_instance_name;
DROP INDEX nodes_conductor_group;
DROP INDEX nodes_resource_class;
DROP INDEX nodes_lessee;
DROP INDEX nodes_owner;
