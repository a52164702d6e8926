DROP INDEX ports_portgroup_uuid;
ALTER TABLE ports DROP COLUMN portgroup_uuid;
DROP INDEX nodes_chassis_uuid;
ALTER TABLE nodes DROP COLUMN chassis_uuid;
DROP TABLE parts;
DROP TABLE catalog;
