//! Runs the examples, and compares those that pages show with the pages.

mod pages;
mod runs;
