//! Persistent exchanges without queues, right and with each step done wrong.

#[path = "../../../prdma-offload/tests/delivery/cases.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
pub(super) mod cases;
#[path = "../../../prdma-offload/tests/delivery/exchange.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
pub(super) mod exchange;
#[path = "../../../prdma-offload/tests/delivery/member.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
pub(super) mod member;
#[path = "../../../prdma-offload/tests/delivery/spoiled.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
pub(super) mod spoiled;
#[path = "../../../prdma-offload/tests/delivery/wrong.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod wrong;
