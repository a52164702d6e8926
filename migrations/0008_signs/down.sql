DROP INDEX nodes_waiting;
CREATE INDEX nodes_waiting ON nodes (waiting, next_deadline);
DROP TABLE signs;
