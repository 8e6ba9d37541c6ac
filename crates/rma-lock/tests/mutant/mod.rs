//! The steps of the locks done wrong, as a [`mutant`](mutant()) does them.

mod fair;
mod rp;
mod step;
mod words;

pub(crate) use explore::mutant::Mutation;
#[allow(unused_imports, reason = "lock counts run over fabrics of another type")]
pub(crate) use explore::mutant::mutant;
pub(crate) use fair::Fair;
pub(crate) use rp::Rp;
pub(crate) use step::{Step, Subject};
pub(crate) use words::assert_idle;
