DROP INDEX nodes_fault;
