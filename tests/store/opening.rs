//! What happens when the database is not as it should be.
