-- Agent commands, outstanding and ended: the ledger as people read it. The conductor itself reads the node's body.
CREATE TABLE commands (
    node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    -- counted from 1 within the node
    number BIGINT NOT NULL,
    -- full name, for example deploy.execute_deploy_step
    request TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    -- planned, sent, accepted, unknown, refused or finished
    phase TEXT NOT NULL,
    planned_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    -- why it did not succeed, once it has ended so
    error TEXT,
    PRIMARY KEY (node_id, number)
);
CREATE INDEX commands_phase ON commands (phase);
