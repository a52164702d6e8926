-- The state a node was in at each line of its history, where that was to lead, and how long the state before had lasted.
ALTER TABLE history ADD COLUMN state TEXT;
ALTER TABLE history ADD COLUMN target TEXT;
ALTER TABLE history ADD COLUMN lasted_ms BIGINT;
