//! Shapes of small scopes.
