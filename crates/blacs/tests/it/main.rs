//! What the crate promises, over threads and in virtual time.
