ALTER TABLE history DROP COLUMN state;
ALTER TABLE history DROP COLUMN target;
ALTER TABLE history DROP COLUMN lasted_ms;
