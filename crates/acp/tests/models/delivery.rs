//! Small jobs under every order of delivery, and mutants that must be detected; `cargo xtask
//! explore` explores larger jobs.

use checks::exploration;

#[test]
fn global_addresses_in_every_order() {
    exploration::check(checks::acp::explorations());
}
